"""How ids are spelled, and how firmly an agent is held: all that the guard needs to know of what an agent is."""

from __future__ import annotations

import re
from enum import StrEnum

AGENT_ID = re.compile(r"^[a-z0-9][a-z0-9-]{0,62}\Z")
"""Also part of cgroups, folders and container names."""
CONTEXT_ID = AGENT_ID


class ControlLevel(StrEnum):
    """How firmly we hold an agent."""

    CONTAINED = "contained"
    MANAGED = "managed"
    ADOPTED = "adopted"
    OBSERVED = "observed"
