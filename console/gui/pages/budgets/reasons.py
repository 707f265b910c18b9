"""Why something was halted or changed, as a person says it: limits in their units, operators by name."""

from __future__ import annotations

from console.gui.models.operators import person
from console.wording.limits import with_limits


def plain_reason(words: str) -> str:
    """The same words with every limit named and in its unit, and every operator by name; what is neither stays as it is."""
    return person(with_limits(words))
