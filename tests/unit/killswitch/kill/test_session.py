"""The kill's own logic on stand-in leaves: outcomes, repeats, refusals, the second look."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Step, StepName, StepStatus
from console.domain.verdict import verdict
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Mount, Mounts, Refused
from console.killswitch.kill import session
from console.killswitch.kill.second_look import SecondLook
from console.killswitch.kill.session import Field, KillSession, Order
from console.killswitch.kill.targets import Aim
from console.killswitch.store.registry import Entry, Held
from tests.fakes.guard_room import FolderTree, fill


class StandInLeaf:
    """Dies after so many kills; ``rises`` makes it populated again once it was empty."""

    path = Path("/m/watchfloor-0/agents/a-00000000")
    can_freeze = True

    def __init__(self, kills: int = 1, refuses: bool = False, rises: bool = False) -> None:
        self.left, self.refuses, self.rises, self.struck = kills, refuses, rises, 0
        self.events_fd, self._end = os.pipe()

    def check(self, *_: object) -> None:
        if self.refuses:
            raise Refused("it holds process 1")

    def kill(self) -> str:
        self.struck += 1
        self.left -= 1
        return "sent"

    def is_populated(self) -> bool:
        if self.left <= 0 and self.rises:
            self.rises, self.left = False, 1
            return False
        return self.left > 0

    def pids(self) -> list[int]:
        return [os.getpid()] if self.left > 0 else []

    def close(self) -> None:
        os.close(self.events_fd)
        os.close(self._end)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SECOND_LOOK_S", 0.05)
    monkeypatch.setattr(session, "LAST_LOOK_S", 0.3)
    monkeypatch.setattr(processes, "find_marked", lambda *a: iter(()))


@pytest.fixture
def kill_of() -> Iterator[Any]:
    made: list[StandInLeaf] = []

    def run(*leaves: StandInLeaf, kind: str = "process", can_leave: bool = False, **more: Any) -> KillSession:
        made.extend(leaves)
        entries = [
            Entry(f"a{n}", kind, "managed", 0, str(one.path), 1, confirmed=True, can_leave=can_leave) for n, one in enumerate(leaves)
        ]
        aims = [Aim(entry.agent_id, Held(entry, leaf)) for entry, leaf in zip(entries, leaves, strict=True)]  # type: ignore[arg-type]
        field = Field("00000000", Path("/nowhere"), None, None, False, frozenset)
        kill = KillSession(Order("k1-test", "all", "why", "who"), field, [*aims, *more.pop("extra", [])], limit_s=0.4, **more)
        kill.strike()
        kill.run()
        return kill

    yield run
    for leaf in made:
        leaf.close()


def test_zero_is_proven_and_told_twice(kill_of: Any) -> None:
    told: list[tuple[str, bool]] = []
    kill = kill_of(StandInLeaf(), StandInLeaf(), on_zero=lambda: told.append(("zero", True)), on_done=lambda: told.append(("done", True)))
    receipt = kill.receipt()
    assert receipt.verified_zero and receipt.complete and told == [("zero", True), ("done", True)] and kill.is_done
    assert {t.outcome for t in receipt.targets} == {Outcome.PROVEN_ZERO}


def test_the_receipt_says_when_the_first_sigkill_went_out_since_the_press_was_heard(kill_of: Any) -> None:
    kill = kill_of(StandInLeaf(), heard_at=time.monotonic() - 0.25)
    first = kill.first_ms
    assert 250 <= first <= kill.ms() + 260
    kill.strike()
    assert kill.first_ms == first, "not that of a later wave"
    [step] = [s for s in kill.receipt().steps if s.name == "signal"]
    assert step.detail.endswith(f"; the first {first} ms after the kill reached the guard")


def test_a_kill_without_a_guard_does_not_say_that_it_reached_one(kill_of: Any) -> None:
    [step] = [s for s in kill_of(StandInLeaf()).receipt().steps if s.name == "signal"]
    assert step.detail.endswith(" ms after the kill began") and "guard" not in step.detail
    assert "the first" not in next(s for s in kill_of().receipt().steps if s.name == "signal").detail, "nobody was there"


def test_the_first_write_waits_for_no_check_but_its_own(kill_of: Any) -> None:
    """Check one, write to it, go on: with a hundred targets the first is not struck after a hundred checks."""
    did: list[str] = []

    class Noted(StandInLeaf):
        def check(self, *_: object) -> None:
            did.append(f"check {id(self)}")
            super().check()

        def kill(self) -> str:
            did.append(f"write {id(self)}")
            return super().kill()

    leaves = [Noted(), Noted(refuses=True), Noted(), Noted()]
    kill_of(*leaves)
    one, refused, two, three = (id(leaf) for leaf in leaves)
    assert did[:7] == [
        f"check {one}",
        f"write {one}",
        f"check {refused}",
        f"check {two}",
        f"write {two}",
        f"check {three}",
        f"write {three}",
    ]
    assert f"write {refused}" not in did


def test_what_is_empty_is_no_first_sigkill(kill_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that reaches nobody is not what the time of the first SIGKILL is about; nor is a check that refuses."""
    seen: list[int] = []

    def looked(self: StandInLeaf) -> bool:
        seen.append(id(self))
        return self.left > 0

    monkeypatch.setattr(StandInLeaf, "is_populated", looked)
    empty, refused, there = StandInLeaf(kills=0), StandInLeaf(refuses=True), StandInLeaf()
    assert kill_of(empty, refused, there).first_ms is not None and seen[:2] == [id(empty), id(there)]
    assert kill_of(StandInLeaf(kills=0)).first_ms is None


