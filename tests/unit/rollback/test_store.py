"""R1, R5 (files), F1, F3: snapshot before, restore after, refused when anybody changed it since, nothing half done."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, NotRecorded, UsageProblem
from console.domain.rollback import RollbackKind, RollbackState
from console.rollback import store as module
from console.rollback.store import RollbackStore

WRITE, DELETE = RollbackKind.FILE_WRITE, RollbackKind.FILE_DELETE
S = RollbackState


def sha(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def write(store: RollbackStore, ws: Path, path: str, after: bytes | None) -> str:
    """An agent's recorded action, whole: asked, done, seen. Returns the record's id."""
    record = store.snapshot("a1", "c1", WRITE if after is not None else DELETE, path)
    if after is None:
        (ws / path).unlink()
    else:
        (ws / path).write_bytes(after)
    store.note_after(record.record_id)
    return record.record_id


def test_a_write_is_put_back_with_mode_and_owner(store: RollbackStore, ws: Path) -> None:
    (ws / "d" / "x").write_bytes(b"one")
    (ws / "d" / "x").chmod(0o751)
    if os.geteuid() == 0:
        os.chown(ws / "d" / "x", 1234, 4321)
    record_id = write(store, ws, "d/x", b"two")
    (ws / "d" / "x").chmod(0o600)
    assert store.get(record_id).state is S.CAN_RESTORE
    restored = store.restore(record_id, "ann", sha(b"two"))
    assert (ws / "d" / "x").read_bytes() == b"one"
    seen = (ws / "d" / "x").stat()
    assert seen.st_mode & 0o7777 == 0o751
    if os.geteuid() == 0:
        assert (seen.st_uid, seen.st_gid) == (1234, 4321)
    assert (restored.state, restored.restored_by) == (S.RESTORED, "ann") and restored.restored_at is not None
    assert os.listdir(ws / "d") == ["x"]


def test_a_deletion_is_put_back(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", None)
    record = store.get(record_id)
    assert (record.after_known, record.after_sha256, record.state) == (True, None, S.CAN_RESTORE)
    store.restore(record_id, "ann", None)
    assert (ws / "x").read_bytes() == b"one"


def test_a_new_file_is_removed_and_can_come_back(store: RollbackStore, ws: Path) -> None:
    record_id = write(store, ws, "new", b"made")
    assert store.get(record_id).before_sha256 is None
    store.restore(record_id, "ann", sha(b"made"))
    assert not (ws / "new").exists()
    undo = store.records()[0]
    assert undo.kind is DELETE and undo.state is S.CAN_RESTORE
    store.restore(undo.record_id, "bob", None)
    assert (ws / "new").read_bytes() == b"made"


def test_twice_is_once(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    first = store.restore(record_id, "ann", sha(b"two"))
    inode = (ws / "x").stat().st_ino
    assert store.restore(record_id, "bob", sha(b"two")) == first
    assert (ws / "x").stat().st_ino == inode
    assert len(store.records()) == 2


def test_a_rollback_can_be_rolled_back_and_again(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    store.restore(record_id, "ann", sha(b"two"))
    undo = store.records()[0]
    store.restore(undo.record_id, "bob", sha(b"one"))
    assert (ws / "x").read_bytes() == b"two"
    assert store.get(undo.record_id).state is S.RESTORED
    assert store.get(record_id).state is S.CAN_RESTORE
    store.restore(record_id, "ann", sha(b"two"))
    assert (ws / "x").read_bytes() == b"one"


def test_a_file_somebody_changed_since_is_a_conflict(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    (ws / "x").write_bytes(b"by hand")
    assert store.get(record_id).state is S.CONFLICT
    detail = store.detail(record_id)
    assert "not what the agent left" in detail.conflict and detail.dry_run[0].startswith("Refused")
    for expected in (sha(b"two"), sha(b"by hand"), None):
        with pytest.raises(Conflict):
            store.restore(record_id, "ann", expected)
    assert (ws / "x").read_bytes() == b"by hand"
    assert len(store.records()) == 1


def test_what_the_operator_saw_must_still_be_there(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    with pytest.raises(Conflict, match="not what you looked at"):
        store.restore(record_id, "ann", None)
    with pytest.raises(Conflict):
        store.restore(record_id, "ann", sha(b"three"))
    assert (ws / "x").read_bytes() == b"two"


def test_after_a_restore_a_new_change_is_a_conflict(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    store.restore(record_id, "ann", sha(b"two"))
    (ws / "x").write_bytes(b"three")
    with pytest.raises(Conflict, match="put back by ann"):
        store.restore(record_id, "bob", sha(b"three"))


def test_a_chain_is_undone_from_its_end(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    first = write(store, ws, "x", b"two")
    second = write(store, ws, "x", b"three")
    assert store.get(first).state is S.NEWER_EXISTS
    with pytest.raises(Conflict, match=second):
        store.restore(first, "ann", sha(b"three"))
    store.restore(second, "ann", sha(b"three"))
    assert store.get(first).state is S.CAN_RESTORE
    store.restore(first, "ann", sha(b"two"))
    assert (ws / "x").read_bytes() == b"one"


def test_whether_it_happened_stays_unknown_until_it_is_seen(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record = store.snapshot("a1", "c1", WRITE, "x")
    assert record.state is S.UNKNOWN and not record.after_known
    assert store.note_after(record.record_id).state is S.UNKNOWN
    assert store.restore(record.record_id, "ann", sha(b"one")).restored_at is None  # nothing to put back
    (ws / "x").write_bytes(b"two")
    assert store.get(record.record_id).state is S.UNKNOWN
    assert "not known" in store.detail(record.record_id).dry_run[0]
    assert store.note_after(record.record_id).state is S.CAN_RESTORE
    (ws / "x").write_bytes(b"by hand")
    assert store.note_after(record.record_id).after_sha256 == sha(b"two")


def test_an_unknown_one_can_be_put_back_by_who_looked_at_it(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record = store.snapshot("a1", "c1", WRITE, "x")
    (ws / "x").write_bytes(b"two")
    assert store.restore(record.record_id, "ann", sha(b"two")).state is S.RESTORED
    assert (ws / "x").read_bytes() == b"one"


def test_a_thousand_snapshots_of_one_file_are_a_thousand_records(store: RollbackStore, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"same")
    (ws / "d" / "x").write_bytes(b"same")
    ids = {store.snapshot("a1", "c1", WRITE, "d/x" if i % 2 else "x").record_id for i in range(1000)}
    assert len(ids) == 1000
    assert os.listdir(tmp_path / "rollback" / "objects") == [sha(b"same")]
    assert {r.path for r in store.records(limit=10)} == {"x", "d/x"}


def test_snapshots_from_many_threads(store: RollbackStore, ws: Path) -> None:
    ids: list[str] = []

    def work(number: int) -> None:
        (ws / f"f{number}").write_bytes(bytes([number]))
        for _ in range(20):
            ids.append(store.snapshot("a1", "c1", WRITE, f"f{number}").record_id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 160


@pytest.mark.parametrize(
    "path", ["../c2/x", "/etc/passwd", "", "a\0b", "x" * 300, "link", "links/passwd", "hard", "fifo", "d", "sparse", "\ud800"]
)
def test_hostile_paths_are_denied_and_leave_no_record(store: RollbackStore, ws: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").write_text("canary")
    (ws / "link").symlink_to("/etc/passwd")
    (ws / "links").symlink_to("/etc")
    os.link(tmp_path / "outside", ws / "hard")
    os.mkfifo(ws / "fifo")
    with (ws / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(Denied):
        store.snapshot("a1", "c1", WRITE, path)
    assert store.records() == []
    assert os.listdir(tmp_path / "rollback" / "objects") == []


def test_an_absolute_path_into_ones_own_workspace_is_taken(store: RollbackStore, ws: Path, workspaces: Path) -> None:
    (ws / "x").write_bytes(b"one")
    assert store.snapshot("a1", "c1", WRITE, f"{ws}/x").path == "x"
    for path in (f"{workspaces}/c2/x", f"{workspaces}/c1-evil/x", f"{workspaces}/c1/../c2/x"):
        with pytest.raises(Denied):
            store.snapshot("a1", "c1", WRITE, path)


def test_unknown_session_and_hostile_ids(store: RollbackStore) -> None:
    with pytest.raises(NotFound):
        store.snapshot("a1", "nobody", WRITE, "x")
    with pytest.raises(UsageProblem):
        store.snapshot("a1", "../c2", WRITE, "x")
    for call in (store.get, store.detail, store.note_after):
        with pytest.raises(NotFound):
            call("r-none")
    with pytest.raises(NotFound):
        store.restore("r-none", "ann", None)


def test_a_missing_folder_is_a_conflict_with_words(store: RollbackStore, ws: Path) -> None:
    (ws / "d" / "x").write_bytes(b"one")
    record_id = write(store, ws, "d/x", None)
    (ws / "d").rmdir()
    with pytest.raises(Conflict, match="Folder 'd' is missing"):
        store.restore(record_id, "ann", None)
    (ws / "d").mkdir()
    store.restore(record_id, "ann", None)
    assert (ws / "d" / "x").read_bytes() == b"one"


@pytest.mark.parametrize("plant", ["link", "hard", "fifo", "folder", "dirlink"])
def test_what_is_planted_in_its_place_is_never_written_through(store: RollbackStore, ws: Path, tmp_path: Path, plant: str) -> None:
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "x").write_text("keep too")
    (ws / "d" / "x").write_bytes(b"one")
    record_id = write(store, ws, "d/x", b"two")
    (ws / "d" / "x").unlink()
    if plant == "link":
        (ws / "d" / "x").symlink_to(tmp_path / "precious")
    elif plant == "hard":
        os.link(tmp_path / "precious", ws / "d" / "x")
    elif plant == "fifo":
        os.mkfifo(ws / "d" / "x")
    elif plant == "folder":
        (ws / "d" / "x").mkdir()
    else:
        (ws / "d").rmdir()
        (ws / "d").symlink_to(tmp_path)
    assert store.get(record_id).state is S.CONFLICT
    assert store.detail(record_id).conflict
    for expected in (None, sha(b"two"), sha(b"keep")):
        with pytest.raises(Conflict):
            store.restore(record_id, "ann", expected)
    assert (tmp_path / "precious").read_text() == "keep" and (tmp_path / "x").read_text() == "keep too"


def test_detail_is_plain_data_for_the_page(store: RollbackStore, ws: Path) -> None:
    (ws / "x").write_bytes(b"a\nold\n")
    record_id = write(store, ws, "x", b"a\nnew\n")
    detail = store.detail(record_id)
    assert (detail.before_sha256, detail.now_sha256) == (sha(b"a\nold\n"), sha(b"a\nnew\n"))
    assert [(r.sign, r.left, r.right) for r in detail.diff] == [("", "a", "a"), ("~", "new", "old"), ("", "", "")]
    assert not detail.binary and not detail.truncated and detail.conflict == ""
    assert detail.record.state is S.CAN_RESTORE
    (ws / "big").write_bytes(b"x\n" * 300_000)
    big = store.detail(write(store, ws, "big", b"\0" * 10))
    assert big.binary and big.truncated and big.diff == ()


def test_a_lost_snapshot_is_said_and_nothing_is_written(store: RollbackStore, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    (tmp_path / "rollback" / "objects" / str(sha(b"one"))).unlink()
    assert "missing" in store.detail(record_id).conflict
    with pytest.raises(ConsoleError, match="missing"):
        store.restore(record_id, "ann", sha(b"two"))
    assert (ws / "x").read_bytes() == b"two"


def test_what_was_done_to_a_snapshot_is_not_shown_as_what_would_be_put_back(store: RollbackStore, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    kept = tmp_path / "rollback" / "objects" / str(sha(b"one"))
    kept.chmod(0o600)
    kept.write_bytes(b"One")
    seen = store.detail(record_id)
    assert "damaged" in seen.conflict and seen.dry_run[0].startswith("Refused:")
    assert not [row for row in seen.diff if "One" in row.right]


def test_a_record_that_somebody_changed_hides_no_other(store: RollbackStore, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"one")
    good, bad = write(store, ws, "x", b"two"), write(store, ws, "y", b"new")
    with sqlite3.connect(tmp_path / "rollback" / "records.db") as insider:
        insider.execute("DROP TRIGGER records_facts")
        insider.execute("UPDATE records SET context_id = '../../etc' WHERE record_id = ?", (bad,))
    insider.close()
    assert [(r.record_id, r.state) for r in store.records()] == [(bad, S.CONFLICT), (good, S.CAN_RESTORE)]
    assert "not valid" in store.detail(bad).conflict
    with pytest.raises(UsageProblem):
        store.restore(bad, "ann", sha(b"new"))


def test_a_failure_in_the_middle_leaves_the_file_and_can_be_tried_again(
    store: RollbackStore, ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    with monkeypatch.context() as patch:
        patch.setattr(module, "put", lambda *_: (_ for _ in ()).throw(ConsoleError("disk full")))
        with pytest.raises(ConsoleError):
            store.restore(record_id, "ann", sha(b"two"))
    assert (ws / "x").read_bytes() == b"two"
    assert store.get(record_id).state is S.CAN_RESTORE
    store.restore(record_id, "ann", sha(b"two"))
    assert (ws / "x").read_bytes() == b"one"


def test_a_crash_between_change_and_note_is_finished_by_the_next_restore(
    store: RollbackStore, ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    with monkeypatch.context() as patch:
        patch.setattr(store._journal, "note_restored", lambda *_: (_ for _ in ()).throw(NotRecorded("crash")))
        with pytest.raises(NotRecorded):
            store.restore(record_id, "ann", sha(b"two"))
    assert (ws / "x").read_bytes() == b"one"
    assert store.restore(record_id, "ann", sha(b"one")).state is S.RESTORED
    undo = store.records()[0]
    assert undo.after_known and undo.state is S.CAN_RESTORE
    store.restore(undo.record_id, "ann", sha(b"one"))
    assert (ws / "x").read_bytes() == b"two"


def test_records_survive_a_restart_and_page_by_agent(store: RollbackStore, ws: Path, tmp_path: Path, workspaces: Path) -> None:
    (ws / "x").write_bytes(b"one")
    record_id = write(store, ws, "x", b"two")
    (workspaces / "c2" / "y").write_bytes(b"y")
    other = store.snapshot("a2", "c2", DELETE, "y")
    again = RollbackStore(tmp_path / "rollback", workspaces)
    assert [r.record_id for r in again.records()] == [other.record_id, record_id]
    assert [r.record_id for r in again.records(agent_id="a1")] == [record_id]
    assert again.get(record_id).state is S.CAN_RESTORE
    again.close()


def test_a_list_of_big_files_does_not_read_them_all(tmp_path: Path, ws: Path, workspaces: Path) -> None:
    opened = RollbackStore(tmp_path / "small", workspaces, max_bytes=1000)
    for name in ("x", "y"):
        (ws / name).write_bytes(name.encode() * 500)
        record = opened.snapshot("a1", "c1", WRITE, name)
        (ws / name).write_bytes(name.encode() * 900)
        opened.note_after(record.record_id)
    fresh = RollbackStore(tmp_path / "small", workspaces, max_bytes=1000)
    assert [r.state for r in fresh.records()] == [S.CAN_RESTORE, S.UNKNOWN]  # never guessed
    fresh.close()
    opened.close()


def test_an_unusable_store_is_not_recorded(tmp_path: Path, workspaces: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotRecorded):
        RollbackStore(tmp_path / "file" / "rollback", workspaces)
