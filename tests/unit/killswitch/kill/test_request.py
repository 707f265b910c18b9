"""A request is carried out the same way by the guard and by a process without one."""

from __future__ import annotations

import threading

import pytest

from console.killswitch.kill.request import in_thread
from console.killswitch.kill.targets import Order


@pytest.mark.parametrize(("scope", "is_all"), [("all", True), ("a,b", False), ("", False), ("ALL", False)])
def test_only_all_is_everything(scope: str, is_all: bool) -> None:
    assert Order("k", scope, "why", "who").is_all is is_all


def test_without_threads_everything_is_carried_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """pthread_create(3) answers EAGAIN: no thread for anything."""

    def none(_: object) -> None:
        raise RuntimeError("can't start new thread")

    def full() -> None:
        raise OSError(28, "No space left on device")

    done: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", none)
    assert in_thread(lambda: done.append("x"), "x") is None
    assert in_thread(full, "x") is None  # what goes wrong in it ends in the log
    assert done == ["x"]
