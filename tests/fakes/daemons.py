"""What a desk uses of the daemon service, where there is no daemon."""

from __future__ import annotations

from console.services.daemons.service import DaemonService


def no_daemons() -> DaemonService:
    """Sees no agent, and tells nobody anything."""
    return DaemonService(list, lambda *_, **__: {}, lambda *_: None, lambda *_: None)
