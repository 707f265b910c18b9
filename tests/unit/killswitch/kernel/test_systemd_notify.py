"""systemd is told over its own socket, named or abstract; where there is none, nothing happens."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from console.killswitch.kernel.systemd_notify import ALIVE, READY, notify, watchdog_s


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_what_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    name = f"@watchfloor-test-{os.getpid()}-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + name[1:] if abstract else name)
        systemd.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        assert notify(READY, ALIVE)
        assert systemd.recv(100) == b"READY=1\nWATCHDOG=1"


@pytest.mark.parametrize("named", ["", "relative", "/nowhere/at/all", "/" + "x" * 300])
def test_nobody_to_tell_is_no_error(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", named)
    assert not notify(READY)


@pytest.mark.parametrize(
    ("period", "pid", "seconds"),
    [("10000000", "", 10.0), ("10000000", "own", 10.0), ("10000000", "1", 0.0), ("", "", 0.0), ("soon", "", 0.0)],
)
def test_the_watchdog_is_ours_alone(monkeypatch: pytest.MonkeyPatch, period: str, pid: str, seconds: float) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", period)
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    monkeypatch.setenv("WATCHDOG_PID", "4242" if pid == "own" else pid)
    assert watchdog_s() == seconds
