"""The engine: one event in, commands out. Deterministic; no clock, socket, Docker or Qt. Each promise is a playbook test of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine import command as c
from console.domain.engine import dry_run as d
from console.domain.engine import event as e
from console.domain.engine.event import EndsLearnt
from console.domain.errors import ExitCode
from console.domain.headline import headline_of
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, worst_outcomes
from console.domain.network import higher, stricter_mode
from console.domain.verdict import verdict
from console.enforcement import (
    adoption,
    approvals,
    budgets,
    dry_run,
    ladder,
    launching,
    limiting,
    lineages,
    open_ends,
    reserving,
    sightings,
    tighten,
)
from console.enforcement.sighting_cache import Round
from console.enforcement.state import NOT_CONFIRMED, EngineState

Commands = Iterator[c.Command]
_RECORDED = {ExitCode.DONE: "ok", ExitCode.LATER_STEP: "ok", ExitCode.BEST_EFFORT: "best_effort"}
"""How the audit log calls a kill, by its exit code."""
_MAY_BE_KILLED: dict[AgentState, tuple[int | None, ...]] = {
    AgentState.ENDED: (None,),
    AgentState.LOST: (None,),
    AgentState.FAILED: (-9, 137),
}
"""States with the exit codes that SIGKILL may have left: a receipt that proves it dead says what ended it."""


class Engine:
    """Holds the state; ``step`` is the only way to change it."""

    def __init__(self, state: EngineState | None = None) -> None:
        self.state = state or EngineState()
        self._round = Round()
        self._handlers: dict[type[e.Event], Callable[[Any], Commands]] = {
            e.Restored: self._restored,
            e.LaunchAsked: lambda event: launching.asked(self.state, event),
            e.LaunchConfirmed: lambda event: launching.confirmed(self.state, event),
            e.LaunchBroke: lambda event: launching.broke(self.state, event),
            e.AgentExited: self._exited,
            e.UsageReported: lambda event: budgets.reported(self.state, event),
            e.UsageRefused: self._usage_refused,
            e.ReservationAsked: lambda event: reserving.asked(self.state, event),
            e.ReservationSettled: lambda event: reserving.settled(self.state, event),
            e.LimitsChanged: lambda event: limiting.changed(self.state, event),
            e.TranscriptsSummed: lambda event: budgets.summed(self.state, event),
            e.ProcessorUsed: lambda event: budgets.processor(self.state, event),
            e.ClockTicked: self._ticked,
            e.PrivateDataRegistered: lambda event: tighten.private_data(self.state, event),
            e.Tightened: lambda event: tighten.tightened(self.state, event),
            e.NetworkSwitched: lambda event: tighten.switched(self.state, event),
            e.PermissionAsked: self._permission,
            e.CallJudged: lambda event: approvals.judged(self.state, event),
            e.LineagesRestored: lambda event: lineages.restored(self.state.lineages, event),
            e.MarksKept: lambda event: approvals.marks_kept(self.state, event),
            e.ApprovalsRestored: lambda event: approvals.restored(self.state, event),
            e.ApprovalKept: lambda event: approvals.kept(self.state, event),
            e.ApprovalDecided: lambda event: approvals.decided(self.state, event),
            e.ApprovalUsed: lambda event: approvals.used(self.state, event),
            e.ApprovalBroke: lambda event: approvals.broke(self.state, event),
            e.AskerLeft: lambda event: approvals.left(self.state, event),
            e.FrozenSetChanged: self._frozen,
            e.StopAsked: self._stop_asked,
            e.StopOver: self._stop_over,
            e.Isolated: lambda event: ladder.isolated(self.state, event),
            e.Reconnected: lambda event: ladder.reconnected(self.state, event),
            e.EgressChanged: lambda event: ladder.egress_changed(self.state, event),
            e.KillStarted: self._kill_started,
            e.KillJudged: self._kill_judged,
            e.Rearmed: self._rearmed,
            EndsLearnt: lambda event: open_ends.learnt(self.state, event),
            e.SoftStopChanged: self._soft_stop,
            e.Adopted: lambda event: adoption.adopted(self.state, event),
            e.Sighted: lambda event: sightings.sighted(self.state, event, self._round),
            **dry_run.handlers(self.state),
            d.ReleaseUsed: lambda event: approvals.released(self.state, event),
        }

    def step(self, event: e.Event) -> list[c.Command]:
        """What must be done because of ``event``, in order."""
        commands = list(self._handlers[type(event)](event))
        lineages.answered(self.state.lineages, event, commands)
        return commands + dry_run.answered(self.state, event, commands)

    def _ticked(self, event: e.ClockTicked) -> Commands:
        expired = chain(approvals.expired(self.state, event), dry_run.expired(self.state, event))
        yield from chain(budgets.ticked(self.state, event), expired)

    def _show(self, agent: Agent) -> c.ShowAgent:
        return c.ShowAgent(self.state.put(agent))

    def _restored(self, event: e.Restored) -> Commands:
        state = self.state
        state.killed = event.killed
        state.kill_reason = event.tombstone
        state.contexts.update(event.contexts)
        state.isolated.update(event.isolated)
        for agent in event.agents:
            if agent.state.is_live and agent.agent_id not in event.alive:
                agent = self._gone(agent, event)
                yield c.Record("supervisor", "agent.lost", f"{agent.agent_id} was gone at start-up: {agent.state}", agent_id=agent.agent_id)
            elif agent.state.is_live and agent.process is not None:
                # proc(5): starttime counts ticks since boot, so wall time survives a restart of ours.
                state.born_boot[agent.agent_id] = agent.process.start_ticks / 100
            # Its row may be older than its session's ratchet: a crash came between the two, or the mapping is stricter now (promise 4).
            before, (level, mode) = agent, state.context(agent.context_id)
            agent = replace(
                agent,
                isolated=agent.isolated or state.isolated.get(agent.context_id, ""),
                sensitivity=higher(agent.sensitivity, level),
                network_mode=stricter_mode(agent.network_mode, mode),
            )
            if agent.network_mode is not before.network_mode:
                agent = replace(agent, network_why="as its session asks, after a restart", network_since=event.at)
            yield self._show(agent)
            is_open = agent.network_mode is not before.network_mode or not agent.network_enforced or bool(agent.container_id)
            if agent.agent_id in event.alive and agent.network_mode.is_restricted and is_open:
                yield c.SwitchNetwork(agent.agent_id, agent.network_mode, "as its session asks, after a restart")
            if agent.isolated and agent.agent_id in event.alive:
                yield c.CutEgress(agent.agent_id)  # the supervisor before may have died between the record and the cut
        budgets.restored(state, event)

    def _gone(self, agent: Agent, event: e.Restored) -> Agent:
        """Return an agent that ended while no supervisor followed it. It counts as killed only where a receipt proves it (promise 1)."""
        if agent.control_level is ControlLevel.OBSERVED:
            self.state.restored_rows |= {agent.process: agent.agent_id} if agent.process is not None else {}
            return replace(agent, state=AgentState.ENDED, state_reason="not seen yet after a restart", ended_at=event.at)
        if not event.killed:
            return open_ends.gone(agent, event.at)
        if agent.agent_id in event.proven:
            return replace(agent, state=AgentState.KILLED, state_reason=event.tombstone or "killed", ended_at=event.at)
        return replace(agent, state=AgentState.ALIVE_AFTER_KILL, state_reason="killed, but its end is not confirmed")

    def _exited(self, event: e.AgentExited) -> Commands:
        agent = self.state.agents.get(event.agent_id)
        if agent is None or not agent.state.is_live:
            return
        if event.agent_id in self.state.killing or event.agent_id in self.state.halting or agent.state is AgentState.ALIVE_AFTER_KILL:
            return  # a kill is under way: only its receipt says what became of the agent
        ok = event.exit_code in (0, None)
        reason = "exit code unknown" if event.exit_code is None else f"exit code {event.exit_code}"
        reason = f"{event.why}; {reason}" if event.why else reason
        agent = replace(
            agent, state=AgentState.ENDED if ok else AgentState.FAILED, state_reason=reason, exit_code=event.exit_code, ended_at=event.at
        )
        yield self._show(agent)
        yield c.Record("supervisor", "agent.ended", f"{agent.agent_id} ended: {reason}", agent_id=agent.agent_id)
        yield c.NoteEvent(agent.agent_id, "ended", reason)
        yield c.LeaveAgent(agent.agent_id)
        yield from approvals.voided(self.state, (agent.agent_id,), "its agent has ended")

    def _permission(self, event: e.PermissionAsked) -> Commands:
        budgets.asked(self.state, event)
        yield from approvals.asked(self.state, event)

    def _usage_refused(self, event: e.UsageRefused) -> Commands:
        yield c.Record(f"agent:{event.agent_id}", "usage.refused", event.why, verdict="deny", agent_id=event.agent_id)
        yield c.NoteEvent(event.agent_id, "usage", f"report refused: {event.why}")

    def _frozen(self, event: e.FrozenSetChanged) -> Commands:
        agents, live = self.state.agents, self.state.live
        for agent_id in sorted({*(self.state.stilled & live), *(event.causes.keys() & live)}):
            agent = agents[agent_id]
            causes = event.causes.get(agent_id, ())
            doubt = event.unconfirmed.get(agent_id, "") if causes else ""
            state, reason = agent.state, agent.state_reason
            if causes and not doubt and state in (AgentState.RUNNING, AgentState.WAITING, AgentState.NEEDS_OK):
                state = AgentState.FROZEN
            elif state is AgentState.FROZEN and (doubt or not causes):
                state = AgentState.RUNNING
            if doubt or reason.startswith(NOT_CONFIRMED):
                reason = f"{NOT_CONFIRMED}: {doubt}" if doubt else ""
            if (causes, state, reason) == (agent.causes, agent.state, agent.state_reason):
                continue
            yield self._show(approvals.shown(self.state, replace(agent, causes=causes, state=state, state_reason=reason)))
            words = f"frozen: {', '.join(causes)}" + (f", {reason}" if doubt else "")
            yield c.NoteEvent(agent_id, "freeze", words if causes else "thawed")

    def _stop_asked(self, event: e.StopAsked) -> Commands:
        self.state.killing.update(i for i in event.agent_ids if i in self.state.live)
        if event.scope is not None:
            self.state.stopping.append(event.scope)
        yield from ()

    def _stop_over(self, event: e.StopOver) -> Commands:
        if event.scope is not None and event.scope in self.state.stopping:
            self.state.stopping.remove(event.scope)
        self.state.killing.difference_update(event.agent_ids)
        yield from ()

    def _kill_started(self, event: e.KillStarted) -> Commands:
        state = self.state
        if event.agent_ids is None:
            state.killed, state.kill_reason = True, event.reason
            state.latched.add(event.kill_id)
        state.pressed.setdefault(event.kill_id, len(state.pressed) + 1)
        state.killing.update(state.live if event.agent_ids is None else event.agent_ids)
        yield c.Record(
            event.by,
            "kill.pressed",
            f"kill of {'everything' if event.agent_ids is None else ', '.join(event.agent_ids)}: {event.reason}",
            data={"kill_id": event.kill_id},
            must=True,
        )
        yield from approvals.voided(state, event.agent_ids, "killed")
        yield from approvals.ended(state, event.agent_ids)
        yield from dry_run.voided(state, event.agent_ids, "killed")

    def _kill_judged(self, event: e.KillJudged) -> Commands:
        receipt, state, found = event.receipt, self.state, verdict(event.receipt)
        place = state.pressed.get(receipt.kill_id, 0)
        unseen = {t.agent_id for t in receipt.targets if t.control_level == "unknown" and not t.evidence.get("strays")}
        for target, outcome in worst_outcomes(receipt.targets).items():
            agent = state.agents.get(AgentId(target))
            if agent is None or not self._may_judge(agent, outcome, place, receipt.pressed_at, was_seen=target not in unseen):
                state.killing.discard(AgentId(target))  # of one that had ended before, nothing is open any more
                yield from sightings.explained(state, agent, receipt)
                continue
            proven = outcome is Outcome.PROVEN_ZERO
            state.killing.discard(agent.agent_id)
            if agent.state is AgentState.HALTED:
                state.halting.add(agent.agent_id)  # it comes back as what it was
            if proven:
                halted = agent.agent_id in state.halting
                end = AgentState.HALTED if halted else AgentState.KILLED
                reason = agent.state_reason if halted and agent.state is not AgentState.ALIVE_AFTER_KILL else receipt.reason
                agent = budgets.measured(state, agent) if halted else agent
                state.halting.discard(agent.agent_id)
                state.proven[agent.agent_id] = place
            else:
                end, reason = AgentState.ALIVE_AFTER_KILL, f"killed, {outcome.words}"
                if agent.control_level is ControlLevel.OBSERVED:  # nothing will confirm it: what its row says is that it was killed
                    reason = f"{receipt.words()}; {reason}"
            yield self._show(replace(agent, state=end, state_reason=reason, ended_at=event.at if proven else None, causes=()))
            yield c.NoteEvent(agent.agent_id, "kill", f"{outcome} {receipt.kill_id}")
            if proven and agent.state.is_live:
                yield c.LeaveAgent(agent.agent_id)
        yield c.Record(
            "guard",
            "kill.judged",
            f"{receipt.kill_id}: {headline_of(receipt)}",
            verdict=_RECORDED.get(found.exit_code, "not_proven"),
            data={"kill_id": receipt.kill_id, "scope": receipt.scope, "reason": receipt.reason, "survivors": len(receipt.survivors)}
            | ({"seal_sha256": event.seal_sha256} if event.seal_sha256 else {}),
            must=True,
        )

    def _may_judge(self, agent: Agent, outcome: Outcome, place: int, pressed_at: float, *, was_seen: bool) -> bool:
        """Whether this outcome says something new. A proof ends what lives, or says what ended it after the press, when the guard was
        pressed and the exit was seen first. A doubt also takes "killed" back (promise 1), unless a kill that was pressed later proved it,
        or the guard had forgotten the agent, proven dead, before this press. One that ended by itself comes back only as something that
        was seen alive."""
        if agent.state.is_live:
            return True
        if outcome is Outcome.PROVEN_ZERO:
            is_later = agent.ended_at is None or agent.ended_at >= pressed_at
            return is_later and agent.exit_code in _MAY_BE_KILLED.get(agent.state, ())
        if not was_seen or place < self.state.proven.get(agent.agent_id, 0):
            return False
        return agent.state in (AgentState.KILLED, AgentState.HALTED) or outcome is not Outcome.BEST_EFFORT

    def _rearmed(self, event: e.Rearmed) -> Commands:
        state = self.state
        state.latched.difference_update(event.kills)
        if event.kills and state.latched:
            words = f"a rearm came too late: {', '.join(sorted(state.latched))[:200]} was pressed since, and holds"
            yield c.Record("supervisor", "kill.holds", words, must=True)
            return
        state.latched.clear()
        state.killed, state.kill_reason = False, ""
        yield c.Record(event.by, "kill.rearmed", f"rearmed: {event.reason}", verdict="ok")
        yield from open_ends.looked_over(state, event)

    def _soft_stop(self, event: e.SoftStopChanged) -> Commands:
        if event.why == self.state.soft_stop:
            return
        self.state.soft_stop = event.why
        yield c.Record("supervisor", "soft_stop", f"soft stop: {event.why}" if event.why else "soft stop lifted", must=True)
