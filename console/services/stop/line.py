"""The supervisor's way to stop: connections and threads of its own, so that an order never waits behind anything else it asks the guard.

An order has one id from the first try on. A guard that is busy is asked whether it has the order; only without a guard, or beside one that
stands still, is the same work done here, from the registry, under the same id.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from console.domain.kill import Receipt, StepName, receipt_from_json
from console.killswitch.client import GuardClient
from console.killswitch.press import place_order
from console.settings.places import Places

NICE = -10
"""As the guard's: ahead of what it is to stop, however busy that keeps the processors. Only root may."""
CALM_S = 2.0
"""After zero the caller is answered, and what the dead held is released; then the loop is an ordinary thread again."""
ORDERS, READERS = 8, 4
"""Threads that say orders, and threads that read receipts: a reader that waits for a disk keeps no order waiting."""
FIRST_LOOK_S, LOOK_S = 0.005, 0.03
"""Between two looks for a receipt: shorter during the first second."""


_ORDINARY = os.getpriority(os.PRIO_PROCESS, 0)


class StopLine:
    """Orders to the guard, and the guard's receipts."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._orders = ThreadPoolExecutor(ORDERS, thread_name_prefix="stop", initializer=be_urgent)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="receipt", initializer=be_urgent)
        self._open = 0
        """Kills whose callers have no answer yet."""

    async def order(self, scope: str | list[str], reason: str, by: str, order: str, kill_id: str) -> str:
        """Have it carried out; the id of the kill once the first SIGKILL wave went out. Raises Denied, Conflict, UsageProblem."""
        places = self._places

        def say() -> str:
            spot = (places.state_dir, places.run_dir, places.instance_id)
            done = place_order(*spot, scope, reason, by, order=order, kill_id=kill_id, sock=places.guard_supervisor_sock)
            return done if isinstance(done, str) else done.kill_id

        return await asyncio.get_running_loop().run_in_executor(self._orders, say)

    async def halt(self, ids: list[str], reason: str, kill_id: str) -> str:
        """As ``order``, of agents that a limit stopped, and by the guard alone. Raises ConsoleError when it did not take it."""

        def say() -> str:
            return GuardClient(self._places.guard_supervisor_sock).halt(ids, reason, kill_id=kill_id)

        return await asyncio.get_running_loop().run_in_executor(self._orders, say)

    async def read(self, kill_id: str) -> Receipt | None:
        """The guard's receipt as it lies on disk; None when it cannot be read."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, read_receipt_file, self.file_of(kill_id))

    async def wait(self, kill_id: str, step: StepName, timeout_s: float) -> Receipt | None:
        """The guard's receipt once ``step`` is decided in it; None after the time limit."""
        began, look = time.monotonic(), _Looks(self.file_of(kill_id))
        loop = asyncio.get_running_loop()
        while (waited := time.monotonic() - began) < timeout_s:
            receipt = await loop.run_in_executor(self._readers, look.again)
            if receipt is not None and any(s.name is step and s.ms is not None for s in receipt.steps):
                return receipt
            await asyncio.sleep(FIRST_LOOK_S if waited < 1.0 else LOOK_S)
        return None

    def file_of(self, kill_id: str) -> Path:
        """Where the guard keeps a kill's receipt."""
        return self._places.guard_dir / "receipts" / f"{kill_id}.json"

    def begin(self) -> None:
        """A kill is asked for: until ``end`` the loop's thread goes first."""
        self._open += 1
        be_urgent()

    def end(self) -> None:
        """Its caller can be answered."""
        asyncio.get_running_loop().call_later(CALM_S, self._calm)

    async def urgent_until(self, at_zero: asyncio.Event) -> None:
        """``begin`` now, and ``end`` at zero."""
        self.begin()
        await at_zero.wait()
        self.end()

    def _calm(self) -> None:
        self._open -= 1
        if self._open == 0:
            be_calm()

    def close(self) -> None:
        """Lets the threads end; nothing waits for one that hangs."""
        for pool in (self._orders, self._readers):
            pool.shutdown(wait=False)


def be_urgent() -> None:
    """This thread goes ahead of ordinary ones (setpriority(2): on Linux of the thread alone). Nothing where that is not allowed."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)


def be_calm() -> None:
    """This thread is an ordinary one: also whatever it starts, agents among it."""
    with suppress(OSError):
        if os.getpriority(os.PRIO_PROCESS, 0) == NICE:
            os.setpriority(os.PRIO_PROCESS, 0, _ORDINARY)


class _Looks:
    """Reads a file again only when it is another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None

    def again(self) -> Receipt | None:
        """None when nothing changed, or it cannot be read."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        if (stamp := (found.st_ino, found.st_mtime_ns)) == self._seen:
            return None
        self._seen = stamp
        return read_receipt_file(self._path)


def read_receipt_file(path: Path) -> Receipt | None:
    """None when there is none, or none that can be read."""
    try:
        return receipt_from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
