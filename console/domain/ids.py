"""How ids are spelled. All that a process which only asks for a stop needs to know of them."""

from __future__ import annotations

import re

AGENT_ID = re.compile(r"^[a-z0-9][a-z0-9-]{0,62}\Z")
"""Also part of cgroups, folders and container names."""
CONTEXT_ID = AGENT_ID
