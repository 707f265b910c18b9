"""Where the webhook goes: URL and secret in the keyring, and on disk what may be shown of it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from console.credentials.keyring_store import Store
from console.domain.errors import ConsoleError, NotFound
from console.domain.process.durable import replace_file
from console.services.secrets.calls import secret_call
from console.services.webhook.sending import checked_url, secret_bytes, shown_url

log = logging.getLogger(__name__)
ENTRY = "webhook"
"""Of the keyring: URL and secret, as JSON."""
_WORD = re.compile("[A-Za-z_.]{0,19}")
"""A user or path of letters alone, such as ``operator``: hidden, it would be gone from every answer and from its keys."""
UNREAD = "webhook.json cannot be read; the keyring still says where alerts go"


@dataclass(frozen=True, slots=True)
class Kept:
    """What is on disk of a webhook."""

    url: str = ""
    """As it is shown; empty: none is set."""
    set_at: float | None = None
    set_by: str = ""
    given_up: int = 0
    given_up_since: float | None = None
    stopped: bool = False


class Address:
    """Of one instance. On the loop's thread; what blocks is done beside it."""

    __slots__ = ("kept", "_file", "_keyring")

    def __init__(self, file: Path, keyring: Store) -> None:
        self._file, self._keyring = file, keyring
        self.kept = _read(file)

    async def secret(self) -> tuple[str, str]:
        """(URL, secret), read for each try. ConsoleError when they are not there, or the keyring does not answer."""
        text = await secret_call(self._keyring.get, ENTRY)
        try:
            kept = json.loads(text or "")
            url, secret = str(kept["url"]), str(kept["secret"])
            checked_url(url)
            secret_bytes(secret)
        except (ValueError, KeyError, TypeError, ConsoleError) as error:
            raise NotFound(
                "The webhook's secret is missing where secrets are kept.", "watchfloor webhook set URL makes a new one."
            ) from error
        self.learn(url, secret)
        if (shown := shown_url(url)) != self.kept.url:  # a change that broke off between the keyring and the disk
            await self.note(url=shown)
        return url, secret

    def learn(self, url: str, secret: str) -> None:
        """Hide the secret parts of both wherever they would be shown or recorded."""
        parts, shown = checked_url(url), shown_url(url)
        path, user, password = parts.path.strip("/"), parts.username or "", parts.password or ""
        # The path also without its first part, which is often the receiver's own word ("services", "hook").
        names = [name for name in (user, path, path.partition("/")[2]) if not _WORD.fullmatch(unquote(name))]
        hidden = [secret, secret.partition("_")[2], password, parts.query, *names]
        for text in (*hidden, *map(unquote, hidden)):
            if text and text not in shown:
                self._keyring.redactor.learn(text)

    async def put(self, url: str, secret: str, by: str) -> None:
        """Durable when it returns. Raises OSError and what the keyring raises; then the former one stays."""
        kept, former = Kept(shown_url(url), time.time(), by), await secret_call(self._keyring.get, ENTRY)
        await secret_call(self._keyring.set, ENTRY, json.dumps({"url": url, "secret": secret}))
        try:
            await asyncio.to_thread(self._write, kept)
        except OSError:
            try:
                await (secret_call(self._keyring.delete, ENTRY) if former is None else secret_call(self._keyring.set, ENTRY, former))
            except (OSError, ConsoleError):
                self.kept = kept  # the new one is in the keyring, so it is shown
            raise
        self.kept = kept

    async def clear(self) -> None:
        """Forget it. Raises OSError and what the keyring raises."""
        await secret_call(self._keyring.delete, ENTRY)
        await asyncio.to_thread(self._file.unlink, missing_ok=True)
        self.kept = Kept()

    async def note(self, **changes: Any) -> None:
        """Change fields of ``kept``. A disk that refuses them changes nothing for this supervisor."""
        self.kept = replace(self.kept, **changes)
        try:
            await asyncio.to_thread(self._write, self.kept)
        except OSError as error:
            log.warning("the webhook's state could not be written: %s", error)

    def _write(self, kept: Kept) -> None:
        replace_file(self._file, json.dumps(asdict(kept)).encode())


def _read(file: Path) -> Kept:
    try:
        kept = Kept(**json.loads(file.read_text()))
        if isinstance(kept.url, str) and isinstance(kept.given_up, int) and isinstance(kept.stopped, bool):
            # What an earlier version showed had the first part of the path.
            return replace(kept, url=shown_url(kept.url)) if kept.url.startswith("http") else kept
    except FileNotFoundError:
        return Kept()
    except (OSError, ValueError, TypeError, RecursionError, ConsoleError) as error:
        log.error("%s cannot be read: %s", file.name, error)
    return Kept(UNREAD)