def test_a_kill_is_repeated_until_it_is_zero(kill_of: Any) -> None:
    leaf = StandInLeaf(kills=4)
    assert kill_of(leaf).receipt().verified_zero and leaf.struck == 4


def test_slow_repeats_leave_the_processors_to_the_dying(kill_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 0.1 s: in the 0.4 s of this kill there is room for one, and for one at its limit. Without a pause there would be four."""
    leaf, until_then = StandInLeaf(kills=10**6), list[int]()
    monkeypatch.setattr(session, "thaw_v1", lambda *_: time.sleep(0.1))
    monkeypatch.setattr(session, "AFTER_MS", 0.0)
    kill_of(leaf, on_zero=lambda: until_then.append(leaf.struck))
    assert until_then in ([2], [3])  # on a loaded machine the one repeat itself reaches the limit


def test_what_no_kernel_object_holds_is_struck_without_a_pause(kill_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on forking between two repeats."""
    leaf, until_then = StandInLeaf(kills=10**6), list[int]()
    monkeypatch.setattr(session, "thaw_v1", lambda *_: time.sleep(0.05))
    monkeypatch.setattr(session, "AFTER_MS", 0.0)
    monkeypatch.setattr(Aim, "is_best_effort", property(lambda _: True))
    kill_of(leaf, on_zero=lambda: until_then.append(leaf.struck))
    assert until_then[0] > 3


@pytest.mark.parametrize("ending", [None, OSError(24, "Too many open files"), MemoryError()])
def test_the_dying_have_the_processors_until_zero_and_survivors_not_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: BaseException | None
) -> None:
    tree = FolderTree(tmp_path / "watchfloor-0", Mounts(Mount(tmp_path, "/")))
    (leaf, _), (other, _), (refused, _), (elsewhere, _) = (tree.make_leaf(name, None) for name in ("a1", "a2", "a3", "a4"))
    elsewhere.path = (tmp_path / "container").absolute()
    elsewhere.path.mkdir()
    files = [folder / "cpu.weight" for folder in (tree.root, leaf.path, other.path, refused.path, elsewhere.path)]
    for file in files:
        file.write_text("100  ")  # as wide as the most: these files do not shorten when they are written to, as the kernel's do
    during: list[list[str]] = []

    def prove(self: KillSession) -> None:
        during.append([file.read_text().strip() for file in files])
        for file in files:
            if file.read_text() == "10000":
                file.write_text("-----")  # whatever is seen here afterwards was written afterwards
        if ending is not None:
            raise ending
        self.judge_zero()

    monkeypatch.setattr(KillSession, "_prove", prove)
    aims = [Aim(i, Held(Entry(i, "process", "managed", 0), one)) for i, one in (("a1", leaf), ("a3", refused), ("a4", elsewhere))]
    kill = KillSession(Order("k1-test", "a1", "why", "who"), Field("00000000", Path("/nowhere"), tree, None, False, frozenset), aims)
    kill.strike()
    aims[1].writes["cgroup.kill"] = "refused: it holds the guard"
    with contextlib.suppress(MemoryError):  # no fault that the kill goes on after
        kill.run()
    assert during == [["10000", "10000", "100", "100", "100"]], "the instance and the target, no other"
    assert [file.read_text().strip("- ") for file in files[:2]] == ["100", "100"]
    for one in (leaf, other, refused, elsewhere):
        one.close()
    tree.close()


