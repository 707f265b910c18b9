"""Other methods for one object of a class with slots, which takes none of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def patch(thing: object, **methods: Callable[..., Any]) -> None:
    """This object alone answers so from now on; what was bound before stays as it was."""
    own = {name: staticmethod(method) for name, method in methods.items()}
    thing.__class__ = type(f"Patched{type(thing).__name__}", (type(thing),), {"__slots__": (), **own})
