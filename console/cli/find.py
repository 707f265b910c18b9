"""From a name in the table of verbs to the verb: only its own module is imported."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module  # noqa: TID251 - of modules in this package alone, each of which the contracts hold

from console.cli.syntax import Verb, Verbs
from console.cli.verbs import VERBS


def find(name: str) -> Verb | Verbs:
    """The verb or the family of this name, which is in the table."""
    module, _, attribute = VERBS[name].partition(":")
    found = getattr(import_module(f"console.cli.{module}"), attribute)
    return found if isinstance(found, (Verb, Verbs)) else Verb(found)


def every_verb() -> Iterator[tuple[tuple[str, ...], Verb | None]]:
    """The path of words of each verb, with the verb; None for a family, which comes before its verbs."""
    for name in VERBS:
        found = find(name)
        if isinstance(found, Verb):
            yield (name,), found
            continue
        yield (name,), None
        yield from (((name, below), verb) for below, verb in found.verbs.items())
