"""The registry on disk and what it opens again."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Leaf, Mount, Mounts
from console.killswitch.store.atomic_file import Damaged, seal, write_whole
from console.killswitch.store.registry import NO_GROUP, NO_RECORD, UNFOLLOWED, Entry, Held, Registry, here
from tests.fakes.guard_room import FolderTree, fill


def leaf_at(path: Path, populated: int = 1) -> Leaf:
    path.mkdir(parents=True)
    (path / "cgroup.events").write_text(f"populated {populated}\n")
    for name in ("cgroup.kill", "cgroup.freeze"):
        (path / name).touch()
    return Leaf(path)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    leaf = leaf_at(tmp_path / "a-1")
    registry = Registry(tmp_path)
    registry.root, registry.generation, registry.containers_ever, registry.engine_socket = "/r", 5, True, "/e"
    entry = Entry("a", "process", "managed", 5, str(leaf.path), leaf.inode, ("/l",), True, killed="k1")
    registry.held["a"] = Held(entry, leaf)
    registry.save()
    again = Registry(tmp_path)
    entries = again.load()
    assert entries == (entry,) and (again.root, again.generation, again.containers_ever, again.engine_socket) == ("/r", 5, True, "/e")
    again.restore(entries, None)
    assert again.held["a"].leaf is not None and again.held["a"].is_populated()
    again.held["a"].close()
    leaf.close()


def test_another_folder_of_the_same_name_is_not_taken(tmp_path: Path) -> None:
    leaf = leaf_at(tmp_path / "a-1")
    registry = Registry(tmp_path)
    registry.restore((Entry("a", "process", "managed", 0, str(leaf.path), leaf.inode + 1),), None)
    assert registry.held["a"].leaf is None and not registry.held["a"].is_populated()
    leaf.close()


@pytest.mark.parametrize("agents", [[{}], [{"agent_id": "../x", "kind": "process", "control_level": "", "generation": 0}], 5, ["x"]])
def test_a_wrong_shape_is_damaged(tmp_path: Path, agents: object) -> None:
    body = {"root": "", "engine_socket": "", "generation": 0, "containers_ever": False, "agents": agents}
    write_whole(tmp_path / "registry.json", seal(body))
    with pytest.raises(Damaged):
        Registry(tmp_path).load()


def test_no_file_is_an_empty_registry(tmp_path: Path) -> None:
    assert Registry(tmp_path).load() == ()


def test_a_retired_agent_keeps_its_files_until_the_sweep(tmp_path: Path) -> None:
    leaf = leaf_at(tmp_path / "a-1", populated=0)
    registry = Registry(tmp_path)
    registry.held["a"] = Held(Entry("a", "process", "managed", 0, str(leaf.path), leaf.inode), leaf)
    registry.retire("a")
    assert not registry.held and not leaf.is_populated()
    registry.sweep()  # an ordinary folder with files in it is not removed; a cgroup would be
    assert len(registry.retired) == 1
    for file in leaf.path.iterdir():
        file.unlink()
    registry.sweep()
    assert not registry.retired and not leaf.path.exists()
    assert registry.retire("nobody") is None


def test_marks_of_a_kill(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    registry.held["a"] = Held(Entry("a", "process", "managed", 0))
    registry.mark_killed(["a", "nobody"], "k1")
    assert registry.held["a"].entry.killed == "k1"


def filled(folder: Path, entry: Entry) -> Registry:
    folder.mkdir(parents=True)
    registry = Registry(folder)
    registry.held[entry.agent_id], registry.engine_socket, registry.containers_ever = Held(entry), "/e", True
    registry.save()
    return registry


@pytest.mark.parametrize("how", ["missing", "torn", "flipped"])
def test_a_lost_registry_says_so_and_the_witness_knows_the_engine(tmp_path: Path, how: str) -> None:
    path = filled(tmp_path / "guard", Entry("box", "container", "contained", 0)).path
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:60] if how == "torn" else path.read_bytes().replace(b"contained", b"contairned"))
    again = Registry(tmp_path / "guard")
    assert again.recover() == () and again.incomplete and again.engine_socket == "/e" and again.containers_ever
    again.save()  # a restart does not make it whole again
    once_more = Registry(tmp_path / "guard")
    assert once_more.recover() == () and once_more.incomplete


def test_a_registry_that_cannot_be_read_is_kept_under_another_name_and_can_be_put_back(tmp_path: Path) -> None:
    entry, folder = Entry("a", "process", "managed", 0), tmp_path / "guard"
    registry = filled(folder, entry)
    whole = registry.path.read_bytes()
    registry.path.write_bytes(whole[:-40])
    for _ in range(2):  # a guard that ends before it has saved, and the next one
        again = Registry(folder)
        assert again.recover() == () and "is kept as registry.unreadable-" in again.incomplete
    again.save()
    (kept,) = folder.glob("registry.unreadable-*.json")
    assert kept.read_bytes() == whole[:-40] and kept.name in again.incomplete
    assert Registry(folder).recover() == ()
    kept.write_bytes(whole)
    kept.rename(registry.path)
    assert Registry(folder).recover() == (entry,)


def test_a_whole_registry_and_a_new_folder_are_complete(tmp_path: Path) -> None:
    entry = Entry("a", "process", "managed", 0)
    filled(tmp_path / "guard", entry)
    again, fresh = Registry(tmp_path / "guard"), Registry(tmp_path / "new" / "guard")
    assert again.recover() == (entry,) and not again.incomplete
    assert fresh.recover() == () and not fresh.incomplete


@pytest.mark.parametrize("trace", ["latch.json", "journal.jsonl", "causes.json"])
def test_a_registry_that_is_missing_beside_other_files_is_lost(tmp_path: Path, trace: str) -> None:
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / trace).touch()
    registry = Registry(tmp_path / "guard")
    assert registry.recover() == () and registry.incomplete and registry.containers_ever


@pytest.mark.parametrize(
    ("is_lost", "populated", "held", "doubtful"), [(True, 0, True, True), (True, 1, True, False), (False, 0, False, False)]
)
def test_a_leaf_nobody_knows(tmp_path: Path, is_lost: bool, populated: int, held: bool, doubtful: bool) -> None:
    tree = FolderTree(tmp_path / "cg" / "watchfloor-0", Mounts(Mount(tmp_path / "cg", "/")))
    fill(tree.agents.path / "box-00000000", populated)
    registry = Registry(tmp_path)
    registry.incomplete = "lost" if is_lost else ""
    registry.restore((), tree)
    assert ("box" in registry.held) is held and len(registry.retired) == (not held)
    assert bool(held and registry.held["box"].doubt) is doubtful
    for one in (*registry.held.values(), *registry.retired):
        one.close()
    tree.close()


def test_a_record_that_does_not_know_a_living_leaf_proves_nothing_of_what_it_may_have_elsewhere(tmp_path: Path) -> None:
    tree = FolderTree(tmp_path / "cg" / "watchfloor-0", Mounts(Mount(tmp_path / "cg", "/")))
    fill(tree.agents.path / "box-00000000", 1)
    for lost, why in (("", NO_RECORD), ("lost", "")):
        registry = Registry(tmp_path)
        registry.incomplete = lost
        registry.restore((), tree)
        assert registry.held["box"].entry.loose == why
        registry.held["box"].close()
    tree.close()


def test_whom_nobody_followed_is_in_doubt_until_it_is_cleared_whoever_comes_back(tmp_path: Path) -> None:
    entry = Entry("a", "process", "managed", 0, confirmed=True, pid=2**22 - 1, start_ticks=1)
    registry = filled(tmp_path / "guard", entry)
    for _ in range(2):  # its place is written anew, its doubt is kept
        registry = Registry(tmp_path / "guard")
        registry.restore(registry.load(), None)
        assert registry.held["a"].doubt == UNFOLLOWED and not registry.held["a"].is_populated()
        registry.save()
    registry.held["a"].doubt, registry.held["a"].seen_over = "", True  # a kill followed it to its end
    registry.save()
    registry = Registry(tmp_path / "guard")
    registry.restore(registry.load(), None)
    assert registry.held["a"].doubt == "" and registry.held["a"].seen_over
    registry.held["a"].seen_over = False
    registry.held["a"].entry = replace(entry, pid_namespace=5)  # its init has ended, and all of it
    registry.save()
    registry = Registry(tmp_path / "guard")
    registry.restore(registry.load(), None)
    assert registry.held["a"].doubt == ""


def test_a_leaf_that_cannot_be_opened_is_no_leaf_that_cannot_be_seen(tmp_path: Path) -> None:
    held = Held(Entry("a", "process", "managed", 0, str(tmp_path / "cg" / "a-1"), 7), unopened="Too many open files")
    assert held.unseen(here()) == ""
    held.unopened = ""
    assert held.unseen(here()) == NO_GROUP
    box = Held(Entry("b", "container", "contained", 0, str(tmp_path / "cg" / "b-1"), 7, pid=9))
    assert box.unseen(here()) == "", "the leaf of its ticket holds nothing of a container"


@pytest.mark.parametrize(
    ("record", "is_believed"),
    [
        ({}, True),
        ({"pid_namespace": 4_000_000_000}, False),
        ({"leaf": "/sys/fs/cgroup/nowhere", "inode": 5}, False),
        ({"confirmed": False}, True),
    ],
)
def test_a_record_that_a_living_first_process_contradicts_proves_nothing(tmp_path: Path, record: dict[str, Any], is_believed: bool) -> None:
    process = subprocess.Popen(["/bin/sleep", "600"])
    try:
        known = Entry("a-1", "process", "managed", 1, confirmed=True, pid=process.pid, start_ticks=processes.start_ticks(process.pid) or 0)
        registry = Registry(tmp_path)
        registry.restore((replace(known, **record),), None)
        held = registry.held["a-1"]
        assert bool(held.doubt) is not is_believed and held.entry.why_best_effort and held.follow() is not None
        held.close()
    finally:
        process.kill()
        process.wait()
