"""A fault is told to the log, and a log that cannot take it stops nobody."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from console.domain.errors import Unavailable
from console.killswitch.kernel.faults import FAULTS, in_thread, note_fault


def test_a_fault_is_written_with_where_it_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise Unavailable("no engine")
    except FAULTS as fault:
        note_fault("second look", fault)
    assert capsys.readouterr().err.startswith("second look: Traceback")


def test_a_log_that_is_full_or_closed_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    note_fault("loop", KeyError("x"))


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
