"""Stopped, and still acting? Whoever is proven dead is not heard any more, whatever it did to go on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.kill import Outcome
from tests.fakes import going_on
from tests.fakes.guard_world import NOBODY, GuardWorld, until

SOURCE = Path(going_on.__file__).read_text() + "\nsource = sys.orig_argv[sys.orig_argv.index('-c') + 1]\ngo_on(source)\n"


class Ear:
    """Hears who acts."""

    def __init__(self) -> None:
        self._line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._line.bind(("127.0.0.1", 0))
        self._line.settimeout(0.2)
        self.port = str(self._line.getsockname()[1])
        self.heard: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._hear)
        self._thread.start()

    def _hear(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                self.heard.add(self._line.recv(100).decode())

    def drain(self) -> None:
        """What was sent before now is forgotten."""
        marker = "now"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            while marker not in self.heard:  # a full queue drops it
                own.sendto(marker.encode(), ("127.0.0.1", int(self.port)))
                self._over.wait(0.02)
        self.heard.clear()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._line.close()


@pytest.fixture
def ear() -> Iterator[Ear]:
    with contextlib.closing(Ear()) as made:
        yield made


def test_who_is_proven_dead_acts_no_more_whatever_it_did_to_go_on(ear: Ear, tmp_path: Path) -> None:
    with contextlib.closing(GuardWorld(tmp_path / "g")) as world:
        world.start()
        stays = world.agent("stays", env=NOBODY)
        world.agent("goes-on", "/usr/bin/python3", "-S", "-c", SOURCE, ear.port, pids_max=64, env=NOBODY)
        until(lambda: {trick.__name__ for trick in going_on.TRICKS} <= ear.heard, "each of them acts")
        assert "moved" not in ear.heard
        receipt = world.pressed(["goes-on"])
        assert receipt.verified_zero and {t.outcome for t in receipt.targets} == {Outcome.PROVEN_ZERO}, receipt
        ear.drain()
        assert world.oracle("goes-on") == [] and stays.poll() is None
        ear._over.wait(0.3)
        assert ear.heard <= {"now"}
