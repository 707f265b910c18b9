"""From a name in the table of verbs to the verb: only its own module is imported."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module  # noqa: TID251 - of modules in the table of verbs alone, each of which the contracts hold

from console.cli.syntax import Verb, Verbs
from console.cli.verbs import NOUNS, VERBS


def find(name: str) -> Verb | Verbs:
    """The verb or the family of this name, which is in the table."""
    if VERBS[name] in NOUNS:
        words, verbs = NOUNS[VERBS[name]]
        return Verbs(words, {below: _load(where) for below, where in verbs.items()})
    return _load(VERBS[name])


def _load(where: str) -> Verb | Verbs:
    module, _, attribute = where.partition(":")
    found = getattr(import_module(module if module.startswith("console.") else f"console.cli.{module}"), attribute)
    return found if isinstance(found, (Verb, Verbs)) else Verb(found)


def every_verb() -> Iterator[tuple[tuple[str, ...], Verb | Verbs]]:
    """The path of words of each verb and family, with it; a family comes before its verbs."""
    for name in VERBS:
        yield from _walk((name,), find(name))


def _walk(path: tuple[str, ...], found: Verb | Verbs) -> Iterator[tuple[tuple[str, ...], Verb | Verbs]]:
    yield path, found
    if isinstance(found, Verbs):
        for below, one in found.verbs.items():
            yield from _walk((*path, below), one)
