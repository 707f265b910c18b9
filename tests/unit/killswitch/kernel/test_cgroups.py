"""Where cgroups are mounted, and the checks before every write, on folders that only look like cgroups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.errors import Unavailable
from console.killswitch.client.without_guard import find_tree
from console.killswitch.kernel import cgroups
from console.killswitch.kernel.cgroups import Leaf, Mount, Mounts, Refused, Tree, container_folder, find_mounts, make_tree

HYBRID = """31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:7 - cgroup2 cgroup2 rw
"""


def make_leaf(path: Path, populated: int = 1) -> Leaf:
    path.mkdir(parents=True)
    (path / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")
    for name in ("cgroup.kill", "cgroup.freeze", "cgroup.procs"):
        (path / name).write_text("")
    return Leaf(path)


def test_hybrid_and_pure_mounts() -> None:
    mounts = find_mounts(HYBRID)
    assert mounts.v2 == Mount(Path("/sys/fs/cgroup/unified"), "/") and set(mounts.v1) >= {"pids", "cpu", "cpuacct"}
    pure = find_mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n")
    assert pure.v2 == Mount(Path("/sys/fs/cgroup"), "/") and not pure.v1
    assert find_mounts("30 23 0:26 / /odd\\040place rw - cgroup2 cgroup2 rw\nbroken line\n").v2 == Mount(Path("/odd place"), "/")
    assert find_mounts("").v2 is None


@pytest.mark.parametrize(
    ("root", "line", "place"),
    [
        ("/", "/a/b", "/m/a/b"),
        ("/", "/", "/m"),
        ("/docker/x", "/docker/x/y", "/m/y"),
        ("/docker/x", "/docker/xy", None),
        ("/", "/../other", None),
    ],
)
def test_paths_of_proc_are_found_in_the_mount(root: str, line: str, place: str | None) -> None:
    assert Mount(Path("/m"), root).locate(line) == (Path(place) if place else None)


def test_a_leaf_writes_through_open_files(tmp_path: Path) -> None:
    leaf = make_leaf(tmp_path / "agents" / "a-00000000")
    assert leaf.is_populated() and leaf.kill() == "sent" and leaf.freeze(True) == "sent"
    assert (leaf.path / "cgroup.kill").read_text() == "1" and (leaf.path / "cgroup.freeze").read_text() == "1"
    (leaf.path / "cgroup.events").write_text("populated 0\nfrozen 1\n")
    assert not leaf.is_populated()
    leaf.close()
    leaf.close()


def test_dying_groups_get_the_most_of_the_processors_in_both_hierarchies_and_give_it_back(tmp_path: Path) -> None:
    name, leaf = "watchfloor-00c0ffee", "a-00000000"
    for part in ("agents", "control", "relays"):
        make_leaf(tmp_path / "v2" / name / part)
    (tmp_path / "cpu" / name / leaf).mkdir(parents=True)
    tree = Tree(tmp_path / "v2" / name, Mounts(Mount(tmp_path / "v2", "/")))
    tree.made[tmp_path / "cpu" / name] = 1
    shares = [tmp_path / "cpu" / name / "cpu.shares", tmp_path / "cpu" / name / leaf / "cpu.shares"]
    for file in shares:
        file.write_text("001024")
    for is_over, value in ((False, "262144"), (True, "1024")):
        tree.favour([tree.agents.path / leaf, tree.agents.path / "gone-00000000"], is_over=is_over)
        assert [file.read_text()[: len(value)] for file in shares] == [value] * 2
    assert not list(tmp_path.rglob("cpu.weight")), "no file is made where a controller is missing"
    tree.close()


def test_of_two_kills_the_first_to_end_takes_no_processors_from_the_other(tmp_path: Path) -> None:
    name, leaves = "watchfloor-00c0ffee", ["a-00000000", "b-00000000", "c-00000000"]
    for part in ("agents", "control", "relays"):
        make_leaf(tmp_path / "v2" / name / part)
    tree = Tree(tmp_path / "v2" / name, Mounts(Mount(tmp_path / "v2", "/")))
    tree.made[tmp_path / "cpu" / name] = 1
    files = [tmp_path / "cpu" / name / leaf / "cpu.shares" for leaf in ("", *leaves)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("001024")
    a, b, c = (tree.agents.path / leaf for leaf in leaves)
    one, other = [a, b], [b, c]

    def favoured() -> list[bool]:
        return [file.read_text().startswith("262144") for file in files]

    tree.favour(one, is_over=False)
    tree.favour(other, is_over=False)
    tree.favour(one, is_over=True)
    assert favoured() == [True, False, True, True]
    tree.favour(other, is_over=True)
    assert favoured() == [False] * 4
    tree.favour([a], is_over=True)  # what a guard before this one left
    tree.favour([a], is_over=False)
    assert favoured() == [True, True, False, False]
    tree.close()


def test_an_unreadable_events_file_reads_as_populated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = make_leaf(tmp_path / "a", populated=0)
    (leaf.path / "cgroup.events").write_text("nonsense\n")
    assert leaf.is_populated()
    (leaf.path / "cgroup.events").write_text("")
    assert leaf.is_populated()

    def broken(*_: object) -> bytes:
        raise OSError(5, "broken")

    monkeypatch.setattr("os.pread", broken)
    assert leaf.is_populated()
    leaf.close()


def test_another_folder_of_the_same_name_is_refused(tmp_path: Path) -> None:
    leaf = make_leaf(tmp_path / "a")
    with pytest.raises(Refused):
        Leaf(tmp_path / "a", leaf.inode + 1)
    leaf.path.rename(tmp_path / "old")
    make_leaf(tmp_path / "a").close()
    with pytest.raises(Refused, match="another folder"):
        leaf.check(None)
    leaf.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    make_leaf(tmp_path / "real").close()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="link"):
        Leaf(tmp_path / "link")


@pytest.mark.parametrize("who", ["self", "1", "parent"])
def test_a_folder_that_holds_us_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    leaf = make_leaf(tmp_path / "agents")
    asked = {"self": "self", "1": 1}.get(who)

    def line(pid: int | str, controller: str = "") -> str:
        is_it = pid == asked if asked is not None else pid not in ("self", 1)
        return "/agents/below" if is_it else "/elsewhere"

    monkeypatch.setattr(cgroups, "cgroup_line", line)
    monkeypatch.setattr(os, "getppid", lambda: 4242)  # it may truly be 1
    with pytest.raises(Refused, match="never signalled"):
        leaf.check(Mount(tmp_path, "/"))
    leaf.close()


def test_a_folder_outside_our_root_is_refused(tmp_path: Path) -> None:
    leaf = make_leaf(tmp_path / "else" / "a")
    with pytest.raises(Refused, match="not under"):
        leaf.check(None, tmp_path / "watchfloor-0")
    leaf.check(None, tmp_path / "else")
    leaf.close()


def test_members_below_are_counted(tmp_path: Path) -> None:
    leaf = make_leaf(tmp_path / "a")
    (leaf.path / "cgroup.procs").write_text("5\n0\n")
    (leaf.path / "sub").mkdir()
    (leaf.path / "sub" / "cgroup.procs").write_text("7\n")
    assert sorted(leaf.pids()) == [5, 7]
    leaf.close()


def test_without_cgroup2_it_says_why(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No cgroup v2"):
        make_tree("00000000", Mounts())
    assert find_tree("00000000", Mounts()) is None


def test_where_nothing_is_writable_it_says_where_it_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "cgroup_line", lambda *a: "/user")
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="file"):
        make_tree("00000000", Mounts(Mount(tmp_path / "file", "/")))


def test_a_container_is_found_by_its_id_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container, mount = "ab" * 32, Mount(Path("/m"), "/")
    for line, place in (
        (f"/docker/{container}", f"/m/docker/{container}"),
        (f"/system.slice/docker-{container}.scope", f"/m/system.slice/docker-{container}.scope"),
        (f"/docker/{container}/init", f"/m/docker/{container}"),
    ):
        monkeypatch.setattr(cgroups, "cgroup_line", lambda pid, line=line: line)
        assert container_folder(9, container, mount) == Path(place)
    for line in ("/", "/user.slice/x", f"/docker/{'cd' * 32}"):
        monkeypatch.setattr(cgroups, "cgroup_line", lambda pid, line=line: line)
        with pytest.raises(Refused):
            container_folder(9, container, mount)
