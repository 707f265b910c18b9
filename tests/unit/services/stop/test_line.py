"""The threads of a stop are there before the first order."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
