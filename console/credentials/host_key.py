"""The host's own signing key, for the receipts of its kills: Ed25519, made at the first start, the private part 0600."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.domain.errors import ConsoleError
from console.domain.process.durable import make_folder, replace_file, sync_folder

PRIVATE_FILE = "host-key.pem"
PUBLIC_FILE = "host-key.pub"
"""What a checker of receipts needs; nothing secret. Copy it off the host: a checker must not have to trust the host for it."""
NEXT_FILE = "host-key.next.pem"
"""The key that takes over once the record says that the present one is retired; it is on disk before that."""
_LIMIT = 64 * 1024


def prepare_next(keys_dir: Path) -> Ed25519PrivateKey:
    """A new key beside the present one, on disk when this returns. Raises ConsoleError."""
    key = Ed25519PrivateKey.generate()
    try:
        replace_file(keys_dir / NEXT_FILE, _pem(key))
    except OSError as error:
        raise _unusable(keys_dir, error) from error
    return key


def next_key(keys_dir: Path) -> Ed25519PrivateKey | None:
    """The one that was prepared, or None. Raises ConsoleError when it is there and cannot be used."""
    try:
        return _load(keys_dir / NEXT_FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(keys_dir, error) from error


def take_over(keys_dir: Path) -> None:
    """The prepared key becomes the host's; may be called again after a crash. Raises ConsoleError."""
    try:
        (keys_dir / PUBLIC_FILE).unlink(missing_ok=True)  # without it a crash from here on is told from an exchanged key
        (keys_dir / NEXT_FILE).replace(keys_dir / PRIVATE_FILE)
        sync_folder(keys_dir)
    except OSError as error:
        raise _unusable(keys_dir, error) from error
    ensure_host_key(keys_dir)


def forget_next(keys_dir: Path) -> None:
    """Nothing was recorded, so nothing takes over. Raises ConsoleError."""
    try:
        (keys_dir / NEXT_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(keys_dir, error) from error


def ensure_host_key(keys_dir: Path) -> Ed25519PrivateKey:
    """The key; made when there is none yet. Raises ConsoleError when it cannot be used, and never makes another in its place."""
    private_file, public_file = keys_dir / PRIVATE_FILE, keys_dir / PUBLIC_FILE
    try:
        make_folder(keys_dir)
        if not os.path.lexists(private_file):
            # A new key in its place would sign receipts that no checker's copy of the old one accepts, and hide the loss.
            if os.path.lexists(public_file):
                raise ConsoleError(
                    f"The host key {private_file} is gone, its public part is still there.",
                    f"Restore it; or, to begin with a new key, move {PUBLIC_FILE} away and start again.",
                )
            replace_file(private_file, _pem(Ed25519PrivateKey.generate()))
        private = _load(private_file)
        public = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        if not os.path.lexists(public_file):  # a crash between the two files, or lost: it follows from the private one
            replace_file(public_file, public, 0o644)
        elif public_file.read_bytes() != public:
            raise ConsoleError(f"{public_file} is not the public part of the host key.", "One of the two was exchanged: find out which.")
    except OSError as error:
        raise _unusable(keys_dir, error) from error
    return private


def _unusable(keys_dir: Path, error: OSError) -> ConsoleError:
    return ConsoleError(f"The host key in {keys_dir} cannot be used: {error.strerror}.", "Fix the folder, or free some space.")


def _load(path: Path) -> Ed25519PrivateKey:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or stat.S_IMODE(seen.st_mode) & 0o077 or seen.st_uid != os.geteuid():
            raise ConsoleError(
                f"The host key {path} is open to other accounts, or belongs to one.",
                f"If no other account read it: chmod 600. Else move it and {PUBLIC_FILE} away, and start again for a new one.",
            )
        raw = file.read(_LIMIT)
    try:
        private = serialization.load_pem_private_key(raw, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _damaged(path) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise _damaged(path)
    return private


def _damaged(path: Path) -> ConsoleError:
    return ConsoleError(
        f"The host key {path} is damaged.", f"Restore it; or move it and {PUBLIC_FILE} away, and start again for a new one."
    )


def _pem(private: Ed25519PrivateKey) -> bytes:
    return private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
