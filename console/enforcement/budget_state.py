"""What the engine knows of budgets beyond an agent's own: nodes that are charged, what is set aside, which day it is, who was warned."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.domain.agent import AgentId
from console.domain.budget import UNCAPPED, Limits, Reservation, Usage
from console.domain.budget_day import Day

Node = tuple[str, str]
"""(scope, key): ``("tree", agent id)``, ``("session", context id)``, ``("project", folder)``, ``("day", YYYY-MM-DD)``."""
EVERY_DAY: Node = ("day", "")
"""Limits of a day hold for each one; usage is kept by date."""


@dataclass(slots=True)
class BudgetState:
    """Mutable; part of the engine's state. Usage of trees is in ``EngineState.tree_usage``, at every node of a tree."""

    limits: dict[Node, Limits] = field(default_factory=dict)
    """Set by an operator: sessions, projects, ``EVERY_DAY``, agent types."""
    defaults: dict[str, Limits] = field(default_factory=dict)
    """By scope, from the settings; ``type:NAME`` for an agent type."""
    spent: dict[Node, Usage] = field(default_factory=dict)
    """Sessions, projects and days."""
    held: dict[Node, Usage] = field(default_factory=dict)
    """Set aside, at every node that will be charged, ``("agent", id)`` included."""
    reservations: dict[str, Reservation] = field(default_factory=dict)
    held_at: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    """By reservation: where it is set aside, so that exactly that is given back."""
    warned: dict[Node, dict[str, int]] = field(default_factory=dict)
    """The highest mark (75, 90, 100) that was said of each limit."""
    denied: set[tuple[AgentId, str]] = field(default_factory=set)
    """Reservations refused for want of room are recorded once for each agent and limit."""
    worked: dict[AgentId, float] = field(default_factory=dict)
    """CLOCK_BOOTTIME of an agent's last sign of work."""
    metered: set[AgentId] = field(default_factory=set)
    """Metered from transcripts, after the fact."""
    day: Day = field(default_factory=Day)
    turned: tuple[float, float, str] = (0.0, 0.0, "")
    """The moment (both clocks, which boot) for which the day was looked at last."""
    boot_id: str = ""
    """Of which boot of the machine CLOCK_BOOTTIME is."""
    ticked: float = 0.0
    """CLOCK_BOOTTIME of the last tick."""
    kept_boot: float = 0.0
    """When wall time of sessions, projects and days was last kept."""
    observed_said: set[AgentId] = field(default_factory=set)
    """Observed agents beyond a limit: said once."""

    def of(self, scope: str, key: str) -> Limits:
        """The limits of a session, a project or the day: as set, else as the settings say."""
        default = self.defaults.get(scope, UNCAPPED)
        return self.limits.get((scope, "" if scope == "day" else key), default)
