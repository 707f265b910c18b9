"""The door of the daemon."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from console.supervisor import __main__ as door


def test_whoever_starts_it_with_whatever_umask_agents_can_pass_through_its_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 077, as careful people have it, no agent under another id could start."""
    seen: list[int] = []

    def serve(given: object) -> int:
        seen.append(os.umask(0o022))
        return 0

    monkeypatch.setattr(door, "serve", serve)
    monkeypatch.setattr(sys, "argv", ["supervisor", "serve"])
    before = os.umask(0o077)
    try:
        assert door.main() == 0 and seen == [0o022]
    finally:
        os.umask(before)


def test_no_other_account_reads_or_writes_the_log_whatever_the_umask(tmp_path: Path) -> None:
    """Agents may pass through the state directory, and the log names what other agents did."""
    before = os.umask(0)
    try:
        door.LogFile(tmp_path / "supervisor.log").close()
    finally:
        os.umask(before)
    assert (tmp_path / "supervisor.log").stat().st_mode & 0o777 == 0o600


def test_a_log_line_that_the_disk_does_not_take_is_one_line_in_the_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = tmp_path / "supervisor.log"
    full.symlink_to("/dev/full")
    log = logging.Logger("trial")
    log.addHandler(handler := door.LogFile(full))
    log.error("agent %s", "evil\n2026-11-27 INFO all is well \x1b[2J")
    with pytest.raises(OSError, match="No space"):
        handler.close()
    said = capsys.readouterr().err
    assert said == "not in the log ([Errno 28] No space left on device): ERROR agent evil\\n2026-11-27 INFO all is well \\x1b[2J\n"


@pytest.mark.parametrize(
    ("period", "pid", "seconds"),
    [("10000000", "", 10.0), ("10000000", "own", 10.0), ("10000000", "1", 0.0), ("", "", 0.0), ("soon", "", 0.0)],
)
def test_the_watchdog_is_ours_alone(monkeypatch: pytest.MonkeyPatch, period: str, pid: str, seconds: float) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", period)
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    monkeypatch.setenv("WATCHDOG_PID", "4242" if pid == "own" else pid)
    assert door.watchdog_s() == seconds
