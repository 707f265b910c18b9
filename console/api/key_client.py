"""Signing keys, asked through operator.sock."""

from __future__ import annotations

from console.api.key_messages import RetiredKeyView, RetireKeyBody
from console.api.wire import Wire

RETIRE_S = 30.0


class KeyRoutes:
    """Taking a key out."""

    _wire: Wire

    def retire_key(self, body: RetireKeyBody) -> RetiredKeyView:
        """POST /api/keys/retire; NotFound, Conflict (the rest could not sign any more), NotRecorded: then it is as it was."""
        return self._wire.ask(RetiredKeyView, "POST", "/api/keys/retire", body=body, timeout_s=RETIRE_S)
