"""Faults 1, 2 and 4 for snapshots: a record that was answered is on disk with its content; a restore is whole or not there."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.domain.rollback import RollbackKind, RollbackState
from console.rollback.store import RollbackStore
from tests.fakes.killed_writer import killed_in_mid_write
from tests.fakes.private_disk import run_on_a_small_disk

pytestmark = pytest.mark.fault

_SNAPSHOTS = """
from console.domain.rollback import RollbackKind
from console.rollback.store import RollbackStore
(folder / "workspaces" / "c1").mkdir(parents=True, exist_ok=True)
store = RollbackStore(folder / "rollback", folder / "workspaces")
def work(number):
    path = folder / "workspaces" / "c1" / f"f{number}"
    i = 0
    while True:
        i += 1
        path.write_bytes(f"{os.getpid()} {number} {i} ".encode() * 2000)
        record = store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, f"f{number}")
        acknowledge(f"{record.record_id} {record.before_sha256}")
for n in range(3):
    threading.Thread(target=work, args=(n,)).start()
"""

_RESTORES = """
from console.domain.rollback import RollbackKind
from console.rollback.store import RollbackStore
import hashlib
ws = folder / "workspaces" / "c1"
ws.mkdir(parents=True, exist_ok=True)
store = RollbackStore(folder / "rollback", folder / "workspaces")
one, two = b"one" * 20000, b"two" * 30000
while True:
    (ws / "x").write_bytes(one)
    record = store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, "x")
    (ws / "y").write_bytes(two)
    (ws / "y").replace(ws / "x")
    store.note_after(record.record_id)
    acknowledge("go")
    store.restore(record.record_id, "ann", hashlib.sha256(two).hexdigest())
    acknowledge("done " + record.record_id)
