"""The latch: unknown reads as killed, generations only rise, a release covers everything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.errors import Conflict
from console.killswitch import durable
from console.killswitch import latch as latch_module
from console.killswitch.durable import seal
from console.killswitch.latch import MOST_KILLS, Latch


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
