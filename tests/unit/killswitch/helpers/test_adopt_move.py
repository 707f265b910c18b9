"""Who may be moved into a cgroup of ours, and what happens when the number is another process's by the time of the move."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from console.killswitch.helpers import adopt
from console.killswitch.helpers.adopt import ENDED, MOVED, move, why_not_movable
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Mount, Mounts, in_an_instance
from tests.fakes.guard_room import FolderTree, fill

OTHER = "0badcafe"


@pytest.fixture
def tree(tmp_path: Path) -> Any:
    (tmp_path / "cgroup.procs").write_text("")
    made = FolderTree(tmp_path / "watchfloor-00c0ffee", Mounts(Mount(tmp_path, "/")))
    yield made
    made.close()


def lives_in(monkeypatch: pytest.MonkeyPatch, line: str | None, mark: str = "") -> None:
    monkeypatch.setattr(processes, "cgroup_line", lambda pid, controller="": line)
    monkeypatch.setattr(processes, "instance_mark", lambda pid: mark)


@pytest.mark.parametrize(
    ("line", "mark", "word"),
    [
        ("/user.slice", "", ""),
        ("/user.slice", "00c0ffee", ""),  # ours, or a shell with a copied environment: it is not another instance's
        ("/user.slice", OTHER, "environment"),
        (f"/watchfloor-{OTHER}/agents/a-1", "", OTHER),
        (f"/x/watchfloor-{OTHER}", "", OTHER),
        ("/watchfloor-00c0ffee/control", "", "00c0ffee"),
        ("/watchfloor-00c0ffee/agents/a-00000000", "", "already"),
        (None, "", "cannot be told"),
    ],
)
def test_what_an_instance_holds_is_not_taken_from_it(monkeypatch: pytest.MonkeyPatch, line: str | None, mark: str, word: str) -> None:
    lives_in(monkeypatch, line, mark)
    why = in_an_instance(4242, "00c0ffee")
    assert word in why if word else why == ""


def test_an_environment_that_cannot_be_looked_at_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(pid: int) -> str:
        raise OSError(errno.ETIMEDOUT, "stuck")

    lives_in(monkeypatch, "/user.slice")
    monkeypatch.setattr(processes, "instance_mark", closed)
    assert "stuck" in in_an_instance(4242, "00c0ffee")


def test_an_ordinary_process_can_be_moved(monkeypatch: pytest.MonkeyPatch, tree: FolderTree) -> None:
    lives_in(monkeypatch, "/")
    assert why_not_movable(os.getpid(), tree) == ""


@pytest.mark.parametrize(
    ("euid", "uids", "namespace", "line", "kind", "word"),
    [
        (1000, {1001}, 7, "/", "", "another account"),
        (1000, {1000, 0}, 7, "/", "", "another account"),  # setuid
        (1000, set(), 7, "/", "", "cannot be read"),
        (1000, {1000}, 8, "/", "", "PID namespace"),
        (0, {5}, 7, "/../up", "", "outside"),
        (0, {5}, 7, "/t", "threaded", "threaded"),
        (1000, {1000}, 7, "/", "", "cannot be written"),
    ],
)
def test_why_it_cannot_be_moved(
    monkeypatch: pytest.MonkeyPatch, tree: FolderTree, euid: int, uids: set[int], namespace: int, line: str, kind: str, word: str
) -> None:
    lives_in(monkeypatch, line)
    fill(tree.mount.point / "t")
    (tree.mount.point / "t" / "cgroup.type").write_text(kind)
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    monkeypatch.setattr(adopt, "capabilities", lambda: 0)
    monkeypatch.setattr(processes, "uids", lambda pid: uids)
    monkeypatch.setattr(processes, "pid_namespace", lambda pid: 7 if pid == "self" else namespace)
    monkeypatch.setattr(os, "access", lambda *a, **k: euid == 0)
    assert word in why_not_movable(4242, tree)


@pytest.mark.parametrize(("capabilities", "may"), [(1 << 1 | 1 << 5, True), (1 << 1, False), (1 << 5, False)])
def test_an_account_that_may_write_and_kill_everything_moves_processes_of_others(
    monkeypatch: pytest.MonkeyPatch, tree: FolderTree, capabilities: int, may: bool
) -> None:
    lives_in(monkeypatch, "/")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(adopt, "capabilities", lambda: capabilities)
    assert (why_not_movable(os.getpid(), tree) == "") is may


def test_it_is_moved_by_its_number(tree: FolderTree, sleeper: tuple[int, int]) -> None:
    assert move(*sleeper, tree, tree.agents) == MOVED
    assert (tree.agents.path / "cgroup.procs").read_text() == str(sleeper[0])


def test_a_number_that_is_another_processs_by_now_moves_nobody(tree: FolderTree, sleeper: tuple[int, int]) -> None:
    assert move(sleeper[0], sleeper[1] + 1, tree, tree.agents) == ENDED
    assert (tree.agents.path / "cgroup.procs").read_text() == ""


def test_a_number_reused_during_the_move_goes_back_to_where_it_was_born(
    monkeypatch: pytest.MonkeyPatch, tree: FolderTree, sleeper: tuple[int, int]
) -> None:
    """The kernel takes a bare number: whoever has it by then is in our leaf, and must not stay there to be killed."""
    fill(tree.mount.point / "born-here")
    lives_in(monkeypatch, "/born-here")
    monkeypatch.setattr(adopt, "Handle", lambda pid, ticks: type("Dead", (), {"close": lambda self: None})())
    assert move(sleeper[0], sleeper[1] - 1, tree, tree.agents) == ENDED
    assert (tree.mount.point / "born-here" / "cgroup.procs").read_text() == str(sleeper[0])
    lives_in(monkeypatch, "/gone")
    assert "could not be given back" in move(sleeper[0], sleeper[1] - 1, tree, tree.agents)


def test_who_is_in_an_instances_cgroup_stays_there_and_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tree: FolderTree, sleeper: tuple[int, int]
) -> None:
    lives_in(monkeypatch, f"/x/watchfloor-{OTHER}")
    assert OTHER in move(*sleeper, tree, tree.agents) and (tree.agents.path / "cgroup.procs").read_text() == ""


def test_a_move_that_the_kernel_refuses_is_told(monkeypatch: pytest.MonkeyPatch, tree: FolderTree, sleeper: tuple[int, int]) -> None:
    monkeypatch.setattr(type(tree.agents), "take", lambda self, pid: "failed: Device or resource busy")
    assert move(*sleeper, tree, tree.agents) == "failed: Device or resource busy"
