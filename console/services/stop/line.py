"""Send stop orders to the guard over connections and threads of their own, so that an order never waits behind other questions.

An order has one id from the first try on. A busy guard is asked whether it has the order. Only without a guard, or with one that does not
move, is the same work done here, from the registry, under the same id.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from console.domain.errors import ConsoleError
from console.domain.kill import Receipt, Step, receipt_from_json
from console.domain.process.standing import Standing
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.client.kill import place_order
from console.services.fleet.core import wait_beat
from console.settings.places import Places

CALM_S = 2.0
"""After zero the caller is answered, and what the dead held is released; then this is an ordinary program again."""
STARTED_S = 30.0
"""Longest wait at the start for the threads of the stop."""
CATCH_UP_S = 1.0
ORDERS, READERS = 8, 4
"""Threads that say orders, and threads that read receipts: a reader that waits for a disk keeps no order waiting."""
FIRST_LOOK_S, LOOK_S = 0.005, 0.03
"""Between two looks for a receipt: shorter during the first second."""
ASK_S = 0.5
"""Between two questions to the guard for a receipt that its disk did not take: the file comes first, and asking costs the guard time."""


class StopLine:
    """Orders to the guard, and the guard's receipts."""

    __slots__ = ("_places", "standing", "_orders", "_readers")

    def __init__(self, places: Places) -> None:
        self._places = places
        self.standing = Standing()
        self._orders = self.pool(ORDERS, "stop")
        self._readers = self.pool(READERS, "receipt")

    def pool(self, threads: int, name: str) -> ThreadPoolExecutor:
        """Threads that go first when this program does."""
        return ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=self.standing.join)

    def start(self) -> None:
        """Have all threads of a stop run before any order can come: the loop would wait for one that a busy machine lets begin late.

        A machine that lets them begin in no bounded time keeps no supervisor from its start: they begin with the orders then.
        """
        for pool, threads in ((self._orders, ORDERS), (self._readers, READERS)):
            together = threading.Barrier(threads + 1, timeout=STARTED_S)
            for _ in range(threads):
                pool.submit(together.wait)
            with suppress(threading.BrokenBarrierError):
                together.wait()

    async def keep_ahead(self) -> None:
        """Give the threads that other services start their place. Forever."""
        while True:
            await wait_beat(CATCH_UP_S)
            self.standing.catch_up()

    async def order(self, scope: str | list[str], reason: str, by: str, order: str, kill_id: str) -> str:
        """Have it carried out; the id of the kill once the first SIGKILL wave went out. Raises Denied, Conflict, UsageProblem."""
        places = self._places

        def say() -> str:
            spot = (places.state_dir, places.run_dir, places.instance_id)
            done = place_order(*spot, scope, reason, by, order=order, kill_id=kill_id, sock=places.guard_supervisor_sock)
            return done if isinstance(done, str) else done.kill_id

        self.standing.take_all()
        try:
            made = await asyncio.get_running_loop().run_in_executor(self._orders, say)
        except BaseException:
            self.standing.give_all_back()
            raise
        self._give_back_later()  # what follows the kill begins now: between the two this program is no ordinary one either
        return made

    async def halt(self, ids: list[str], reason: str, kill_id: str) -> str:
        """As ``order``, of agents that a limit stopped, and by the guard alone. Raises ConsoleError when it did not take it."""

        def say() -> str:
            # Only the guard carries a halt out: the caller tries again until the guard has taken it (decision 0004).
            return GuardClient(self._places.guard_supervisor_sock).halt(ids, reason, kill_id=kill_id)

        return await asyncio.get_running_loop().run_in_executor(self._orders, say)

    async def read(self, kill_id: str) -> Receipt | None:
        """The guard's receipt as it lies on disk; None when it cannot be read."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, read_receipt_file, self.file_of(kill_id))

    async def wait(self, kill_id: str, step: Callable[[Receipt], Step], timeout_s: float) -> Receipt | None:
        """The guard's receipt once ``step`` of it is decided; None after the time limit."""
        began, look, asked = time.monotonic(), _Looks(self.file_of(kill_id)), 0.0
        loop = asyncio.get_running_loop()
        while (waited := time.monotonic() - began) < timeout_s:
            self.standing.catch_up()
            receipt = await loop.run_in_executor(self._readers, look.again)
            if (receipt is None or step(receipt).ms is None) and waited - asked > ASK_S:
                asked = waited
                receipt = await loop.run_in_executor(self._readers, self._ask, kill_id)
            if receipt is not None and step(receipt).ms is not None:
                return receipt
            await asyncio.sleep(FIRST_LOOK_S if waited < 1.0 else LOOK_S)
        return None

    def _ask(self, kill_id: str) -> Receipt | None:
        """The receipt as the guard has it in memory; None when it does not say."""
        client = GuardClient(self._places.guard_supervisor_sock)
        try:
            return receipt_from_json(json.loads(client.receipt_text(kill_id)))
        except (ConsoleError, ValueError, KeyError, TypeError):
            return None
        finally:
            client.close()

    def file_of(self, kill_id: str) -> Path:
        """Where the guard keeps a kill's receipt."""
        return self._places.guard_dir / "receipts" / f"{kill_id}.json"

    async def first_until(self, at_zero: asyncio.Event) -> None:
        """This program goes first until zero, until the caller is answered, and what the dead held is released."""
        self.standing.take_all()
        await at_zero.wait()
        self._give_back_later()

    def _give_back_later(self) -> None:
        asyncio.get_running_loop().call_later(CALM_S, self.standing.give_all_back)

    def close(self) -> None:
        """Lets the threads end; nothing waits for one that hangs."""
        for pool in (self._orders, self._readers):
            pool.shutdown(wait=False)


class _Looks:
    """Reads a file again only when it is another one."""

    __slots__ = ("_path", "_seen")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None

    def again(self) -> Receipt | None:
        """None when nothing changed, or it cannot be read."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        # The guard replaces the file by rename, so the inode tells two versions of one clock tick apart.
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
