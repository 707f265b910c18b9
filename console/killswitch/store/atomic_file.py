"""Files that are whole or not there: new file, fsync, rename, folder fsync; a digest inside; a reserve for a full disk.

A mark beside the guard's folder tells a file that was lost from one that never was."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any

from console.domain.process.failpoints import failpoint

RESERVE_BYTES = 256 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
DESCRIPTOR_S = 1.0
"""So long a write waits for a descriptor: a look over all processes takes many, each for a moment."""
_DRAFT = re.compile(r"\..+\.(\d{1,10})-[0-9a-f]{8}")
"""The writer's pid is part of the name."""


class Damaged(ValueError):
    """The file is there but is not what we wrote."""


class Reserve:
    """A file whose only use is to be given up when the disk is full, so that a kill can still be recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> bool:
        """Lays the reserve down; False when the disk has no room for it."""
        if self.path.exists():
            return True
        try:
            write_whole(self.path, secrets.token_bytes(RESERVE_BYTES))
        except OSError:
            return False
        return True

    def spend(self) -> bool:
        """Gives the reserve up; True when that may have made room."""
        try:
            self.path.unlink()
        except OSError:
            return False
        return True


def write_whole(path: Path, data: bytes, reserve: Reserve | None = None) -> None:
    """Replaces ``path`` durably. OSError when it is not on disk; with ``reserve`` a full disk is tried once more."""
    until = time.monotonic() + DESCRIPTOR_S
    while True:
        try:
            _replace(path, data)
        except OSError as error:
            if error.errno in _NO_DESCRIPTOR and time.monotonic() < until:
                time.sleep(0.01)
            elif error.errno in _FULL and reserve is not None and reserve.spend():
                reserve = None
            else:
                raise
        else:
            return


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    what = "receipt" if path.parent.name == "receipts" else path.stem
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        failpoint(f"{what}.written")
        draft.rename(path)
        failpoint(f"{what}.renamed")
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sweep_drafts(folder: Path) -> None:
    """Takes away what processes that were killed in the middle of ``write_whole`` left: room that a full disk may need. Never raises."""
    with contextlib.suppress(OSError):
        for entry in list(folder.iterdir()):
            found = _DRAFT.fullmatch(entry.name)
            if found and not Path(f"/proc/{found[1]}").exists():
                entry.unlink(missing_ok=True)


def write_all(fd: int, data: bytes) -> None:
    """All of ``data`` or OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(folder: Path) -> None:
    """Makes a rename or a new name in ``folder`` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def seal(body: dict[str, Any]) -> bytes:
    """JSON with its own digest, so that a flipped bit is seen."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "body": body}, indent=1, sort_keys=True).encode() + b"\n"


def read_sealed(path: Path) -> dict[str, Any] | None:
    """What ``seal`` made; None when there is no file. Damaged or OSError otherwise."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        whole = json.loads(raw)
        body = whole["body"]
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        good = isinstance(body, dict) and whole["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(f"{path.name} cannot be read") from error
    if not good:
        raise Damaged(f"{path.name} does not match its digest")
    return dict(body)


TRACES = ("registry.json", "latch.json", "journal.jsonl", "causes.json", "receipts")


class Witness:
    """A file beside the guard's folder. It outlives the folder, and speaks when the registry cannot."""

    def __init__(self, guard_dir: Path) -> None:
        self.path = guard_dir.parent / ".guard-was-here"
        self._folder = guard_dir

    def was_in_use(self) -> bool:
        """A guard ran here before: whatever is missing now was lost."""
        return self.path.exists() or any((self._folder / name).exists() for name in TRACES)

    def read(self) -> tuple[str, bool]:
        """(socket of the engine or empty, whether there ever were containers). What it does not say may be so."""
        try:
            body = read_sealed(self.path)
        except (Damaged, OSError):
            return "", True
        return (str(body.get("engine_socket", "")), body.get("containers_ever") is not False) if body is not None else ("", True)

    def ensure(self) -> None:
        """It is there, though it may know nothing. OSError when it is not durable."""
        if not self.path.exists():
            self.write("", containers_ever=True)

    def write(self, engine_socket: str, containers_ever: bool) -> None:
        """OSError when it is not durable."""
        if self.path.exists() and self.read() == (engine_socket, containers_ever):
            return
        write_whole(self.path, seal({"engine_socket": engine_socket, "containers_ever": containers_ever}))
