"""Keep the rows of the last round while the sources report the same agents in the same places. Only what is new is looked at.

In a fleet of a thousand nearly every agent reports the same as a second ago. Joining all of them each time would be most of the
supervisor's work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from console.domain.agent import AgentId, Sighting, SourceReport
from console.domain.ids import ControlLevel
from console.enforcement.identity import GONE, TELEMETRY, YOUNG, Own, Row, in_order
from console.enforcement.state import EngineState

_SAID = ("finished", GONE, YOUNG)
"""Statuses that decide whether there is a row."""


@dataclass(slots=True)
class Round:
    """What the sources said, and the rows that came of it."""

    available: tuple[tuple[str, bool], ...] = ()
    found: list[Sighting] = field(default_factory=list)
    places: list[Row | None] = field(default_factory=list)
    """The row of each of ``found``."""
    own: Own | None = None
    rows: list[tuple[Row, AgentId]] = field(default_factory=list)
    names: dict[str, AgentId] = field(default_factory=dict)
    taken: set[AgentId] = field(default_factory=set)


def kept(state: EngineState, reports: tuple[SourceReport, ...], had: Round) -> bool:
    """Whether the rows of that round hold; then they hold what was said now, too."""
    if had.own is None or had.available != _available(reports):
        return False
    found = in_order(reports)
    if any(one.status == GONE for one in found):
        return False
    if len(found) != len(had.found) or any(report.source == TELEMETRY and report.sightings for report in reports):
        return False
    changed = [at for at, (one, before) in enumerate(zip(found, had.found, strict=True)) if one is not before]
    if any(_place(found[at]) != _place(had.found[at]) for at in changed) or not had.own.same_as(Own(state)):
        return False
    for at in changed:
        row, before = had.places[at], had.found[at]
        if row is not None and row.first is before:
            row.first = found[at]
        elif row is not None:
            row.also = [found[at] if one is before else one for one in row.also]
    had.found = found
    return True


def to_look_at(state: EngineState, had: Round) -> list[tuple[Row, AgentId]] | None:
    """Return the rows with something new; None: a row may be another agent now, so all rows are joined again."""
    found = []
    for pair in had.rows:
        row, agent_id = pair
        same, agent = state.same.get(agent_id), state.agents.get(agent_id)
        if same is not None and same[1] is agent and same[0] == row.members and row.is_alone:
            continue
        if row.own is None and (agent is None or not agent.state.is_live or agent.control_level is not ControlLevel.OBSERVED):
            return None
        found.append(pair)
    return found


def remember(
    had: Round,
    state: EngineState,
    reports: tuple[SourceReport, ...],
    places: list[Row | None],
    rows: list[tuple[Row, AgentId]],
    names: dict[str, AgentId],
) -> None:
    """This round, for the next one."""
    had.available, had.found, had.places, had.own = _available(reports), in_order(reports), places, Own(state)
    had.rows, had.names, had.taken = rows, names, {agent_id for _, agent_id in rows}


def _available(reports: tuple[SourceReport, ...]) -> tuple[tuple[str, bool], ...]:
    return tuple((report.source, report.available) for report in reports)


def _place(one: Sighting) -> tuple[object, ...]:
    """All by which it is decided whose row it is."""
    said = one.status if one.status in _SAID else ""
    return one.source, one.key, one.process, one.container_id, one.session, one.part, one.parent_key, one.agent_id, said
