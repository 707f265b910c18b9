"""The agent kinds that have daemons: one list."""

from __future__ import annotations

from console.sources.claude_code.daemons import ClaudeDaemons
from console.sources.codex.daemons import CodexDaemons
from console.sources.daemons.interface import Daemons

KINDS: tuple[Daemons, ...] = (ClaudeDaemons(), CodexDaemons())


def kind_of(source: str) -> Daemons | None:
    """Of an agent that a source saw (``claude_code``, ``codex``); None: its kind has no daemons."""
    return next((kind for kind in KINDS if source.startswith(kind.kind)), None)
