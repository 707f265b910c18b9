"""Values of the domain as views on the wire."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date
from typing import Any

from console.api import messages as m
from console.domain.agent import Agent
from console.domain.budget import LIMIT_NAMES, UNCAPPED, Limits, Usage, share_used
from console.domain.conversation import WAITS, started_as
from console.domain.errors import UsageProblem
from console.domain.headline import headline_of
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, StepStatus
from console.domain.network import AllowlistEntry, EgressRecord, Sensitivity
from console.domain.sandbox import Given
from console.domain.verdict import verdict
from console.enforcement.dry_run import words_of as dry_words
from console.enforcement.identity import TELEMETRY, cost_unknown
from console.enforcement.limiting import passed_words
from console.enforcement.lineages import words_of
from console.enforcement.state import EngineState
from console.policy.review.allowlist_review import Mark
from console.services.fleet.meters import Meter, Meters, rate_of

_NOTHING = Usage()


def agent_view(agent: Agent, state: EngineState, meters: Meters, at: float) -> m.AgentView:
    """What every console shows of an agent."""
    return m.AgentView(**agent_fields(agent, state, meters, at))


def agent_fields(agent: Agent, state: EngineState, meters: Meters, at: float) -> dict[str, Any]:
    """The fields of that view, by name, as they go on the wire."""
    root = state.agents.get(agent.root_id, agent)
    tree_usage = state.tree_usage.get(agent.root_id, _NOTHING)
    meter = meters.by_agent.get(agent.agent_id) or Meter()
    share, passed = max(share_used(agent.usage, agent.limits), share_used(tree_usage, root.tree_limits)), passed_words(state, agent)
    burn = meter.burn(at) if agent.state.is_live and agent.agent_id not in state.stilled else []
    unknown = cost_unknown(agent, state.seen.get(agent.agent_id), state.budget.metered)
    return dict(
        id=agent.agent_id,
        parent_id=agent.parent_id,
        depth=agent.depth,
        name=agent.name,
        session=agent.context_id,
        control_level=agent.control_level,
        best_effort=_doubt(agent, state),
        sandbox=agent.sandbox,
        network_mode=agent.effective_mode if agent.network_enforced else "FULL",
        network_enforced=agent.network_enforced,
        network_note=agent.network_note,
        isolated=agent.isolated,
        sensitivity=agent.sensitivity,
        state=agent.state,
        state_reason="; ".join(words for words in (passed, agent.state_reason) if words),
        causes=list(agent.causes),
        cost_usd=None if unknown else round(agent.usage.cost_usd, 6),
        cost_unknown=unknown,
        usage=_numbers(agent.usage, is_known=not unknown),
        limits=_numbers(agent.limits),
        tree_usage=_numbers(tree_usage, is_known=tree_usage.cost_usd > 0 or not _is_unknown_below(agent, state)),
        tree_limits=_numbers(root.tree_limits),
        budget_share=max(share, 1.0) if passed else share,  # whichever limit it was: a limit of a session or a day wants attention too
        burn_usd_per_h=rate_of(burn),
        burn=burn,
        pids=state.pids.get(agent.agent_id, 0),
        pid=agent.process.pid if agent.process else None,
        container_id=agent.container_id,
        cwd=agent.cwd,
        source=agent.source,
        program=started.program.value if (started := started_as(agent.argv)) is not None else "",
        started_at=agent.started_at,
        ended_at=agent.ended_at,
        exit_code=agent.exit_code,
        last_action="" if agent.ended_at is not None and agent.last_action == WAITS else agent.last_action,
        last_action_at=agent.last_action_at,
        children_live=state.live_children(agent.agent_id),
        network_asked=agent.effective_mode,
        network_why=f"isolated by {agent.isolated}" if agent.isolated else agent.network_why,
        network_since=agent.network_since,
        project=agent.charged_project,
        scopes=None if agent.scopes is None else list(agent.scopes),
        taints=words_of(state.lineages, agent),
        metered=_metered(agent, state),
        overshoot=agent.halt.overshoot if agent.halt is not None else None,
        overshoot_limit=agent.halt.limit if agent.halt is not None else "",
        dry_run=dry_words(state, agent),
        profile=state.profiles.of(agent),
        profile_note=state.profiles.note(agent),
        **_seen(agent, state),
    )


def _is_unknown_below(agent: Agent, state: EngineState) -> bool:
    """Whether it is not known of one of the agent's whole tree what it spent."""
    tree = state.subtree(agent.root_id) if agent.root_id in state.children else (agent.root_id,)
    there = (one for one in tree if one in state.agents)
    return any(cost_unknown(state.agents[one], state.seen.get(one), state.budget.metered) for one in there)


