"""The latch: unknown reads as killed, generations only rise, a release covers everything."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.errors import Conflict, TimedOut
from console.killswitch import durable
from console.killswitch import latch as latch_module
from console.killswitch.durable import seal
from console.killswitch.latch import MOST_KILLS, Latch, LatchState


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
    real = durable.write_whole

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


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"../../etc", b"20250101"])
def test_a_marker_that_cannot_be_read_is_a_press(tmp_path: Path, content: bytes) -> None:
    latch = in_run(tmp_path)
    (tmp_path / "run" / "pressed").write_bytes(content)
    latch.load()
    assert latch.state.latched


def test_the_marker_goes_once_the_press_is_on_disk_and_with_a_release(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    latch.load()
    for end in (latch.save, lambda: latch.release(latch.state.generation)):
        latch.press("20250101-000000-abcdef", "")
        latch.mark("20250101-000000-abcdef")
        assert (tmp_path / "run" / "pressed").exists()
        end()
        assert not (tmp_path / "run" / "pressed").exists()


def test_without_a_run_folder_the_marker_lies_in_the_guards(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    (tmp_path / "run").rmdir()
    latch.mark("20250101-000000-abcdef")
    assert (tmp_path / "guard" / "pressed").exists()


def test_a_save_of_an_older_state_leaves_the_marker(tmp_path: Path) -> None:
    latch = in_run(tmp_path)
    latch.load()
    old = latch.state
    latch.press("20250101-000000-abcdef", "")
    latch.mark("20250101-000000-abcdef")
    latch._unmark(old)
    assert (tmp_path / "run" / "pressed").exists()
