"""F2: a folder swapped with a link, again and again, while it is snapshotted and restored: never a byte from or to outside."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError, Denied
from console.domain.rollback import RollbackKind
from console.rollback import safe_open
from console.rollback.store import RollbackStore

_SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
folder = os.open(sys.argv[1], os.O_RDONLY)
os.write(1, b"ready")
while True:
    if libc.renameat2(folder, sys.argv[2].encode(), folder, sys.argv[3].encode(), 2):
        raise OSError(ctypes.get_errno(), "renameat2")
"""
INSIDE, CANARY = b"inside", b"canary-outside"


@contextmanager
def swapping(folder: Path, one: str, other: str) -> Iterator[None]:
    child = subprocess.Popen([sys.executable, "-c", _SWAPPER, str(folder), one, other], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.read(5) == b"ready"
        yield
        assert child.poll() is None, "the swapper died: nothing was tested"
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def goes_on(began: float, full_counts: bool, both_seen: bool) -> bool:
    """A second at least, and on a busy machine until the race was won and lost."""
    return time.monotonic() - began < ((20.0 if full_counts else 1.0) if both_seen else 90.0)


@pytest.fixture
def places(tmp_path: Path) -> tuple[RollbackStore, Path, Path]:
    ws = tmp_path / "workspaces" / "c1"
    (ws / "d").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(CANARY)
    (ws / "d" / "x").write_bytes(INSIDE)
    (ws / "trap").symlink_to(outside)
    return RollbackStore(tmp_path / "rollback", tmp_path / "workspaces"), ws, outside


@pytest.mark.parametrize("how", ["openat2", "walk"])
@pytest.mark.parametrize("what", ["folder", "file"])
def test_snapshots_never_read_outside(
    places: tuple[RollbackStore, Path, Path], how: str, what: str, full_counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, ws, outside = places
    if how == "walk":
        monkeypatch.setattr(safe_open, "openat2_works", lambda: False)
    else:
        assert safe_open.openat2_works()
    if what == "folder":
        names, path = (ws, "d", "trap"), "d/x"
    else:
        (ws / "d" / "trap").symlink_to(outside / "x")
        names, path = (ws / "d", "x", "trap"), "d/x"
    seen: dict[str | None, int] = {}
    denied = naive = 0
    with swapping(*names):
        began = time.monotonic()
        while goes_on(began, full_counts, bool(sum(seen.values()) and denied)):
            # What a naive check does meanwhile; shows that the race is on.
            try:
                if os.path.realpath(ws / path).startswith(str(ws)):
                    naive += Path(ws / path).read_bytes() == CANARY
            except OSError:
                pass
            try:
                sha256 = store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, path).before_sha256
                seen[sha256] = seen.get(sha256, 0) + 1
            except Denied:
                denied += 1
    store.close()
    assert set(seen) <= {hashlib.sha256(INSIDE).hexdigest(), None}
    assert hashlib.sha256(CANARY).hexdigest() not in os.listdir(outside.parent / "rollback" / "objects")
    assert sum(seen.values()) and denied, f"no race: {seen} {denied} {naive}"


def test_restores_never_write_outside(places: tuple[RollbackStore, Path, Path], full_counts: bool) -> None:
    store, ws, outside = places
    record = store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, "d/x")
    (ws / "d" / "x").write_bytes(b"changed")
    store.note_after(record.record_id)
    changed = hashlib.sha256(b"changed").hexdigest()
    done = refused = 0
    with swapping(ws, "d", "trap"):
        began = time.monotonic()
        while goes_on(began, full_counts, bool(done and refused)):
            try:
                store.restore(record.record_id, "ann", changed)
                done += 1
                undo = next(r for r in store.records(limit=3) if r.before_sha256 == changed)
                store.restore(undo.record_id, "ann", record.before_sha256)
            except ConsoleError:
                refused += 1
    store.close()
    assert os.listdir(outside) == ["x"] and (outside / "x").read_bytes() == CANARY
    assert done and refused
    inside = ws / "d" if not (ws / "d").is_symlink() else ws / "trap"
    assert (inside / "x").read_bytes() in (INSIDE, b"changed")
