"""Prints the command line's verbs, options and help as JSON. Runs in the staged interpreter, where the product can be imported."""

from __future__ import annotations

import json
from typing import Any

from console.cli.find import find
from console.cli.syntax import Parameter, Verb, Verbs
from console.cli.verbs import OPTIONS, VERBS, WORDS


def told(path: str, verb: Verb) -> dict[str, Any]:
    """What a verb does and takes."""
    return {
        "name": path,
        "help": verb.help,
        "parameters": [*map(parameter, verb.parameters())],
        "below": [],
        "example": verb.example,
    }


def parameter(one: Parameter) -> dict[str, Any]:
    """How it is written, and what it means."""
    metavar = one.mark.metavar or one.key.upper()
    words = metavar if one.mark.is_argument else " ".join([", ".join(one.names), *([] if one.kind is bool else [metavar])])
    return {"words": words, "help": one.mark.help, "is_argument": one.mark.is_argument}


def leaves(path: str, family: Verbs) -> list[dict[str, Any]]:
    """The verbs of a family, with those of the families in it."""
    found: list[dict[str, Any]] = []
    for name, one in family.verbs.items():
        found += [told(f"{path} {name}", one)] if isinstance(one, Verb) else leaves(f"{path} {name}", one)
    return found


def verbs() -> list[dict[str, Any]]:
    """Every verb of the program, with those below it."""
    found = []
    for name in VERBS:
        one = find(name)
        if isinstance(one, Verb):
            found.append(told(name, one))
        else:
            below = leaves(name, one)
            found.append({"name": name, "help": one.help, "parameters": [], "below": below, "example": one.example})
    return found


own = [{"words": words, "help": text, "is_argument": False} for words, text in OPTIONS]
print(json.dumps({"name": "", "help": WORDS, "parameters": own, "below": verbs(), "example": ""}))
