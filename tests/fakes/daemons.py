"""What a desk uses of the daemon service, where there is no daemon."""

from __future__ import annotations

from console.api.alerts import AlertView
from console.enforcement.state import EngineState
from console.services.alerts.raised import Alerts
from console.services.daemons.service import DaemonService


def alerts_into(heard: list[AlertView], state: EngineState | None = None) -> Alerts:
    """Alerts that end in a list."""
    held = state or EngineState()
    return Alerts(lambda: held, "here", "00c0ffee", lambda data: data, (heard.append,))


def no_daemons() -> DaemonService:
    """Sees no agent, and tells nobody anything."""
    return DaemonService(list, lambda *_, **__: {}, lambda *_: None, lambda *_: None, alerts_into([]))
