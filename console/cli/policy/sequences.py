"""``watchfloor policy sequences``: which sequences of calls are forbidden here. Read as the supervisor reads them, without one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from console.api.client.api_client import ApiClient
from console.api.policy import policy_data
from console.cli.options import Json, StateDir, seek_places
from console.cli.syntax import Option, Verbs
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import ConsoleError, ExitCode, NotFound
from console.policy.sequences.find import Matcher, Pattern
from console.policy.sequences.sequence_file import BYTES_MAX, GONE, in_force, read_sequences
from console.settings.places import Places


def add_sequences(app: Verbs) -> None:
    """Adds the verb to ``policy``."""
    app.command("sequences")(sequences)


def sequences(
    file: Annotated[str, Option("--file", metavar="FILE", help="Check this file instead of the instance's sequences.yaml.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Forbidden sequences in force: built-in and own. Ends with 1 when the file is broken or gone (then the last good one is shown)."""
    patterns, problem = policy_data.sequences(), ""
    places = seek_places(state_dir) if not file else None
    if places is not None and places.by_role:
        return _of_host(places, as_json)
    if file and not Path(file).is_file():
        raise NotFound(f"There is no file {file}.", "Name one that is there.")
    own = Path(file) if file else None if places is None else places.state_dir / "sequences.yaml"
    good = None if file or own is None else own.with_name(".sequences-last-good.yaml")
    try:
        if own is not None and good is not None and not own.exists() and good.exists():
            raise ConsoleError(GONE)
        patterns = _own(own)
    except (ConsoleError, OSError) as error:
        problem = str(error)
        if good is not None:
            patterns = _last_good(good)
    if as_json:
        out.emit({"problem": problem, "patterns": [_as_json(pattern) for pattern in patterns]})
        return int(ExitCode.FAILURE if problem else ExitCode.DONE)
    for pattern in patterns:
        _say(pattern)
    if problem:
        kept = "nothing is allowed" if not patterns else "what is shown stays in force"
        out.say(f"{plain(str(own), 200)}: {plain(problem, 400)} ({kept})")
    return int(ExitCode.FAILURE if problem else ExitCode.DONE)


def _of_host(places: Places, as_json: bool) -> int:
    """Those of the host's instance, as its supervisor gives them: a member reads no file of it."""
    with ApiClient(places) as client:
        view = client.sequences()
    if as_json:
        out.emit({"problem": view.problem, "patterns": [row.as_data(exclude={"marks"}) for row in view.patterns]})
        return int(ExitCode.FAILURE if view.problem else ExitCode.DONE)
    for row in view.patterns:
        _say_row(row.name, row.built_in, row.same, row.tighten, row.why, [(step.name, step.takes) for step in row.steps])
    if view.problem:
        out.say(f"{plain(view.problem, 400)} ({'what is shown stays in force' if view.patterns else 'nothing is allowed'})")
    return int(ExitCode.FAILURE if view.problem else ExitCode.DONE)


def _own(path: Path | None) -> tuple[Pattern, ...]:
    if path is None or not path.exists():
        return policy_data.sequences()
    with path.open("rb") as file:
        return in_force(read_sequences(file.read(BYTES_MAX + 1)), policy_data.sequences())


def _last_good(path: Path) -> tuple[Pattern, ...]:
    """None was ever good: nothing is in force, and everything is denied."""
    try:
        return _own(path) if path.exists() else ()
    except (ConsoleError, OSError):
        return ()


def _say(pattern: Pattern) -> None:
    steps = [(step.name, "; or ".join(_words(one) for one in step.any)) for step in pattern.steps]
    _say_row(pattern.name, pattern.built_in, pattern.same, pattern.tighten, pattern.why, steps)


def _say_row(name: str, built_in: bool, same: str, tighten: str, why: str, steps: list[tuple[str, str]]) -> None:
    more = f", the same {same}" if same else ""
    more += f", network {tighten} with the first step" if tighten else ""
    out.say(f"{plain(name, 100)} ({'built in' if built_in else 'own'}{plain(more, 200)}): {plain(why, 300)}")
    for number, (step, takes) in enumerate(steps, 1):
        out.say(f"  {number}. {plain(step, 300)}: {plain(takes, 2000)}")


def _words(one: Matcher) -> str:
    told = [f"{name} {', '.join(values)}" for name, values in _fields(one).items()]
    return " and ".join(told)


def _fields(one: Matcher) -> dict[str, list[str]]:
    """What was written, without what was left out."""
    fields = {
        "action": sorted(one.actions),
        "paths": [rule.pattern for rule in one.paths],
        "hosts": [rule.pattern for rule in one.hosts],
        "scopes": sorted(one.scopes),
        "tools": list(one.tools),
        "commands": [" ".join(words) for words in one.commands],
    }
    return {name: values for name, values in fields.items() if values}


def _as_json(pattern: Pattern) -> dict[str, Any]:
    steps = [{"name": step.name, "any": [_fields(one) for one in step.any]} for step in pattern.steps]
    told = {"name": pattern.name, "why": pattern.why, "built_in": pattern.built_in, "same": pattern.same, "tighten": pattern.tighten}
    return told | {"steps": steps}
