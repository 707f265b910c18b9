"""Which of many globs may mean a path, told from plain words that the path must hold: it is held against a few patterns, not all.

Only ever a shortcut: what the words cannot rule out is decided by the pattern itself, and a glob without such words is always tried.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from console.policy.rules.rule import Rule

_BRACES = re.compile(r"([^{}\\\[]*)\{([^{}\\\[]*,[^{}\\\[]*)\}([^{}\\\[]*)\Z", re.DOTALL)
_LONG = 500
"""Characters of a path from which on nothing of it is remembered: agents write them."""
_MAGIC = re.compile(r"(?<!\\)(?:\\\\)*[*?\[\]{}]")
_RUN = re.compile(r"[A-Za-z0-9._-]+")


class Sieve:
    """File rules in their order, by what a path must hold for each to cover it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._below: dict[str, list[int]] = {}
        """By the folder that whatever a glob covers lies at or below, where that is not the root."""
        self._named: dict[str, list[int]] = {}
        """By a component that must be in the path."""
        self._holding: dict[str, list[int]] = {}
        """By a text that must be in the path."""
        self._always: list[int] = []
        for at, rule in enumerate(self._rules):
            self._file(at, rule)

    def first(self, spellings: Sequence[str]) -> Rule | None:
        """The first rule that covers one of the spellings of a path."""
        near = sorted({at for one in spellings for at in self._near(one)})
        return next((self._rules[at] for at in near if any(self._rules[at].covers_path(one) for one in spellings)), None)

    def _near(self, path: str) -> list[int]:
        found = list(self._always)
        if self._below:
            for folder in _at_or_above(path) if len(path) > _LONG else _kept_above(path):
                if (places := self._below.get(folder)) is not None:
                    found += places
        for piece in {*path.split("/"), *path[:-1].split("/")} if path.endswith("\n") else path.split("/"):  # re's $ is before it too
            found += self._named.get(piece, ())
        for text, places in self._holding.items():
            if text in path:
                found += places
        return found

    def _file(self, at: int, rule: Rule) -> None:
        if stem := rule.stem.rstrip("/"):
            self._below.setdefault(stem, []).append(at)
            return
        for spelled in _expanded(rule.pattern):
            whole, text = _must_hold(spelled)
            places = self._named.setdefault(whole, []) if whole else self._holding.setdefault(text, []) if text else self._always
            if at not in places:
                places.append(at)


def _at_or_above(path: str) -> list[str]:
    found, end = [path[:-1]] if path.endswith("\n") else [], len(path)  # re's $ is before it too
    while end > 0:
        found.append(path[:end])
        end = path.rfind("/", 0, end)
    return found


@functools.lru_cache(maxsize=128)
def _kept_above(path: str) -> tuple[str, ...]:
    """One path is held against several lists in one judgement."""
    return tuple(_at_or_above(path))


def _expanded(pattern: str) -> list[str]:
    """What its one ``{a,b}`` stands for. Where that is not as plain, the empty text: nothing is known of it."""
    if "{" not in pattern and "}" not in pattern:
        return [pattern]
    shape = _BRACES.match(pattern)
    if shape is None or ".." in shape[2]:
        return [""]
    return [shape[1] + one + shape[3] for one in shape[2].split(",")]


def _must_hold(pattern: str, own: Sequence[str] = ()) -> tuple[str, str]:
    """The longest whole component that every path it covers has; else the longest text in one. Empty: nothing for certain.

    ``own``: components that a path has anyway, so that having them tells nothing.
    """
    whole, text = "", ""
    for piece in pattern.split("/"):
        if (len(piece) - len(piece.rstrip("\\"))) % 2:
            return "", ""  # a slash that is escaped
        plain = _plain(piece)
        if plain is not None:
            whole = max(whole, plain if plain not in own else "", key=len)
            continue
        for run in _RUN.findall(re.sub(r"\\.", "*", piece.partition("[")[0], flags=re.DOTALL)):
            text = max(text, run if not any(run in one for one in own) else "", key=len)
    return whole, text


def key_of(rule: Rule, own: Sequence[str]) -> list[tuple[str, str]]:
    """What a path below a folder must hold beside the folder's own components, for each spelling: a component, else a text in one."""
    return [_must_hold(spelled, own) for spelled in _expanded(rule.pattern)]


def _plain(piece: str) -> str | None:
    """What a component without magic means; None: it has some."""
    return None if _MAGIC.search(piece) or "[" in piece else re.sub(r"\\(.)", r"\1", piece, flags=re.DOTALL)
