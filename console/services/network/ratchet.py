"""The operator's half of the ratchet: private data and stricter modes, on record and in the ledger before they are answered."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from console.api import network as s
from console.domain.agent import Agent, AgentId
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, Killed, NotFound, NotRecorded
from console.domain.ladder import Reach, Scope
from console.domain.network import NetworkMode, Sensitivity, higher, stricter_mode
from console.domain.words import counted
from console.enforcement.tighten import Meant, meant, refuse_looser
from console.ledger.network_history import NetworkChange
from console.ledger.sessions import Tightening
from console.services.fleet.core import Core, now
from console.services.network.isolation import SHARED
from console.services.records.record_writer import Scribe

SWITCH_S = 30.0
"""How long a change of networks is waited for."""
HISTORY_MAX = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """What an operator asks for."""

    scope: Scope
    mode: NetworkMode
    """FULL: whatever the data asks for."""
    by: str
    reason: str
    level: Sensitivity | None = None
    dataset: str = ""
    source: str = ""

    @property
    def why(self) -> str:
        """As people read it beside the mode."""
        if self.level is not None:
            return f"{self.level} data ({self.dataset}) registered by {self.by}: {self.reason}"[:400]
        return f"{self.by}: {self.reason}"[:400]

    @property
    def what(self) -> str:
        """For the record."""
        verb = f"{self.level} data, network {self.mode}" if self.level is not None else f"network {self.mode}"
        return f"{self.scope.words()}: {verb}: {self.reason}"[:1000]

    def tightening(self, at: float) -> Tightening:
        """For the ledger."""
        cause = "operator" if self.level is None else "data"
        return Tightening(self.mode, self.why, cause, self.by, at, self.level, self.dataset, self.source)


class TightenDesk:
    """Tightens sessions; there is no way back from here."""

    __slots__ = ("_core", "_scribe")

    def __init__(self, core: Core, scribe: Scribe) -> None:
        self._core, self._scribe = core, scribe

    async def stricter(self, body: s.StricterBody, by: str) -> s.StricterView:
        """A stricter mode. Raises UsageProblem, NotFound, Denied (looser), Conflict (nothing to change), Killed, NotRecorded."""
        return await self._act(Asked(_scope(body.scope), NetworkMode(body.mode), by, body.reason), dry_run=body.dry_run)

    async def register(self, body: s.RegisterDataBody, by: str) -> s.StricterView:
        """Private data, on an operator's word; what it asks for holds when this returns. Raises as ``stricter``."""
        level = Sensitivity(body.sensitivity)
        mode = self._core.state.modes.of(level)
        asked = Asked(_scope(body.scope), mode, by, body.reason, level, body.dataset, body.source)
        return await self._act(asked, dry_run=body.dry_run)

    async def _act(self, asked: Asked, *, dry_run: bool) -> s.StricterView:
        state = self._core.state
        found = meant(state, asked.scope)
        before = {i: state.agents[i] for i in found.ids}
        try:
            if state.killed:
                raise Killed(
                    "Everything was stopped: nothing starts and nothing changes until you rearm.",
                    "Rearm first: watchfloor rearm --reason ...",
                )
            if asked.level is None:
                refuse_looser(state, found, asked.mode)
        except ConsoleError as error:
            if not dry_run:
                raise
            return self._would(asked, found, str(error))
        if dry_run:
            return self._would(asked, found, "")
        began = time.monotonic()
        trouble = await self._carry_out(asked, found)
        found = meant(state, asked.scope)
        done = self._done(asked, found, before, (time.monotonic() - began) * 1000)
        if trouble is not None:
            # It holds, and is not on disk: the answer must not read as a success (promise 4, across a restart).
            raise NotRecorded(f"{done.words} But it is not on disk: {trouble.what}", "Free space, then ask again.")
        return done

    async def _carry_out(self, asked: Asked, found: Meant) -> ConsoleError | None:
        """1. the record, 2. the ledger, 3. the switch, even where a disk refused: it only tightens; 4. sessions that came meanwhile."""
        at = now()[0]
        data = {"agents": len(found.ids), "sessions": list(found.contexts[: s.NAMED]), "reason": asked.reason, "mode": str(asked.mode)}
        if asked.level is not None:
            data |= {"dataset": asked.dataset, "source": asked.source, "sensitivity": str(asked.level)}
        kind = "network.stricter" if asked.level is None else "ratchet.raised"
        agent_id = asked.scope.target if asked.scope.reach is Reach.AGENT else ""
        record = Record(asked.by, kind, asked.what, verdict="ok", agent_id=agent_id, data=data, must=True)
        trouble: ConsoleError | None = None
        try:
            await asyncio.to_thread(self._scribe.record_first, record)
            await asyncio.to_thread(self._scribe.ledger.tighten_sessions, found.contexts, asked.tightening(at))
        except NotRecorded as error:
            trouble = error
        named = AgentId(asked.scope.target) if asked.scope.reach is Reach.AGENT else None
        level = asked.level or Sensitivity.PUBLIC
        # Also when the disk refused: what tightens never waits for a record (decision 0009).
        self._core.post(e.Tightened(*now(), named, found.contexts, level, asked.mode, asked.why))
        late = [i for i in meant(self._core.state, asked.scope).contexts if i not in found.contexts]
        if late and trouble is None:
            try:
                # These sessions began while the disk was written, and a tightening of everything means them too.
                await asyncio.to_thread(self._scribe.ledger.tighten_sessions, late, asked.tightening(at))
            except NotRecorded as error:
                trouble = error
            self._core.post(e.Tightened(*now(), named, tuple(late), level, asked.mode, asked.why))
        await self._settle(found.ids)
        return trouble

    async def _settle(self, ids: tuple[AgentId, ...]) -> None:
        """Answered once established flows are gone."""
        waiting = {task for i in ids if (task := self._core.switching.get(i)) is not None and not task.done()}
        if waiting:
            await asyncio.wait(waiting, timeout=SWITCH_S)

    # --- answers

    def _would(self, asked: Asked, found: Meant, why_not: str) -> s.StricterView:
        state = self._core.state
        has_level, has_mode = state.context(found.named)
        mode = stricter_mode(has_mode, asked.mode)
        agents = []
        for agent_id in found.ids:
            agent = state.agents[agent_id]
            to = stricter_mode(agent.network_mode, asked.mode)
            holds = agent.network_enforced or bool(agent.container_id)
            changes = to is not agent.network_mode or (to.is_restricted and not agent.network_enforced)
            note = "" if holds or not to.is_restricted else f"not enforceable here: {agent.network_note or SHARED}"
            agents.append(_agent(agent, agent, stricter_mode(agent.effective_mode, to), verified=holds, switched=changes, note=note))
        view = self._view(asked, found, agents, str(mode), str(higher(has_level, asked.level or Sensitivity.PUBLIC)))
        view.dry_run, view.why_not = True, why_not
        sessions = f"{counted(len(found.contexts), 'session')}"
        view.words = f"{asked.scope.words()}: {view.switched} of {len(agents)} agents in {sessions} would be switched to {mode}."
        return view

    def _done(self, asked: Asked, found: Meant, before: dict[AgentId, Agent], ms: float) -> s.StricterView:
        state = self._core.state
        agents = []
        for agent_id in found.ids:
            agent = state.agents[agent_id]
            was = before.get(agent_id, agent)
            task = self._core.switching.get(agent_id)
            pending = task is not None and not task.done()
            changed = was.network_mode is not agent.network_mode or not was.network_enforced
            note = f"whether it holds is not known after {SWITCH_S:g} s" if pending else agent.network_note
            verified = agent.network_enforced and not pending
            agents.append(_agent(was, agent, agent.effective_mode, verified=verified, switched=changed, note=note))
        level, mode = state.context(found.named)
        view = self._view(asked, found, agents, str(mode), str(level))
        view.ms = round(ms, 1)
        plain = f"{view.verified} of {view.agents_total} agents verified" if agents else "no agent lives in it"
        left = f", {view.not_enforceable} not enforceable here" if view.not_enforceable else ""
        view.words = f"Session {found.named} is in {mode}: {plain}{left}, in {ms:.0f} ms."
        return view

    def _view(self, asked: Asked, found: Meant, agents: list[s.SwitchedAgent], mode: str, level: str) -> s.StricterView:
        verified = sum(a.verified for a in agents)
        return s.StricterView(
            mode=mode,
            sensitivity=level,
            session=found.named,
            sessions=list(found.contexts[: s.NAMED]),
            sessions_total=len(found.contexts),
            agents=sorted(agents, key=lambda a: (a.verified, a.id))[: s.NAMED],
            agents_total=len(agents),
            switched=sum(a.switched for a in agents),
            verified=verified,
            not_enforceable=len(agents) - verified if asked.mode.is_restricted else 0,
        )

    # --- the history

    def history(self, context_id: str, agent_id: str) -> s.ModeHistoryView:
        """How a session came to its mode. Blocks. Raises NotFound."""
        state = self._core.state
        if context_id not in state.known_contexts and context_id not in state.contexts:
            raise NotFound(f"There is no session {context_id[:80]!r}.", "watchfloor fleet --json shows each agent's session.")
        self._scribe.settle(2.0)
        found = self._scribe.ledger.network_history(context_id, agent_id, HISTORY_MAX)
        level, mode = state.context(context_id)
        return s.ModeHistoryView(
            session=context_id,
            mode=mode,
            sensitivity=level,
            began_at=found.began_at,
            changes=[_change(change) for change in found.changes],
            left_out=found.left_out,
            registrations=found.registrations,
        )


def _scope(body: s.MeantBody) -> Scope:
    scope = Scope(Reach(body.reach), body.target)
    scope.check()
    return scope


def _agent(was: Agent, agent: Agent, mode: NetworkMode, *, verified: bool, switched: bool, note: str) -> s.SwitchedAgent:
    before = str(was.effective_mode) if was.network_enforced else "FULL"
    return s.SwitchedAgent(
        id=agent.agent_id,
        name=agent.name,
        session=agent.context_id,
        before=before,
        mode=mode,
        verified=verified,
        switched=switched,
        note=note,
    )


def _change(change: NetworkChange) -> s.ModeChangeView:
    return s.ModeChangeView(
        at=change.at,
        cause=change.cause,
        by=change.by,
        words=change.words,
        agent_id=change.agent_id,
        mode=change.mode or "",
        sensitivity=change.sensitivity or "",
        enforced=change.enforced,
        ms=change.ms,
    )
