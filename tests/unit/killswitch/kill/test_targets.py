"""What counts as proof for one target, and what never does."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.kill import Outcome
from console.killswitch.kernel import cgroups, processes
from console.killswitch.kernel.cgroups import Leaf, Mount
from console.killswitch.kernel.engine import Engine, Running
from console.killswitch.kernel.processes import Handle
from console.killswitch.kill.targets import BEST_EFFORT_NOTE, Aim, kill_listed, strike_descendants
from console.killswitch.store.registry import Entry, Held, Registry
from tests.fakes.engine_stub import EngineStub
from tests.fakes.guard_room import INSTANCE, FolderLeaf, FolderTree, fill
from tests.fakes.guard_world import until

BOX = "ab" * 32
NOBODY = 2**22 + 9
"""A pid that no kernel gives: 4,000,000 is somebody's where pid_max is what it may be."""


@pytest.fixture
def leaf(tmp_path: Path) -> Iterator[FolderLeaf]:
    made = FolderLeaf(fill(tmp_path / "agents" / "a-00000000", 1))
    yield made
    made.close()


def entry(**more: Any) -> Entry:
    return Entry(**{"agent_id": "a", "kind": "process", "control_level": "managed", "generation": 0, "confirmed": True, **more})


def aim(leaf: Leaf | None = None, container: Leaf | None = None, init: Handle | None = None, **more: Any) -> Aim:
    named = {"leaf": str(leaf.path)} if leaf else {}
    named |= {"container_leaf": str(container.path)} if container else {}
    return Aim("a", Held(entry(**{**named, **more}), leaf, container, init))


# --- proof --------------------------------------------------------------------------------------------------------------


def test_zero_is_seen_once_and_keeps_its_time(leaf: FolderLeaf) -> None:
    target = aim(leaf)
    assert not target.settle(1.0)
    leaf.kill()
    assert target.settle(2.0) and target.settle(9.0) and (target.outcome, target.ms) == (Outcome.PROVEN_ZERO, 2.0)
    target.give_up(10.0)
    assert target.outcome is Outcome.PROVEN_ZERO and target.target().evidence["populated"] == 0


def test_giving_up_is_never_zero(leaf: FolderLeaf) -> None:
    target = aim(leaf)
    target.give_up(5.0)
    assert target.outcome is Outcome.NOT_PROVEN and target.why == "Still there after SIGKILL." and not target.settle(6.0)
    assert "populated" not in target.target().evidence


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (None, "Not registered"),
        (Held(entry(kind="container", confirmed=False)), "never confirmed"),
        (Held(entry(confirmed=False)), "Still there"),  # a ticket without leaf, pid or container: nothing to look at
        (Held(entry(pid=0)), "shares this PID namespace"),
    ],
)
def test_what_cannot_be_looked_at_is_not_zero(held: Held | None, why: str) -> None:
    target = Aim("a", held)
    assert not target.settle(1.0)
    target.give_up(2.0)
    assert target.outcome in (Outcome.NOT_PROVEN, Outcome.BEST_EFFORT) and why in target.why


@pytest.mark.parametrize(("says", "zero"), [(None, False), (False, False), (True, True)])
def test_a_pending_container_is_zero_only_when_the_engine_says_so(says: bool | None, zero: bool) -> None:
    target = aim(kind="container", confirmed=False)
    target.engine_says_gone = says
    assert target.is_zero() is zero


def test_a_pending_container_whose_leaf_is_populated_is_not_zero(leaf: FolderLeaf) -> None:
    target = aim(leaf, kind="container", confirmed=False)
    target.engine_says_gone = True
    assert not target.is_zero()


