"""What a kill without a guard uses. Real kills of that kind: tests/integration/test_killswitch_kill.py."""

from __future__ import annotations

from pathlib import Path

from console.killswitch.client.without_guard import WithoutGuard
from console.killswitch.kill.targets import Order
from console.killswitch.store.latch import Latch


def test_it_leaves_the_latch_on_disk_and_no_registry(tmp_path: Path) -> None:
    keeper = WithoutGuard(tmp_path, tmp_path / "run", "00c0ffee")
    keeper.save_latch(Order("20260102-030405-00000001", "all", "r", "operator", ""))
    latch = Latch(tmp_path / "guard", run_dir=tmp_path / "run")
    latch.load()
    assert latch.state.latched and latch.state.why == "r"
    assert not list((tmp_path / "guard").glob("registry*"))


def test_a_record_that_cannot_be_written_is_told_and_ends_nothing(tmp_path: Path) -> None:
    written = list[int]()

    def full() -> None:
        raise OSError(28, "No space left on device")

    keeper = WithoutGuard(tmp_path, tmp_path / "run", "00c0ffee")
    assert keeper.record("receipt", full, lambda: written.append(1)) == ["receipt not written: No space left on device"]
    assert written == [1]
