"""Which sightings are of the same agent: by process and its start time, by container, by session id. One agent is one row.

Nothing in a file decides who is signalled: a row takes its process from the kernel's word alone, and rows only show and count.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from console.domain.agent import Agent, AgentId, ProcessIdentity, Sighting, SourceReport
from console.domain.ids import ControlLevel
from console.domain.words import counted
from console.enforcement.state import EngineState, Seen

PROCESSES = "processes"
"""The source that knows of processes alone."""
TELEMETRY = "otlp"
"""A source that any process may send to: it joins a row by the session's id and adds only its name."""
YOUNG = "young"
"""Status of a session that telemetry reported just now. Other sources may see it soon, so it has no row of its own yet."""
GONE = "gone"
"""Status of a session that is no longer seen. Its usage is reported for a moment longer."""
PLACES = ("docker", PROCESSES)
"""Sources that tell where an agent runs, and never what it spends."""
LEAST = (*PLACES, TELEMETRY)
"""Sources that know less of an agent than those that read the files of its kind, which come before them."""


def name_of(sighting: Sighting) -> str:
    """Return what tells its session from all others."""
    return f"{sighting.source}\0{sighting.key}"


def observed_id(sighting: Sighting) -> AgentId:
    """A stable id made from source and key, so that hostile keys cannot shape it."""
    return AgentId("o-" + hashlib.sha256(name_of(sighting).encode("utf-8", "surrogatepass")).hexdigest()[:16])


@dataclass(slots=True)
class Row:
    """One agent as all sources see it."""

    first: Sighting
    """Of the source that knows most."""
    also: list[Sighting] = field(default_factory=list)
    own: AgentId | None = None
    """The agent of ours it is."""
    inside: AgentId | None = None
    """The agent of ours in whose process it runs, as a part of it with a row of its own."""
    container: Row | None = None
    """The container it runs in, when that one holds several programs."""

    @property
    def members(self) -> tuple[Sighting, ...]:
        """Every sighting of it."""
        return (self.first, *self.also)

    @property
    def is_alone(self) -> bool:
        """Return whether the row has no parent, no container and no agent in which it runs."""
        return self.first.parent_key is None and self.container is None and self.inside is None

    @property
    def sources(self) -> tuple[str, ...]:
        """Their names, the one that knows most first, each once."""
        return tuple(dict.fromkeys(one.source for one in self.members))


class Own:
    """Agents of ours that live, by what the kernel tells them apart."""

    def __init__(self, state: EngineState) -> None:
        self._ids: set[AgentId] = set()
        self._by_process: dict[ProcessIdentity, AgentId] = {}
        self._by_container: dict[str, AgentId] = {}
        for agent_id in state.held:
            agent = state.agents[agent_id]
            self._ids.add(agent_id)
            if agent.process is not None:
                self._by_process[agent.process] = agent_id
            if agent.container_id:
                self._by_container[agent.container_id] = agent_id

    def same_as(self, other: Own) -> bool:
        """Whether both tell everybody apart alike."""
        mine, others = ((own._ids, own._by_process, own._by_container) for own in (self, other))
        return mine == others

    def of(self, one: Sighting) -> AgentId | None:
        """Whose it is, or None."""
        if one.process is not None and one.process in self._by_process:
            return self._by_process[one.process]
        if one.agent_id:
            return AgentId(one.agent_id) if one.agent_id in self._ids else None
        return self._by_container.get(one.container_id) if one.container_id else None


def in_order(reports: Iterable[SourceReport]) -> list[Sighting]:
    """All that was seen, by those who know most of an agent first."""
    able = sorted((one for one in reports if one.available), key=lambda one: LEAST.index(one.source) if one.source in LEAST else -1)
    return [one for report in able for one in report.sightings]


def joined(state: EngineState, reports: Iterable[SourceReport]) -> tuple[list[Row], list[Row | None]]:
    """Return the rows, possible parents before their children, and the row of each sighting, ``in_order``."""
    joining = _Joining(Own(state), in_order(reports), state)
    return sorted(joining.rows, key=lambda row: row.container is not None), joining.places


