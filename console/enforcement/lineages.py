"""Lineages: agents joined by spawns and shared sessions, the steps of forbidden sequences that they took, and what these forbid.

No mark is forgotten, and no join is undone. A mark counts from the moment it is known here. The call that makes it is answered only when
the mark is on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from console.domain.agent import Agent
from console.domain.calls.lineage import Mark, Match
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.domain.network import STRICTEST, NetworkMode
from console.policy.sequences.find import Advance, advance

_SHOWN = 4
"""Steps that a denial, or an agent's row, names."""
Key = tuple[str, str, str]
ModeOf = Callable[[str], NetworkMode]


@dataclass(slots=True)
class Lineage:
    """Marks of everybody who is joined."""

    nodes: list[str] = field(default_factory=list)
    marks: dict[Key, Mark] = field(default_factory=dict)
    kept: set[Key] = field(default_factory=set)
    """Those that are on disk."""


@dataclass(slots=True)
class Lineages:
    """All of them. ``matches`` holds what judged calls may be steps of until they are answered."""

    of_node: dict[str, Lineage] = field(default_factory=dict)
    matches: dict[str, tuple[Match, ...]] = field(default_factory=dict)
    _joined: set[tuple[str, ...]] = field(default_factory=set)

    def join(self, nodes: tuple[str, ...]) -> Lineage:
        """These nodes are one lineage from now on."""
        if nodes in self._joined:
            return self.of_node[nodes[0]]
        # Every call asks for its lineage; a set look-up spares the merge once these nodes are known to be one.
        self._joined.add(nodes)
        found = {id(one): one for node in nodes if (one := self.of_node.get(node)) is not None}
        rest = sorted(found.values(), key=lambda one: len(one.nodes), reverse=True)
        main = rest[0] if rest else Lineage()
        for other in rest[1:]:
            main.nodes += other.nodes
            main.marks = {**other.marks, **main.marks}
            main.kept |= other.kept
            self.of_node.update(dict.fromkeys(other.nodes, main))
        for node in nodes:
            if node not in self.of_node:
                self.of_node[node] = main
                main.nodes.append(node)
        return main

    def of(self, agent: Agent) -> Lineage:
        """The lineage of an agent."""
        return self.join(nodes_of(agent.root_id, agent.context_id, agent.cwd if agent.control_level is ControlLevel.OBSERVED else ""))


def nodes_of(root_id: str, context_id: str, folder: str) -> tuple[str, ...]:
    """What an agent belongs to. ``folder``: where one works that is only seen: such have no session in common but their folder."""
    nodes = (f"tree:{root_id}", f"session:{context_id}")
    return (*nodes, f"folder:{folder}") if folder.strip("/") else nodes


def restored(lineages: Lineages, event: e.LineagesRestored) -> Iterator[c.Command]:
    """As it was before the restart."""
    for link in event.links:
        lineages.join(link)
    for mark in event.marks:
        lineage = lineages.join(nodes_of(mark.root_id, mark.context_id, ""))
        lineage.marks.setdefault(mark.key, mark)
        lineage.kept.add(mark.key)
    yield from ()


def forbidden(lineages: Lineages, agent: Agent, request_id: str, also: Mapping[Key, Mark] | None = None) -> Decision | None:
    """A denial, where this call would complete a sequence now; approvals change nothing about that.

    ``also``: steps that calls in dry-run would have taken.
    """
    lineage = lineages.of(agent)
    marks = {**also, **lineage.marks} if also else lineage.marks
    found = advance(marks, lineages.matches.get(request_id, ()))
    return None if found.completes is None else _denial(marks, found)


def would_take(lineages: Lineages, agent: Agent, request_id: str, also: Mapping[Key, Mark]) -> tuple[Mark, ...]:
    """Return the steps that a call in dry-run would take. It is not executed, so they become no marks."""
    marks = {**also, **lineages.of(agent).marks}
    who = (str(agent.agent_id), str(agent.context_id), str(agent.root_id))
    taken = advance(marks, lineages.matches.get(request_id, ())).taken
    made = (Mark(match.pattern, step, value, *who, agent.last_action_at, match.text) for match, step, value in taken)
    return tuple(one for one in made if one.key not in marks)


