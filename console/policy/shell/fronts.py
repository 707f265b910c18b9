"""Read what a program starts that runs others: ``npm exec``, ``uv run``, ``npx``, ``python -m``, ``coverage run``, ``cross-env``.

Data, ``fronts`` in ``resources/policy/programs.json``. What such a program starts is judged as a command of its own. A subcommand that may
reach a registry, or that is not known, asks. Without this a second spelling of an install would pass for a build of the workspace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.domain.errors import UsageProblem

_FIELDS = {
    *("_comment", "names", "flags", "valued", "module", "local", "asks", "starts", "open", "bare", "runs", "fetches", "remote"),
    *("texts", "assigns", "lenient"),
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NAMING = frozenset({"run", "run-script", "rum", "urn", "task"})
"""Subcommands whose first word is the name of a script."""
_SUBCOMMANDS = 3
"""Words that may each be a subcommand, or a target beside others."""
_BUILDS = frozenset({"build", "test", "run", "check", "compile", "bench"})
"""Subcommands that have no further subcommand behind an option."""
_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Front:
    """One such program, or one of its subcommands."""

    flags: frozenset[str] = frozenset()
    """Words before the subcommand that take no value."""
    valued: frozenset[str] = frozenset()
    """The same that take the next word, or one behind ``=``."""
    module: frozenset[str] = frozenset()
    """Options whose value is a Python module that is run."""
    local: frozenset[str] = frozenset()
    """Subcommands that run or read what lies here; ``config/get``: with this second word only."""
    asks: frozenset[str] = frozenset()
    """Subcommands that install, publish or reach others, where every other one is the workspace's own."""
    starts: Mapping[str, Front] | None = None
    """Subcommands that run the command behind them."""
    open: bool = False
    """A subcommand that is not known is a script of the workspace; else it asks."""
    bare: bool = False
    """Without a subcommand it installs."""
    runs: bool = False
    """It runs the command behind its options."""
    fetches: bool = False
    """What it runs comes from a registry, unless it lies in the workspace."""
    remote: re.Pattern[str] = _NEVER
    """Operands that name what lies elsewhere."""
    texts: bool = False
    """Its operands are texts for a shell."""
    assigns: bool = False
    """Words before the command set variables."""
    lenient: bool = False
    """Options that are not known are passed over: it runs what the agent wrote anyway."""


@dataclass(frozen=True, slots=True)
class Started:
    """What a command starts."""

    inner: tuple[str, ...] = ()
    is_module: bool = False
    fetched: bool = False
    """``inner`` comes from a registry, unless it lies in the workspace."""
    texts: tuple[str, ...] = ()
    asks: str = ""
    """Why a human is asked; empty: it runs or reads what lies in the workspace."""
    verb: str = ""
    """The subcommand, or the script that ``run`` names, where that is certain."""


def read_front(front: Front, argv: Sequence[str]) -> Started:
    """Reads ``argv``; never raises. What is not certain asks."""
    rest = _behind_options(front, argv[1:])
    if isinstance(rest, Started):
        return rest
    if found := next((word for word in rest if front.remote.match(word)), ""):
        return Started(asks=f"{argv[0]} fetches what {found} names, and runs it")
    if front.texts:
        return Started(texts=tuple(word for word in rest if not word.startswith("-")))
    if not rest:
        return Started(asks=f"{argv[0]} without a subcommand installs packages") if front.bare else Started()
    if front.runs:
        return Started(rest, fetched=front.fetches)
    return _by_subcommand(front, argv[0], rest)


