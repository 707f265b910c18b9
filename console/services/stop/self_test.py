"""The armed light by doing: a canary process in a leaf of its own is killed by the guard and confirmed dead.

A second process carries the canary's mark and lies outside the leaf, as what got away from an agent does: the second look must find it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from console.domain.errors import Conflict, ConsoleError
from console.domain.guard import AGENT_VARIABLE, INSTANCE_VARIABLE
from console.enforcement.state import EngineState
from console.killswitch.client.guard_client import GuardClient
from console.services.stop.readiness import LIMIT_S, Flight, Gauges
from console.settings.options import AgentOptions
from console.settings.places import Places

BY = "canary"
REAP_S = 0.2
"""A killed child is reaped within this time."""
MISSED = "the second look of a kill did not find a process that had left its agent"


class SelfTest:
    """On the loop's thread. One canary after the other: two at once would prove nothing more."""

    __slots__ = ("_guard", "_places", "_agents", "_gauges", "_state", "_flying")

    def __init__(self, guard: GuardClient, places: Places, agents: AgentOptions, gauges: Gauges, state: Callable[[], EngineState]) -> None:
        """How each went is kept in ``gauges``."""
        self._guard, self._places, self._agents, self._gauges, self._state = guard, places, agents, gauges, state
        self._flying = asyncio.Lock()

    def rests(self) -> bool:
        """No canary flies while nothing may start."""
        state = self._state()
        return state.killed or bool(state.soft_stop)

    async def fly(self) -> Flight:
        """One now."""
        async with self._flying:
            flight = self._gauges.flight = await asyncio.to_thread(fly_canary, self._guard, self._places, self._agents)
        return flight

    async def asked(self) -> Flight:
        """The same because an operator asks. Raises Conflict while nothing may start, and while a test runs: none waits for another."""
        if self.rests():
            raise Conflict("The kill switch is not tested while nothing may start: a test starts a process.", "Rearm first.")
        if self._flying.locked():
            raise Conflict("A test of the kill switch runs already.", "Try again in a moment.")
        return await self.fly()


def fly_canary(guard: GuardClient, places: Places, agents: AgentOptions) -> Flight:
    """Blocks; leaves nothing behind; never raises what a guard or the kernel does. It takes the same ticket, leaf and kill as any agent."""
    try:
        guard_pid = int(guard.call("status").get("pid") or 0)
        proven, words, ms = _fly(guard, places, agents)
    except ConsoleError as error:
        guard_pid, proven, words, ms = 0, False, f"the canary was not killed: {error}", None
    return Flight(proven, words, ms, guard_pid, time.time(), time.monotonic())


def _fly(guard: GuardClient, places: Places, agents: AgentOptions) -> tuple[bool, str, float | None]:
    agent_id = f"canary-{secrets.token_hex(4)}"
    uid = {"uid": agents.uid} if os.geteuid() == 0 else {}  # the guard knows what got away by its account
    ticket = guard.call("ticket", agent_id=agent_id, kind="process", control_level="managed", **uid)
    mark = {AGENT_VARIABLE: agent_id, INSTANCE_VARIABLE: places.instance_id}
    try:
        bird = _hatch(agents, {}, "/bin/sleep", "30")
    except OSError as error:
        with suppress(ConsoleError):
            guard.call("forget", agent_id=agent_id)
        return False, f"the canary could not be started: {error}", None
    stray: subprocess.Popen[bytes] | None = None
    try:
        if ticket.get("leaf"):
            Path(str(ticket["leaf"]), "cgroup.procs").write_text(str(bird.pid))
        ticks = int(Path(f"/proc/{bird.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
        guard.call("confirm", agent_id=agent_id, generation=ticket["generation"], pid=bird.pid, start_ticks=ticks)
        # Only now: a host that was killed meanwhile confirms nothing. It ends with us, because nothing else holds what it reads from.
        stray = _hatch(agents, mark, "/bin/cat")
        began = time.monotonic()
        kill_id = str(guard.call("halt", scope=[agent_id], reason="canary of the armed light", by=BY)["kill_id"])
        with suppress(subprocess.TimeoutExpired):
            bird.wait(LIMIT_S)
        ms = (time.monotonic() - began) * 1000 if bird.returncode is not None else None
        return _judge(guard, places, kill_id, ms, stray)
    except (OSError, ValueError) as error:
        return False, f"the canary could not be flown: {error}", None
    finally:
        for child in (bird, stray):
            if child is not None:
                child.kill()  # our own, by its pid, if the guard did not
                child.communicate()
        with suppress(ConsoleError):
            guard.call("forget", agent_id=agent_id)


def _hatch(agents: AgentOptions, env: dict[str, str], *argv: str) -> subprocess.Popen[bytes]:
    """A process that does nothing, under the agents' own account where there is one: what could leave its leaf proves nothing."""
    null = subprocess.DEVNULL
    if os.geteuid() != 0:
        return subprocess.Popen(argv, cwd="/", env=env, stdin=subprocess.PIPE, stdout=null, stderr=null)
    return subprocess.Popen(
        argv, cwd="/", env=env, user=agents.uid, group=agents.gid, extra_groups=[], stdin=subprocess.PIPE, stdout=null, stderr=null
    )


def _judge(
    guard: GuardClient, places: Places, kill_id: str, ms: float | None, stray: subprocess.Popen[bytes]
) -> tuple[bool, str, float | None]:
    """All must say so: the guard's proof, the parent that reaped it, and the second look."""
    until, receipt = time.monotonic() + LIMIT_S, places.guard_dir / "receipts" / f"{kill_id}.json"
    while time.monotonic() < until:
        seen = guard.call("progress", kill_id=kill_id)
        if seen.get("done"):
            is_found = _is_found(stray, receipt)
            with suppress(OSError):
                # A test a minute would fill the folder of receipts, and no person caused it.
                receipt.unlink()
            # in user mode it has the guard's uid: best effort for the guard, but it is our own child and ``wait`` saw its end
            proven = ms is not None and seen.get("total") == 1 and (seen.get("proven") == 1 or seen.get("best_effort") == 1)
            if not proven or ms is None:
                return False, "the canary was NOT confirmed dead", ms
            return is_found, f"canary dead in {ms:.0f} ms" if is_found else MISSED, ms
        time.sleep(0.1)
    return False, "the guard did not finish the canary's kill", ms


def _is_found(stray: subprocess.Popen[bytes], receipt: Path) -> bool:
    """Whether the second look killed what lay outside the canary's leaf, or named it: under the guard's own account it signals nothing."""
    with suppress(subprocess.TimeoutExpired):
        stray.wait(REAP_S)
    if stray.returncode is not None:
        return stray.returncode == -signal.SIGKILL
    try:
        return any(one["pid"] == stray.pid for one in json.loads(receipt.read_bytes())["survivors"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
