"""Operations that always ask a human, whatever a rule allows: data (``resources/policy/dangers.json``), and lists of one's own beside it.

Looked for in every command that is judged, and in free text: what an agent is told to do when it is created, and every message to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from console.domain.errors import UsageProblem

_TEXT_BYTES = 1024 * 1024
_BEFORE = frozenset({"$", "#", ">", "sudo", "run", "runs", "execute", "exec", "call", "then"})
"""What stands before a program's name in a sentence."""
_FIELDS = {"name", "why", "program", "words", "any", "where"}


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
    except re.error as error:
        raise UsageProblem(f"{where}: any is no pattern: {error}.", "See Python's re.") from error
    words = tuple(frozenset(one.split("|")) for one in found.get("words", "").split())
    return Danger(found["name"], found["why"], frozenset(found["program"].split("|")), words, patterns)


def danger_of(dangers: Iterable[Danger], names: Collection[str], argv: Sequence[str], words: Sequence[str] | None = None) -> Danger | None:
    """The first danger that a command is, or may be."""
    rest = list(argv[1:])
    for danger in dangers:
        if danger.programs.isdisjoint(names) or not _in_order(danger.words, rest):
            continue
        if not danger.any or any(pattern.match(word) for pattern in danger.any for word in rest):
            return danger
    return None


def dangers_in_text(dangers: Iterable[Danger], text: str) -> tuple[Danger, ...]:
    """Dangers that a free text names, as in "then run gh pr merge 12". More is read than is meant; a human decides."""
    lines = [re.findall(r"[^\s'\"`;&|(){},]+", line) for line in text[:_TEXT_BYTES].splitlines()]
    found = []
    for danger in dangers:
        if any(_in_line(danger, words) for words in lines):
            found.append(danger)
    return tuple(found)


def _in_line(danger: Danger, words: list[str]) -> bool:
    for at, word in enumerate(words):
        name = word.rpartition("/")[2]
        if not (danger.words or danger.any) and at > 0 and words[at - 1].lower() not in _BEFORE:
            continue  # "at", "service", "mail" are words too
        if name in danger.programs and danger_of((danger,), (name,), words[at:]) is not None:
            return True
    return False


def _in_order(wanted: Sequence[frozenset[str]], found: Sequence[str]) -> bool:
    rest = iter(found)
    return all(any(word in ones for word in rest) for ones in wanted)