class _Joining:
    """One pass over everything that was seen."""

    def __init__(self, own: Own, found: list[Sighting], state: EngineState) -> None:
        self.rows: list[Row] = []
        self.places: list[Row | None] = []
        self._state = state
        self._own: dict[AgentId, Row] = {}
        self._by_process: dict[ProcessIdentity, Row] = {}
        self._by_container: dict[str, Row] = {}
        self._by_session: dict[str, Row] = {}
        self._crowd = Counter(one.container_id for one in found if one.container_id and one.source == PROCESSES)
        # A process that is alone in its container is that container's agent, whoever sees the one or the other.
        self._boxes = {one.process: one.container_id for one in found if one.process is not None and self._crowd[one.container_id] == 1}
        told = [one for one in found if one.source == TELEMETRY]
        for one in found[: len(found) - len(told)]:  # they come last
            owner = own.of(one)
            self.places.append(self._row(one, owner))
        self._told(told)

    def _row(self, one: Sighting, owner: AgentId | None) -> Row | None:
        """Where it is shown; None: nowhere."""
        if one.agent_id and owner is None and one.status != GONE:
            return None  # left of an agent of ours that has ended: what became of it is the guard's to say
        if owner is None and one.process in self._state.left and one.status != GONE:
            return None  # the first process of an adopted one that has ended: the look was made before
        if one.source == "docker" and owner is not None:
            return None  # its own row says all of it
        if one.parent_key is not None or (one.status == GONE and owner is None):  # who lives is never hidden behind one that is gone
            self.rows.append(Row(one, inside=owner))
            return self.rows[-1]
        if owner is None:
            return self._theirs(one)
        if not self._was_a_row(one, owner):
            return self._ours(one, owner)
        row = self._theirs(one)
        row.inside = owner
        return row

    def _was_a_row(self, one: Sighting, owner: AgentId) -> bool:
        """Whether an adopted agent's processes run it, and it was an agent by itself before: its session goes on in them."""
        if self._state.agents[owner].control_level is not ControlLevel.ADOPTED:
            return False
        agent = self._state.agents.get(self._state.rows.get(name_of(one), observed_id(one)))
        return agent is not None and agent.agent_id != owner and agent.state.is_live and agent.control_level is ControlLevel.OBSERVED

    def _told(self, told: list[Sighting]) -> None:
        """A session that others see, or saw, is theirs: what is said of it makes no row of its own."""
        known: dict[str, Row] = {}
        for row in self.rows if told else ():
            for one in row.members:
                if one.session and not one.part:
                    known.setdefault(one.session, row)
        for one in told:
            if one.session in known:
                known[one.session].also.append(one)
            elif one.session not in self._state.linked_sessions and one.status != YOUNG:
                self.rows.append(Row(one))

    def _ours(self, one: Sighting, owner: AgentId) -> Row:
        row = self._own.get(owner)
        if row is not None:
            row.also.append(one)
            return row
        self._own[owner] = row = Row(one, own=owner)
        self.rows.append(row)
        return row

    def _theirs(self, one: Sighting) -> Row:
        row = next((row for row in self._same(one) if all(one.source != had.source for had in row.members)), None)
        if row is None:
            row = Row(one)
            self.rows.append(row)
        else:
            row.also.append(one)
        if one.source == PROCESSES and self._crowd[one.container_id] > 1:
            row.container = self._by_container.get(one.container_id)
        if one.process is not None:
            self._by_process.setdefault(one.process, row)
        if box := self._box(one):
            self._by_container.setdefault(box, row)
        if one.session:
            self._by_session.setdefault(one.session, row)
        return row

    def _box(self, one: Sighting) -> str:
        if one.source == "docker" or self._crowd[one.container_id] < 2:
            return one.container_id or (self._boxes.get(one.process, "") if one.process is not None else "")
        return ""

    def _same(self, one: Sighting) -> Iterator[Row]:
        if one.process is not None and one.process in self._by_process:
            yield self._by_process[one.process]
        box = self._box(one)
        if box and box in self._by_container and self._crowd[box] < 2:
            yield self._by_container[box]
        # The same session by two sources, of which one could not tell the process: two processes are never one agent.
        row = self._by_session.get(one.session) if one.session else None
        if row is not None and (one.process is None or all(had.process is None for had in row.members)):
            yield row


def unreported(agent: Agent, metered: Container[AgentId]) -> str:
    """Return why it is not known what an agent of ours spent, when only its own reports tell it and none has come; else empty."""
    is_ours = agent.control_level in (ControlLevel.MANAGED, ControlLevel.CONTAINED)
    used = agent.usage
    if not is_ours or agent.agent_id in metered or used.cost_usd or used.tokens or used.iterations:
        return ""
    return "it has reported no cost yet" if agent.state.is_live else "it reported no cost"


def cost_unknown(agent: Agent, seen: Seen | None, metered: Container[AgentId]) -> str:
    """Return why it is not known what the agent spent, or empty. Zero is a measurement; what nothing reads is none."""
    if agent.usage.cost_usd > 0:
        return ""
    if seen is None:
        return unreported(agent, metered) or _unknown_at_end(agent, metered)
    if seen.unread:
        return seen.unread
    if seen.sources == (PROCESSES,) and not agent.usage.tokens:
        held = agent.control_level in (ControlLevel.MANAGED, ControlLevel.CONTAINED)
        return unreported(agent, metered) if held else "its session is not seen, and its process does not tell what it spends"
    return f"{counted(seen.unpriced, 'answer')} without a price" if seen.unpriced else ""


def _unknown_at_end(agent: Agent, metered: Container[AgentId]) -> str:
    """The same of one that no source sees any more: what was not known of it then did not become zero by its end."""
    is_read = agent.control_level is ControlLevel.OBSERVED or agent.agent_id in metered
    if is_read and agent.usage.tokens:
        return "its answers had no price"
    return "nothing read what it spent" if agent.control_level is ControlLevel.OBSERVED and agent.source == PROCESSES else ""
