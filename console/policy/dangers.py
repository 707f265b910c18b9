"""Operations that always ask a human, whatever a rule allows: data (``resources/policy/dangers.json``), and lists of one's own beside it.

Looked for in every command that is judged, and (``spoken``) in free text: what an agent is created with, and every message to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from console.domain.calls.permission import DangerClass, rank_of
from console.domain.errors import UsageProblem
from console.policy.rules.verdicts import DATABASE

_FETCHERS = frozenset(("npx", "bunx", "pnpx", "uvx", "pipx"))
"""Programs whose first word is another program."""
_STARTERS = _FETCHERS | {"npm", "pnpm", "yarn", "bun", "uv", "poetry", "pdm", "pipenv", "hatch", "rye", "bundle", "python", "python3"}
"""These, and programs that have other words as well: of what they start only dangers with words of their own count."""
_STARTING = frozenset(("run", "exec", "x", "dlx", "tool"))
ELSEWHERE = re.compile(
    r"(?i)(?<![a-z])(?:prod(?:uction)?|staging)(?![a-z])|://(?!(?:[^/@\s]*@)?(?:localhost|127\.0\.0\.1|\[::1\])?(?:[:/?]|\Z))"
    r"|\A\w*HOST\w*=(?!(?:localhost|127\.0\.0\.1|::1|)\Z)"
)
"""A word, or a variable, that names another machine, or what others use."""
_FIELDS = {"name", "why", "program", "words", "any", "where", "class", "unless", "only"}


@dataclass(frozen=True, slots=True)
class Danger:
    """One kind of operation."""

    name: str
    why: str
    programs: frozenset[str]
    words: tuple[frozenset[str], ...] = ()
    """Subcommands in this order, others may stand between them; each may be one of several."""
    any: tuple[re.Pattern[str], ...] = ()
    """One word must match one of these, if there are any."""
    unless: re.Pattern[str] | None = None
    """It is none where a word matches this: the command only checks, or shows."""
    kind: str = ""
    """Its class (``domain.danger``); empty: an own list did not say."""
    asks: bool = True
    """False: it does no more than name a call that a rule asks about."""
    only_outside: bool = False
    """In a sandbox it does no harm: what it changes is there, and is the agent's own."""

    @property
    def rule(self) -> str:
        """The built-in rule that it is."""
        return DATABASE if self.only_outside else f"danger: {self.name}"

    @property
    def words_first(self) -> str:
        """The class and the sentence, as people read it."""
        return f"{self.kind}: {self.why}" if self.kind else self.why


def read_dangers(document: object, where: str) -> tuple[Danger, ...]:
    """Reads the parsed list. Raises UsageProblem with the place of the first mistake."""
    if not isinstance(document, dict) or not isinstance(document.get("dangers"), list):
        raise UsageProblem(f"{where}: there is no list called dangers.", "See resources/policy/dangers.json.")
    return tuple(_danger(found, f"{where}: dangers[{at}]") for at, found in enumerate(document["dangers"]))


def _danger(found: Any, where: str) -> Danger:
    if not isinstance(found, dict) or not set(found) <= _FIELDS or not all(isinstance(v, str) and v for v in found.values()):
        raise UsageProblem(f"{where} is not understood.", f"Fields are {', '.join(sorted(_FIELDS))}, each a string.")
    if not {"name", "why", "program"} <= set(found):
        raise UsageProblem(f"{where} lacks name, why or program.", "See resources/policy/dangers.json.")
    try:
        patterns = tuple(re.compile(one) for one in found.get("any", "").split())
        unless = re.compile(found["unless"]) if "unless" in found else None
    except re.error as error:
        raise UsageProblem(f"{where}: any is no pattern: {error}.", "See Python's re.") from error
    words = tuple(frozenset(one.split("|")) for one in found.get("words", "").split())
    kind = found.get("class", "")
    if kind and kind not in list(DangerClass):
        raise UsageProblem(f"{where}: class {kind!r} is not known.", f"Classes are {', '.join(DangerClass)}.")
    only = found.get("only", "")
    if only not in ("", "asked", "outside"):
        raise UsageProblem(f"{where}: only is {only!r}.", "It is asked or outside, or is left out: then it asks whatever a rule allows.")
    programs = frozenset(found["program"].split("|"))
    return Danger(found["name"], found["why"], programs, words, patterns, unless, kind, only != "asked", only == "outside")


def danger_of(dangers: Iterable[Danger], names: Collection[str], argv: Sequence[str], verb: str = "") -> Danger | None:
    """The worst danger that a command is, or may be; the first of those of one class.

    ``verb``: the subcommand, where that is certain. A danger whose first word is another subcommand is not meant.
    """
    rest = list(argv[1:])
    found: Danger | None = None
    for danger in dangers:
        if danger.programs.isdisjoint(names) or not _in_order(danger.words, rest):
            continue
        if verb and danger.words and verb not in danger.words[0]:
            continue
        if danger.unless is not None and any(map(danger.unless.fullmatch, rest)):
            continue
        is_one = not danger.any or any(pattern.match(word) for pattern in danger.any for word in rest)
        if is_one and (found is None or rank_of(danger.kind) < rank_of(found.kind)):
            found = danger
    return found


def danger_started(dangers: Iterable[Danger], names: Collection[str], argv: Sequence[str]) -> Danger | None:
    """The danger of the command that a program starts by name (``npx wrangler@4 deploy``, ``python -m twine upload``); None: none."""
    if _STARTERS.isdisjoint(names):
        return None
    at = next((at for at, word in enumerate(argv[1:], 1) if word not in _STARTING and not word.startswith("-")), 0)
    started = argv[at].rpartition("/")[2].partition("@")[0].partition("==")[0] if at else ""
    meant = dangers if not _FETCHERS.isdisjoint(names) else (one for one in dangers if one.words or one.any)
    return danger_of(meant, {started}, (started, *argv[at + 1 :])) if started else None


def _in_order(wanted: Sequence[frozenset[str]], found: Sequence[str]) -> bool:
    rest = iter(found)
    return all(any(word in ones for word in rest) for ones in wanted)
