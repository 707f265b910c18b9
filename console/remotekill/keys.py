"""Signing keys of a fleet: private keys in 0600 files, the public set that hosts trust, and the first signed baseline."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from console.domain.errors import Conflict, ConsoleError, NotFound, UsageProblem
from console.domain.process.durable import make_folder, replace_file
from console.remotekill.document import KeySet, Signer

PUBLIC_FILE = "fleet-keys.json"
"""What hosts trust. Copy it to every host of the fleet; it holds nothing secret."""
EPOCH_FILE = "signed-epoch"
_SCHEMA = "watchfloor-fleet-keys/1"
_FLEET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_LIMIT = 256 * 1024


@dataclass(frozen=True, slots=True)
class KeysShown:
    """What ``keys show`` prints: nothing secret."""

    fleet: str
    quorum: int
    kids: tuple[str, ...]
    signing: tuple[str, ...]
    """The kids whose private key lies in this folder, newest first."""
    public_file: Path


def kid_of(public: bytes) -> str:
    """16 hexadecimal characters of the public key's SHA-256."""
    return hashlib.sha256(public).hexdigest()[:16]


def init_keys(keys_dir: Path, fleet: str, quorum: int = 1) -> KeysShown:
    """Makes the first key and the public set. Conflict when the folder has a set already: overwriting it would orphan a fleet."""
    if not _FLEET.fullmatch(fleet):
        raise UsageProblem("That is not a fleet's name.", "Use letters, digits, dot, dash and underscore, 63 at most.")
    if not 1 <= quorum <= 8:
        raise UsageProblem("The quorum is out of range.", "Use 1 to 8.")
    _make_folder(keys_dir)
    if (keys_dir / PUBLIC_FILE).exists():
        raise Conflict(f"{keys_dir} has keys already.", "Use 'watchfloor secrets keys rotate' for a new key.")
    keys = {}
    for _ in range(quorum):
        signer, public = _new_key(keys_dir)
        keys[signer.kid] = public
    _save_set(keys_dir, KeySet(fleet, quorum, keys))
    return show_keys(keys_dir)


def show_keys(keys_dir: Path) -> KeysShown:
    """The public facts of a keys folder. NotFound when there are none, ConsoleError when they are damaged."""
    keys = load_keys(keys_dir)
    signing = [s.kid for s in load_signers(keys_dir)]
    return KeysShown(keys.fleet, keys.quorum, tuple(keys.keys), tuple(signing), keys_dir / PUBLIC_FILE)


def rotate_keys(keys_dir: Path) -> KeysShown:
    """Adds a new key to the public set. The old one stays valid until ``retire_key``: hosts need the new set first."""
    keys = load_keys(keys_dir)
    signer, public = _new_key(keys_dir)
    _save_set(keys_dir, KeySet(keys.fleet, keys.quorum, {signer.kid: public, **keys.keys}))
    return show_keys(keys_dir)


def retire_key(keys_dir: Path, kid: str) -> KeysShown:
    """Takes a key out of the public set and removes its private file. Refused when the rest could not sign any more."""
    keys = load_keys(keys_dir)
    if kid not in keys.keys:
        raise NotFound("The set has no such key.", "'watchfloor secrets keys show' lists them.")
    rest = {k: v for k, v in keys.keys.items() if k != kid}
    # Distinct keys: the same one under two names would pass a count and still sign only once.
    if len(set(rest.values())) < keys.quorum:
        raise Conflict("Without this key no release could be signed.", "Rotate first.")
    _save_set(keys_dir, KeySet(keys.fleet, keys.quorum, rest))
    (keys_dir / f"{kid}.key").unlink(missing_ok=True)
    return show_keys(keys_dir)


def load_keys(keys_dir: Path) -> KeySet:
    """Return the public key set. Raises NotFound without one, ConsoleError when it is damaged (then no key is trusted)."""
    path = keys_dir / PUBLIC_FILE
    try:
        with path.open("rb") as file:
            return _decode(json.loads(file.read(_LIMIT)))
    except FileNotFoundError as error:
        raise NotFound(f"There are no keys in {keys_dir}.", "Run 'watchfloor secrets keys init'.") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConsoleError(f"{path} is damaged.", "Copy it again from the machine that signs.") from error


