"""Secrets by name, for one instance: in the desktop's keyring when one truly works, else in a 0600 file.

Only keyrings known to encrypt are ever tried, and by name: the keyring library would choose any plug-in it finds, and with
keyrings.alt installed it silently chose plain text (measured).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import keyring.backends.kwallet
import keyring.backends.libsecret
import keyring.backends.SecretService
import keyring.errors
from keyring.backend import KeyringBackend

from console.credentials.redaction import Redactor
from console.credentials.secret_file import SecretFile
from console.domain.errors import ConsoleError, TimedOut, Unavailable, UsageProblem
from console.settings.durable import replace_file

ANSWER_S = 3.0
"""A desktop keyring may wait for a person to unlock it; nothing of ours waits longer."""
ENCRYPTING: tuple[type[KeyringBackend], ...] = (
    keyring.backends.SecretService.Keyring,
    keyring.backends.libsecret.Keyring,
    keyring.backends.kwallet.DBusKeyring,
)
_REFUSALS = (keyring.errors.KeyringError, OSError, RuntimeError, ValueError, AttributeError, TypeError, ImportError)
"""What backends raise when their service is missing, locked or broken."""

T = TypeVar("T")


class Place(Protocol):
    """Somewhere that keeps values by name."""

    def get(self, name: str) -> str | None:
        """The value now, or None."""

    def set(self, name: str, value: str) -> None:
        """Keeps it."""

    def delete(self, name: str) -> None:
        """Forgets it; unknown names are no error."""


class KeyringPlace:
    """One encrypting keyring; every call is bounded in time."""

    def __init__(self, backend: KeyringBackend, service: str) -> None:
        self._backend = backend
        self._service = service
        self.name = f"{type(backend).__module__.rpartition('.')[2]}"

    def get(self, name: str) -> str | None:
        return _bounded(lambda: self._backend.get_password(self._service, name))

    def set(self, name: str, value: str) -> None:
        _bounded(lambda: self._backend.set_password(self._service, name, value))

    def delete(self, name: str) -> None:
        if self.get(name) is not None:
            _bounded(lambda: self._backend.delete_password(self._service, name))

    def works(self) -> bool:
        """Whether a value can be written, read back and removed."""
        name, value = f"probe-{secrets.token_hex(4)}", secrets.token_urlsafe(16)
        try:
            self.set(name, value)
            return self.get(name) == value
        except ConsoleError:
            return False
        finally:
            try:
                self.delete(name)
            except ConsoleError:
                pass


class Store:
    """get, set and delete by name; the service name carries the instance, so instances never share an entry."""

    def __init__(
        self,
        instance_id: str,
        folder: Path,
        *,
        backend: Literal["auto", "file"] = "auto",
        candidates: tuple[type[KeyringBackend], ...] = ENCRYPTING,
    ) -> None:
        """``folder`` is the instance's keys folder; ``file`` never looks at the desktop's keyring (the demo, tests)."""
        if len(instance_id) != 8 or any(c not in "0123456789abcdef" for c in instance_id):
            raise UsageProblem("That is not an instance id.", "Use the 8 hexadecimal characters of instance.json.")
        self.instance_id = instance_id
        self.service = f"watchfloor-{instance_id}"
        self.folder = folder
        self.redactor = Redactor()
        self._pin = folder / "secrets-in-file"
        self.why_file = ""
        """Why the file is used; empty when the keyring is."""
        self._place: Place = self._choose(backend, candidates)

    @property
    def kind(self) -> str:
        """``file`` or the keyring's name, for a person."""
        return self._place.name if isinstance(self._place, KeyringPlace) else "file"

    def get(self, name: str) -> str | None:
        """The value as it is kept now, or None; ConsoleError when the place cannot be read."""
        value = self._place.get(_checked(name))
        if value is not None:
            self.redactor.learn(value)
        return value

    def set(self, name: str, value: str) -> None:
        """Keeps it durably; ConsoleError otherwise."""
        self.redactor.learn(value)
        self._place.set(_checked(name), value)

    def delete(self, name: str) -> None:
        """Forgets it; an unknown name is no error."""
        self._place.delete(_checked(name))

    def redact(self, text: str) -> str:
        """The text without any secret this store ever held."""
        return self.redactor.redact(text)

    def _choose(self, backend: str, candidates: tuple[type[KeyringBackend], ...]) -> Place:
        file = SecretFile(self.folder / "secrets.json")
        if backend == "file":
            self.why_file = "chosen by the settings"
            return file
        # One way only: an instance that once used the file never goes back, or a keyring that answers again would bring
        # keys back to life that were rotated away in the meantime.
        if self._pin.exists() or file.path.exists():
            self.why_file = "this instance keeps its secrets in the file since a keyring was missing"
            return file
        for candidate in candidates:
            place = _try(candidate, self.service)
            if place is not None:
                return place
        self.why_file = "no encrypting desktop keyring answers"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._pin, b"")
        except OSError as error:
            raise Unavailable(f"{self.folder} cannot be written: {error.strerror}.", "Mend its permissions, or free some space.") from error
        return file


def _try(candidate: type[KeyringBackend], service: str) -> KeyringPlace | None:
    def make() -> KeyringPlace | None:
        if not candidate.viable:
            return None
        return KeyringPlace(candidate(), service)

    try:
        place = _bounded(make)
    except ConsoleError:
        return None
    return place if place is not None and place.works() else None


def _bounded(work: Callable[[], T]) -> T:
    """Runs it in a thread: TimedOut after ANSWER_S, Unavailable when the keyring refuses."""
    done: list[T] = []
    refused: list[Exception] = []

    def call() -> None:
        try:
            done.append(work())
        except _REFUSALS as error:
            refused.append(error)

    thread = threading.Thread(target=call, name="keyring", daemon=True)
    thread.start()
    thread.join(ANSWER_S)
    if thread.is_alive():
        raise TimedOut("The desktop's keyring does not answer.", "Unlock it, or set secrets to 'file'.")
    if not done:
        why = type(refused[0]).__name__ if refused else "it failed"
        raise Unavailable(f"The desktop's keyring refused ({why}).", "Unlock it, or set secrets to 'file'.")
    return done[0]


def _checked(name: str) -> str:
    if not name or len(name) > 64 or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in name):
        raise UsageProblem("That is not a secret's name.", "Use letters, digits, dot, dash and underscore.")
    return name
