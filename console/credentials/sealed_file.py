"""Secrets in one file, encrypted under a key that the service manager hands over: a systemd credential.

A credential can only be read (systemd.exec(5), LoadCredentialEncrypted=, $CREDENTIALS_DIRECTORY), so it cannot hold what changes. It holds
a key, and the file beside the state is sealed under it: a copy of the disk alone gives nothing away. Whoever may read the memory or the
credentials of this service can read it; that is what a credential is.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from console.domain.errors import ConsoleError, Unavailable
from console.settings.durable import replace_file

CREDENTIAL = "watchfloor-secrets"
"""Name of the credential in the unit: LoadCredentialEncrypted=watchfloor-secrets."""
SHORTEST = 32
"""Bytes a credential must have to be a key."""
_LIMIT = 4 * 1024 * 1024
_SALT, _NONCE = 16, 12


def read_credential(folder: str) -> bytes:
    """The key's bytes from $CREDENTIALS_DIRECTORY. Raises Unavailable with why there is none that can be used."""
    if not folder:
        raise Unavailable("no systemd credential: CREDENTIALS_DIRECTORY is not set")
    path = Path(folder) / CREDENTIAL
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            seen = os.fstat(descriptor)
            raw = file.read(_LIMIT).strip()
    except FileNotFoundError as error:
        raise Unavailable(f"systemd credential: there is none named {CREDENTIAL}") from error
    except OSError as error:
        raise Unavailable(f"systemd credential: {CREDENTIAL} cannot be read: {error.strerror}") from error
    # systemd gives 0400 or, with an ACL for the service's user, 0440 (systemd.exec(5)): never anything for others.
    if not stat.S_ISREG(seen.st_mode) or seen.st_mode & 0o007 or seen.st_uid not in (0, os.geteuid()):
        raise Unavailable(f"systemd credential: {CREDENTIAL} is open to others, or belongs to somebody else")
    if len(raw) < SHORTEST:
        raise Unavailable(f"systemd credential: {CREDENTIAL} has less than {SHORTEST} bytes: openssl rand -base64 48 makes a key")
    return raw


class SealedFile:
    """name -> value. Safe between processes (flock beside the file). Every call raises ConsoleError when the file cannot be used."""

    def __init__(self, path: Path, credential: bytes, instance_id: str) -> None:
        self.path = path
        self._credential, self._instance = credential, instance_id.encode()

    def get(self, name: str) -> str | None:
        """The value as it is on disk now, or None."""
        return self._read().get(name)

    def set(self, name: str, value: str) -> None:
        """Durable when it returns."""
        with self._locked():
            self._write({**self._read(), name: value})

    def delete(self, name: str) -> None:
        """Durable when it returns; an unknown name is no error."""
        with self._locked():
            values = self._read()
            if values.pop(name, None) is not None:
                self._write(values)

    def probe(self) -> str:
        """Writes and reads back: why it cannot be used, or nothing."""
        try:
            self.set("probe", "probe")
            same = self.get("probe") == "probe"
            self.delete("probe")
        except ConsoleError as error:
            return error.what
        return "" if same else "what was written is not what was read back"

    def _read(self) -> dict[str, str]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                sealed = json.loads(file.read(_LIMIT))
            salt, nonce, body = (base64.b64decode(sealed[part], validate=True) for part in ("salt", "nonce", "body"))
            values = json.loads(AESGCM(self._key(salt)).decrypt(nonce, body, self._instance))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from error
        except InvalidTag as error:
            raise self._unusable("was not sealed under this credential, or was changed") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._unusable("is damaged") from error
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            raise self._unusable("is damaged")
        return values

    def _write(self, values: dict[str, str]) -> None:
        # A new salt and nonce for every write: no pair of key and nonce is ever used twice (NIST SP 800-38D, 8).
        salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
        body = AESGCM(self._key(salt)).encrypt(nonce, json.dumps(values).encode(), self._instance)
        sealed = {name: base64.b64encode(part).decode() for name, part in (("salt", salt), ("nonce", nonce), ("body", body))}
        try:
            replace_file(self.path, json.dumps(sealed).encode())
        except OSError as error:
            raise self._unusable(f"cannot be written: {error.strerror}") from error

    def _key(self, salt: bytes) -> bytes:
        return HKDF(hashes.SHA256(), 32, salt, b"watchfloor secrets " + self._instance).derive(self._credential)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(f"cannot be locked: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _unusable(self, why: str) -> ConsoleError:
        return ConsoleError(f"The sealed file of secrets {self.path} {why}.", "Give the unit its credential back, or remove the file.")
