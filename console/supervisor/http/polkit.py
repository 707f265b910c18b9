"""polkit: an administrator of this host may let a member do once what otherwise root alone may. Without polkit nothing changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path

from console.domain.engine.command import Record
from console.domain.roles.rights import Right, Standing
from console.killswitch.kernel.processes import ancestors, describe, start_ticks

log = logging.getLogger(__name__)
ACTIONS = {Right.REARM: "io.watchfloor.rearm", Right.RELEASE: "io.watchfloor.release", Right.SETTINGS: "io.watchfloor.settings"}
BOUND_S = 25.0
"""For an administrator to type a password. Clients wait 30 s and more for these changes."""
MOST = 8
"""Requests that wait at the same time, of all accounts."""
MOST_OF_ONE = 3
"""Of one account. polkit is asked about one of them at a time."""
CHECK = Path("/usr/bin/pkcheck")
POLICY = Path("/usr/share/polkit-1/actions/io.watchfloor.policy")


class Polkit:
    """Asks the host's polkit about one process at a time. On the loop's thread."""

    __slots__ = ("_record", "_agents", "_check", "_policy", "_asking")

    def __init__(
        self, record: Callable[[Record], None], agents: Callable[[], Set[int]], check: Path = CHECK, policy: Path = POLICY
    ) -> None:
        """``agents``: pids of the agents that run now. For none of them, and for nothing below one, a person is asked for a password."""
        self._record, self._agents, self._check, self._policy = record, agents, check, policy
        self._asking = dict[int, list[asyncio.Event]]()

    @property
    def grants(self) -> frozenset[Right]:
        """What it can be asked for: nothing where polkit or Watchfloor's policy for it is not installed."""
        return frozenset(ACTIONS) if self._check.is_file() and self._policy.is_file() else frozenset()

    def offered(self, standing: Standing) -> frozenset[Right]:
        """What a caller may try: its rights, and for a member what polkit may grant. Only the request itself is asked about."""
        return standing.rights | self.grants if standing.roles else standing.rights

    async def allows(self, right: Right, uid: int, pid: int) -> bool:
        """Whether process ``pid`` of account ``uid`` may, which is then on record. In doubt, and after BOUND_S: no."""
        if right not in self.grants or sum(map(len, self._asking.values())) >= MOST:
            return False
        # The process that wrote the request. Its start goes along (proc(5), starttime), so that no later process with its number is meant.
        began = start_ticks(pid) if pid > 0 else None
        if began is None or self._agents() & ancestors(pid):
            return False
        before, over = self._asking.get(uid, []), asyncio.Event()
        if len(before) >= MOST_OF_ONE:
            return False
        self._asking[uid] = [*before, over]
        allowed = False
        try:
            async with asyncio.timeout(BOUND_S):
                for one in before:  # a process that asks first keeps no person's own question away
                    await one.wait()
                allowed = await self._ask(ACTIONS[right], pid, f"{pid},{began},{uid}")
        except TimeoutError:
            log.warning("polkit did not answer within %g s", BOUND_S)
        finally:
            over.set()
            self._asking[uid].remove(over)
            if not self._asking[uid]:
                del self._asking[uid]
        if allowed:
            words = f"polkit lets uid {uid} do this once: {ACTIONS[right]}"
            data = {"uid": uid, "pid": pid, "action": ACTIONS[right]}
            self._record(Record(f"operator:{uid}", "polkit.allowed", words, verdict="allow", data=data, must=True))
        return allowed

    async def _ask(self, action: str, pid: int, process: str) -> bool:
        null = asyncio.subprocess.DEVNULL
        # The details are shown in the question, so that a person sees which process wants the password.
        details = ("--detail", "process", str(pid), "--detail", "program", _program(pid))
        words = ("--action-id", action, "--process", process, "--allow-user-interaction", *details)
        try:
            asked = await asyncio.create_subprocess_exec(str(self._check), *words, stdin=null, stdout=null, stderr=null)
        except OSError as error:
            log.warning("polkit cannot be asked: %s", error)
            return False
        try:
            return await asked.wait() == 0  # pkcheck(1): any other number is no
        finally:
            if asked.returncode is None:
                with suppress(ProcessLookupError):
                    asked.kill()
                await asked.wait()


def _program(pid: int) -> str:
    """The name of its executable, in letters that can do no harm in a question."""
    name = str(describe(pid)["exe"]).rpartition("/")[2]
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "?" for letter in name)[:40] or "unknown"
