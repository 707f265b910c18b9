"""Receipts as files, and what is amended after a receipt was given."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from console.domain.kill import KILL_ID, Receipt, receipt_from_json
from console.killswitch.store.atomic_file import sync_folder, write_whole

if TYPE_CHECKING:  # what only asks for a kill reads receipts too, and need not wait for what carries one out
    from console.killswitch.kill.session import KillSession
    from console.killswitch.kill.targets import Aim
    from console.killswitch.store.registry import Held

LOOK_S = 1.0
"""A change of a cgroup or the end of a process wakes it at once; what has neither is looked at this often."""
PAUSE_S = 0.05


def new_kill_id() -> str:
    """Sorts by time: 20250131-142233-a1b2c3d4."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


def receipt_path(guard_dir: Path, kill_id: str) -> Path:
    """ValueError for an id that no kill has."""
    if not KILL_ID.match(kill_id):
        raise ValueError("kill id")
    return guard_dir / "receipts" / f"{kill_id}.json"


def receipt_bytes(receipt: Receipt) -> bytes:
    # Without indentation: Python's encoder in C takes a tenth of the time for a kill of hundreds, and its caller waits for it.
    return json.dumps(receipt.as_json(), ensure_ascii=True).encode() + b"\n"


def write_receipt(guard_dir: Path, receipt: Receipt) -> None:
    """OSError when it is not durable."""
    path = receipt_path(guard_dir, receipt.kill_id)
    is_first = not path.parent.is_dir()
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(path, receipt_bytes(receipt))
    if is_first:
        sync_folder(guard_dir)


def read_receipt(guard_dir: Path, kill_id: str) -> Receipt | None:
    """None when there is none, or none that can be read."""
    try:
        return receipt_from_json(json.loads(receipt_path(guard_dir, kill_id).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Afterwards:
    """One thread, there only while something is open. ``amended`` is called on it with the kill and the words of each change."""

    def __init__(self, amended: Callable[[KillSession, list[str]], None]) -> None:
        self._amended = amended
        self._lock = threading.Lock()
        self._kills: list[KillSession] = []
        self._back: list[tuple[KillSession, Aim]] = []
        self._is_running = False

    def follow(self, kill: KillSession) -> None:
        """A kill that is over, if its receipt leaves anything open."""
        if kill.open_aims():
            with self._lock:
                self._kills.append(kill)
                self._start()

    def came_back(self, kill: KillSession, aim: Aim) -> None:
        """A container that started after this kill, struck already."""
        with self._lock:
            self._back.append((kill, aim))
            self._start()

    def forget(self) -> None:
        """Forget the receipts after an un-kill: no caller waits for them any more."""
        with self._lock:
            self._kills.clear()
            self._back.clear()

    def holds(self, held: Held) -> bool:
        """Whether its files are still looked at: they must not be closed."""
        with self._lock:
            aims = [a for kill in self._kills for a in kill.aims] + [a for _, a in self._back]
        return any(aim.held is held for aim in aims)

    def _start(self) -> None:
        if not self._is_running:
            threading.Thread(target=self._run, name="afterwards", daemon=True).start()
            self._is_running = True

    def _run(self) -> None:
        try:
            while (work := self._next()) is not None:
                self._look(*work)
                time.sleep(PAUSE_S)
        finally:  # after a fault the next one to be followed starts it again
            with self._lock:
                self._is_running = False

    def _look(self, kills: list[KillSession], back: list[tuple[KillSession, Aim]]) -> None:
        for kill, aim in back:
            self._tell(kill, kill.take_back(aim))
            self.follow(kill)
        from console.killswitch.kill.targets import watch

        watch([aim for kill in kills for aim in kill.open_aims()])[0].poll(0 if back else LOOK_S * 1000)
        for kill in kills:
            self._tell(kill, kill.look_later())

    def _next(self) -> tuple[list[KillSession], list[tuple[KillSession, Aim]]] | None:
        """What is open, and what came back to kills that are over; None ends the thread."""
        with self._lock:
            self._kills = list({id(kill): kill for kill in self._kills if kill.open_aims()}.values())
            ready = [(kill, aim) for kill, aim in self._back if kill.finished.is_set()]
            self._back = [(kill, aim) for kill, aim in self._back if not kill.finished.is_set()]
            self._is_running = bool(self._kills or self._back or ready)
            return (self._kills, ready) if self._is_running else None

    def _tell(self, kill: KillSession, words: list[str]) -> None:
        if words:
            self._amended(kill, words)
