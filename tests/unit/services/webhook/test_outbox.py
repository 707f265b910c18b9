"""Alerts that wait for their delivery: bounded, on disk, the oldest first."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from console.services.webhook import outbox
from console.services.webhook.outbox import Outbox
from tests.fakes.private_disk import run_on_a_small_disk


async def test_the_next_supervisor_has_what_was_saved_in_the_same_order(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "webhook", "boot")
    for number in range(12):
        first.add(f"a-{number}", b"{}")
    await first.save()
    await first.remove([first.waiting[0], first.waiting[5]])
    second = Outbox(tmp_path / "webhook", "boot")
    second.add("b", b"{}")  # raised before the folder was read
    assert await second.load() == 0
    assert [one.alert_id for one in second.waiting] == [*(f"a-{n}" for n in range(12) if n not in (0, 5)), "b"]
    await second.save()
    third = Outbox(tmp_path / "webhook", "boot")
    await third.load()
    assert [one.alert_id for one in third.waiting] == [one.alert_id for one in second.waiting]


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"[]", b"null", b'{"id":1}', b"\xff\xfe", b"[" * 100_000, b'{"id":"x","body":"\xc3\xa9","at":0,"boot_s":0,"boot_id":""}'],
)
async def test_a_damaged_file_is_counted_and_removed_and_the_others_are_read(tmp_path: Path, broken: bytes) -> None:
    first = Outbox(tmp_path, "boot")
    first.add("a", b"{}")
    await first.save()
    (tmp_path / "000000000009.json").write_bytes(broken)
    (tmp_path / "notes.txt").write_text("not ours")
    second = Outbox(tmp_path, "boot")
    assert await second.load() == 1 and [one.alert_id for one in second.waiting] == ["a"]
    assert {file.name for file in tmp_path.iterdir()} == {"000000000001.json", "notes.txt"}


ON_A_FULL_DISK = """
import asyncio
from console.services.webhook.outbox import Outbox

async def main():
    box = Outbox(disk / "webhook", "boot")
    for number in range(3):
        box.add(f"a-{number}", b"{}")
    await box.save()
    fill()
    box.add("b", b"x" * 20000)
    try:
        await box.save()
        said = ""
    except OSError as error:
        said = error.strerror
    kept = [one.saved for one in box.waiting]
    await box.remove(box.waiting[:1])  # what was delivered goes, on a full disk too
    empty()
    await box.save()
    other = Outbox(disk / "webhook", "boot")
    broken = await other.load()
    print(json.dumps([said, kept, broken, [one.alert_id for one in other.waiting], sorted(p.suffix for p in (disk / "webhook").iterdir())]))

asyncio.run(main())
"""


def test_a_full_disk_keeps_it_in_memory_and_takes_it_once_there_is_room(tmp_path: Path) -> None:
    said, kept, broken, later, files = run_on_a_small_disk(tmp_path / "disk", ON_A_FULL_DISK)
    assert said == "No space left on device" and kept == [True, True, True, False]
    assert broken == 0 and later == ["a-1", "a-2", "b"] and files == [".json"] * 3


def test_the_oldest_are_too_many(tmp_path: Path) -> None:
    box = Outbox(tmp_path, "boot")
    for number in range(outbox.MOST + 3):
        box.add(f"a-{number}", b"{}")
    assert [one.alert_id for one in box.over()] == ["a-0", "a-1", "a-2"]


@pytest.mark.parametrize("jump_s", [-1e6, 1e6])
def test_a_clock_that_jumps_makes_no_alert_older_or_younger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float) -> None:
    box = Outbox(tmp_path, "boot")
    box.add("a", b"{}")
    then = time.time()
    monkeypatch.setattr(time, "time", lambda: then + jump_s)
    assert 0 <= box.waiting[0].age_s("boot") < 60
    # After a restart of the host only the calendar is left, and the future is no age.
    assert box.waiting[0].age_s("another boot") == pytest.approx(max(0.0, jump_s), abs=60)
