"""Messages about alerts: the body that the webhook sends, and what the webhook's own routes take and show."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from console.api.message import SCHEMA_VERSION, Request, View


class AlertKind(StrEnum):
    """What happened. The values are an interface: receivers sort by them."""

    PANIC = "panic"
    NOT_CONFIRMED = "kill_not_confirmed"
    READINESS_LOST = "readiness_lost"
    LIMIT_REACHED = "limit_reached"
    APPROVAL_WAITING = "approval_waiting"
    CAME_BACK = "agent_came_back"
    TEST = "test"


class AlertView(View, kw_only=True):
    """One alert: the body of the webhook, and the data of an ``alert`` on the stream of events."""

    schema_version: int = SCHEMA_VERSION
    id: str
    """The same for the same happening, so that a receiver can drop a second delivery."""
    event: AlertKind
    time: str
    """RFC 3339, UTC."""
    host: str
    instance: str
    facts: dict[str, Any] = {}
    """What is known of it, by kind. Names and texts of agents are data: they may hold anything."""


class WebhookBody(Request, kw_only=True):
    """POST /api/webhook: where alerts go from now on."""

    url: Annotated[str, Meta(min_length=1, max_length=2000)]
    secret: Annotated[str, Meta(max_length=200)] = ""
    """``whsec_`` and base64 of 24 to 64 bytes; empty: a new one is made, and shown once."""


class WebhookView(View, kw_only=True):
    """GET /api/webhook, and the answer to every change of it."""

    schema_version: int = SCHEMA_VERSION
    url: str = ""
    """Without credentials, query and most of the path; empty: no webhook is set."""
    set_at: float | None = None
    set_by: str = ""
    waiting: int = 0
    waiting_since: float | None = None
    """When the oldest of them happened, seconds since the epoch."""
    given_up: int = 0
    """Alerts that were never delivered, since the webhook was set or last tested with success."""
    given_up_since: float | None = None
    stopped: bool = False
    """The receiver answered 410 Gone: nothing is sent until a test succeeds or the webhook is set again."""
    trouble: str = ""
    """Why the last try failed; empty: it did not, or there was none."""
    next_try_s: float | None = None
    delivered_at: float | None = None
    """When this supervisor last delivered one, seconds since the epoch."""
    secret: str = ""
    """The new secret, in the one answer that shows it."""


class AlertsView(View, kw_only=True):
    """Where alerts go: a part of the status."""

    desktop_off: list[str] = []
    """Alerts that show no notification on the desktop, by their names."""
    webhook: WebhookView = field(default_factory=WebhookView)


class WebhookTestView(View, kw_only=True):
    """POST /api/webhook/test: how one delivery went."""

    schema_version: int = SCHEMA_VERSION
    delivered: bool
    status: int | None = None
    """What the receiver answered; None: it did not."""
    ms: float
    words: str
