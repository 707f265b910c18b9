"""Keep secrets by name, for one instance: in the desktop's keyring, else in a file sealed under a systemd credential, else in a 0600 file.

Each place is tried by writing and reading. An instance that once used a lower place never goes back to a higher one. Otherwise a keyring
that answers again would bring back keys that were rotated away meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Protocol

from keyring.backend import KeyringBackend

from console.credentials.keyring_place import ENCRYPTING, KeyringPlace, open_keyring
from console.credentials.redaction import Redactor
from console.credentials.sealed_file import SealedFile, read_credential
from console.credentials.secret_file import SecretFile
from console.domain.errors import ConsoleError, Unavailable, UsageProblem
from console.domain.process.durable import make_folder, replace_file

SEALED = "a file sealed under the systemd credential"


class Place(Protocol):
    """Somewhere that keeps values by name."""

    def get(self, name: str) -> str | None:
        """The value now, or None."""

    def set(self, name: str, value: str) -> None:
        """Keeps it."""

    def delete(self, name: str) -> None:
        """Forgets it; unknown names are no error."""


class Store:
    """get, set and delete by name; the service name carries the instance, so instances never share an entry."""

    def __init__(
        self,
        instance_id: str,
        folder: Path,
        *,
        backend: Literal["auto", "file"] = "auto",
        candidates: tuple[type[KeyringBackend], ...] = ENCRYPTING,
        settle: bool = True,
    ) -> None:
        """``folder`` is the instance's keys folder; ``file`` never looks further (the demo, tests).

        ``settle``: the choice of a lower place is final. False only looks. A command from another session, without the desktop's bus, must
        not decide for the supervisor.
        """
        if len(instance_id) != 8 or any(c not in "0123456789abcdef" for c in instance_id):
            raise UsageProblem("That is not an instance id.", "Use the 8 hexadecimal characters of instance.json.")
        self.instance_id = instance_id
        self.service = f"watchfloor-{instance_id}"
        self.folder = folder
        self.redactor = Redactor()
        self.why_not_better: list[str] = []
        """One line for each better place: why it is not used."""
        self._settle = settle
        self._place: Place = self._choose(backend, candidates)

    @property
    def kind(self) -> str:
        """``file``, the sealed file's name or the keyring's, for a person."""
        if isinstance(self._place, KeyringPlace):
            return self._place.name
        return SEALED if isinstance(self._place, SealedFile) else "file"

    @property
    def why_file(self) -> str:
        """Why no better place is used; empty when the keyring is."""
        return "; ".join(words.rstrip(".") for words in self.why_not_better)

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
        pin, sealed = self.folder / "secrets-in-file", self.folder / "secrets.sealed"
        if backend == "file":
            self.why_not_better = ["chosen by the settings"]
            return file
        if pin.exists() or file.path.exists():
            self.why_not_better = ["this instance keeps its secrets in the file since nothing better was there"]
            return file
        # 1. The desktop's keyring, unless this instance has left it behind.
        if sealed.exists():
            self.why_not_better = ["keyring: this instance keeps its secrets under the credential since no keyring was there"]
        else:
            place, self.why_not_better = open_keyring(self.service, candidates)
            if place is not None:
                return place
        # 2. A file sealed under the service manager's credential.
        try:
            beneath = SealedFile(sealed, read_credential(os.environ.get("CREDENTIALS_DIRECTORY", "")), self.instance_id)
        except Unavailable as error:
            self.why_not_better.append(error.what)
        else:
            words = beneath.probe() if self._settle else _readable(beneath)
            if not words:
                return beneath
            self.why_not_better.append(words)
        # 3. The file, for good.
        if self._settle:
            self._pin(pin)
        return file

    def _pin(self, pin: Path) -> None:
        try:
            make_folder(self.folder)
            replace_file(pin, b"")
        except OSError as error:
            raise Unavailable(f"{self.folder} cannot be written: {error.strerror}.", "Fix its permissions, or free some space.") from error


def _readable(place: SealedFile) -> str:
    try:
        place.get("probe")
    except ConsoleError as error:
        return error.what
    return ""


def _checked(name: str) -> str:
    if not name or len(name) > 64 or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in name):
        raise UsageProblem("That is not a secret's name.", "Use letters, digits, dot, dash and underscore.")
    return name
