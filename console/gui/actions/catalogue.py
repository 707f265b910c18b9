"""One action as data, and the search of the command palette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """What can be done. The page (or window) that lists it carries it out and says when it cannot."""

    id: str
    """``page.verb``, for example ``fleet.stop-tree``."""
    title: str
    key: str = ""
    """A QKeySequence in portable text; a letter acts only when no field has the focus."""
    hint: str = ""
    """Words of the status bar; empty: not shown there."""
    cap: str = ""
    """How the key is written, when not as in ``key``."""

    @property
    def shown_key(self) -> str:
        return self.cap or self.key.replace("+", " ").replace("Return", "Enter")


def search(actions: Sequence[ActionSpec], text: str) -> list[ActionSpec]:
    """Actions all of whose typed words occur in title or id; those whose title starts with them first."""
    words = text.lower().split()
    found = [a for a in actions if all(w in f"{a.title} {a.id}".lower() for w in words)]
    return sorted(found, key=lambda a: not a.title.lower().startswith(text.lower().strip()))
