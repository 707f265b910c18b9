"""The threads of a stop are there before the first order."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.errors import Denied
from console.services.stop import line as module
from console.services.stop.line import ORDERS, READERS, StopLine


def started() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(("stop_", "receipt_"))}


def test_no_order_and_no_look_for_a_receipt_waits_for_a_thread_to_begin(tmp_path: Path) -> None:
    places: Any = SimpleNamespace(guard_dir=tmp_path)
    line = StopLine(places)
    line.start()
    there = started()
    assert len(there) == ORDERS + READERS
    assert asyncio.run(line.read("k-1")) is None and started() == there
    line.close()
    for thread in threading.enumerate():
        if thread.name in there:
            thread.join(10.0)


def test_threads_that_do_not_begin_in_time_keep_no_supervisor_from_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: Any = SimpleNamespace(guard_dir=tmp_path)
    line, held = StopLine(places), threading.Event()
    monkeypatch.setattr(module, "STARTED_S", 0.05)
    line._orders.submit(held.wait)
    line.start()
    held.set()
    assert asyncio.run(line.read("k-1")) is None
    line.close()


def test_after_a_refused_order_the_program_is_an_ordinary_one_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise Denied("no", "")

    places: Any = SimpleNamespace(state_dir=tmp_path, run_dir=tmp_path, instance_id="i", guard_supervisor_sock=tmp_path / "g")
    monkeypatch.setattr(module, "place_order", refuse)
    line = StopLine(places)
    with pytest.raises(Denied):
        asyncio.run(line.order("all", "r", "b", "", "k-1"))
    assert line.standing._process == 0
    line.close()
