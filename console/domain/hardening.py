"""What a sandbox was found to be made of: one value per measure, as it was read back from the real thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GivenState(StrEnum):
    """How one measure was found."""

    GIVEN = "given"
    NOT_AVAILABLE = "not_available"
    """This isolation mode, engine or host cannot give it; the words say because of what."""
    MISSING = "missing"
    """It must be there and is not: such a sandbox is never started."""
    UNKNOWN = "unknown"
    """It could not be checked. Never shown as green."""


@dataclass(frozen=True, slots=True)
class Given:
    """One measure of one sandbox."""

    name: str
    state: GivenState
    words: str
    """What was found, or why it is not to be had; may hold names from the host, never an agent's words."""

    def line(self) -> str:
        """For a person."""
        if self.state is GivenState.NOT_AVAILABLE:
            return f"{self.name}: not available, because {self.words}"
        if self.state is GivenState.GIVEN:
            return f"{self.name}: {self.words}"
        return f"{self.name}: {self.state.value.upper()}, {self.words}"
