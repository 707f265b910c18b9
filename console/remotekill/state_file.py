"""The host state on disk: durable, checked, and a lost or damaged file reads as a new host (soft stop, epoch 0)."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from console.domain.errors import UsageProblem
from console.domain.process.durable import make_folder, replace_file
from console.remotekill.document import MAX_EPOCH, Order, read_order
from console.remotekill.machine import HostState

_LIMIT = 4 * 1024 * 1024


def load_state(path: Path) -> tuple[HostState, str]:
    """(state, words). Words are empty when the file was whole, else say why this host starts as a new one."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LIMIT + 1)
    except FileNotFoundError:
        return HostState(), "There is no state of the remote kill channel yet: this host starts as a new one."
    except OSError as error:
        return HostState(), f"The state of the remote kill channel cannot be read ({error.strerror}): this host starts as a new one."
    try:
        return _decode(json.loads(raw)), ""
    except (ValueError, KeyError, TypeError, RecursionError, UsageProblem):
        return HostState(), "The state of the remote kill channel is damaged: this host starts as a new one."


def _decode(data: Any) -> HostState:
    epoch, soft = data["epoch"], data["soft"]
    # An unknown version is a damaged file: half understood, it could lose a latch.
    if data["version"] not in (1, 2) or type(epoch) is not int or not 0 <= epoch <= MAX_EPOCH or type(soft) is not bool:
        raise ValueError("state")
    before = HostState(soft, epoch, _orders(data["latched"]), _orders(data["released"]))
    if data["version"] == 1:  # before orders had numbers
        return before
    settled, judged = data["settled"], data["judged"]
    if type(settled) is not int or not 0 <= settled <= MAX_EPOCH:
        raise ValueError("settled")
    return replace(before, over=_orders(data["over"]), settled=settled, judged=None if judged is None else tuple(_generations(judged)))


def _generations(data: Any) -> list[int]:
    if not isinstance(data, list) or not all(type(number) is int for number in data):
        raise ValueError("generations")
    return data


def _orders(data: Any) -> tuple[Order, ...]:
    if not isinstance(data, list):
        raise ValueError("orders")
    return tuple(read_order(text) for text in data)


def hold_state(path: Path) -> IO[bytes] | None:
    """The right to poll with this state, until the file is closed; None while another process has it. OSError when it cannot be asked for.

    Two pollers with one state would forget each other's latches.
    """
    make_folder(path.parent)
    lock = path.with_name(f"{path.name}.lock")
    file = os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def save_state(path: Path, state: HostState) -> None:
    """Durable when it returns; OSError otherwise, with the old state still there."""
    data = {"version": 2, **asdict(state)}
    make_folder(path.parent)
    replace_file(path, json.dumps(data).encode())
