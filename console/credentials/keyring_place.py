"""The desktop's keyring: only kinds known to encrypt, only when a value was written and read back, and never waited for without end.

The keyring library would choose any plug-in it finds, and with keyrings.alt installed it silently chose plain text (measured); so the
backends are named here.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import jeepney
import keyring.backends.kwallet
import keyring.backends.libsecret
import keyring.backends.SecretService
import keyring.errors
from jeepney.io.common import RouterClosed
from keyring.backend import KeyringBackend
from secretstorage.exceptions import SecretStorageException

from console.domain.errors import ConsoleError, TimedOut, Unavailable

ANSWER_S = 3.0
"""A desktop keyring may wait for a person to unlock it; nothing of ours waits longer."""
CHOICE_S = 6.0
"""All candidates together: where the bus hangs, it hangs for each of them."""
ENCRYPTING: tuple[type[KeyringBackend], ...] = (
    keyring.backends.SecretService.Keyring,
    keyring.backends.libsecret.Keyring,
    keyring.backends.kwallet.DBusKeyring,
)
_REFUSALS = (
    keyring.errors.KeyringError,
    SecretStorageException,
    jeepney.DBusErrorResponse,
    RouterClosed,
    OSError,
    RuntimeError,
    ValueError,
    AttributeError,
    TypeError,
    ImportError,
    EOFError,
)
"""What backends raise when their service is missing, locked or broken."""
_REMEDY = "Unlock the keyring, or set secrets to 'file'."

T = TypeVar("T")


class KeyringPlace:
    """One encrypting keyring; every call is bounded in time."""

    def __init__(self, backend: KeyringBackend, service: str) -> None:
        self._backend = backend
        self._service = service
        self.name = name_of(type(backend))

    def get(self, name: str) -> str | None:
        """The value now, or None."""
        return bounded(lambda: self._backend.get_password(self._service, name))

    def set(self, name: str, value: str) -> None:
        """Keeps it."""
        bounded(lambda: self._backend.set_password(self._service, name, value))

    def delete(self, name: str) -> None:
        """Forgets it; unknown names are no error."""
        if self.get(name) is not None:
            bounded(lambda: self._backend.delete_password(self._service, name))

    def probe(self) -> str:
        """Writes a value, reads it back and removes it: why it cannot be used, or nothing."""
        name, value = f"probe-{secrets.token_hex(4)}", secrets.token_urlsafe(16)
        try:
            self.set(name, value)
            read = self.get(name)
        except ConsoleError as error:
            return error.what
        try:
            self.delete(name)
        except ConsoleError as error:
            return error.what
        return "" if read == value else "What was written is not what was read back."


def name_of(candidate: type[KeyringBackend]) -> str:
    """Its name for a person."""
    return candidate.__module__.rpartition(".")[2]


def open_keyring(service: str, candidates: Sequence[type[KeyringBackend]] = ENCRYPTING) -> tuple[KeyringPlace | None, list[str]]:
    """The first that truly works, and why those before it do not. Never raises; takes CHOICE_S and one ANSWER_S at most."""
    why: list[str] = []
    until = time.monotonic() + CHOICE_S
    for candidate in candidates:
        if time.monotonic() > until:
            why.append(f"{name_of(candidate)}: not tried, the others took too long.")
            continue
        place, words = _try(candidate, service)
        if place is not None:
            return place, why
        why.append(f"{name_of(candidate)}: {words}")
    return None, why


def _try(candidate: type[KeyringBackend], service: str) -> tuple[KeyringPlace | None, str]:
    def make() -> KeyringPlace:
        _ = candidate.priority  # raises RuntimeError with the reason when it is not viable
        return KeyringPlace(candidate(), service)

    try:
        place = bounded(make)
    except ConsoleError as error:
        return None, error.what
    words = place.probe()
    return (None, words) if words else (place, "")


def bounded(work: Callable[[], T]) -> T:
    """Runs it in a thread: TimedOut after ANSWER_S, Unavailable when the keyring refuses."""
    done: list[T] = []
    refused: list[Exception] = []

    def call() -> None:
        try:
            done.append(work())
        except _REFUSALS as error:
            refused.append(error)

    # A D-Bus call into a locked keyring cannot be interrupted, so its thread is left behind and the caller goes on.
    thread = threading.Thread(target=call, name="keyring", daemon=True)
    thread.start()
    thread.join(ANSWER_S)
    if thread.is_alive():
        raise TimedOut(f"The desktop's keyring does not answer within {ANSWER_S:g} s: it is locked, or its bus hangs.", _REMEDY)
    if not done:
        raise Unavailable(_words(refused[0] if refused else None), _REMEDY)
    return done[0]


def _words(error: Exception | None) -> str:
    """Why it refused. Only the words of the library's own probing are shown: others may quote what they were given."""
    if type(error) is RuntimeError:
        return f"{str(error)[:200].rstrip('.')}."
    return f"The desktop's keyring refused ({type(error).__name__ if error else 'it failed'})."
