"""Read arithmetic of the shell (``$((n + 1))``): it only computes where all that it names holds plain numbers.

A variable is evaluated as an expression of its own, and what stands in brackets there may run a command (bash(1), ARITHMETIC EVALUATION).
So each name must be set by the same text, to numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from console.policy.shell.lines import substitutions
from console.policy.shell.tokens import CLOSES, begun_at, is_end

_COMPUTES = re.compile(r"\$\(\((?:[\s\d+*/%<>=!&|?:()~^,-]|\$?[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})*\)\)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OWN = frozenset({"RANDOM", "SECONDS", "LINENO", "EPOCHSECONDS"})
"""Variables that the shell itself keeps numbers in."""


def computed(text: str, mark: str) -> tuple[str, frozenset[str]] | None:
    """Puts ``mark`` in place of each ``$((...))``; with the names in them. None: one of them may do more than compute."""
    made, last, names = list[str](), 0, set[str]()
    for start, end in substitutions(text, ("arithmetic_expansion",)) if "$((" in text else ():
        if _COMPUTES.fullmatch(text, start, end) is None:
            return None
        names |= set(_NAME.findall(text, start, end))
        made += [text[last:start], mark]
        last = end
    return "".join([*made, text[last:]]), frozenset(names - _OWN)


def are_numbers(names: Collection[str], tokens: Sequence[str], mark: str) -> bool:
    """Whether a text sets each of these names, to numbers or what it computed, and gives it to no builtin that might set it."""
    return all(_is_number(name, tokens, mark) for name in names)


def _is_number(name: str, tokens: Sequence[str], mark: str) -> bool:
    is_set, begun = False, begun_at(list(tokens))
    for at, token in enumerate(tokens):
        bare = re.sub(r"['\"\\]", "", token)
        if bare == name and tokens[at - 1 : at] == ["for"]:
            items = tokens[at + 2 : next((end for end in range(at, len(tokens)) if tokens[end] == "do"), at)]
            if not items or not all(re.fullmatch(r"\d+|[;\n]|\{\d+\.\.\d+\}|\$\(seq [\d ]+\)", item) for item in items):
                return False
            is_set = True
        elif bare == name or re.match(rf"{name}(?:\+=|\[)|.*\$\{{{name}[^}}]", bare, re.DOTALL):
            return False
        elif bare.startswith(f"{name}="):
            if bare != f"{name}={mark}" and re.fullmatch(r"-?\d+", bare.partition("=")[2]) is None:
                return False
            is_alone = all(is_end(one) or one in CLOSES for one in tokens[at + 1 : at + 2])  # for a command alone it is not set here
            is_set = is_set or (is_alone and (begun[at] or tokens[at - 1 : at] == ["export"]))
    return is_set