def _decode(data: Any) -> KeySet:
    fleet, quorum, entries = data["fleet"], data["quorum"], data["keys"]
    if data["schema"] != _SCHEMA or not _FLEET.fullmatch(fleet) or type(quorum) is not int or not 1 <= quorum <= 8:
        raise ValueError("key set")
    keys = {}
    for entry in entries:
        public = base64.b64decode(entry["public"], validate=True)
        Ed25519PublicKey.from_public_bytes(public)
        # The name follows from the key, so that no document can give one key two names and count it twice.
        if entry["alg"] != "Ed25519" or entry["kid"] != kid_of(public):
            raise ValueError("key")
        keys[entry["kid"]] = public
    if len(keys) < quorum:
        raise ValueError("fewer keys than the quorum")
    return KeySet(fleet, quorum, keys)


def load_signers(keys_dir: Path) -> list[Signer]:
    """The private keys of this folder that the set knows, in the set's order. A readable-by-others key file is refused."""
    keys = load_keys(keys_dir)
    return [_load_private(keys_dir / f"{kid}.key", kid) for kid in keys.keys if (keys_dir / f"{kid}.key").exists()]


def load_key_files(paths: Iterable[Path], keys: KeySet) -> list[Signer]:
    """Private keys from wherever they are kept (a stick, another operator's folder). UsageProblem for one that the fleet does not trust."""
    found = []
    for path in paths:
        private = _read_private(path)
        kid = kid_of(private.public_key().public_bytes_raw())
        if kid not in keys.keys:
            raise UsageProblem(
                f"The fleet {keys.fleet} does not trust the key {kid} of {path}.", "'watchfloor secrets keys show' lists those it does."
            )
        found.append(Signer(kid, private))
    return found


def take_epoch(keys_dir: Path, known: Iterable[int] = ()) -> int:
    """The next epoch to sign: above every known one and every one taken here before. Durably taken before it is used.

    ConsoleError when the note of the last one is damaged: signing an old epoch would be a release that no host accepts.
    """
    path = keys_dir / EPOCH_FILE
    try:
        last = int(path.read_text()) if path.exists() else 0
        epoch = max([0, last, *known]) + 1
        # Before it is used: after a crash the next release must not carry the same epoch, which hosts would ignore.
        replace_file(path, str(epoch).encode())
    except (OSError, ValueError) as error:
        raise ConsoleError(f"{path} cannot be used.", "Fix it: it holds the highest epoch signed so far, as a number.") from error
    return epoch


def _load_private(path: Path, kid: str) -> Signer:
    private = _read_private(path)
    if kid_of(private.public_key().public_bytes_raw()) != kid:
        raise ConsoleError(f"The private key {path} is not the one its name says.", "Restore it, or rotate the key.")
    return Signer(kid, private)


def _read_private(path: Path) -> Ed25519PrivateKey:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno())
            if stat.S_IMODE(mode.st_mode) & 0o077 or not stat.S_ISREG(mode.st_mode):
                raise ConsoleError(f"{path} can be read by others.", f"chmod 600 {path}, and rotate the key if it leaked.")
            private = serialization.load_pem_private_key(file.read(_LIMIT), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm, binascii.Error) as error:
        raise ConsoleError(f"The private key {path} cannot be read.", "Restore it, or rotate the key.") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise ConsoleError(f"The private key {path} is not an Ed25519 key.", "Name another file.")
    return private


def _new_key(keys_dir: Path) -> tuple[Signer, bytes]:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    signer = Signer(kid_of(public), private)
    try:
        replace_file(keys_dir / f"{signer.kid}.key", pem)
    except OSError as error:
        raise ConsoleError(f"{keys_dir} cannot be written: {error.strerror}.", "Fix its permissions, or free some space.") from error
    return signer, public


def _save_set(keys_dir: Path, keys: KeySet) -> None:
    entries = [{"kid": kid, "alg": "Ed25519", "public": base64.b64encode(raw).decode()} for kid, raw in keys.keys.items()]
    data = {"schema": _SCHEMA, "fleet": keys.fleet, "quorum": keys.quorum, "keys": entries}
    try:
        replace_file(keys_dir / PUBLIC_FILE, json.dumps(data, indent=1).encode(), 0o644)
    except OSError as error:
        raise ConsoleError(f"{keys_dir} cannot be written: {error.strerror}.", "Fix its permissions, or free some space.") from error


def _make_folder(keys_dir: Path) -> None:
    try:
        make_folder(keys_dir)
    except OSError as error:
        raise ConsoleError(f"{keys_dir} cannot be made: {error.strerror}.", "Choose another state directory.") from error
