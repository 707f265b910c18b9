"""What a guard reads of the looks of the one before it: only its own file, bounded, and a time without looks is never forgotten."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from console.killswitch.kernel.processes import CLOCK_TICKS, start_ticks, ticks_now
from console.killswitch.kill import records
from console.killswitch.kill.records import FILE, Looks, Record, identity
from console.killswitch.store.registry import Entry

ME = start_ticks(os.getpid()) or 0


def make_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def entry() -> Entry:
    return Entry("a-1", "process", "managed", 0, inode=7, start_ticks=ME)


@pytest.fixture
def looks(tmp_path: Path) -> Looks:
    """A former guard looked once, just now."""
    made, now = Looks(tmp_path), ticks_now()
    made.write([Record("a-1", now, now, now, frozenset([7]), looks=1, entry=identity(entry()))], now)
    return made


def test_a_time_without_a_look_counts_up_to_the_first_look_of_the_next_guard(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    found = looks.of([entry()])["a-1"]
    assert found.why_late == ""
    later = ticks_now() + int(6.5 * CLOCK_TICKS)
    monkeypatch.setattr(records, "ticks_now", lambda: later)
    assert "not looked at for 6 s" in found.why_late or "not looked at for 7 s" in found.why_late
    assert "ticks" in found.row() and found.row()["ticks"][2] >= 6 * CLOCK_TICKS, "a third guard learns of it too"


@pytest.mark.parametrize(
    "spoil",
    [
        make_fifo,
        lambda file: file.unlink() or file.symlink_to("/dev/zero"),
        lambda file: os.truncate(file, 1 << 40),
        lambda file: os.chown(file, 12345, -1),
        lambda file: file.write_bytes(b"9" * 400 + file.read_bytes()[file.read_bytes().index(b"\n") :]),
        lambda file: file.write_text(file.read_text().replace('"ticks":[', '"ticks":["x",')),
        lambda file: file.write_text(f"{ticks_now() + 1000 * CLOCK_TICKS:020d}" + file.read_text()[20:]),
        lambda file: file.write_text(file.read_text().replace('"n_more":0', '"n_more":"0"')),
        lambda file: file.write_text(file.read_text().replace('"away":[]', '"away":[7]')),
        lambda file: file.write_text(file.read_text().replace('"uids":[]', '"uids":["0"]')),
        lambda file: file.write_text(file.read_text().partition("\n")[0] + "\n" + "[" * 100_000),
        lambda file: file.write_text(file.read_text().partition("\n")[0] + "\n" + json.dumps({"boot_id": "other", "agents": []})),
    ],
)
def test_a_file_that_is_not_whole_or_not_its_own_is_no_look(looks: Looks, tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    assert looks.of([entry()])
    spoil(tmp_path / FILE)
    assert looks.of([entry()]) == {}


@pytest.mark.parametrize("lay", [os.mkfifo, lambda file: os.link(file.with_name("other"), file)])
def test_what_an_agent_lays_at_the_place_of_the_draft_neither_holds_the_looks_up_nor_is_written_to(
    looks: Looks, tmp_path: Path, lay: Callable[[Path], object]
) -> None:
    (tmp_path / "other").write_text("kept")
    lay(tmp_path / f".{FILE}.draft")
    now = ticks_now()
    writing = threading.Thread(target=looks.write, args=([Record("a-2", now, now, now, looks=1)], now), daemon=True)
    writing.start()
    writing.join(20)
    assert not writing.is_alive() and '"a-2"' in (tmp_path / FILE).read_text() and (tmp_path / "other").read_text() == "kept"


def test_an_agent_of_another_start_is_another_agent(looks: Looks) -> None:
    assert looks.of([replace(entry(), start_ticks=ME + 1)]) == {}


def test_an_agent_that_no_look_has_met_may_have_reached_anything() -> None:
    now = ticks_now()
    made = Record("a-1", now, now, now)
    seen = replace(made, looks=1)
    assert [(one.was_seen, one.may_reach) for one in (made, seen)] == [(False, True), (True, False)]
