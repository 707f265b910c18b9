"""What every plug can do. One object per item of the plan, made anew for each rotation."""

from __future__ import annotations

from typing import Protocol


class Plug(Protocol):
    """One secret of the plan. Every call is bounded in time, may block, and raises ConsoleError when it cannot do its work."""

    name: str
    issues: bool
    """The other side makes the new value: ``change`` is given an empty one and answers with it."""

    def old(self) -> str | None:
        """The value in force; None when nobody ever told it."""

    def change(self, old: str, new: str) -> str:
        """Puts ``new`` in the place of ``old`` and answers with the value that is in force from now on. Harmless when done twice."""

    def present(self, value: str) -> bool | None:
        """Presents a value to the item's verifier: True accepted, False refused, None when its answer means neither."""
