"""Takes secret values out of text before it is logged, shown, recorded or raised."""

from __future__ import annotations

import base64
import json
import re
import threading
import urllib.parse
from typing import Any

HIDDEN = "[secret]"
_SHORTEST = 8
"""Shorter values are not learned: replacing them would tear ordinary words apart."""
_SHORTEST_LINE = 16
# Every JWT begins so: it is base64 of '{"'. That hides tokens of other programs too, which were never learned.
_TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
# Agents send nested data; deeper than this is hidden whole instead of failing in the middle of a record.
_DEEPEST = 60


class Redactor:
    """Remembers every secret value it was told, old and new, for as long as the process lives. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forms: tuple[str, ...] = ()

    def learn(self, value: str | bytes) -> None:
        """From now on this value, and its usual encodings, are hidden."""
        raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        for line in raw.splitlines() if b"\n" in raw.strip() else ():
            # A key of many lines is met line by line: indented, numbered, with another line's end.
            if len(line.strip()) >= _SHORTEST_LINE and not line.startswith(b"-----"):
                self.learn(line.strip())
        if len(raw) < _SHORTEST:
            return
        found = {form for form in _forms(raw) if len(form) >= _SHORTEST}
        with self._lock:
            if not found <= set(self._forms):
                # Longest first: a value that holds another is hidden whole.
                self._forms = tuple(sorted(found.union(self._forms), key=len, reverse=True))

    def redact(self, text: str) -> str:
        """The text without any known value, and without anything that looks like a token."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return _TOKEN.sub(HIDDEN, text) if "eyJ" in text else text

    def redact_bytes(self, raw: bytes) -> bytes:
        """The same for bytes of UTF-8; other bytes stay what they are."""
        text = raw.decode("utf-8", "surrogateescape")
        clean = self.redact(text)
        return raw if clean == text else clean.encode("utf-8", "surrogateescape")

    def redact_data(self, data: Any, depth: int = 0) -> Any:
        """Plain data (what JSON holds) with every text and every key redacted; the same object when there was nothing to hide."""
        if isinstance(data, str):
            return self.redact(data)
        if depth > _DEEPEST:
            return HIDDEN
        if isinstance(data, dict):
            return {self.redact_data(k, depth + 1): self.redact_data(v, depth + 1) for k, v in data.items()}
        if isinstance(data, list | tuple):
            return type(data)(self.redact_data(v, depth + 1) for v in data)
        return data


def _forms(raw: bytes) -> set[str]:
    """A value in the clothes it is met in: plain, in JSON, in URLs, in hexadecimal, in base64 alone and inside something longer."""
    forms = {raw.decode("utf-8", "replace"), raw.decode("latin-1")}
    forms |= {json.dumps(form)[1:-1] for form in forms} | {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}
    forms |= {repr(form)[1:-1] for form in forms}
    for before in range(3):
        # Base64 takes three bytes at a time: what stands before the value ("user:" of basic authentication) moves its letters.
        padded = base64.b64encode(b"\0" * before + raw).decode()
        core = padded[(0, 2, 3)[before] :].rstrip("=")
        # The last letter may depend on what follows.
        core = core[:-1] if (before + len(raw)) % 3 else core
        forms |= {core, core.replace("+", "-").replace("/", "_")}
        if not before:
            forms |= {padded, padded.rstrip("="), base64.urlsafe_b64encode(raw).decode()}
    for quoted in [urllib.parse.quote(raw, safe=""), *(urllib.parse.quote(form, safe="") for form in forms)]:
        # What quote() with its own safe "/", and quote_plus(), would make of it: a "%" of the form itself is "%25" by now.
        forms |= {quoted, quoted.replace("%2F", "/"), quoted.replace("%20", "+")}
    return forms | {raw.hex(), raw.hex().upper()}
