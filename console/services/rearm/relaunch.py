"""Agents that ran before a kill: nothing brings them back but a person, one by one (a tombstone restores nothing, promise 3)."""

from __future__ import annotations

import asyncio
import json

from console.api import rearm as rm
from console.domain.agent import Agent, AgentId, AgentState, LaunchRequest
from console.domain.budget import tightest
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, NotFound
from console.services.fleet.core import Core
from console.services.launch.environments import stored
from console.services.rearm.service import LAST_KEY
from console.services.records.record_writer import Scribe
from console.services.stop.service import StopDesk

AGAIN_KEY = "rearm.again"
"""Where the ledger keeps which agent was started again as which."""
MOST_KEPT = 1000
MOST_SHOWN = 1000
WORDS_SHOWN = 50
WORD_SHOWN = 200
"""Agents of one answer, words of one command line, characters of one word: all three are an agent's to choose."""
_BACK = (AgentState.KILLED, AgentState.LOST, AgentState.HALTED)


class Relaunch:
    """Who ran before a kill, and its start by a person."""

    __slots__ = ("_core", "_scribe", "_stop")

    def __init__(self, core: Core, scribe: Scribe, stop: StopDesk) -> None:
        self._core, self._scribe, self._stop = core, scribe, stop

    async def was_running(self, kills: list[str]) -> tuple[list[rm.AgainView], int]:
        """(agents that these kills struck, how many more there are); without kills: those of the last rearm."""
        state, again = self._core.state, await asyncio.to_thread(self._map, AGAIN_KEY)
        if not kills:
            kept = await asyncio.to_thread(self._scribe.ledger.kv_get, LAST_KEY)
            kills = [str(k) for k in json.loads(kept or "[]")]
        ids = dict.fromkeys(AgentId(t.agent_id) for k in kills if (receipt := self._stop.receipt(k)) is not None for t in receipt.targets)
        known = [i for i in ids if i in state.agents]
        return [self._view(state.agents[i], again.get(i, "")) for i in known[:MOST_SHOWN]], max(0, len(known) - MOST_SHOWN)

    def _view(self, agent: Agent, again_as: str) -> rm.AgainView:
        return rm.AgainView(
            id=agent.agent_id,
            name=_bounded(agent.name),
            argv=_words(agent.argv),
            session=agent.context_id,
            parent_id=agent.parent_id,
            state=agent.state.value,
            again_as=again_as,
            why_not=self._why_not(agent, again_as),
        )

    def _why_not(self, agent: Agent, again_as: str) -> str:
        """Why it cannot be started again now, or nothing."""
        if again_as and AgentId(again_as) in self._core.state.live:
            return f"it runs again as {again_as}"
        if agent.state not in _BACK:
            return "not confirmed dead" if agent.state.is_live else "it ended by itself"
        if not agent.argv:
            return "its command line is not known: Watchfloor did not start it"
        return "killed: rearm first" if self._core.state.killed else ""

    async def start_again(self, agent_id: AgentId, by: str, dangerous_ok: str = "") -> AgentId:
        """The same command, session and caps; under its parent if that was started again and lives, else as a root."""
        state = self._core.state
        again = await asyncio.to_thread(self._map, AGAIN_KEY)
        agent = state.agents.get(agent_id)
        if agent is None:
            raise NotFound(f"There is no agent {agent_id[:80]!r}.", "watchfloor fleet lists the agents.")
        if why := self._why_not(agent, again.get(agent_id, "")):
            raise Conflict(f"{agent_id} is not started again: {why}.", "watchfloor fleet shows its state; watchfloor run starts another.")
        parent = AgentId(again.get(agent.parent_id or "", "")) or None
        parent = parent if parent in state.live else None
        root = state.agents.get(agent.root_id, agent)
        before = await asyncio.to_thread(stored, self._scribe.ledger, agent_id)
        request = LaunchRequest(
            argv=agent.argv,
            name=agent.name,
            parent_id=parent,
            context_id=agent.context_id,
            sandbox=agent.sandbox,
            sensitivity=agent.sensitivity,
            network_mode=None if not agent.network_mode.is_restricted else agent.network_mode,
            limits=agent.limits,
            # As a root it has no tree above it any more, so the limits of the former tree go with it.
            tree_limits=agent.tree_limits if parent is not None else tightest(agent.tree_limits, root.tree_limits),
            project=agent.project,
            scopes=agent.scopes,
            agent_type=before.agent_type if before is not None else "",
            dangerous_ok=dangerous_ok,
            dry_run=bool(agent.dry_run),
            unmeasured=True,  # its limits were accepted when it was started first
        )
        record = Record(by, "launch.again", f"start {agent_id} again", verdict="allow", agent_id=agent_id)
        await asyncio.to_thread(self._scribe.record_first, record)
        try:
            new_id = await self._core.ask_launch(request, by)
        except ConsoleError as error:
            self._scribe.record(Record(by, "launch.again_refused", f"{agent_id}: {error.what}"[:500], verdict="refused", agent_id=agent_id))
            raise
        kept = {**again, agent_id: new_id}
        text = json.dumps(dict(list(kept.items())[-MOST_KEPT:]))
        await asyncio.to_thread(self._scribe.ledger.kv_set, AGAIN_KEY, text)
        return new_id

    def _map(self, key: str) -> dict[str, str]:
        found = json.loads(self._scribe.ledger.kv_get(key) or "{}")
        return {str(k): str(v) for k, v in found.items()}


def _words(argv: tuple[str, ...]) -> list[str]:
    more = len(argv) - WORDS_SHOWN
    return [_bounded(word) for word in argv[:WORDS_SHOWN]] + ([f"… and {more} more"] if more > 0 else [])


def _bounded(text: str) -> str:
    return text if len(text) <= WORD_SHOWN else f"{text[:WORD_SHOWN]}…"
