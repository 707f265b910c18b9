"""The registry on disk and what it opens again."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.killswitch.cgroups import Leaf
from console.killswitch.durable import Damaged, seal, write_whole
from console.killswitch.registry import Entry, Held, Registry


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