def takes(
    lineages: Lineages, agent: Agent, request_id: str, request: PermissionRequest, decision: Decision, mode_of: ModeOf
) -> c.KeepMarks | None:
    """What must be on disk before this call is answered; None: nothing. The marks count from now on, written or not.

    ``mode_of`` knows the mode of a session.
    """
    lineage = lineages.of(agent)
    new: list[Mark] = []
    for match, step, value in advance(lineage.marks, lineages.matches.get(request_id, ())).taken:
        who = (str(agent.agent_id), str(agent.context_id), str(agent.root_id))
        mark = Mark(match.pattern, step, value, *who, agent.last_action_at, match.text, match.tighten if step == match.steps[0] else "")
        # Counted before it is on disk: two calls at once could otherwise each take the step that the other one completes.
        lineage.marks.setdefault(mark.key, mark)
        if mark.key not in lineage.kept and mark.key not in {one.key for one in new}:
            new.append(mark)
    contexts = _tightened(lineage, mode_of)
    if not new and not contexts:
        return None
    return c.KeepMarks(agent.agent_id, request_id, request, decision, tuple(new), contexts)


def kept(lineages: Lineages, agent: Agent, event: e.MarksKept) -> None:
    """They are on disk."""
    lineages.of(agent).kept.update(mark.key for mark in event.marks)


def answered(lineages: Lineages, event: e.Event, commands: list[c.Command]) -> None:
    """Drop the steps of calls that are answered or whose caller has gone."""
    # A caller that hung up gets no answer, so nothing else would ever drop what its call might be a step of.
    if isinstance(event, e.AskerLeft):
        lineages.matches.pop(event.request_id, None)
    for command in commands:
        if isinstance(command, c.AnswerPermission | c.SnapshotThenAnswer | c.JudgeUrl):
            lineages.matches.pop(command.request_id, None)


def words_of(lineages: Lineages, agent: Agent) -> list[str]:
    """What an agent's lineage is marked by, for people: the first few, and how many more; the audit has them all."""
    lineage = lineages.of_node.get(f"tree:{agent.root_id}")
    if lineage is None or not lineage.marks:
        return []
    told = [_words(mark) for mark in islice(lineage.marks.values(), _SHOWN)]
    more = len(lineage.marks) - len(told)
    return [*told, f"and {more} more"] if more else told


def _tightened(lineage: Lineage, mode_of: ModeOf) -> tuple[str, ...]:
    """Sessions that lose their network now: all that have one, or those that are proxied."""
    asked = {mark.tighten for mark in lineage.marks.values() if mark.tighten}
    if not asked:
        return ()
    names = (node.partition(":")[2] for node in lineage.nodes if node.startswith("session:"))
    closes = STRICTEST in asked
    return tuple(name for name in names if (not mode_of(name).is_closed if closes else mode_of(name).has_portal))


def _denial(marks: Mapping[Key, Mark], found: Advance) -> Decision:
    match = found.completes
    assert match is not None
    earlier = [_words(marks[key]) for key in found.earlier[:_SHOWN] if key in marks]
    more = f" and {len(found.earlier) - _SHOWN} more" if len(found.earlier) > _SHOWN else ""
    before = f"after {'; '.join(earlier)}{more}" if earlier else "in this one call"
    return Decision(Verdict.DENY, f"sequence {match.pattern}", f"{match.why}: {match.steps[-1]} {before}"[:1000])


@lru_cache(maxsize=4096)
def _words(mark: Mark) -> str:
    told = "".join(one if one.isprintable() else "?" for one in mark.text)[:120]
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(mark.at))
    which = f" ({mark.value})" if mark.value else ""
    return f"{mark.pattern}: {mark.agent_id} {mark.step}{which} at {when}: {told}"
