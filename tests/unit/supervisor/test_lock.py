"""One supervisor per state directory."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.supervisor.lock import take_lock


def test_the_second_is_told_who_holds_it_and_may_have_it_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    held = take_lock(path)
    with pytest.raises(Conflict, match=f"pid {os.getpid()}"):
        take_lock(path)
    held.close()
    take_lock(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_that_ends_or_starts_is_waited_for_and_one_that_listens_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sock, rests = tmp_path / "supervisor.lock", tmp_path / "s", list[float]()
    held = take_lock(path, sock)

    def rest(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 3:
            held.close()

    monkeypatch.setattr(time, "sleep", rest)
    again = take_lock(path, sock, still_s=600.0)
    assert len(rests) == 3
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(sock))
        with pytest.raises(Conflict):
            take_lock(path, sock, still_s=0.0)
        listening.listen(0)
        with pytest.raises(Conflict, match=f"pid {os.getpid()}"):
            take_lock(path, sock, still_s=600.0)
    assert len(rests) == 3
    again.close()