def test_what_does_not_die_is_not_proven_and_named(kill_of: Any) -> None:
    receipt = kill_of(StandInLeaf(), StandInLeaf(kills=10**6)).receipt()
    assert not receipt.verified_zero and [t.outcome for t in receipt.targets] == [Outcome.PROVEN_ZERO, Outcome.NOT_PROVEN]
    assert [(s.agent_id, s.pid) for s in receipt.survivors] == [("a1", os.getpid())]
    assert next(s for s in receipt.steps if s.name is StepName.ZERO).status is StepStatus.FAILED


def test_an_agent_that_is_held_twice_is_counted_as_one(kill_of: Any) -> None:
    missing = Aim("a0", None)
    receipt = kill_of(StandInLeaf(), StandInLeaf(), extra=[missing]).receipt()
    told = {step.name: step.detail for step in receipt.steps}
    assert len(receipt.targets) == 3 and told[StepName.SIGNAL].startswith("2 agents signalled")
    assert told[StepName.ZERO] == "1 of 2 agents are not confirmed dead"


def test_a_leaf_that_holds_us_is_not_struck(kill_of: Any) -> None:
    leaf = StandInLeaf(refuses=True)
    receipt = kill_of(leaf).receipt()
    assert leaf.struck == 0 and not receipt.verified_zero and "refused" in str(receipt.targets[0].evidence["writes"])
    assert next(s for s in receipt.steps if s.name is StepName.SIGNAL).status is StepStatus.FAILED


@pytest.mark.parametrize("can_leave", [False, True])
def test_what_rises_before_the_second_look_is_struck_again(kill_of: Any, can_leave: bool) -> None:
    leaf = StandInLeaf(rises=True)
    receipt = kill_of(leaf, can_leave=can_leave).receipt()
    assert leaf.struck >= 2 and receipt.verified_zero == (not can_leave) and not receipt.survivors
    assert "again" in next(s for s in receipt.steps if s.name is StepName.SECOND_LOOK).detail


def test_a_target_without_a_handle_is_never_proven(kill_of: Any) -> None:
    bare = Aim("bare", Held(Entry("bare", "process", "managed", 0)))
    receipt = kill_of(extra=[bare, Aim("unknown", None)]).receipt()
    assert not receipt.verified_zero and {t.outcome for t in receipt.targets} == {Outcome.NOT_PROVEN}


def test_nothing_to_kill_is_zero(kill_of: Any) -> None:
    assert kill_of().receipt().verified_zero


def test_a_receipt_before_the_proof_is_never_green() -> None:
    kill = KillSession(Order("k1-test", "all", "", ""), Field("0", Path("/"), None, None, False, frozenset), [])
    assert not kill.receipt().verified_zero and not kill.receipt().complete and not kill.is_done


