"""Turn what sources saw into rows. No sighting decides which process is signalled. An agent is one row, whichever sources see it.

A session of an agent that Watchfloor started adds to that agent's own row, with its sub-agents below. Every other session is an observed
agent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ProcessIdentity, SandboxKind, Sighting
from console.domain.budget import Usage, shortfall
from console.domain.conversation import started_as
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.domain.kill import KILLED_BY, Receipt
from console.enforcement import budgets, charging, sighting_cache
from console.enforcement.adoption import taken_in
from console.enforcement.identity import GONE, PLACES, TELEMETRY, Row, joined, name_of, observed_id
from console.enforcement.sighting_cache import Round
from console.enforcement.state import EngineState, Seen

FINISHED = "finished"
NOT_SEEN = "no longer seen"
PAUSED = "paused"
LAG_S = 10.0
"""How long the stream of a conversation may take to tell what its transcript says."""
_PARTS = 5000
"""Sessions and sub-agents of one agent of ours whose usage is told apart; earlier ones are one sum."""
_ENDED = 500
"""Agents that have ended, whose usage is told apart still."""
_LINKED = 10_000
"""Sessions of telemetry that others saw, which are kept in mind."""


def sighted(state: EngineState, event: e.Sighted, had: Round) -> Iterator[c.Command]:
    """Add new rows, refresh known ones, and end those that no source sees any more. A source that cannot look ends no row."""
    if sighting_cache.kept(state, event.reports, had) and (again := sighting_cache.to_look_at(state, had)) is not None:
        inside = _inside(row for row, _ in had.rows)
        for row, agent_id in again:
            yield from _looked_at(state, event, row, agent_id, inside, had.names)
        yield from _gone(state, event, set())
        yield from _quiet(state, had.taken)
        return
    had.own = None  # until all of it is done there is no round before
    yield from _anew(state, event, had)


def _anew(state: EngineState, event: e.Sighted, had: Round) -> Iterator[c.Command]:
    """Every row is made of what was seen."""
    sees: dict[str, set[AgentId]] = {report.source: set() for report in event.reports if report.available}
    names: dict[str, AgentId] = {}
    taken: set[AgentId] = set()
    made: list[tuple[Row, AgentId]] = []
    rows, places = joined(state, event.reports)
    inside = _inside(rows)
    for row in rows:
        _link(state, row)
        if row.own is not None:
            yield from taken_in(state, event, row.own, [name_of(one) for one in (*row.members, *inside.get(row.own, []))])
    for row in rows:
        if row.own is None and row.first.status == GONE:
            yield from _late(state, event, row, names)
            continue
        agent_id = row.own or _row_id(state, row, taken)
        taken.add(agent_id)
        made.append((row, agent_id))
        for one in row.members:
            names[name_of(one)] = agent_id
            if row.own is None and one.status != FINISHED and (one is row.first or one.source != TELEMETRY):
                sees[one.source].add(agent_id)
        yield from _looked_at(state, event, row, agent_id, inside, names)
    before = set().union(*state.sighted.values()) if state.sighted else set()
    state.sighted.update(sees)
    now = set().union(*state.sighted.values()) if state.sighted else set()
    state.rows = {name: i for name, i in state.rows.items() if i in now} | names
    yield from _gone(state, event, before - now)
    yield from _quiet(state, taken)
    sighting_cache.remember(had, state, event.reports, places, made, names)


def _inside(rows: Iterable[Row]) -> dict[AgentId, list[Sighting]]:
    """Parts of agents of ours that have rows of their own."""
    found: dict[AgentId, list[Sighting]] = {}
    for row in rows:
        if row.inside is not None:
            found.setdefault(row.inside, []).append(row.first)
    return found


def _looked_at(
    state: EngineState, event: e.Sighted, row: Row, agent_id: AgentId, inside: dict[AgentId, list[Sighting]], names: dict[str, AgentId]
) -> Iterator[c.Command]:
    if row.own is not None:
        yield from _ours(state, event, row, row.own, inside.get(row.own, []))
    else:
        yield from _theirs_or_same(state, event, row, agent_id, names)


def _late(state: EngineState, event: e.Sighted, row: Row, names: dict[str, AgentId]) -> Iterator[c.Command]:
    """What one that is gone had used to its end is charged as before; whether it has ended is not concluded from it."""
    agent_id = AgentId(row.first.agent_id) if row.first.agent_id else state.rows.get(name_of(row.first))
    agent = state.agents.get(agent_id) if agent_id is not None else None
    if agent is None:
        return
    if agent.control_level is ControlLevel.OBSERVED:
        names.setdefault(name_of(row.first), agent.agent_id)
        yield from _used(state, event, row, agent.agent_id)
    elif agent.control_level is not ControlLevel.ADOPTED and started_as(agent.argv) is None:  # a conversation's stream was read to its end
        seen, left = state.seen.get(agent.agent_id), state.ended_parts.get(agent.agent_id, ())
        parts = _parts(left if seen is None else seen.parts, [row.first])
        if seen is not None:
            state.seen[agent.agent_id] = replace(seen, parts=parts)
        else:
            _leave(state, agent.agent_id, parts)
        yield from _metered(state, event, agent.agent_id, _sum(parts), row.first.action)


def _link(state: EngineState, row: Row) -> None:
    """Keeps in mind which sessions others see."""
    for one in row.also:
        if one.source == TELEMETRY:
            state.linked_sessions.pop(one.session, None)
            state.linked_sessions[one.session] = None
    while len(state.linked_sessions) > _LINKED:
        del state.linked_sessions[next(iter(state.linked_sessions))]


def _row_id(state: EngineState, row: Row, taken: set[AgentId]) -> AgentId:
    """The row in which any of its sightings is shown already, else a new one."""
    for one in row.members:
        known = state.rows.get(name_of(one))
        if known is None or known in taken or (one.source == TELEMETRY and one is not row.first):
            continue
        agent = state.agents.get(known)
        if agent is not None and agent.state.is_live and agent.control_level is ControlLevel.OBSERVED:
            return known
    made, process = observed_id(row.first), _process(row)
    holder = state.agents.get(made)
    if holder is None and process is not None and row.is_alone:
        # Before the restart another source may have seen it first.
        had = state.agents.get(state.restored_rows.get(process, made))
        if had is not None and had.agent_id not in taken and not had.state.is_live and had.cwd == row.first.cwd:
            return had.agent_id
    if holder is None or not holder.state.is_live or holder.control_level is ControlLevel.OBSERVED:
        return made
    # An adopted agent has that id: the same session in another process is not held, and never hides behind it.
    return AgentId("o-" + hashlib.sha256(f"{made}\0{_process(row)}".encode()).hexdigest()[:16])


def _parent(state: EngineState, row: Row, agent_id: AgentId, names: dict[str, AgentId]) -> Agent | None:
    found = names.get(f"{row.first.source}\0{row.first.parent_key}") if row.first.parent_key else None
    if found is None and row.container is not None:
        found = names.get(name_of(row.container.first))
    parent, had = state.agents.get(found) if found is not None else None, state.agents.get(agent_id)
    if parent is None or (had is not None and had.parent_id == parent.agent_id):
        return parent
    # It moves only while nothing hangs below it: files may name each other, or themselves, and nobody is above who is below.
    return None if state.children.get(agent_id) or parent.agent_id == agent_id else parent


def _process(row: Row) -> ProcessIdentity | None:
    return next((one.process for one in row.members if one.process is not None), None)


def _seen(state: EngineState, agent_id: AgentId, row: Row, inside: list[Sighting]) -> Seen:
    had, first = state.seen.get(agent_id, Seen()), row.first
    readers = [one for one in row.members if one.source not in PLACES] or row.members
    tops = [one for one in row.members if one.source == first.source]
    return Seen(
        sources=row.sources,
        session=first.session,
        status="" if first.status == GONE else first.status,
        model=first.model or had.model,
        unpriced=sum(one.unpriced for one in tops) if any(one.usage is not None for one in tops) else had.unpriced,
        unread=first.unread if all(one.unread for one in readers) else "",
        unlinked=first.unlinked,
        part=first.part,
        inside=row.inside,
        parts=_parts(had.parts, [*(one for one in row.members if one.source != TELEMETRY), *inside]),
    )


def _parts(had: tuple[tuple[str, Usage], ...], sightings: list[Sighting]) -> tuple[tuple[str, Usage], ...]:
    """Usage by session and sub-agent; each only grows, whatever a transcript says next."""
    parts = dict(had)
    for one in sightings:
        if one.usage is not None:
            parts[name_of(one)] = _larger(parts.get(name_of(one), Usage()), one.usage)
    while len(parts) > _PARTS:
        oldest = next(name for name in parts if name)
        parts[""] = parts.get("", Usage()).plus(parts.pop(oldest))
    return tuple(parts.items())


def _sum(parts: Iterable[tuple[str, Usage]]) -> Usage:
    total = Usage()
    for _, part in parts:
        total = total.plus(part)
    return total


def _leave(state: EngineState, agent_id: AgentId, parts: tuple[tuple[str, Usage], ...]) -> None:
    """Keep what one that has ended used: its last answer may be priced after that."""
    state.ended_parts.pop(agent_id, None)
    state.ended_parts[agent_id] = parts
    while len(state.ended_parts) > _ENDED:
        del state.ended_parts[next(iter(state.ended_parts))]


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(
        iterations=max(one.iterations, other.iterations),
        tokens=max(one.tokens, other.tokens),
        cost_usd=max(one.cost_usd, other.cost_usd),
    )


def _ours(state: EngineState, event: e.Sighted, row: Row, agent_id: AgentId, inside: list[Sighting]) -> Iterator[c.Command]:
    """An agent of ours whose session is seen: what the session says is shown in its row and counted, nothing else of it changes.

    Its sub-agents' usage is its own, since they run in it: what it reports or streams of itself holds theirs too, and must not count twice.
    """
    had, now = state.seen.get(agent_id), _seen(state, agent_id, row, inside)
    state.seen[agent_id] = now
    total = _sum(now.parts)
    if started_as(state.agents[agent_id].argv) is not None:
        # Its stream tells each answer as well: transcripts count only what that has not told in a while, else a race counts twice.
        since, told = had.lag if had is not None and had.lag is not None else (event.boot_s, Usage())
        is_due = event.boot_s - since >= LAG_S
        state.seen[agent_id] = now = replace(now, lag=(event.boot_s, total) if is_due or had is None else (since, told))
        total = told if is_due else Usage()
    yield from _metered(state, event, agent_id, total, row.first.action)
    if had != now:
        yield c.ShowAgent(state.agents[agent_id])


def _theirs_or_same(state: EngineState, event: e.Sighted, row: Row, agent_id: AgentId, names: dict[str, AgentId]) -> Iterator[c.Command]:
    """Of a fleet most say the same as before: what nothing can follow from is passed over."""
    had, agent = state.same.pop(agent_id, None), state.agents.get(agent_id)
    if had is None or agent is not had[1] or row.members != had[0] or not row.is_alone:
        yield from _theirs(state, event, row, agent_id, _parent(state, row, agent_id, names))
        agent = state.agents.get(agent_id)
    if agent is not None and agent.state in (AgentState.RUNNING, AgentState.WAITING) and row.is_alone:
        state.same[agent_id] = (row.members, agent)


def _theirs(state: EngineState, event: e.Sighted, row: Row, agent_id: AgentId, parent: Agent | None) -> Iterator[c.Command]:
    had, first = state.agents.get(agent_id), row.first
    is_live = had is not None and had.state.is_live
    if first.status == FINISHED:
        if had is not None and had.control_level is ControlLevel.OBSERVED:  # its last answer may be priced after it was seen to finish
            yield from _used(state, event, row, agent_id)
        yield from _end(state, event, agent_id, FINISHED)
        return
    if had is not None and had.state is AgentState.ALIVE_AFTER_KILL:
        return
    seen_before = state.seen.get(agent_id)
    state.seen[agent_id] = _seen(state, agent_id, row, [])
    status = AgentState.WAITING if first.status in ("waiting", "idle", PAUSED) else AgentState.RUNNING
    reason = "its container is paused" if first.status == PAUSED else ""
    if row.inside is not None and first.parent_key is None:
        reason = f"it runs inside {row.inside} and stops with it"
    if had is None or not is_live:
        agent = replace(_born(event, row, agent_id, parent, status), state_reason=reason)
        yield c.ShowAgent(state.put(agent if had is None else replace(agent, usage=had.usage)))
        what = f"{first.source} saw {agent_id}"
        yield c.Record("supervisor", "agent.sighted", what, agent_id=agent_id, data={"session": first.session[:200]})
    else:
        now, process = had, _process(row)
        shown = (status, reason, process, first.name, first.detail)
        if (had.state, had.state_reason, had.process, had.name, had.network_note) != shown:
            now = had.changed(state=status, state_reason=reason, process=process, name=first.name, network_note=first.detail)
        if parent is not None and had.parent_id is None:
            now = _linked(state, now, parent)
        if now is not had or state.seen[agent_id] != seen_before:
            yield c.ShowAgent(state.put(now))
    yield from _used(state, event, row, agent_id)


def _born(event: e.Sighted, row: Row, agent_id: AgentId, parent: Agent | None, status: AgentState) -> Agent:
    first = row.first
    return Agent(
        agent_id=agent_id,
        name=first.name,
        parent_id=parent.agent_id if parent else None,
        root_id=parent.root_id if parent else agent_id,
        depth=parent.depth + 1 if parent else 1,
        context_id=ContextId(f"o-{agent_id}"[:63]),
        control_level=ControlLevel.OBSERVED,
        sandbox=SandboxKind.NONE,
        started_at=event.at,
        state=status,
        process=_process(row),
        container_id=next((one.container_id for one in row.members if one.container_id), ""),
        cwd=first.cwd,
        project=_project(first.project or first.cwd),
        source=first.source,
        network_note=first.detail,
        last_action=f"session {first.session}" if first.session else "",
        last_action_at=event.at,
    )


def _project(folder: str) -> str:
    """Its folder, bounded: one that is too long is told from others by its digest."""
    if len(folder) <= 400:
        return folder
    return f"{folder[:360]}...{hashlib.sha256(folder.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _linked(state: EngineState, agent: Agent, parent: Agent) -> Agent:
    """One whose parent is seen only now: what it used goes with it."""
    used = state.tree_usage.get(agent.agent_id, Usage())
    for above in charging.ancestry(state, parent):
        state.tree_usage[above] = state.tree_usage.get(above, Usage()).plus(used)
    return replace(agent, parent_id=parent.agent_id, root_id=parent.root_id, depth=parent.depth + 1)


def _gone(state: EngineState, event: e.Sighted, gone: set[AgentId]) -> Iterator[c.Command]:
    for agent_id, seen in [(i, seen) for i, seen in state.seen.items() if seen.inside is not None and seen.inside not in state.live]:
        yield from _end(state, event, agent_id, f"it ran inside {seen.inside}, which has ended")
    for agent_id in sorted(gone):
        yield from _end(state, event, agent_id, _why_gone(state, agent_id))
    for agent_id in state.seen.keys() - state.live:
        parts, agent = state.seen.pop(agent_id).parts, state.agents.get(agent_id)
        if agent is not None and agent.control_level is not ControlLevel.OBSERVED:
            _leave(state, agent_id, parts)
        state.same.pop(agent_id, None)
        state.taken_in.pop(agent_id, None)


def _why_gone(state: EngineState, agent_id: AgentId) -> str:
    """Why it is not seen any more: a kill of it, or of an agent above it, is named."""
    one = state.agents.get(agent_id)
    while one is not None:
        if one.state_reason.startswith(KILLED_BY):
            return f"{one.state_reason.rpartition('; ')[0]}; {NOT_SEEN}"
        one = state.agents.get(one.parent_id) if one.parent_id is not None else None
    return NOT_SEEN


def explained(state: EngineState, agent: Agent | None, receipt: Receipt) -> Iterator[c.Command]:
    """Its source missed it before the kill was judged: the kill is why. No proof comes of that, so it stays ended."""
    if agent is not None and agent.state_reason == NOT_SEEN and (agent.ended_at or 0.0) >= receipt.pressed_at:
        yield c.ShowAgent(state.put(agent.changed(state_reason=f"{receipt.words()}; {NOT_SEEN}")))


def _quiet(state: EngineState, seen_now: set[AgentId]) -> Iterator[c.Command]:
    """Handle rows that no source sees now and that have not ended.

    These are our own agents whose session has ended, and agents of a source that cannot look. Their usage stays. The state of those that
    are only observed becomes unknown, and their row tells that.
    """
    for agent_id in sorted(state.seen.keys() - seen_now):
        seen, agent = state.seen[agent_id], state.agents[agent_id]
        if not seen.sources:
            continue
        if agent_id in state.held:
            state.seen[agent_id] = replace(seen, sources=(), session="", status="")
        else:
            state.seen[agent_id] = replace(seen, sources=(), status="")
            agent = state.put(agent.changed(state_reason=f"not seen now: {', '.join(seen.sources)} cannot look"))
        yield c.ShowAgent(agent)


def _end(state: EngineState, event: e.Sighted, agent_id: AgentId, why: str) -> Iterator[c.Command]:
    agent = state.agents.get(agent_id)  # None: it had finished when it was seen first
    if agent is not None and agent.state.is_live and agent.control_level is ControlLevel.OBSERVED:
        yield c.ShowAgent(state.put(replace(agent, state=AgentState.ENDED, state_reason=why, ended_at=event.at)))


def _used(state: EngineState, event: e.Sighted, row: Row, agent_id: AgentId) -> Iterator[c.Command]:
    total = row.first.usage or Usage()
    if row.first.source == TELEMETRY:
        yield from _reported(state, event, row, agent_id, total)
        return
    if row.inside is None:
        yield from _metered(state, event, agent_id, total, row.first.action)
        return
    agent = state.agents[agent_id]
    grown = shortfall(total, agent.usage)
    if grown == Usage():
        return
    state.budget.metered.add(agent_id)
    # Up to the agent in which it runs, which is charged with the whole of its session.
    for above in charging.ancestry(state, agent):
        if above == row.inside:
            break
        state.tree_usage[above] = state.tree_usage.get(above, Usage()).plus(grown)
    agent = replace(agent, usage=agent.usage.plus(grown))
    if row.first.action:
        agent = replace(agent, last_action=row.first.action, last_action_at=event.at)
    yield c.ShowAgent(state.put(agent))


def _reported(state: EngineState, event: e.Sighted, row: Row, agent_id: AgentId, total: Usage) -> Iterator[c.Command]:
    """Show in its row what telemetry alone reports. It is not charged: otherwise any process that sends telemetry could empty every
    budget."""
    agent = state.agents[agent_id]
    usage = _larger(agent.usage, total)
    if usage == agent.usage:
        return
    state.tree_usage[agent_id] = usage
    action = row.first.action or agent.last_action
    yield c.ShowAgent(state.put(replace(agent, usage=usage, last_action=action, last_action_at=event.at)))


def _metered(state: EngineState, event: e.Sighted, agent_id: AgentId, total: Usage, action: str) -> Iterator[c.Command]:
    """Raises its usage to at least ``total``, charged to all who pay for it."""
    # What a session had spent before anybody looked was spent at other times: it is none of today's.
    is_ours = state.agents[agent_id].control_level is not ControlLevel.OBSERVED or state.seen.get(agent_id, Seen()).inside is not None
    first = agent_id not in state.budget.metered and not is_ours
    yield from budgets.metered(state, agent_id, total, event, action=action, history=first)
