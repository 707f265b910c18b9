"""Verbs of later versions: not listed in --help, and asked by name they say why they are not there."""

from __future__ import annotations

from console.domain.errors import Unavailable

VERBS = {
    "drill": "rehearsals are not built yet; watchfloor demo kills a real fleet of its own",
}


def refuse(name: str) -> int:
    """Raises Unavailable with the reason, whatever else was asked."""
    raise Unavailable(f"{name} is not available in this version, because {VERBS[name]}.", "watchfloor --help lists what is.")
