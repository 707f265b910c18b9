"""Keep secrets in one file, encrypted under a key that the service manager hands over: a systemd credential.

A credential can only be read (systemd.exec(5), LoadCredentialEncrypted=, $CREDENTIALS_DIRECTORY), so it cannot hold what changes. It holds
a key, and the file beside the state is sealed under it: a copy of the disk alone reveals nothing. A process that may read the memory or the
credentials of this service can read the secrets: no credential protects against that.
"""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from console.credentials.secret_file import SecretFile
from console.domain.errors import ConsoleError, Unavailable

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
        raise Unavailable(f"systemd credential: {CREDENTIAL} is open to other accounts, or belongs to one")
    if len(raw) < SHORTEST:
        # HKDF spreads the entropy of its input and adds none, so a short word would make a weak key (RFC 5869, 4).
        raise Unavailable(f"systemd credential: {CREDENTIAL} has less than {SHORTEST} bytes: openssl rand -base64 48 makes a key")
    return raw


class SealedFile(SecretFile):
    """The same file, its content sealed."""

    def __init__(self, path: Path, credential: bytes, instance_id: str) -> None:
        super().__init__(path)
        self._credential, self._instance = credential, instance_id.encode()

    def probe(self) -> str:
        """Writes and reads back: why it cannot be used, or nothing."""
        try:
            self.set("probe", "probe")
            same = self.get("probe") == "probe"
            self.delete("probe")
        except ConsoleError as error:
            return error.what
        return "" if same else "what was written is not what was read back"

    def _decoded(self, raw: bytes) -> object:
        try:
            sealed = json.loads(raw)
            salt, nonce, body = (base64.b64decode(sealed[part], validate=True) for part in ("salt", "nonce", "body"))
            return json.loads(AESGCM(self._key(salt)).decrypt(nonce, body, self._instance))
        except InvalidTag as error:
            raise self._unusable("was not sealed under this credential, or was changed") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._unusable("is damaged") from error

    def _encoded(self, values: dict[str, str]) -> bytes:
        # A new salt and nonce for every write: no pair of key and nonce is ever used twice (NIST SP 800-38D, 8).
        salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
        body = AESGCM(self._key(salt)).encrypt(nonce, json.dumps(values).encode(), self._instance)
        return json.dumps(
            {name: base64.b64encode(part).decode() for name, part in (("salt", salt), ("nonce", nonce), ("body", body))}
        ).encode()

    def _key(self, salt: bytes) -> bytes:
        # The instance is part of the key: one credential may serve several instances, and none opens another's file.
        return HKDF(hashes.SHA256(), 32, salt, b"watchfloor secrets " + self._instance).derive(self._credential)

    def _unusable(self, why: str) -> ConsoleError:
        return ConsoleError(f"The sealed file of secrets {self.path} {why}.", "Give the unit its credential back, or remove the file.")
