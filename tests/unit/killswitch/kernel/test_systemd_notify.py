"""systemd is told over its own socket, named or abstract; where there is none, nothing happens."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.kernel.systemd_notify import ALIVE, READY, notify, passed_socket
from tests.fakes.passed_sockets import passed_to_us


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


@pytest.fixture
def passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A socket on which somebody listens for this process, at tmp_path/s.sock."""
    with passed_to_us(tmp_path / "s.sock", monkeypatch) as sock:
        yield sock


def test_a_socket_that_systemd_listens_on_is_found_by_its_path(tmp_path: Path, passed: socket.socket) -> None:
    assert passed_socket(tmp_path / "s.sock") == passed.fileno()
    assert not passed.get_inheritable(), "what this process starts must not hold it open"
    assert passed_socket(tmp_path / "other.sock") is None


def test_a_socket_that_was_meant_for_another_process_is_left_alone(
    tmp_path: Path, passed: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LISTEN_PID", "1")
    assert passed_socket(tmp_path / "s.sock") is None


@pytest.mark.parametrize("restored", [False, True])
def test_a_socket_whose_file_was_taken_away_or_restored_is_not_used(tmp_path: Path, passed: socket.socket, restored: bool) -> None:
    """Behind a copy of the file nobody listens."""
    (tmp_path / "s.sock").rename(tmp_path / "old.sock")
    if restored:
        with socket.socket(socket.AF_UNIX) as copy:
            copy.bind(str(tmp_path / "s.sock"))
    assert passed_socket(tmp_path / "s.sock") is None