def reaching(front: Front, words: Sequence[str]) -> str:
    """Why a human is asked for a program that no front describes: one of its first words installs, publishes or reaches others."""
    name, certain, behind = words[0].rpartition("/")[2], 0, False
    if name in front.local:
        return ""
    builds = False
    for at, word in enumerate(words[1:], 1):
        if word == "--" and at > 1:  # what comes behind it are arguments of something else, or its first word is the subcommand itself
            return reaching(front, (words[0], *words[at + 1 : at + 2]))
        if not certain and not behind and f"{name}/{word}" in front.local:
            return ""
        if builds and (behind or word.startswith("-")):  # `build -c release`: the value of an option
            behind = word.startswith("-") and "=" not in word
            continue
        builds = builds or (not behind and word in _BUILDS)
        for one in dict.fromkeys((word, *word.split(":"))):
            if (one in front.asks or f"{name}/{one}" in front.asks) and f"{name}/{one}" not in front.local:
                return f"{name} {word} may reach others, or change what is installed or published"
        is_option = word.startswith("-")
        certain += 0 if is_option or behind else 1  # a word behind an option may be its value
        behind = is_option and "=" not in word
        if certain == _SUBCOMMANDS:
            break
    return ""


def _behind_options(front: Front, words: Sequence[str]) -> tuple[str, ...] | Started:
    at = 0
    while at < len(words):
        word = words[at]
        name, glued, value = word.partition("=")
        if word == "--":
            return tuple(words[at + 1 :])
        if front.module and (module := _module(front, words[at:])):
            return Started(module, is_module=True)
        if name in front.valued:
            if (value if glued else "".join(words[at + 1 : at + 2]))[:1] in ("|", "!"):
                return Started(asks=f"{word} may name a program that it runs")
            at += 1 if glued else 2
        elif word in front.flags or name in front.flags or (front.assigns and _VARIABLE.match(word)):
            at += 1
        elif not word.startswith("-") or word == "-":
            return tuple(words[at:])
        elif front.lenient or front.texts:
            at += 1
        else:
            return Started(asks=f"what {word} does before the subcommand is not known")
    return ()


def _module(front: Front, words: Sequence[str]) -> tuple[str, ...]:
    """The module and its arguments, where the first word names one: ``-m pip``, ``-mpip``, ``-Im pip``, ``--module=pip``."""
    name, glued, value = words[0].partition("=")
    if name in front.module:
        return (value, *words[1:]) if glued else tuple(words[1:])
    letters = re.match(r"-[bBdEiIOPqsSuvx]*m(.*)\Z", words[0], re.DOTALL) if "-m" in front.module else None
    return () if letters is None else (letters[1], *words[1:]) if letters[1] else tuple(words[1:])


def _by_subcommand(front: Front, called: str, rest: tuple[str, ...]) -> Started:
    verb, both = rest[0], "/".join(rest[:2])
    if inner := (front.starts or {}).get(verb):
        return read_front(inner, (f"{called} {verb}", *rest[1:]))
    if both in front.local or verb in front.local or (front.open and verb not in front.asks and both not in front.asks):
        return Started(verb=rest[1] if verb in _NAMING and len(rest) > 1 else verb)
    return Started(asks=f"{called} {verb} may reach a registry, or change what is installed or published", verb=verb)


def read_fronts(found: Mapping[str, Any]) -> dict[str, Front]:
    """Reads the parsed data. Raises UsageProblem with the name of the first mistake."""
    made: dict[str, Front] = {}
    for name, said in found.items():
        if name != "_comment":
            front = _front(said, name)
            made.update(dict.fromkeys((name, *said.get("names", "").split()), front))
    return made


def _front(said: Any, where: str) -> Front:
    if not isinstance(said, dict) or not set(said) <= _FIELDS:
        raise UsageProblem(f"programs.json: fronts: {where} is not understood.", f"Fields are {', '.join(sorted(_FIELDS))}.")
    read: dict[str, Any] = {name: frozenset(str(said.get(name, "")).split()) for name in ("flags", "valued", "module", "local", "asks")}
    read |= {name: said.get(name) is True for name in ("open", "bare", "runs", "fetches", "texts", "assigns", "lenient")}
    starts = {one: _front(inner, f"{where} {names}") for names, inner in said.get("starts", {}).items() for one in names.split()}
    return Front(**read, starts=starts, remote=re.compile(said["remote"]) if "remote" in said else _NEVER)