def test_what_is_among_the_agents_but_in_no_leaf_is_never_passed_over(
    kill_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every agent is zero, yet the group above them is populated: somebody entered it, or a leaf of another name."""
    tree = FolderTree(tmp_path / "watchfloor-0", Mounts(Mount(tmp_path, "/")))
    (tree.agents.path / "stubborn").write_text("1000000")
    fill(tree.agents.path, 1)
    (tree.agents.path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    place = Field("00000000", Path("/nowhere"), tree, None, False, frozenset)
    kill = KillSession(Order("k1-test", "all", "why", "who"), place, [])
    kill.strike()
    kill.run()
    receipt = kill.receipt()
    assert not receipt.verified_zero and [t.outcome for t in receipt.targets] == [Outcome.NOT_PROVEN]
    assert [(s.agent_id, s.pid) for s in receipt.survivors] == [("unregistered", os.getpid())]
    tree.close()


def test_a_fault_in_the_second_look_is_amber_and_leaves_nobody_waiting(kill_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: SecondLook) -> None:
        raise KeyError("x")

    monkeypatch.setattr(SecondLook, "look", broken)
    kill = kill_of(StandInLeaf())
    receipt = kill.receipt()
    assert kill.is_done and receipt.complete and kill.steps[StepName.SECOND_LOOK].status is StepStatus.UNKNOWN
    assert verdict(receipt).exit_code is ExitCode.NOT_PROVEN and "KeyError" in receipt.excluded[0]
    kill._amend(kill.aims, "came up later")
    assert kill.steps[StepName.SECOND_LOOK].status is StepStatus.UNKNOWN  # no later word makes it green


def test_a_fault_between_a_second_strike_and_its_proof_takes_the_first_proof_back(kill_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: KillSession, aims: list[Aim]) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(KillSession, "settle_again", broken)
    leaf = StandInLeaf(rises=True)
    receipt = kill_of(leaf).receipt()
    assert not receipt.verified_zero and verdict(receipt).exit_code is ExitCode.NOT_PROVEN
    assert {s.name: s.status for s in receipt.steps}[StepName.ZERO] is StepStatus.FAILED


@pytest.mark.parametrize("fault", [OSError(24, "Too many open files"), RuntimeError("x")])
def test_a_fault_before_the_proof_is_not_proven(kill_of: Any, monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    def broken(self: KillSession) -> None:
        raise fault

    monkeypatch.setattr(KillSession, "_prove", broken)
    receipt = kill_of(StandInLeaf()).receipt()
    assert not receipt.verified_zero and verdict(receipt).exit_code is ExitCode.NOT_PROVEN
    assert {s.status for s in receipt.steps if s.name in (StepName.ZERO, StepName.SECOND_LOOK)} == {StepStatus.UNKNOWN}
    assert not kill_of().receipt().verified_zero  # with nobody to kill as well


def test_zero_is_verified_only_when_its_step_says_so(kill_of: Any) -> None:
    kill = kill_of(StandInLeaf())
    assert kill.receipt().verified_zero
    for status in (StepStatus.UNKNOWN, StepStatus.FAILED, StepStatus.SKIPPED):
        kill.steps[StepName.ZERO] = Step(StepName.ZERO, status, 1.0)
        assert not kill.receipt().verified_zero


def test_a_second_look_that_something_unforeseen_broke_off_is_never_green(kill_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []

    def full(self: SecondLook) -> None:
        ran.append(self._kill)
        raise MemoryError

    monkeypatch.setattr(SecondLook, "look", full)
    with contextlib.suppress(MemoryError):
        kill_of(StandInLeaf())
    (kill,) = ran
    kill._amend(kill.aims, "ended later")
    assert kill.is_done and kill.steps[StepName.SECOND_LOOK].status is StepStatus.UNKNOWN