def test_an_emptied_namespace_is_proof_where_there_is_no_cgroup(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [77]
    monkeypatch.setattr(processes, "members", lambda namespace: left)
    target = aim(pid=77, pid_namespace=12345)
    assert not target.is_zero() and not target.is_best_effort
    left.clear()
    assert target.is_zero() and "PID namespace" in target.target().evidence["method"]


def test_one_without_cgroup_and_namespace_is_best_effort_even_when_it_is_gone() -> None:
    target = aim(pid=NOBODY)
    assert target.settle(1.0) and target.outcome is Outcome.BEST_EFFORT and target.target().evidence["note"] == BEST_EFFORT_NOTE
    assert target.target().evidence["method"] == "SIGKILL through a pidfd"


@pytest.mark.parametrize("broken", ["leaf", "container"])
def test_either_cgroup_populated_is_not_zero(tmp_path: Path, leaf: FolderLeaf, broken: str) -> None:
    other = FolderLeaf(fill(tmp_path / BOX, 0))
    target = aim(leaf, other) if broken == "leaf" else aim(other, leaf)
    assert not target.is_zero()
    leaf.kill()
    assert target.is_zero() and "container's cgroup" in target.target().evidence["method"]
    other.close()


def test_a_leaf_that_could_not_be_opened_is_not_a_leaf_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few descriptors after a restart, say: nobody has looked, so nothing is proven."""
    tree = FolderTree(tmp_path / f"watchfloor-{INSTANCE}", cgroups.Mounts(Mount(tmp_path, "/")))
    path = fill(tree.agents.path / "a-00000000", 1)
    gone = tree.agents.path / "b-00000000"
    entries = (entry(leaf=str(path), inode=path.stat().st_ino), entry(agent_id="b", leaf=str(gone), inode=5))
    real = os.open

    def few(name: Any, *args: Any, **more: Any) -> int:
        if str(name) == str(path):
            raise OSError(errno.EMFILE, "Too many open files")
        return real(name, *args, **more)

    monkeypatch.setattr(os, "open", few)
    registry = Registry(tmp_path)
    registry.restore(entries, tree)
    blind, removed = Aim("a", registry.held["a"]), Aim("b", registry.held["b"])
    blind.strike(None, None)
    assert not blind.settle(1.0) and removed.settle(1.0)
    blind.give_up(2.0)
    assert blind.outcome is Outcome.NOT_PROVEN and "Too many open files" in blind.why
    monkeypatch.setattr(os, "open", real)
    later = Aim("a", registry.held["a"])
    later.strike(None, None)  # a descriptor was free: it is opened, and struck
    assert (path / "cgroup.kill").read_text() == "1"
    registry.held["a"].close()
    tree.close()


def test_an_init_that_could_not_be_opened_is_not_one_that_ended(
    tmp_path: Path, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", few)
    registry = Registry(tmp_path)
    registry.restore(
        (entry(pid=sleeper[0], start_ticks=sleeper[1], pid_namespace=7), entry(agent_id="b", pid=sleeper[0], start_ticks=1)), None
    )
    monkeypatch.undo()
    assert not Aim("a", registry.held["a"]).is_zero()


# --- the strike ---------------------------------------------------------------------------------------------------------


def test_every_way_is_used(tmp_path: Path, leaf: FolderLeaf) -> None:
    process = subprocess.Popen(["/bin/sleep", "60"])
    ticks = processes.start_ticks(process.pid)
    assert ticks is not None
    box = FolderLeaf(fill(tmp_path / BOX, 1))
    init = Handle(process.pid, ticks)
    target = aim(leaf, box, init)
    target.strike(Mount(tmp_path, "/"), tmp_path / "agents")
    assert target.writes == {"cgroup.kill": "sent", "container cgroup.kill": "sent", "pidfd SIGKILL": "sent"}
    assert process.wait(60) == -signal.SIGKILL
    box.close()
    init.close()


def test_a_leaf_covered_by_the_write_above_is_not_written_again(leaf: FolderLeaf) -> None:
    target = aim(leaf)
    target.strike(None, None, spare_leaf=True)
    assert target.writes == {} and leaf.is_populated()


def test_a_leaf_elsewhere_or_with_us_in_it_is_refused_in_words(tmp_path: Path, leaf: FolderLeaf, monkeypatch: pytest.MonkeyPatch) -> None:
    target = aim(leaf)
    target.strike(None, tmp_path / "other")
    assert target.writes["cgroup.kill"].startswith("refused: ") and "not under" in target.writes["cgroup.kill"]
    monkeypatch.setattr(cgroups, "cgroup_line", lambda *_: "/agents/a-00000000")
    target.strike(Mount(tmp_path, "/"), None)
    assert "never signalled" in target.writes["cgroup.kill"] and (leaf.path / "cgroup.kill").read_text() == ""


def test_a_check_that_the_kernel_refuses_is_no_strike(leaf: FolderLeaf, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(FolderLeaf, "check", check)
    target = aim(leaf)
    target.strike(None, None)
    assert target.writes == {"cgroup.kill": "refused: Input/output error"}


@pytest.mark.parametrize("who", ["us", "parent"])
def test_neither_we_nor_our_parent_is_ever_signalled(who: str) -> None:
    pid = os.getpid() if who == "us" else os.getppid()
    ticks = processes.start_ticks(pid)
    assert ticks is not None
    init = Handle(pid, ticks)
    target = aim(init=init)
    target.strike(None, None)
    strike_descendants([target], frozenset)
    assert list(target.writes) == ["pidfd SIGKILL"] and target.writes["pidfd SIGKILL"].startswith("refused")
    init.close()


def test_nobody_is_struck_for_an_unknown_agent() -> None:
    target = Aim("ghost", None)
    target.strike(None, None)
    shown = target.target()
    assert (shown.control_level, target.survivors(), shown.evidence) == ("unknown", [], {"writes": {}})


# --- survivors ----------------------------------------------------------------------------------------------------------


def test_survivors_are_named_with_state_and_zombies_are_not(leaf: FolderLeaf, sleeper: tuple[int, int]) -> None:
    zombie = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    (leaf.path / "cgroup.procs").write_text(f"{zombie.pid}\n{sleeper[0]}\n{NOBODY}\n")
    target = aim(leaf)
    target.give_up(1.0)
    (found,) = target.survivors()
    assert (found.agent_id, found.pid, found.cmdline, found.why) == ("a", sleeper[0], "/bin/sleep 60", "Still there after SIGKILL.")
    assert found.state in "SRD"
    leaf.kill()
    target.outcome = Outcome.PROVEN_ZERO
    assert target.survivors() == []
    zombie.wait()


def test_a_pending_sigkill_is_said(leaf: FolderLeaf, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "kill_is_pending", lambda pid: True)
    (leaf.path / "cgroup.procs").write_text(f"{sleeper[0]}\n")
    assert [s.why for s in aim(leaf).survivors()] == ["SIGKILL is pending"]


# --- containers that run while they must not ------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[tuple[Engine, EngineStub]]:
    stub = EngineStub(tmp_path / "e.sock", "lies")
    yield Engine(tmp_path / "e.sock", INSTANCE, call_s=0.2), stub
    stub.close()


def own_cgroup(monkeypatch: pytest.MonkeyPatch, pid: int, line: str) -> None:
    monkeypatch.setattr(cgroups, "cgroup_line", lambda of: line if of == pid else "/")
    monkeypatch.setattr(processes, "names_container", lambda of, container_id: of == pid and container_id in line)


def test_a_listed_container_is_struck_by_its_cgroup_then_by_its_engine_which_may_not_start_it_again(
    engine: tuple[Engine, EngineStub], tmp_path: Path, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(tmp_path / "docker" / BOX, 1)
    own_cgroup(monkeypatch, sleeper[0], f"/docker/{BOX}")
    engine[1].containers[BOX] = {"pid": sleeper[0], "agent": "a", "instance": INSTANCE}
    before = len(os.listdir("/proc/self/fd"))
    back = kill_listed(engine[0], Running(BOX, "a"), Mount(tmp_path, "/"))
    assert back is not None and back.came_back and (folder / "cgroup.kill").read_text() == "1"
    wait_for_end(sleeper[0])
    (folder / "cgroup.events").write_text("populated 0\n")
    assert back.settle(3.0) and back.target().evidence["container_cgroup"] == str(folder)
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    asked = [line for line in engine[1].asked if line.startswith("POST")]
    assert asked == [f"POST /containers/{BOX}/kill?signal=SIGKILL", f"POST /containers/{BOX}/update"]


@pytest.mark.parametrize("case", ["another instance's", "dead init"])
def test_one_of_which_nothing_lives_is_left_to_its_engine(
    engine: tuple[Engine, EngineStub], tmp_path: Path, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    own_cgroup(monkeypatch, sleeper[0], f"/docker/{BOX}")
    pid = NOBODY if case == "dead init" else sleeper[0]
    engine[1].containers[BOX] = {"pid": pid, "agent": "a", "instance": "00000000" if case.startswith("another") else INSTANCE}
    assert kill_listed(engine[0], Running(BOX, "a"), Mount(tmp_path, "/")) is None
    assert f"POST /containers/{BOX}/kill?signal=SIGKILL" in engine[1].asked and processes.is_alive(sleeper[0])


def test_a_pid_that_the_engine_passes_off_as_a_container_is_neither_signalled_nor_believed(
    engine: tuple[Engine, EngineStub], tmp_path: Path, sleeper: tuple[int, int]
) -> None:
    engine[1].containers[BOX] = {"pid": sleeper[0], "agent": "a", "instance": INSTANCE}
    back = kill_listed(engine[0], Running(BOX, "a"), Mount(tmp_path, "/"))
    assert back is not None and back.is_unknown and back.writes == {} and processes.is_alive(sleeper[0])
    back.give_up(1.0)
    assert back.outcome is Outcome.NOT_PROVEN and "no cgroup of it" in back.why


def test_a_containers_init_that_cannot_be_looked_at_is_not_dead(
    engine: tuple[Engine, EngineStub], tmp_path: Path, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine[1].containers[BOX] = {"pid": sleeper[0], "agent": "a", "instance": INSTANCE}
    monkeypatch.setattr(processes, "start_ticks", lambda pid: None)
    back = kill_listed(engine[0], Running(BOX, "a"), Mount(tmp_path, "/"))
    assert back is not None and back.is_unknown and "cannot be looked at" in (back.held.doubt if back.held else "")


def test_a_container_in_no_cgroup_of_v2_dies_by_its_init(
    engine: tuple[Engine, EngineStub], tmp_path: Path, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cgroup(monkeypatch, sleeper[0], f"/docker/{BOX}")
    engine[1].containers[BOX] = {"pid": sleeper[0], "agent": "a", "instance": INSTANCE}
    back = kill_listed(engine[0], Running(BOX, "a"), None)
    assert back is not None and back.writes == {"pidfd SIGKILL": "sent"}
    wait_for_end(sleeper[0])
    assert back.held is not None
    back.held.close()


def test_an_engine_that_lists_and_then_is_silent_leaves_doubt(tmp_path: Path) -> None:
    back = kill_listed(Engine(tmp_path / "nobody.sock", INSTANCE), Running(BOX, ""), None)
    assert back is not None and back.is_unknown and back.agent_id == BOX[:12]


# --- after the receipt ----------------------------------------------------------------------------------------------------


def test_one_that_dies_later_is_proven_later_and_what_was_said_before_is_kept(leaf: FolderLeaf, sleeper: tuple[int, int]) -> None:
    (leaf.path / "cgroup.procs").write_text(f"{sleeper[0]}\n")
    target = aim(leaf)
    target.give_up(5000.0)
    assert not target.prove_late(6000.0) and target.amended == []
    leaf.kill()
    assert target.prove_late(7000.0) and target.outcome is Outcome.PROVEN_ZERO and target.ms == 7000.0 and not target.why
    (then,) = target.target().evidence["amended"]
    assert (then["outcome"], then["ms"]) == ("not_proven", 5000.0) and then["left"][0]["pid"] == sleeper[0] and then["why"]


def test_a_stray_that_lives_keeps_its_agent_from_being_proven(leaf: FolderLeaf, sleeper: tuple[int, int]) -> None:
    target = aim(leaf)
    leaf.kill()
    target.loose.append(processes.Handle(*sleeper))
    target.give_up(1.0)
    assert not target.prove_late(2.0) and [s.pid for s in target.survivors()] == [sleeper[0]]
    target.loose[0].send(9)
    wait_for_end(sleeper[0])
    assert target.prove_late(3.0) and target.loose == []


def wait_for_end(pid: int) -> None:
    until(lambda: not processes.is_alive(pid), "it ended")


@pytest.mark.parametrize("with_leaf", [True, False])
def test_an_ancestor_of_the_presser_is_never_signalled_through_a_pidfd(leaf: FolderLeaf, sleeper: tuple[int, int], with_leaf: bool) -> None:
    """Unless the kernel says that it is an agent's: it sits in an agent's own cgroup."""
    namespace = 0 if with_leaf else 1  # one of the two holds it
    entry = Entry("a", "process", "managed", 0, pid=sleeper[0], start_ticks=sleeper[1], pid_namespace=namespace)
    held = Held(entry, leaf if with_leaf else None)
    held.init = processes.Handle(*sleeper)
    target = Aim("a", held)
    target.strike(None, None, spare_leaf=True, spared=lambda: frozenset({sleeper[0]}))
    assert target.writes["pidfd SIGKILL"].startswith("sent" if with_leaf else "refused")
    if with_leaf:
        wait_for_end(sleeper[0])
    assert processes.is_alive(sleeper[0]) is not with_leaf
    held.init.close()


def test_a_leaf_that_it_may_leave_is_best_effort_and_what_still_lives_is_never_that(leaf: FolderLeaf) -> None:
    alive, dead = aim(leaf, can_leave=True), aim(leaf, can_leave=True)
    assert not alive.settle(1.0)
    alive.give_up(2.0)
    assert alive.outcome is Outcome.NOT_PROVEN
    leaf.kill()
    assert dead.settle(1.0) and dead.outcome is Outcome.BEST_EFFORT and "may leave" in dead.target().evidence["note"]
