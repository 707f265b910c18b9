"""``watchfloor policy import | export``: other programs' own rules in our words and back, with what cannot be carried over said."""

from __future__ import annotations

import json
import posixpath
from dataclasses import replace
from pathlib import Path
from typing import Annotated, BinaryIO

from console.api.policy import policy_data
from console.cli.options import Json
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import NotFound, UsageProblem
from console.policy.review.exchange import EXCHANGES, Carried, Exchange, Lost
from console.policy.review.lint import swallowed_by
from console.policy.rules.loading import MAX_BYTES, Settings, read_settings
from console.policy.rules.rule import Family, Rule
from console.wording.agent_kinds import EXAMPLE

Program = Annotated[str, Argument(metavar="|".join(EXCHANGES), help="Whose rules.")]
File = Annotated[str, Argument(metavar="FILE")]


def add_exchange(app: Verbs) -> None:
    """Adds the two verbs to ``policy``."""
    app.command("import")(import_rules)
    app.command("export")(export_rules)


@example(f"{EXAMPLE} settings.json")
def import_rules(
    program: Program,
    file: File,
    project: Annotated[str, Option("--project", metavar="DIR", help="What its relative paths start from.")] = "${WORKSPACE}",
    home: Annotated[str, Option("--home", metavar="DIR", help="What ~ is in it.")] = "",
    as_json: Json = False,
) -> int:
    """Another program's rules as settings.json on stdout; what cannot be carried over is said on stderr."""
    data = read_bytes(file)
    made = _known(program).read(data, file, project, home)
    settings = made.settings()
    if as_json:
        out.emit({"settings": settings, "lost": _lost(made)})
    else:
        out.write(json.dumps(settings, indent=2) + "\n")
        _say(made)
    return 0


@example(f"{EXAMPLE} settings.json")
def export_rules(program: Program, file: File, as_json: Json = False) -> int:
    """Our settings.json as another program's rules on stdout; what cannot be carried over is said on stderr."""
    settings, left_out = _in_force(read_settings(read_bytes(file)))
    text, made = _known(program).written(settings)
    made.lost[:0] = left_out
    if as_json:
        out.emit({"written": text, "lost": _lost(made)})
    else:
        out.write(text)
        _say(made)
    return 0


def _in_force(settings: Settings) -> tuple[Settings, list[Lost]]:
    """Without the allow rules whose calls are not allowed here, or ask a human all the same; another program would just allow them."""
    catalogue = policy_data.catalogue()
    kept: list[Rule] = []
    left_out: list[Lost] = []
    for rule in settings.allow:
        why = ""
        if rule.family is Family.SHELL and rule.words and not rule.unconfined:
            swallows = swallowed_by(rule, settings, catalogue)[0]
            if swallows:
                why = f"it is not in force here (not marked unconfined): {swallows}"
            elif catalogue.of(posixpath.basename(rule.words[0])) is None:
                why = "its calls ask a human here, since what its arguments do is not described"
        if why:
            left_out.append(Lost(f"allow: {rule.text}", why))
        else:
            kept.append(rule)
    return replace(settings, allow=tuple(kept)), left_out


def _known(program: str) -> Exchange:
    if program not in EXCHANGES:
        raise UsageProblem(f"{program[:60]!r} is not known.", f"Name {' or '.join(EXCHANGES)}.")
    return EXCHANGES[program]


def _lost(made: Carried) -> list[dict[str, str]]:
    return [{"what": one.what, "why": one.why} for one in made.lost]


def _say(made: Carried) -> None:
    for one in made.lost:
        out.note(f"not carried over as it is: {plain(one.what, 160)}: {plain(one.why, 300)}")


def read_bytes(name: str, limit: int = MAX_BYTES) -> bytes:
    """A whole file. Raises NotFound, and UsageProblem for what is no plain file or has more than ``limit`` bytes."""
    path = Path(name)
    if not path.exists():
        raise NotFound(f"There is no file {name}.", "Name one that is there.")
    if not path.is_file():
        raise UsageProblem(f"{name} is not a file.", "Name a plain file.")
    with path.open("rb") as file:
        return bounded(file, name, limit)


def bounded(stream: BinaryIO, name: str, limit: int) -> bytes:
    """Read all of the stream. Raises UsageProblem for more than ``limit`` bytes: the rest would escape the check."""
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise UsageProblem(f"{name} has more than {limit:,} bytes; at most that many are read.", "Split it.")
    return data
