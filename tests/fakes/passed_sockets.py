"""A socket that listens before its server runs, as systemd passes one (sd_listen_fds(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.killswitch.kernel import systemd_notify


@contextmanager
def passed_to_us(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Listens at ``path`` and passes that socket to this process. Here descriptor 3 has another use already, so the count begins later."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        sock.listen(8)
        sock.set_inheritable(True)
        monkeypatch.setattr(systemd_notify, "FIRST", sock.fileno())
        monkeypatch.setenv("LISTEN_FDS", "1")
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        yield sock
