"""What every plug can do. Each rotation makes one new object for each item of the plan."""

from __future__ import annotations

from typing import Protocol


class Plug(Protocol):
    """One secret of the plan. Every call is bounded in time, may block, and raises ConsoleError when it cannot do its work."""

    name: str
    issues: bool
    """The other side makes the new value: ``change`` is given an empty one and answers with it."""

    def old(self) -> str | None:
        """Return the value in force; None when it is not known."""

    def change(self, old: str, new: str) -> str:
        """Put ``new`` in the place of ``old``. Returns the value that is in force from now on. Harmless when done twice."""

    def present(self, value: str) -> bool | None:
        """Presents a value to the item's verifier: True accepted, False refused, None when its answer means neither."""
