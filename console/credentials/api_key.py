"""The API key of this instance: what a program presents to be given a short operator token.

Made on request, shown once, rotated by a kill.
"""

from __future__ import annotations

import hmac
import secrets

from console.credentials.keyring_store import Store

NAME = "api-key"
PREFIX = "wfk_"
"""So that a key is told from a token at a glance, and found by scanners for leaked secrets."""
_LONGEST = 200


class ApiKey:
    """Remembers nothing: every call reads the store, so that a rotation counts for the next request."""

    name = NAME
    issues = False

    def __init__(self, store: Store) -> None:
        self._store = store

    @staticmethod
    def fresh() -> str:
        """A new value; nothing is kept."""
        return PREFIX + secrets.token_urlsafe(32)

    def renew(self) -> str:
        """Replaces the key; the old one is refused from now on. The new one, to be shown once."""
        value = self.fresh()
        self._store.set(NAME, value)
        return value

    def current(self) -> str | None:
        """The key in force; None when none was ever made. ConsoleError when the store cannot be read."""
        return self._store.get(NAME)

    def accepts(self, key: str) -> bool:
        """Return whether this is the current key. ConsoleError when the store cannot be read (then nothing is accepted)."""
        kept = self.current()
        if kept is None or not key.startswith(PREFIX) or len(key) > _LONGEST:
            return False
        return hmac.compare_digest(kept.encode(), key.encode("utf-8", "replace"))
