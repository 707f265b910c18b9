"""What a change of limits would do, before anybody makes it: whom it would halt now, and who would go on though it does not allow it."""

from __future__ import annotations

from dataclasses import dataclass

from console.domain.agent import AgentId, AgentState, ControlLevel
from console.domain.budget import GAUGES, LIMIT_NAMES, SUMMED, Limits, first_breach
from console.enforcement import charging, limiting
from console.enforcement.budget_state import Node
from console.enforcement.state import EngineState


@dataclass(frozen=True, slots=True)
class Foresight:
    """Agents that are live now; a moment later there may be others."""

    halted: tuple[AgentId, ...]
    observed: tuple[AgentId, ...]
    """Over it, and only observed: they cannot be stopped."""
    used: tuple[tuple[str, float, float], ...]
    """(limit, used, cap) of each limit that would hold."""


def foresee(state: EngineState, scope: str, key: str, limits: Limits) -> Foresight:
    """By the rules of ``limiting``, with ``limits`` in the place of what holds there. Reads only."""
    if scope == "type":  # limits of a type are given to agents at their start
        return Foresight((), (), ())
    node = ("day", state.budget.day.date) if scope == "day" else (scope, key)
    over = _over(state, node, limits)
    live = [i for i in over if i in state.live and i not in state.halting and state.agents[i].state is not AgentState.STARTING]
    seen = tuple(i for i in live if state.agents[i].control_level is ControlLevel.OBSERVED)
    usage = charging.usage_at(state, node)
    used = tuple(
        (name, float(getattr(usage, name)), float(cap))
        for name in LIMIT_NAMES
        if (cap := getattr(limits, name)) is not None and (name not in GAUGES or scope == "agent")
    )
    return Foresight(tuple(i for i in live if i not in seen), seen, used)


def _over(state: EngineState, node: Node, limits: Limits) -> list[AgentId]:
    inside = limiting.members(state, node)
    names = LIMIT_NAMES if node[0] == "agent" else SUMMED
    if first_breach(charging.usage_at(state, node), limits, node[0], names=names):
        return inside
    if node[0] == "agent":
        return []
    steps = [i for i in inside if i in state.live and first_breach(state.agents[i].usage, limits, node[0], names=GAUGES)]
    return sorted({below for i in steps for below in state.subtree(i)})


def foreseen(seen: Foresight) -> str:
    """One sentence for the person."""
    if not seen.halted and not seen.observed:
        return "Nobody is halted by it now."
    parts = []
    if seen.halted:
        parts.append(f"{_agents(len(seen.halted))} {'has' if len(seen.halted) == 1 else 'have'} used it up and will be halted at once")
    if seen.observed:
        parts.append(f"{_agents(len(seen.observed))} only observed would be over it and cannot be stopped")
    return f"{'; '.join(parts)}."


def _agents(number: int) -> str:
    return "1 agent" if number == 1 else f"{number:,} agents"
