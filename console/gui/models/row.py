"""One agent as a row of the fleet, and what is worked out of its facts. Made in the thread that reads the stream; no Qt, no lists."""

from __future__ import annotations

from functools import lru_cache

from console.api.agents.fleet_changes import NEAR
from console.api.messages import AgentView
from console.domain.agent import AgentState
from console.gui.widgets.safe_text import safe_text

LIVE = frozenset(state.value for state in AgentState if state.is_live)
OVER = frozenset({"ended", "killed", "halted", "failed"})
"""States in which nothing more is to be seen of an agent. None of them stands above what runs."""
FELL = frozenset({"halted", "failed", "lost"})
"""States that a person should hear of once: they want attention until they were seen."""
TOLD_WHY = FELL | {"killed"}
SENSITIVE = frozenset({"CONFIDENTIAL", "SECRET"})
DEEP = 3
_URGENT = {"alive_after_kill": 0, "over_budget": 1, "needs_ok": 2, "lost": 3, "frozen": 5}
_UNPROVEN = 4
CALM = 6
"""The rank of a row that wants nothing."""


class Row:
    """One agent as the table shows it. ``name`` and ``action`` are safe; ``view`` is as it came, and goes on changing.

    What is derived is worked out once, in whatever thread makes it: after any change but one of QUIET fields far from a cap.
    """

    __slots__ = (
        "attends",
        "child_of",
        "fixed",
        "guides",
        "id",
        "indent",
        "is_live",
        "is_open",
        "is_whole",
        "kids",
        "name",
        "near",
        "parent",
        "rank",
        "seen",
        "state",
        "tags",
        "view",
    )

    def __init__(self, view: AgentView) -> None:
        self.id = view.id
        self.indent = 0
        self.child_of = ""
        """The name of its parent, where the row does not stand below it; safe."""
        self.kids = 0
        """Children in the whole fleet, shown or not."""
        self.is_open = True
        self.guides = 0
        self.is_whole = False
        """It came whole, not as a patch: it may be a new agent."""
        self.view = view
        self.state, self.parent = view.state, view.parent_id
        """As it was counted: the view may be newer already."""
        self.name = safe_text(view.name or view.id, 120)
        self.is_live = self.state in LIVE
        self.near = self.is_live and view.budget_share >= NEAR
        """Close to a cap, or at it."""
        self.seen = ""
        """One of FELL, in which a person has seen it; empty: not seen."""
        self._judge()
        self.fixed = f"{view.name}\0{view.id}\0{view.session}\0{view.state}".lower()

    def _judge(self) -> None:
        self.attends = needs_attention(self)
        self.rank = urgency(self)
        """0 is the most urgent, CALM wants nothing; by state alone, so that rows do not change places with every number."""
        deep = self.is_live and self.view.depth >= DEEP
        self.tags: tuple[str, ...] = _tags(self.attends, is_full(self), is_exposed(self.view), deep, self.is_live)
        """The filters that keep it, counted by the fleet as it changes."""

    def see(self) -> None:
        """A person has seen how it ended: it wants no attention any more."""
        self.seen = self.state
        self._judge()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be seen of it, or a person has seen how it ended."""
        return self.state in OVER or bool(self.seen)

    def settle(self, fresh: Row) -> None:
        """Takes over what was worked out of newer facts of the same agent; its place in the list stays."""
        self.view, self.state, self.parent, self.name = fresh.view, fresh.state, fresh.parent, fresh.name
        self.is_live, self.near, self.attends = fresh.is_live, fresh.near, fresh.attends
        self.rank, self.tags, self.fixed = fresh.rank, fresh.tags, fresh.fixed
        if self.seen == self.state:
            self._judge()
        else:
            self.seen = ""

    @property
    def action(self) -> str:
        """``last``, safe."""
        return _safe_action(self.last)

    @property
    def haystack(self) -> str:
        """What a typed word is looked for in."""
        return f"{self.fixed}\0{self.last.lower()}"

    @property
    def last(self) -> str:
        """What it did last, or why it was killed or failed, as it came."""
        return (self.state in TOLD_WHY and self.view.state_reason) or self.view.last_action


@lru_cache(maxsize=4096)
def _safe_action(words: str) -> str:
    return safe_text(words, 160)


@lru_cache(maxsize=32)
def _tags(attends: bool, full: bool, exposed: bool, deep: bool, live: bool) -> tuple[str, ...]:
    named = (("attention", attends), ("full", full), ("exposed", exposed), ("deep", deep), ("live", live))
    return ("all", *(name for name, holds in named if holds))


def needs_attention(row: Row) -> bool:
    """Over budget or close to it, waiting for a person, alive after a kill, exposed, or ended badly and not seen yet."""
    state = row.state
    if state in ("over_budget", "needs_ok", "alive_after_kill"):
        return True
    return row.near or is_exposed(row.view) or (state in FELL and not row.seen)


def urgency(row: Row) -> int:
    """Alive after a kill, over budget, waiting for a person, lost, not proven or exposed, frozen; then all the others alike.

    That an observed agent's stop is best effort is how it is, not news: only one that should be held and is not counts here.
    """
    view = row.view
    if row.seen:
        return CALM
    if (row.is_live and view.best_effort and view.control_level != "observed") or is_exposed(view):
        return min(_UNPROVEN, _URGENT.get(view.state, CALM))
    return _URGENT.get(view.state, CALM)


def is_exposed(view: AgentView) -> bool:
    """Live, with SECRET or CONFIDENTIAL data, and with the whole network: a stricter mode was not asked for, or is not enforced."""
    return view.sensitivity in SENSITIVE and view.state in LIVE and view_mode(view) == "FULL"


def is_full(row: Row) -> bool:
    """Live and with the whole network in reach (also when a stricter mode was asked but is not enforced)."""
    return row.is_live and (view_mode(row.view) == "FULL")


def view_mode(view: AgentView) -> str:
    """The network mode in force; not enforced reads as FULL."""
    return view.network_mode if view.network_enforced and view.network_mode in ("PROXIED", "NONE") else "FULL"
