"""The latch: unknown reads as killed, generations only rise, a release covers everything."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.errors import Conflict, TimedOut
from console.killswitch.store import atomic_file
from console.killswitch.store import latch as latch_module
from console.killswitch.store.atomic_file import seal
from console.killswitch.store.latch import MOST_KILLS, Latch, LatchState


def fresh(tmp_path: Path) -> Latch:
    folder = tmp_path / "guard"
    folder.mkdir(exist_ok=True)
    latch = Latch(folder)
    latch.load()
    return latch


def test_a_new_folder_is_not_killed(tmp_path: Path) -> None:
    assert not fresh(tmp_path).state.latched


def test_it_survives(tmp_path: Path) -> None:
    latch = fresh(tmp_path)
    latch.press("k1", "why")
    latch.save()
    again = fresh(tmp_path)
    assert again.state.latched and again.state.generation == 1 and again.state.kills == ("k1",)


@pytest.mark.parametrize("trace", ["registry.json", "journal.jsonl", "causes.json", "receipts", "../.guard-was-here"])
def test_missing_in_a_used_folder_reads_as_killed(tmp_path: Path, trace: str) -> None:
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / trace).touch()
    latch = Latch(tmp_path / "guard")
    latch.load(last_generation=6)
    assert latch.state.latched and latch.state.generation == 7 and latch.state.kills


@settings(max_examples=25)
@given(raw=st.binary(max_size=200))
def test_any_garbage_reads_as_killed(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.mktemp("latch") / "guard"
    folder.mkdir()
    (folder / "latch.json").write_bytes(raw)
    latch = Latch(folder)
    latch.load()
    assert latch.state.latched


@pytest.mark.parametrize(
    "body", [{}, {"latched": 0, "generation": 0, "kills": [], "why": ""}, {"latched": False, "generation": "1", "kills": [], "why": ""}]
)
def test_a_well_sealed_wrong_shape_reads_as_killed(tmp_path: Path, body: dict[str, object]) -> None:
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "latch.json").write_bytes(seal(body))
    latch = Latch(tmp_path / "guard")
    latch.load()
    assert latch.state.latched


def test_a_release_needs_the_generation_and_every_kill(tmp_path: Path) -> None:
    latch = fresh(tmp_path)
    with pytest.raises(Conflict):
        latch.check_release(0, [])
    latch.press("k1", "")
    latch.press("k2", "")
    for generation, kills in ((1, ["k1", "k2"]), (3, ["k1", "k2"]), (2, ["k1"]), (2, [])):
        with pytest.raises(Conflict):
            latch.check_release(generation, kills)
    latch.check_release(2, ["k2", "k1", "more"])
    latch.release(2)
    assert not latch.state.latched and latch.state.generation == 2 and not fresh(tmp_path).state.latched


def test_a_release_that_the_disk_refuses_stays_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latch = fresh(tmp_path)
    latch.press("k1", "")
    latch.save()

    def full(fd: int) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        latch.release(1)
    assert latch.state.latched


def test_a_press_during_a_release_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latch = fresh(tmp_path)
    latch.press("k1", "")
    real = atomic_file.write_whole

    def press_meanwhile(*a: object) -> None:
        monkeypatch.setattr(latch_module, "write_whole", real)
        latch.press("k2", "")
        real(*a)  # type: ignore[arg-type]

    monkeypatch.setattr(latch_module, "write_whole", press_meanwhile)
    with pytest.raises(Conflict):
        latch.release(1)
    assert latch.state.latched and fresh(tmp_path).state.latched


def test_a_latch_written_by_somebody_else_overrides_memory(tmp_path: Path) -> None:
    ours = fresh(tmp_path)
    ours.save()
    assert not ours.obey_disk()
    theirs = fresh(tmp_path)
    theirs.press("k9", "pressed without the guard")
    theirs.save()
    assert ours.obey_disk() and ours.state.latched and "k9" in ours.state.kills and ours.state.generation == 1
    assert not ours.obey_disk()


def test_a_latch_that_vanishes_while_we_run_reads_as_killed(tmp_path: Path) -> None:
    latch = fresh(tmp_path)
    latch.save()
    latch.path.unlink()
    assert latch.obey_disk() and latch.state.latched


def test_many_presses_still_fit_into_an_unlatch(tmp_path: Path) -> None:
    latch = fresh(tmp_path)
    for n in range(MOST_KILLS + 50):
        latch.press(f"20250101-000000-{n:06x}", "")
    assert len(latch.state.kills) == MOST_KILLS and latch.state.generation == MOST_KILLS + 50
    assert sum(len(k) + 3 for k in latch.state.kills) < 3500


# --- several writers ------------------------------------------------------------------------------------------------------


def test_a_save_takes_in_what_another_process_pressed(tmp_path: Path) -> None:
    """A guard that takes over reads the latch, then somebody presses without it, then it saves."""
    new = fresh(tmp_path)
    theirs = fresh(tmp_path)
    theirs.press("k9", "panic")
    theirs.save()
    new.save()
    assert new.state.latched and new.state.kills == ("k9",) and fresh(tmp_path).state.kills == ("k9",)


def test_two_presses_without_a_guard_are_both_kept(tmp_path: Path) -> None:
    fresh(tmp_path).save()
    one, two = fresh(tmp_path), fresh(tmp_path)
    for latch, kill_id in ((one, "k1"), (two, "k2")):
        latch.press(kill_id, "")
    one.save()
    two.save()
    assert set(fresh(tmp_path).state.kills) == {"k1", "k2"}


def test_a_release_never_overwrites_a_press_of_another_process(tmp_path: Path) -> None:
    ours = fresh(tmp_path)
    ours.press("k1", "")
    ours.save()
    ours.check_release(1, ["k1"])
    theirs = fresh(tmp_path)
    theirs.press("k2", "")
    theirs.save()
    with pytest.raises(Conflict):
        ours.release(1)
    assert ours.state.latched and set(fresh(tmp_path).state.kills) == {"k1", "k2"}


def test_a_press_between_the_compare_and_the_release_waits_and_stays(tmp_path: Path) -> None:
    latch = fresh(tmp_path)
    latch.press("k1", "")
    latch.save()
    pressing = threading.Thread(target=latch.press, args=("k2", ""))

    real = latch._unmark

    def unmark(saved: LatchState) -> None:
        pressing.start()
        pressing.join(0.2)
        assert pressing.is_alive()  # it waits: memory is not changed in the middle
        real(saved)

    latch._unmark = unmark  # type: ignore[method-assign]
    latch.release(1)
    pressing.join(60)
    assert latch.state.latched and latch.state.kills == ("k2",)


def test_a_writer_that_is_stopped_delays_a_press_a_little_and_refuses_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latch_module, "LOCK_S", 0.05)
    latch = fresh(tmp_path)
    with latch._locked():
        latch.press("k1", "")
        latch.save()
        assert fresh(tmp_path).state.latched
        with pytest.raises(TimedOut):
            latch.release(1)
    assert latch.state.latched and fresh(tmp_path).state.latched
    latch.release(1)


# --- the marker -----------------------------------------------------------------------------------------------------------


def in_run(tmp_path: Path) -> Latch:
    for name in ("guard", "run"):
        (tmp_path / name).mkdir(exist_ok=True)
    return Latch(tmp_path / "guard", None, tmp_path / "run")


def test_a_press_whose_guard_dies_at_once_is_latched(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    latch.load()
    latch.save()
    latch.press("20250101-000000-abcdef", "")
    latch.mark("20250101-000000-abcdef")
    again = in_run(tmp_path)
    again.load()
    assert again.state.latched and again.state.kills == ("20250101-000000-abcdef",) and again.state.generation == 1


@pytest.mark.parametrize("name", ["pressed", "pressed-", "pressed-..", "pressed-\udcff", "pressed-A", "pressed-" + "x" * 200])
def test_a_marker_whose_name_says_no_kill_is_a_press_and_goes_with_a_release(tmp_path: Path, name: str) -> None:
    latch = in_run(tmp_path)
    (tmp_path / "run" / name).touch()
    latch.load()
    assert latch.state.kills == ("press-unreadable",)
    latch.release(latch.state.generation)
    assert latch.state == LatchState(False, 1)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_folder_of_markers_that_cannot_be_read_reads_as_killed_and_lets_nobody_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    latch = in_run(tmp_path)
    latch.load()

    def refused(path: object) -> list[str]:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", refused)
        assert not latch.obey_disk()  # a guard that runs short does not kill because of that
        latch.press("k-one", "")
        with pytest.raises(Conflict):
            latch.release(1)
        again = in_run(tmp_path)
        again.load()
        assert again.state.latched
    assert latch.state.latched


def test_a_marker_that_appears_while_we_run_is_obeyed_once(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    latch.load()
    latch.save()
    in_run(tmp_path).mark("20250101-000000-abcdef")  # whoever pressed died before the disk had it
    assert latch.obey_disk() and latch.state.kills == ("20250101-000000-abcdef",)
    assert not latch.obey_disk()


def test_the_marker_goes_once_the_press_is_on_disk_and_with_a_release(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    latch.load()
    for end in (latch.save, lambda: latch.release(latch.state.generation)):
        latch.press("20250101-000000-abcdef", "")
        latch.mark("20250101-000000-abcdef")
        assert (tmp_path / "run" / "pressed-20250101-000000-abcdef").exists()
        end()
        assert not (tmp_path / "run" / "pressed-20250101-000000-abcdef").exists()


def test_without_a_run_folder_the_marker_lies_in_the_guards(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    (tmp_path / "run").rmdir()
    latch.mark("20250101-000000-abcdef")
    assert (tmp_path / "guard" / "pressed-20250101-000000-abcdef").exists()


def test_a_save_of_an_older_state_leaves_the_marker(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    latch.load()
    old = latch.state
    latch.press("20250101-000000-abcdef", "")
    latch.mark("20250101-000000-abcdef")
    latch._unmark(old)
    assert (tmp_path / "run" / "pressed-20250101-000000-abcdef").exists()


# --- a kill at every step of a release ------------------------------------------------------------------------------------

OLD, NEW = "20250101-000000-aaaaaa", "20250102-000000-bbbbbb"


class Crash(BaseException):
    """The guard dies here."""


class Step:
    """Runs ``then`` when the code of the latch comes to its n-th line (of each line, the first time it gets there)."""

    def __init__(self, number: int, then: Callable[[], None]) -> None:
        self._left, self._then = number, then
        self._seen: set[tuple[str, int]] = set()
        self.came = False

    def __call__(self, frame: FrameType, what: str, arg: object) -> Any:
        if frame.f_code.co_filename not in (latch_module.__file__, atomic_file.__file__):
            return None
        at = (frame.f_code.co_filename, frame.f_lineno)
        if what == "line" and at not in self._seen:
            self._seen.add(at)
            self._left -= 1
            if self._left == 0:
                self.came = True
                self._then()
        return self


class Attack:
    """One guard that is releasing OLD; at one step of it somebody presses NEW in a way of their own."""

    def __init__(self, folder: Path, how: str, crashes: bool) -> None:
        self.folder, self.how, self.crashes = folder, how, crashes
        self.guard = in_run(folder)
        self.guard.load()
        self.guard.press(OLD, "")
        self.guard.mark(OLD)
        self.guard.save()
        self.threads: list[threading.Thread] = []

    def strike(self) -> None:
        if self.how != "nobody":
            self.threads.append(threading.Thread(target=self.press))
            self.threads[0].start()
            self.threads[0].join(0.05 if self.how == "the guard" else 30)  # it may wait for the guard's memory
        if self.crashes:
            raise Crash

    def press(self) -> None:
        """As guard.py and press.py do it."""
        if self.how == "the guard":
            self.guard.press(NEW, "")
            self.guard.mark(NEW)
            return
        theirs = in_run(self.folder)
        theirs.mark(NEW)
        if self.how == "one who dies":
            return
        theirs.load()
        if NEW not in theirs.state.kills:
            theirs.press(NEW, "")
        theirs.save()

    def run(self, number: int) -> bool:
        """False when the release has no such step."""
        step = Step(number, self.strike)
        before = sys.gettrace()
        sys.settrace(step)
        try:
            self.guard.release(1)
        except (Conflict, Crash):
            pass
        finally:
            sys.settrace(before)
        for thread in self.threads:
            thread.join(30)
        return step.came


@pytest.mark.parametrize(
    ("how", "crashes"),
    [
        ("the guard", False),
        ("one who dies", True),
        ("another", True),
        pytest.param("the guard", True, marks=pytest.mark.long),
        pytest.param("one who dies", False, marks=pytest.mark.long),
        pytest.param("another", False, marks=pytest.mark.long),
    ],
)
def test_a_kill_at_any_step_of_a_release_wins(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, how: str, crashes: bool
) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(latch_module, "LOCK_S", 0.02)  # the guard may be stopped in the middle: nobody waits for it
    number = 0
    while True:
        number += 1
        attack = Attack(tmp_path_factory.mktemp("latch"), how, crashes)
        if not attack.run(number):
            break
        where = f"step {number}"
        if not crashes:
            attack.guard.obey_disk()
            assert attack.guard.state.latched and NEW in attack.guard.state.kills, where
        after = in_run(attack.folder)
        after.load()
        assert after.state.latched and NEW in after.state.kills, where
    assert number > 40


def test_a_crash_at_any_step_of_a_release_leaves_a_latch_that_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    number, seen = 0, list[bool]()
    while True:
        number += 1
        attack = Attack(tmp_path_factory.mktemp("latch"), "nobody", True)
        if not attack.run(number):
            break
        after = in_run(attack.folder)
        after.load()
        assert after.state.kills in ((OLD,), ()), f"step {number}: {after.state}"
        seen.append(after.state.latched)
    assert seen == sorted(seen, reverse=True) and seen[0] and not seen[-1]  # latched, and from one step on released


@pytest.mark.parametrize("when", ["before", "at the write"])
def test_a_release_that_meets_the_marker_of_a_dead_presser_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    attack, real = Attack(tmp_path, "one who dies", crashes=False), atomic_file.write_whole

    def write(*a: object) -> None:
        attack.press()
        real(*a)  # type: ignore[arg-type]

    if when == "before":
        attack.press()
    else:
        monkeypatch.setattr(latch_module, "write_whole", write)
    with pytest.raises(Conflict):
        attack.guard.release(1)
    assert NEW in attack.guard.state.kills and NEW in fresh(tmp_path).state.kills


def test_a_release_that_was_written_over_a_press_is_undone_by_the_next_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard is stopped between its look and its write; somebody presses meanwhile; then it goes on, and dies."""
    attack = Attack(tmp_path, "another", crashes=False)
    monkeypatch.setattr(latch_module, "LOCK_S", 0.02)
    real = atomic_file.write_whole

    def late(*a: object) -> None:
        monkeypatch.setattr(latch_module, "write_whole", real)
        attack.press()
        real(*a)  # type: ignore[arg-type]
        raise Crash

    monkeypatch.setattr(latch_module, "write_whole", late)
    with pytest.raises(Crash):
        attack.guard.release(1)
    after = in_run(tmp_path)
    after.load()
    assert after.state.latched and NEW in after.state.kills
