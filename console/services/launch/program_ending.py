"""A started program's end by its own doing: no more comes to it, it may finish, and the guard is asked whether anybody of it is left.

Nothing is ever killed here. Only an empty leaf, by the guard's own look, is an end; all else is said as it is.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass

from console.api.agents import programs as pm
from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, Denied, NotFound, TimedOut
from console.killswitch.client.guard_client import GuardClient
from console.services.conversation.messaging import Conversations, ended_key
from console.services.fleet.core import Core
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe

LOOK_S = 0.2
MOST_REST_S = 1.0
GRACE_S = 5.0
"""Seconds that it has at least, from the end of its input on, to be gone."""
_OVER = (AgentState.ENDED, AgentState.FAILED)
_QUIET_LOOKS = 2
"""So often in a row no turn may be under way: between the answer to a request and the turn that it begins lies a moment."""


@dataclass(frozen=True, slots=True)
class _Left:
    """What the guard says of an agent."""

    is_alive: bool
    count: int
    doubt: str


class Endings:
    """On the loop's thread."""

    __slots__ = ("_closing", "_core", "_guard", "_scribe", "_notice", "_talk")

    def __init__(self, core: Core, guard: GuardClient, scribe: Scribe, notice: Notice, talk: Conversations) -> None:
        self._core, self._guard, self._scribe, self._notice, self._talk = core, guard, scribe, notice, talk
        self._closing: dict[AgentId, asyncio.Task[None]] = {}
        """Tasks that close a program's input. They finish even when the caller hangs up."""

    async def end(self, agent_id: str, body: pm.EndBody, by: str) -> pm.EndedView:
        """Tell the program that no more messages come, and wait. Raises Denied with the reason, NotFound, NotRecorded, or TimedOut
        (unknown)."""
        known = self._core.agent_or_404(agent_id)
        self._check(known, by)
        words = f"the input of {known}" + (f": {body.reason}" if body.reason else "")
        await asyncio.to_thread(self._scribe.record_first, self._record(known, by, words, within_s=body.within_s))
        self._check(known, by)  # a stop may have come while it was recorded
        deadline = time.monotonic() + body.within_s
        await asyncio.shield(self._told(known, by, deadline))
        view = await self._seen(known, max(deadline, time.monotonic() + GRACE_S))
        self._scribe.record(self._record(known, by, f"{known}: {view.words}", done=view.done, processes=view.processes))
        return view

    def _record(self, agent_id: AgentId, by: str, words: str, **data: object) -> Record:
        return Record(by, "agent.end", words, verdict="allow", agent_id=agent_id, data=data)

    def _check(self, agent_id: AgentId, by: str) -> None:
        if why := self._talk.why_not(agent_id, to_end=True):
            self._scribe.record(Record(by, "agent.end", f"of {agent_id}: refused: {why}", verdict="deny", agent_id=agent_id))
            raise Denied(f"{agent_id} cannot be asked to end: {why}.", "watchfloor kill ends it for certain, if it runs.")

    def _told(self, agent_id: AgentId, by: str, deadline: float) -> asyncio.Task[None]:
        """From now on nothing is said to it; its input ends once no turn would be broken off, or at the deadline."""
        channel = self._talk.channel_of(agent_id)
        if channel is not None and not channel.ended_by:
            channel.ended_by = by
            ledger = self._scribe.ledger
            self._scribe.job(lambda: ledger.kv_set(ended_key(agent_id), by))
        task = self._closing.get(agent_id)
        if task is None or task.done():
            task = self._closing[agent_id] = asyncio.get_running_loop().create_task(self._close(agent_id, deadline))
            task.add_done_callback(lambda _task: self._closing.pop(agent_id, None))
        return task

    async def _close(self, agent_id: AgentId, deadline: float) -> None:
        quiet = 0
        while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
            quiet = 0 if await asyncio.to_thread(self._talk.is_busy, agent_id) else quiet + 1
            await asyncio.sleep(LOOK_S)
        channel = self._talk.channel_of(agent_id)
        if channel is not None:  # else it has ended by itself
            try:
                channel.finish()
            except OSError as error:
                self._notice(f"{agent_id} cannot be told that no more comes: {error.strerror}; watchfloor kill ends it for certain")

    async def _seen(self, agent_id: AgentId, deadline: float) -> pm.EndedView:
        rest = LOOK_S
        while True:
            left: _Left | None = None
            with suppress(ConsoleError):
                left = await asyncio.to_thread(self._left, agent_id)
            agent = self._core.state.agents.get(agent_id)
            if (stopped := _stopped(agent)) or agent_id in self._core.state.killing:
                return pm.EndedView(id=agent_id, done="killed", words=f"a kill came first: it is {stopped or 'being killed'}")
            is_over = time.monotonic() >= deadline
            # An exit that we have not learnt of yet may be a kill's: a moment more for that.
            is_learnt = agent is None or not agent.state.is_live or time.monotonic() >= deadline + GRACE_S
            if left is not None and not left.is_alive and is_learnt:
                words = "no process of it is left, as the guard confirms"
                return pm.EndedView(id=agent_id, done="ended", words=words, best_effort=left.doubt)
            if is_over and (left is None or left.is_alive):
                return self._not_seen(agent_id, left, agent)
            await asyncio.sleep(rest)
            rest = min(rest * 1.5, MOST_REST_S)

    def _not_seen(self, agent_id: AgentId, left: _Left | None, agent: Agent | None) -> pm.EndedView:
        if left is None:
            raise TimedOut(f"Whether {agent_id} has ended is not known.", f"watchfloor agent show {agent_id}; watchfloor kill {agent_id}.")
        many = f"{left.count} processes" if left.count != 1 else "1 process"
        state = "runs" if agent is None or agent.state is AgentState.RUNNING else f"runs ({agent.state.value.replace('_', ' ')})"
        words = f"still {state}: {many}, and no more comes to it; nothing was killed: watchfloor kill {agent_id} ends it for certain"
        return pm.EndedView(id=agent_id, done="runs", processes=left.count, words=words, best_effort=left.doubt)

    def _left(self, agent_id: AgentId) -> _Left:
        """By the guard's own look. Raises ConsoleError when it does not say. Blocks."""
        try:
            answer = self._guard.call("procs", agent_id=agent_id)
        except NotFound:
            # One whom it does not know is nobody that it vouches for, but where it did so before: only upon its word an agent is "ended".
            agent = self._core.state.agents.get(agent_id)
            if agent is None or agent.state not in _OVER:
                raise
            return _Left(False, 0, "")
        return _Left(bool(answer.get("alive", True)), int(answer.get("count", 0)), str(answer.get("best_effort", "")))


def _stopped(agent: Agent | None) -> str:
    """In which state a kill or a cap has left it; empty: none has."""
    halted = (AgentState.KILLED, AgentState.HALTED, AgentState.ALIVE_AFTER_KILL)
    return agent.state.value.replace("_", " ") if agent is not None and agent.state in halted else ""