def _metered(agent: Agent, state: EngineState) -> str:
    if agent.source == TELEMETRY:
        return "by telemetry"
    return "after the fact" if agent.control_level is ControlLevel.OBSERVED or agent.agent_id in state.budget.metered else ""


def _doubt(agent: Agent, state: EngineState) -> str:
    """Why a stop of it cannot be proven, or empty."""
    if agent.control_level is not ControlLevel.OBSERVED:
        return state.best_effort.get(agent.agent_id, "")
    seen = state.seen.get(agent.agent_id)
    inside = seen.inside if seen is not None else None
    return "it is only observed" if inside is None else f"it runs inside {inside} and stops with it, never alone"


def _seen(agent: Agent, state: EngineState) -> dict[str, Any]:
    """What sources say of it."""
    seen = state.seen.get(agent.agent_id)
    if agent.agent_id in state.children:
        tree = sum(one.unpriced for i in state.subtree(agent.agent_id) if (one := state.seen.get(i)) is not None)
    else:
        tree = seen.unpriced if seen is not None else 0
    if seen is None:
        return {"tree_unpriced": tree}
    return {
        "seen_by": list(seen.sources),
        "seen_session": seen.session,
        "seen_status": seen.status,
        "model": seen.model,
        "unpriced": seen.unpriced,
        "tree_unpriced": tree,
        "unlinked": seen.unlinked,
    }


_OPEN: dict[str, float | None] = dict.fromkeys(LIMIT_NAMES)


def _numbers(values: Usage | Limits, *, is_known: bool = True) -> dict[str, float | None]:
    """A flat dataclass of numbers by name (``asdict`` copies deeply, which is the most of a second's work at 1,000 agents).

    A cost that is not known is left out: zero would be a measurement.
    """
    if values is UNCAPPED:
        return _OPEN
    return {name: getattr(values, name) for name in values.__dataclass_fields__ if is_known or name != "cost_usd"}


def hardening_view(given: Given) -> m.HardeningView:
    """One measure of a sandbox."""
    return m.HardeningView(name=given.name, state=given.state.value, words=given.words, line=given.line())


def receipt_row(receipt: Receipt) -> m.ReceiptRow:
    """One line of the list of receipts."""
    found = verdict(receipt)
    return m.ReceiptRow(
        kill_id=receipt.kill_id,
        pressed_at=receipt.pressed_at,
        scope=receipt.scope,
        reason=receipt.reason,
        by=receipt.by,
        verified_zero=found.verified_zero,
        complete=receipt.complete,
        proven=sum(t.outcome is Outcome.PROVEN_ZERO for t in receipt.targets),
        targets=len(receipt.targets),
        best_effort=sum(t.outcome is Outcome.BEST_EFFORT for t in receipt.targets),
        ms_total=receipt.ms_total,
        proven_ms=receipt.proven_ms,
        exit_code=int(found.exit_code),
        headline=headline_of(receipt, time.time()),
        short=found.short,
        bad_steps=[s.name.value for s in receipt.steps if s.status in (StepStatus.FAILED, StepStatus.UNKNOWN)],
    )


def egress_view(record: EgressRecord, agent: Agent | None) -> m.EgressView:
    """One request through Envoy, and what is known of its agent."""
    name, level = (agent.name, agent.sensitivity.value) if agent is not None else ("", "")
    return m.EgressView(agent_name=name, sensitivity=level, **asdict(record))


def entry_view(entry: AllowlistEntry, hits: tuple[int, float | None], marks: Iterable[Mark] = ()) -> m.AllowlistEntryView:
    """One entry with how it was used, and what a reviewer should see."""
    seen = [m.MarkView(kind=mark.kind, words=mark.words, danger=mark.is_danger) for mark in marks]
    return m.AllowlistEntryView(hits_7d=hits[0], last_used=hits[1], marks=seen, **{**asdict(entry), "may_receive": entry.may_receive.value})


def entry_from_body(entry_id: str, body: m.AllowlistEntryBody) -> AllowlistEntry:
    """Return the entry that a body describes; ``check`` it before use. Raises UsageProblem when the review date is no date.

    Only new entries are checked for that. A stored list with such a date still loads, and the entry shows the problem.
    """
    if body.review_by:
        try:
            date.fromisoformat(body.review_by)
        except ValueError as error:
            raise UsageProblem(f"Review by {body.review_by!r} is not a date.", "Write it as 2027-02-19.") from error
    return AllowlistEntry(
        entry_id=entry_id,
        host=body.host,
        port=body.port,
        methods=tuple(body.methods),
        paths=tuple(body.paths),
        reason=body.reason,
        owner=body.owner,
        review_by=body.review_by,
        may_receive=Sensitivity(body.may_receive),
        private_networks=tuple(body.private_networks),
    )