"""


def check_objects(rollback: Path) -> None:
    """Every object is what its name says; every record's content is there."""
    objects = rollback / "objects"
    for name in os.listdir(objects):
        if not name.startswith("."):
            assert hashlib.sha256((objects / name).read_bytes()).hexdigest() == name
    with closing(sqlite3.connect(rollback / "records.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        needed = {row[0] for row in connection.execute("SELECT DISTINCT before_sha256 FROM records WHERE before_sha256 IS NOT NULL")}
    assert needed <= set(os.listdir(objects))


def test_sigkill_loses_no_answered_snapshot(tmp_path: Path, full_counts: bool) -> None:
    chance = random.Random(3)
    answered: dict[str, str] = {}
    for _ in range(100 if full_counts else 4):
        answered |= dict(line.split() for line in killed_in_mid_write(tmp_path, _SNAPSHOTS, chance.uniform(0.02, 0.2)))
        check_objects(tmp_path / "rollback")
    store = RollbackStore(tmp_path / "rollback", tmp_path / "workspaces")
    assert all(store.get(record_id).before_sha256 == sha256 for record_id, sha256 in answered.items())
    store.close()


def test_sigkill_in_a_restore_leaves_one_or_the_other(tmp_path: Path, full_counts: bool) -> None:
    chance = random.Random(5)
    for _ in range(100 if full_counts else 4):
        lines = killed_in_mid_write(tmp_path, _RESTORES, chance.uniform(0.02, 0.25))
        check_objects(tmp_path / "rollback")
        found = (tmp_path / "workspaces" / "c1" / "x").read_bytes()
        assert found in (b"", b"one" * 20000, b"two" * 30000) or found.startswith(b"one")  # the child's own plain write may be torn
        store = RollbackStore(tmp_path / "rollback", tmp_path / "workspaces")
        for line in lines:
            if line.startswith("done "):
                assert store.get(line[5:]).restored_at is not None
        store.close()


def test_from_the_state_at_each_sync_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power loss, emulated: the state directory is copied at each fsync of a restore, and the product started on each copy."""
    home = tmp_path / "home"
    ws = home / "workspaces" / "c1"
    ws.mkdir(parents=True)
    (ws / "x").write_bytes(b"one")
    store = RollbackStore(home / "rollback", home / "workspaces")
    record = store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, "x")
    (ws / "x").write_bytes(b"two")
    store.note_after(record.record_id)
    copies: list[Path] = []
    real = os.fsync

    def copying(fd: int) -> None:
        copies.append(tmp_path / f"copy{len(copies)}")
        shutil.copytree(home, copies[-1])
        real(fd)

    monkeypatch.setattr(os, "fsync", copying)
    two = hashlib.sha256(b"two").hexdigest()
    store.restore(record.record_id, "ann", two)
    monkeypatch.setattr(os, "fsync", real)
    store.close()
    assert len(copies) >= 3
    for copy in copies:
        again = RollbackStore(copy / "rollback", copy / "workspaces")
        assert [p.name for p in (copy / "workspaces" / "c1").iterdir() if p.name != "x"] == []
        seen = again.detail(record.record_id)
        assert seen.conflict == ""
        restored = again.restore(record.record_id, "ann", seen.now_sha256)
        assert restored.state is RollbackState.RESTORED
        assert (copy / "workspaces" / "c1" / "x").read_bytes() == b"one"
        assert [p.name for p in (copy / "workspaces" / "c1").iterdir() if p.name != "x"] == []
        with pytest.raises(Conflict):
            (copy / "workspaces" / "c1" / "x").write_bytes(b"three")
            again.restore(record.record_id, "ann", two)
        again.close()


def test_a_full_disk_refuses_the_action_and_recovers(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.domain.errors import ConsoleError, NotRecorded
        from console.domain.rollback import RollbackKind
        from console.rollback.store import RollbackStore
        ws = disk / "workspaces" / "c1"
        ws.mkdir(parents=True)
        store = RollbackStore(disk / "rollback", disk / "workspaces")
        (ws / "x").write_bytes(b"a" * 200000)
        first = store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, "x").record_id
        (ws / "x").write_bytes(b"b" * 200000)
        now = store.note_after(first).after_sha256
        fill(leave=100000)
        said = {"words": [], "objects": 0}
        for _ in range(3):
            try:
                store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, "x")
            except NotRecorded as error:
                said["words"].append(str(error))
        try:
            store.restore(first, "ann", now)
        except ConsoleError as error:
            said["restore"] = str(error)
        said["objects"] = len(os.listdir(disk / "rollback" / "objects"))
        said["kept"] = (ws / "x").read_bytes() == b"b" * 200000
        said["names"] = sorted(os.listdir(ws))
        empty()
        store.restore(first, "ann", now)
        said["after"] = (ws / "x").read_bytes() == b"a" * 200000
        store.close()
        print(json.dumps(said))
        """,
    )
    assert len(said["words"]) == 3 and all("No space left" in words for words in said["words"])
    assert said["objects"] == 1 and said["kept"] and said["names"] == ["x"]
    assert "No space left" in said["restore"]
    assert said["after"]


def test_another_mount_inside_the_workspace_is_not_entered(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.domain.errors import Denied
        from console.domain.rollback import RollbackKind
        from console.rollback import safe_open
        from console.rollback.store import RollbackStore
        ws = disk / "workspaces" / "c1"
        (ws / "m").mkdir(parents=True)
        (ws / "f").write_text("plain")
        subprocess.run(["mount", "-t", "tmpfs", "none", str(ws / "m")], check=True)
        subprocess.run(["mount", "--bind", "/etc/hostname", str(ws / "f")], check=True)
        (ws / "m" / "x").write_text("canary")
        store = RollbackStore(disk / "rollback", disk / "workspaces")
        said = {}
        for how in ("openat2", "walk"):
            if how == "walk":
                safe_open.openat2_works = lambda: False
            for path in ("m/x", "f"):
                try:
                    store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, path)
                    said[how + path] = "read"
                except Denied as error:
                    said[how + path] = error.what
        store.close()
        print(json.dumps(said))
        """,
    )
    assert len(said) == 4 and all("mount" in words or "file system" in words for words in said.values()), said


def test_a_bind_mount_of_the_same_file_system_is_not_entered(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.domain.errors import Denied
        from console.domain.rollback import RollbackKind
        from console.rollback.store import RollbackStore
        ws = disk / "workspaces" / "c1"
        (ws / "b").mkdir(parents=True)
        (disk / "outside").mkdir()
        (disk / "outside" / "x").write_text("canary")
        subprocess.run(["mount", "--bind", str(disk / "outside"), str(ws / "b")], check=True)
        store = RollbackStore(disk / "rollback", disk / "workspaces")
        try:
            said = store.snapshot("a1", "c1", RollbackKind.FILE_WRITE, "b/x").before_sha256
        except Denied as error:
            said = error.what
        store.close()
        print(json.dumps(said))
        """,
    )
    assert "across a mount" in said
