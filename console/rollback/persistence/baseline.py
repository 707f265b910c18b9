"""The baseline of a session: a snapshot on disk, signed, so that one that was changed is noticed and never taken for the truth."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError, UsageProblem
from console.domain.ids import CONTEXT_ID
from console.domain.process.durable import make_folder, replace_file
from console.rollback.persistence.findings import Snapshot, snapshot_from_json

Sign = Callable[[bytes], bytes]
Check = Callable[[bytes, bytes], bool]
"""(what was signed, signature) -> whether it is the host's."""
LIMIT = 64 << 20


_CONTEXT = b"watchfloor-baseline-1\n"
"""Before what is signed, so that another signature of the host's key is none over a baseline."""


class Broken(ConsoleError):
    """A baseline that is there and cannot be believed."""


def place_of(folder: Path, context_id: str) -> Path:
    """Where a session's baseline lies. UsageProblem on what is no session's id."""
    if not CONTEXT_ID.match(context_id):
        raise UsageProblem(f"Context id {context_id[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
    return folder / f"{context_id}.json"


def save(folder: Path, context_id: str, taken: Snapshot, sign: Sign) -> str:
    """Writes it, signed; the SHA-256 of the file. Raises OSError."""
    body = {"context_id": context_id, "snapshot": taken.as_json()}
    signature = base64.b64encode(sign(_signed(body))).decode()
    data = _canonical({"body": body, "sig": signature}) + b"\n"
    make_folder(folder)
    replace_file(place_of(folder, context_id), data)
    return hashlib.sha256(data).hexdigest()


def load(folder: Path, context_id: str, check: Check) -> tuple[Snapshot, str] | None:
    """(the snapshot, the file's SHA-256), or None when there is none. Raises Broken, in words, on anything that is not as it was signed."""
    try:
        raw = _read(place_of(folder, context_id))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Broken(f"The baseline cannot be read: {error.strerror}.", "Look at its file.") from error
    try:
        document: dict[str, Any] = json.loads(raw)
        body = document["body"]
        signature = base64.b64decode(document["sig"], validate=True)
        # Byte for byte: JSON that parses the same but is written otherwise could say another thing to another reader.
        is_ours = raw == _canonical(document) + b"\n" and body["context_id"] == context_id and check(_signed(body), signature)
        snapshot = snapshot_from_json(body["snapshot"]) if is_ours else None
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise _changed() from error
    if snapshot is None:
        raise _changed()
    return snapshot, hashlib.sha256(raw).hexdigest()


def _changed() -> ConsoleError:
    return Broken("The baseline is not as it was signed.", "It was changed, cut short, or signed with another key.")


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a plain file")
        raw = file.read(LIMIT + 1)
    if len(raw) > LIMIT:
        raise OSError(0, "it is too large")
    return raw


def _signed(body: dict[str, Any]) -> bytes:
    return _CONTEXT + _canonical(body)


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
