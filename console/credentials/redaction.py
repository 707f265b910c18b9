"""Takes secret values out of text before it is logged, shown or raised (threat S4)."""

from __future__ import annotations

import base64
import re
import threading
import urllib.parse

HIDDEN = "[secret]"
_SHORTEST = 8
"""Shorter values are not learned: replacing them would tear ordinary words apart."""
_TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


class Redactor:
    """Remembers every secret value it was told, old and new, for as long as the process lives. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()

    def learn(self, value: str | bytes) -> None:
        """From now on this value, and its usual encodings, are hidden."""
        raw = value.encode() if isinstance(value, str) else value
        if len(raw) < _SHORTEST:
            return
        forms = {raw.hex(), raw.hex().upper(), raw.decode("utf-8", "replace"), raw.decode("latin-1")}
        for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
            forms |= {encoded.decode(), encoded.decode().rstrip("=")}
        forms |= {urllib.parse.quote(form, safe="") for form in forms}
        with self._lock:
            self._values |= {form for form in forms if len(form) >= _SHORTEST}

    def redact(self, text: str) -> str:
        """The text without any known value, and without anything that looks like a token."""
        with self._lock:
            values = sorted(self._values, key=len, reverse=True)
        for value in values:
            text = text.replace(value, HIDDEN)
        return _TOKEN.sub(HIDDEN, text)
