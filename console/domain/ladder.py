"""The ways to stop as values: what each does, what undoes it, and for which agents it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from console.domain.errors import UsageProblem
from console.domain.ids import AGENT_ID, CONTEXT_ID


class Rung(StrEnum):
    """What an operator does: freeze, isolate, kill, in that order of severity, and the ways back from the first two."""

    FREEZE = "freeze"
    ISOLATE = "isolate"
    KILL = "kill"
    THAW = "thaw"
    RECONNECT = "reconnect"

    @property
    def undone_by(self) -> str:
        """The rung that takes it back; empty for a kill and for the ways back."""
        return {Rung.FREEZE: "thaw", Rung.ISOLATE: "reconnect"}.get(self, "")


class Reach(StrEnum):
    """How far a rung goes."""

    AGENT = "agent"
    TREE = "tree"
    """An agent and everything below it."""
    SESSION = "session"
    """Everybody who works in a session, and everything below them: a child in a session of its own does not escape."""
    HOST = "host"
    """Everything this instance holds on this host; a kill of it blocks no new agents."""
    ALL = "all"
    """The same; a kill of it is a panic, and blocks new agents."""


NAMED = 5
"""Ids that the words of a scope name; the others are counted."""
_PATTERNS = {Reach.AGENT: AGENT_ID, Reach.TREE: AGENT_ID, Reach.SESSION: CONTEXT_ID}


@dataclass(frozen=True, slots=True)
class Scope:
    """The agents for which a stop is asked."""

    reach: Reach
    target: str = ""
    """Agent id or session id; empty for host and all."""
    others: tuple[str, ...] = ()
    """Further ids of the same kind, for which the same order holds."""

    def check(self) -> None:
        """Raises UsageProblem when a target is missing, superfluous or no id."""
        pattern = _PATTERNS.get(self.reach)
        if pattern is None:
            if self.target or self.others:
                raise UsageProblem(f"Scope {self.reach} takes no id.", "Leave the id out, or name an agent, a tree or a session.")
            return
        wrong = next((target for target in (self.target, *self.others) if not pattern.match(target)), None)
        if wrong is not None:
            what = "a session" if self.reach is Reach.SESSION else "an agent"
            raise UsageProblem(f"{wrong[:80]!r} is not the id of {what}.", "Use a-z, 0-9 and -, 1 to 63 characters.")

    @property
    def targets(self) -> tuple[str, ...]:
        """Every id that it names, each once; none for host and all."""
        return tuple(dict.fromkeys((self.target, *self.others))) if self.target else ()

    @property
    def is_everything(self) -> bool:
        """Whether it is all that this instance holds."""
        return self.reach in (Reach.HOST, Reach.ALL)

    def words(self) -> str:
        """For people and for the record."""
        names, several = ", ".join(self.targets[:NAMED]), len(self.targets) > 1
        names += f" and {len(self.targets) - NAMED} more" if len(self.targets) > NAMED else ""
        match self.reach:
            case Reach.AGENT:
                return f"agents {names}" if several else f"agent {names}"
            case Reach.TREE:
                return f"agents {names}, with all below them" if several else f"agent {names} and all below it"
            case Reach.SESSION:
                return f"sessions {names}" if several else f"session {names}"
            case Reach.HOST:
                return "everything on this host"
            case Reach.ALL:
                return "everything"


COUNT_OLD_S = 2.0
"""Seconds from which a number of processes is told with its age."""


def count_age(counted_s: float | None) -> str:
    """Return the words for a process count of this age in seconds; empty: it is fresh. None: not counted."""
    if counted_s is None:
        return "not counted: the guard has not answered yet"
    return "" if counted_s < COUNT_OLD_S else f"as counted {counted_s:.0f} s ago: the guard was slow to count again"
