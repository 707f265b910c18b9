"""A receipt that said NOT PROVEN is amended when the target is dead, and one that was green when something came back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from console.domain.kill import Outcome, StepName, StepStatus
from console.killswitch.kernel import processes
from console.killswitch.kill import receipt, session
from console.killswitch.kill.receipt import Afterwards
from console.killswitch.kill.session import Field, KillSession, Order
from console.killswitch.kill.targets import Aim
from console.killswitch.store.registry import Entry, Held
from tests.fakes.guard_room import FolderLeaf, fill
from tests.fakes.guard_world import until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SECOND_LOOK_S", 0.0)
    monkeypatch.setattr(session, "LAST_LOOK_S", 0.1)
    monkeypatch.setattr(processes, "find_marked", lambda *a: iter(()))
    monkeypatch.setattr(receipt, "LOOK_S", 0.02)


class Desk:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.afterwards = Afterwards(lambda kill, words: self.told.extend(words))

    def threads(self) -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name == "afterwards"]


def kill_of(folder: Path, stubborn: bool = True, can_leave: bool = False) -> KillSession:
    (fill(folder, 1) / "stubborn").write_text("1000000" if stubborn else "1")
    leaf = FolderLeaf(folder)
    held = Held(Entry("a", "process", "managed", 0, str(folder), leaf.inode, confirmed=True, can_leave=can_leave), leaf)
    kill = KillSession(Order("k1-test", "all", "", ""), Field("0", Path("/"), None, None, False, frozenset), [Aim("a", held)], limit_s=0.1)
    kill.strike()
    kill.run()
    return kill


def close(kill: KillSession) -> None:
    for aim in kill.aims:
        if aim.held is not None:
            aim.held.close()


def test_what_dies_later_is_proven_later_and_the_thread_ends(tmp_path: Path) -> None:
    desk, kill = Desk(), kill_of(tmp_path / "a")
    then = kill.receipt()
    desk.afterwards.follow(kill)
    assert not then.verified_zero and desk.threads() and desk.afterwards.holds(kill.aims[0].held)  # type: ignore[arg-type]
    (tmp_path / "a" / "cgroup.events").write_text("populated 0\n")
    until(lambda: desk.told, "it was seen")
    now = kill.receipt()
    assert now.verified_zero and now.complete and not now.survivors and now.targets[0].outcome is Outcome.PROVEN_ZERO
    assert {s.name: s.status for s in now.steps if s.name in (StepName.ZERO, StepName.SECOND_LOOK)} == {
        StepName.ZERO: StepStatus.OK,
        StepName.SECOND_LOOK: StepStatus.OK,
    }
    assert list(now.amended) == desk.told and "after the receipt" in now.amended[0] and now.ms_total == then.ms_total
    assert now.targets[0].evidence["amended"][0]["outcome"] == "not_proven"
    until(lambda: not desk.threads(), "the thread ends when nothing is open")
    assert not desk.afterwards.holds(kill.aims[0].held)  # type: ignore[arg-type]
    close(kill)


def test_who_may_have_left_its_cgroup_is_not_called_proven_later_either(tmp_path: Path) -> None:
    kill = kill_of(tmp_path / "a", can_leave=True)
    (tmp_path / "a" / "cgroup.events").write_text("populated 0\n")
    [words] = kill.look_later()
    assert kill.aims[0].outcome is Outcome.BEST_EFFORT and "best effort" in words and "proven" not in words
    close(kill)


def test_what_is_proven_is_not_followed(tmp_path: Path) -> None:
    desk, kill = Desk(), kill_of(tmp_path / "a", stubborn=False)
    desk.afterwards.follow(kill)
    assert kill.receipt().verified_zero and not desk.threads()
    close(kill)


def test_an_unlatch_ends_the_watch(tmp_path: Path) -> None:
    desk, kill = Desk(), kill_of(tmp_path / "a")
    desk.afterwards.follow(kill)
    desk.afterwards.forget()
    until(lambda: not desk.threads(), "the thread ended")
    assert not desk.told and not kill.receipt().verified_zero
    close(kill)


@pytest.mark.parametrize("dies", [True, False])
def test_a_container_that_came_back_is_a_target_of_its_own(tmp_path: Path, dies: bool) -> None:
    desk, kill = Desk(), kill_of(tmp_path / "a", stubborn=False)
    (fill(tmp_path / "box", 1) / "stubborn").write_text("1" if dies else "1000000")
    leaf = FolderLeaf(tmp_path / "box")
    entry = Entry("a", "container", "contained", 0, confirmed=True, container_id="ab" * 32, container_leaf=str(leaf.path))
    desk.afterwards.came_back(kill, Aim("a", Held(entry, container=leaf), came_back=True))
    until(lambda: desk.told, "it was taken in")
    receipt = kill.receipt()
    assert receipt.verified_zero is dies and [t.outcome for t in receipt.targets] == [
        Outcome.PROVEN_ZERO,
        Outcome.PROVEN_ZERO if dies else Outcome.NOT_PROVEN,
    ]
    assert "started after the kill" in receipt.amended[0] and receipt.targets[1].evidence["came_back"] is True
    if not dies:
        (tmp_path / "box" / "cgroup.events").write_text("populated 0\n")
        until(lambda: len(desk.told) == 2, "and is proven once it is dead")
        assert kill.receipt().verified_zero
    until(lambda: not desk.threads(), "the thread ended")
    close(kill)


def test_one_that_comes_back_before_the_kill_is_over_waits_for_it(tmp_path: Path) -> None:
    desk, kill = Desk(), kill_of(tmp_path / "a", stubborn=False)
    kill.finished.clear()
    entry = Entry("b", "container", "contained", 0, confirmed=True, container_id="ab" * 32, pid=1, start_ticks=1)
    desk.afterwards.came_back(kill, Aim("b", Held(entry), came_back=True))
    assert not desk.told
    kill.finished.set()
    until(lambda: desk.told, "it was taken in")
    until(lambda: not desk.threads(), "the thread ended")
    close(kill)
