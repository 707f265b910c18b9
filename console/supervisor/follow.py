"""The followers: once a second the clock, the guard and the sources; a few times a second the deltas; and the canary of the armed light."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from console.api import messages as m
from console.api.armed import ArmedView, PathView
from console.domain.agent import AgentId, SandboxKind
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, NotRecorded
from console.domain.guard import LOST
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.store.atomic_file import Damaged, read_sealed
from console.sandbox.interface import Availability
from console.services.evidence.snapshot_cache import Witness, keep_watch
from console.services.fleet.core import Core, beat_in, now, wait_beat
from console.services.fleet.deltas import AgentDeltas
from console.services.notices.shown import Notice
from console.services.observe.own_agents import OwnAgents
from console.services.observe.process_counts import Counting
from console.services.observe.scheduler import Lookout
from console.services.records.record_writer import Scribe
from console.services.secrets.readiness import secrets_path
from console.services.secrets.rotator import Rotator
from console.services.stop import readiness
from console.services.stop.freeze_status import unconfirmed
from console.services.stop.self_test import SelfTest
from console.services.stop.service import StopDesk
from console.settings.options import Options
from console.settings.places import Places
from console.sources.inotify import FolderNews
from console.sources.interface import Source
from console.sources.spend.of_session import SessionSpend
from console.supervisor.revive import ensure_guard

if TYPE_CHECKING:  # its module loads the client of the bucket
    from console.services.remote.service import RemoteDesk

log = logging.getLogger(__name__)
_TROUBLE = (ConsoleError, OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SQLAlchemyError)
FLUSH_S, IDLE_FLUSH_S = 0.1, 0.5
"""Seconds between two flushes. The longer time counts while there is no agent."""
ALONE_S, CROWD_S = 0.01, 0.05
"""Seconds for which a writer waits for others to share its write to disk. The longer time counts within a second of a shared write."""
GUARD_S, IDLE_GUARD_S = 0.25, 2.0
"""Seconds between two status requests. The longer time counts while there is no agent and the guard writes nothing."""
CANARY_RETRY_S = 2.0
LATCH_S = 3.0
FREEZE_LOOK_S = 5.0
"""Seconds between two checks which agents are surely frozen. Without a cgroup such a check walks over /proc."""


class OneForAll:
    """A look that many ask for at once: one that begins after they asked serves all of them."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self._look = look
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def ask(self) -> None:
        """Raises what the look raises."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
        await asyncio.shield(self._next)

    async def _run(self) -> None:
        async with self._turn:
            self._next = None
            await self._look()


class Follower:
    """Background loops; each survives its own trouble and shows it."""

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        guard: GuardClient,
        places: Places,
        options: Options,
        notice: Notice,
        stop: StopDesk,
        *,
        remote: RemoteDesk | None,
        sources: tuple[Source, ...],
        spend: SessionSpend,
        own_agents: OwnAgents,
        engine: Callable[[], Availability],
        rotator: Rotator,
        witness: Witness,
        light: Callable[[ArmedView], None],
    ) -> None:
        """``engine``: whether the container engine answers. ``light`` takes each look at the kill switch, every 5 s at least."""
        self._core, self._scribe, self._guard, self._places, self._options = core, scribe, guard, places, options
        self._notice, self._stop, self._remote, self._engine, self._rotator, self._witness = notice, stop, remote, engine, rotator, witness
        self._light = light
        self.deltas = AgentDeltas(core)
        self.guard_status: dict[str, Any] = {}
        self.gauges = readiness.Gauges(canary_s=options.canary_s, engine_wanted=bool(options.engine_socket))
        self.self_test = SelfTest(guard, places, options.agents, self.gauges, lambda: core.state)
        self.lookout = Lookout(core, scribe, sources, spend, own_agents, notice)
        self.counting = Counting(core, guard, notice, options.heartbeat_s)
        self._secrets_seen = PathView(name="secrets", state="in_doubt", detail="not looked at yet")
        self._tasks: list[asyncio.Task[None]] = []
        self._latch_seen: float | None = None
        self._doubts: dict[str, str] = {}
        self._looked_for, self._doubts_at = frozenset[AgentId](), 0.0

    def start(self) -> None:
        """Starts the loops."""
        loops = (
            self._flush,
            self._clock,
            self._follow_guard,
            self.counting.run,
            self.lookout.run,
            self._canaries,
            self._hosts,
            self._engines,
            self._look_at_secrets,
            self._watch,
        )
        self._tasks = [asyncio.get_running_loop().create_task(self._forever(loop)) for loop in loops]

    async def _forever(self, loop: Callable[[], Awaitable[None]]) -> None:
        """A loop that breaks is shown and begun again; only the end of the supervisor ends it."""
        while True:
            try:
                await loop()
                return
            except _TROUBLE as error:
                log.error("a follower broke", exc_info=error)
                self._notice(f"a follower of the supervisor broke and was begun again: {error}", "red")
                await asyncio.sleep(1.0)

    async def _watch(self) -> None:
        """What a later kill's evidence needs, looked at while it lives."""
        await keep_watch(self._witness, self._core, self._notice)

    async def _engines(self) -> None:
        """Whether the engine answers, asked in a thread: a hung engine never holds up the loop."""
        while True:
            found = await asyncio.to_thread(self._engine)
            seen = self.gauges
            seen.engine_ok, seen.engine_words, seen.engine_wanted = found.ok, found.reason, seen.engine_wanted or found.ok
            if found.ok:
                seen.engine_tick, seen.engine_at = time.monotonic(), time.time()
            await wait_beat(readiness.ENGINE_PERIOD_S)

    def stop(self) -> None:
        """Ends them."""
        for task in self._tasks:
            task.cancel()

    async def _flush(self) -> None:
        """Collected changes become one delta, so that 1,000 events a second stay ten messages."""
        core, shown, crowded, loop = self._core, 0.0, 0.0, asyncio.get_running_loop()
        while True:
            timer = loop.call_later(beat_in(IDLE_FLUSH_S if _is_idle(core) else FLUSH_S), core.hurry.set)
            await core.hurry.wait()
            timer.cancel()
            if core.unsaved:
                # So that those who report at the same moment share the write: whoever is alone waits for nobody, a fleet for itself.
                await asyncio.sleep(CROWD_S if time.monotonic() < crowded else ALONE_S)
                crowded = time.monotonic() + 1.0 if len(core.unsaved) > 1 else crowded
            core.hurry.clear()
            self._save()
            if not core.dirty or time.monotonic() - shown < FLUSH_S:
                continue
            shown = time.monotonic()
            at, _ = now()
            self.deltas.tell(at)

    def _save(self) -> None:
        waiting, self._core.unsaved = self._core.unsaved, []
        if not waiting:
            self._scribe.flush()
            return
        loop = asyncio.get_running_loop()
        self._scribe.then(lambda ok: loop.call_soon_threadsafe(_release, waiting, ok))

    async def _clock(self) -> None:
        core = self._core
        beat = 0
        while True:
            await wait_beat(1.0)
            core.post(e.ClockTicked(*now()))
            if beat % 5 == 0:
                core.post(e.TranscriptsSummed(*now(), core.meters.beside()))
                self.armed()
            beat += 1
            self.deltas.pass_time(beat, time.time())

    async def _follow_guard(self) -> None:
        """Send heartbeats and read the guard's status, so that a kill made elsewhere shows within 0.25 s. A file of its wakes this."""
        beat = 0.0
        with FolderNews(str(self._places.guard_dir)) as written:
            while True:
                try:
                    if time.monotonic() - beat > min(5.0, self._options.heartbeat_s / 4):
                        await asyncio.to_thread(self._guard.call, "heartbeat")
                        beat = time.monotonic()
                    await self.look_at_guard()
                except ConsoleError as error:
                    self.guard_status = self.gauges.guard = {"ok": False, "error": str(error)}
                    await self._revive(str(error))
                await wait_beat(GUARD_S)
                if _is_idle(self._core):
                    await written.wait(beat_in(IDLE_GUARD_S))

    async def _revive(self, why: str) -> None:
        words = f"the guard does not answer ({why}); starting it again from its registry"
        self._notice(words, "red")
        try:
            await asyncio.to_thread(ensure_guard, self._places, self._options)
            await self._say_again()
            self._notice(words, "over")
            self._notice("the guard answers again", "info")
        except ConsoleError as error:
            log.error("the guard cannot be started: %s", error)
            await asyncio.sleep(1.0)

    async def _say_again(self) -> None:
        """A guard that came back is told what holds: what it could not write before it died is not lost with it."""
        state = self._core.state
        status = await asyncio.to_thread(self._guard.call, "status")
        if state.killed and not status.get("latched"):
            await self._stop.press(None, state.kill_reason or "said again to a new guard", "supervisor")
        if state.soft_stop and not status.get("soft_stop"):
            await asyncio.to_thread(self._guard.soft_stop, True, state.soft_stop)

    async def look_at_guard(self) -> None:
        """One status of the guard's, and what follows from it."""
        status = await asyncio.to_thread(self._guard.call, "status")
        self.guard_status = self.gauges.guard = status
        self.gauges.guard_tick = time.monotonic()
        self._core.state.can_adopt = bool((status.get("caps") or {"cgroup": "unknown"}).get("cgroup"))
        shown = {AgentId(i): tuple(causes) for i, causes in dict(status.get("frozen", {})).items()}
        is_short = int(status.get("frozen_n", len(shown))) > len(shown)
        causes = await asyncio.to_thread(self._all_frozen, shown) if is_short else shown
        doubts = await self._doubts_of(causes, bool(status.get("unconfirmed_n")))
        self._core.post(e.FrozenSetChanged(*now(), causes, doubts))
        if status.get("soft_stop") == LOST and self._knows_of_no_soft_stop():
            await asyncio.to_thread(self._guard.soft_stop, False, "the supervisor knows of none")
        kill = status.get("kill") or {}
        self._believe_the_latch(status)
        last = [str(kill["kill_id"])] if kill.get("kill_id") else []
        latched = [str(k) for k in status.get("kills", [])] + (last if status.get("latched") else [])
        for kill_id in dict.fromkeys([*latched, *last]):
            if self._stop.receipt(kill_id) is None and (self._places.guard_dir / "receipts" / f"{kill_id}.json").exists():
                self._stop.finish(kill_id, latched)

    async def _doubts_of(self, causes: dict[AgentId, tuple[str, ...]], asked_of_engine: bool) -> dict[AgentId, str]:
        """Who has a cause of freeze and was not seen to be frozen: looked at when it is new, while there is doubt, and now and then."""
        tick = time.monotonic()
        if not causes:
            self._doubts, self._looked_for = {}, frozenset()
        elif self._doubts or asked_of_engine or causes.keys() != self._looked_for or tick - self._doubts_at > FREEZE_LOOK_S:
            found = await asyncio.to_thread(unconfirmed, self._guard.call, list(causes))
            self._doubts, self._looked_for, self._doubts_at = found, frozenset(causes), tick
        return {AgentId(i): why for i, why in self._doubts.items()}

    def _knows_of_no_soft_stop(self) -> bool:
        """Return whether no soft stop is known here. A guard that lost its record stops softly until the supervisor knows better."""
        # The supervisor knows better after a good read of the kill channel, or when there is no channel.
        remote = self._remote
        return not self._core.state.soft_stop and (remote is None or (remote.poller is not None and remote.poller.status().good))

    def _all_frozen(self, shown: dict[AgentId, tuple[str, ...]]) -> dict[AgentId, tuple[str, ...]]:
        """Every agent's causes. The guard shortens its status to one line; then its file on disk has them all."""
        try:
            body = read_sealed(self._places.guard_dir / "causes.json") or {}
            return {AgentId(i): tuple(sorted(causes)) for i, causes in dict(body.get("causes", {})).items()} | shown
        except (Damaged, OSError) as error:
            self._notice(f"the causes of freeze cannot be read: {error}")
            return {i: a.causes for i, a in self._core.state.agents.items() if a.causes} | shown

    def _believe_the_latch(self, status: dict[str, Any]) -> None:
        """Take over a latch that was not set here, within seconds: a lost or damaged file reads as killed."""
        state = self._core.state
        if not status.get("latched") or state.killed or self._stop.turn.locked():
            self._latch_seen = None
            return
        self._latch_seen = self._latch_seen or time.monotonic()
        if time.monotonic() - self._latch_seen > LATCH_S:
            mark = (status.get("kills") or ["latched"])[-1]
            why = "; ".join(str(n) for n in status.get("notices", []))[:300] or "the guard blocks new agents"
            self._core.post(e.KillStarted(*now(), str(mark), None, why, "guard"))

    async def _hosts(self) -> None:
        remote = self._remote
        while remote is not None:
            await asyncio.to_thread(remote.reload_keys)
            if self._core.state.killed and remote.generation:
                await asyncio.to_thread(remote.look_at_hosts)
            await wait_beat(2.0)

    async def _canaries(self) -> None:
        """The armed light by doing: a canary process in a leaf of its own is killed and confirmed dead."""
        seen = self.gauges
        while True:
            rests = self.self_test.rests()
            if not rests:
                await self.self_test.fly()
            flown = time.monotonic()
            wait = seen.canary_s if seen.flight is not None and seen.flight.proven else min(CANARY_RETRY_S, seen.canary_s)
            await asyncio.sleep(0.25)  # always: while killed no canary flies, and a new guard would make this loop run without a pause
            # After a rearm nobody has proven anything for as long as the kill lasted: one flies at once.
            while time.monotonic() - flown < wait and not self._is_new_guard() and not (rests and not self.self_test.rests()):
                await wait_beat(0.25 if rests else 1.0)

    def _is_new_guard(self) -> bool:
        """A guard that took over has proven nothing yet: its canary flies at once."""
        flight, pid = self.gauges.flight, self.guard_status.get("pid")
        return flight is not None and flight.proven and bool(pid) and pid != flight.guard_pid

    def source_views(self) -> list[m.SourceView]:
        """What each source sees, or why it cannot look."""
        return self.lookout.views()

    def armed(self) -> ArmedView:
        """The armed light now: every way this host can be stopped, its proof and its age."""
        state, tick, remote = self._core.state, time.monotonic(), self._remote
        self.gauges.engine_wanted |= any(state.agents[i].sandbox == SandboxKind.DOCKER for i in state.live)
        local = readiness.local_path(self.gauges, tick)
        paths = [local, readiness.engine_path(self.gauges, tick, local)]
        if remote is None:
            paths.append(PathView(name="remote", state="not_configured", detail="no bucket is set"))
        else:
            paths.append(remote.path_view(self.guard_status.get("lease_left_s")))
        paths.append(self._secrets_seen)
        view = readiness.armed_view(paths, killed=state.killed, soft_stop=state.soft_stop)
        self._light(view)
        return view

    async def _look_at_secrets(self) -> None:
        """Where secrets are and what is owed, looked at in a thread: a keyring that hangs never holds up the loop."""
        while True:
            self._secrets_seen = await asyncio.to_thread(secrets_path, self._rotator)
            await wait_beat(5.0)


def _is_idle(core: Core) -> bool:
    """Return whether there is no agent, no kill and no change to publish."""
    return not (core.state.held or core.state.killed or core.dirty)


def _release(waiting: list[asyncio.Future[None]], ok: bool) -> None:
    """Answer the waiting writers. A failed write must not be reported as stored."""
    for future in waiting:
        if future.done():
            continue
        if ok:
            future.set_result(None)
        else:
            future.set_exception(NotRecorded("It could not be recorded: the disk refuses.", "Make room on the disk; it is tried again."))
