"""What the Budgets page and ``watchfloor budget`` ask and are answered, and what an agent sets aside before a gated call.

Text fields are hostile: names, folders, reasons."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from console.api.message import SCHEMA_VERSION, Reason, Request, View

BudgetScope = Literal["agent", "tree", "session", "project", "day", "type"]
ROWS = 500
"""Trees in one answer; the counts are always whole."""


class GaugeView(View, kw_only=True):
    """One limit of one node. A limit that is not set has no cap: what was used is shown all the same."""

    limit: str
    """``cost_usd tokens wall_s step_s tool_calls iterations cpu_s consecutive_errors``."""
    used: float = 0.0
    held: float = 0.0
    """Set aside by calls that are under way."""
    cap: float | None = None
    share: float | None = None
    """Used and held of the cap; 1.0 is at it; None: not capped."""
    ends_in_s: float | None = None
    """At the present rate; 0: used up; None: not capped, or ``why`` it is not known."""
    rate_per_h: float | None = None
    why: str = ""
    """``unknown: nothing was used in the last hour`` and the like, or empty."""
    inherited: str = ""
    """Where the limit comes from when it was not set here: ``settings``, ``type TYPE``, ``session``, ...; else empty."""


class BudgetRow(View, kw_only=True):
    """One node: an agent, a tree, a session, a project or the day."""

    scope: BudgetScope
    key: str
    """Agent id, session id, project, ``YYYY-MM-DD``."""
    name: str = ""
    agents: int = 0
    """Live ones in it."""
    agents_ever: int = 0
    state: str = ""
    """Of an agent or of a tree's root; for the others ``open``, or ``used_up`` while nothing may start in it."""
    control_level: str = ""
    done: bool = False
    """Nothing of it lives."""
    ended_at: float | None = None
    ends_in_s: float | None = None
    """Until its first limit is reached, by the present rate; None: unknown or without an end, see ``why``."""
    first_limit: str = ""
    why: str = ""
    share: float = 0.0
    """Largest share of any cap; 1.0 is at the cap."""
    level: Literal["within", "above_75", "above_90", "over"] = "within"
    spent_usd: float = 0.0
    cap_usd: float | None = None
    tokens: int = 0
    unpriced: bool = False
    """Some of what it used has no price: the money is too little."""
    burn_usd_per_h: float | None = None
    """None: not known."""
    burn_60: list[float] = []
    """USD in each of the last 60 minutes, oldest first; empty: nothing."""
    metered: str = ""
    """How the usage is known. ``after the fact``: from transcripts, so it may pass a limit by the answers in flight. ``by telemetry``: from
    telemetry alone, and no limit counts it. ``reported``: by the agent itself. Empty: not at all."""
    overshoot: float | None = None
    """How far it had passed the limit of ``overshoot_limit`` when its end was confirmed; None: it was not halted."""
    overshoot_limit: str = ""
    note: str = ""
    """What a person must know: ``observed: no limit stops it``, why it was halted."""


class TreeBudget(View, kw_only=True):
    """A tree, and those of its agents that end before it does, soonest first."""

    tree: BudgetRow
    first: list[BudgetRow] = []
    more: int = 0
    """Agents that end before the tree and are not listed."""


class BudgetTotals(View, kw_only=True):
    """The page's header."""

    over: int = 0
    above_75: int = 0
    within: int = 0
    """Agents: of each, or of its tree, the nearest cap. Live ones; those that were halted by a budget today count as over."""
    trees: int = 0
    spend_today_usd: float = 0.0
    day: str = ""
    day_cap_usd: float | None = None
    day_note: str = ""
    """The clock and the day disagree, and what holds."""
    forecast_usd: float | None = None
    """At 24:00; None: not known."""
    forecast_low_usd: float | None = None
    forecast_high_usd: float | None = None
    passes_cap_at: float | None = None
    """When the day's cap is reached at this rate; None: not today, or unknown."""
    burn_usd_per_h: float | None = None
    burn_60: list[float] = []
    spending: int | None = None
    """Agents that may spend now: they live and are not frozen. Only their use counts in rate and forecast; None: not told."""
    known_min: float = 60.0
    """For how many of the last 60 minutes anybody has looked at what is spent; what lies before is not known, not zero."""


class DayBurn(View, kw_only=True):
    """The chart of today: USD per hour in slices from local midnight, and what is expected of the rest."""

    since: float = 0.0
    slice_s: float = 900.0
    usd_per_h: list[float] = []
    """Up to now."""
    projected_usd_per_h: float | None = None
    low_usd_per_h: float | None = None
    high_usd_per_h: float | None = None
    note: str = ""


class ModelDay(View, kw_only=True):
    """What one model cost on one day. ``unpriced`` answers are in no sum of money."""

    day: str
    model: str
    cost_usd: float = 0.0
    tokens: int = 0
    unpriced: int = 0
    unpriced_tokens: int = 0


class WindowView(View, kw_only=True):
    """A subscription's window: what a source says of it, or why nothing is known."""

    program: str
    window: str
    """``5 h``, ``week``."""
    share: float | None = None
    renews_at: float | None = None
    seen_at: float | None = None
    why_not: str = ""
    """``not available, because ...``."""


class BudgetsView(View, kw_only=True):
    """GET /api/budgets?order=time|spend&limit=500: everything the page shows at once; ``limit`` bounds each list, never the counts."""

    schema_version: int = SCHEMA_VERSION
    at: float = 0.0
    totals: BudgetTotals = field(default_factory=BudgetTotals)
    trees: list[TreeBudget] = []
    more_trees: int = 0
    projects: list[BudgetRow] = []
    sessions: list[BudgetRow] = []
    """With a limit of their own, or with live agents; the nearest to their end first; at most 500, as projects."""
    days: list[BudgetRow] = []
    """Today first."""
    limits_words: str = ""
    """What happens at 100 %."""


class BudgetPictures(View, kw_only=True):
    """GET /api/budgets/pictures: the charts, which change slowly."""

    schema_version: int = SCHEMA_VERSION
    at: float = 0.0
    burn: DayBurn = field(default_factory=DayBurn)
    models: list[ModelDay] = []
    """The last 7 days, oldest first."""
    prices: str = ""
    """Which table of prices."""
    models_note: str = ""
    windows: list[WindowView] = []


class SpenderView(View, kw_only=True):
    """One who spends from a node."""

    agent_id: str
    name: str = ""
    spent_usd: float = 0.0
    tokens: int = 0
    level: str = "within"
    state: str = ""


class BudgetChange(View, kw_only=True):
    """One limit, changed."""

    at: float
    scope: BudgetScope
    key: str
    limit: str
    old: float | None = None
    new: float | None = None
    by: str = ""
    reason: str = ""


class BudgetNodeView(View, kw_only=True):
    """GET /api/budgets/node?scope=&key=: the detail pane."""

    schema_version: int = SCHEMA_VERSION
    row: BudgetRow
    gauges: list[GaugeView] = []
    spenders: list[SpenderView] = []
    """The dearest first, at most 20."""
    others: int = 0
    others_usd: float = 0.0
    changes: list[BudgetChange] = []
    """Newest first, at most 20."""
    changes_total: int = 0
    at_full: list[str] = []
    """What happens at 100 %, line by line."""


class BudgetBody(Request, kw_only=True):
    """POST /api/budgets: sets and clears limits of one node; it may exist later only (session, project, day, type)."""

    scope: BudgetScope
    key: Annotated[str, Meta(max_length=400)] = ""
    """Empty for ``day``: every day."""
    limits: Annotated[dict[str, float], Meta(max_length=20)] = {}
    clear: Annotated[list[str], Meta(max_length=20)] = []
    reason: Reason
    dry_run: bool = False
    """Says what it would do; nothing changes and nothing is recorded."""


class BudgetSetView(View, kw_only=True):
    """Answer: what holds now, and what came of it."""

    schema_version: int = SCHEMA_VERSION
    scope: BudgetScope
    key: str
    limits: dict[str, float | None] = {}
    changes: list[BudgetChange] = []
    words: str = ""
    """One sentence for the person."""
    halted: list[str] = []
    """Agents that are being halted because they have used more than it allows now; of a dry run: that would be."""
    cannot_stop: list[str] = []
    """Of a dry run: agents over it that are only observed."""
    dry_run: bool = False


class BudgetHistoryView(View, kw_only=True):
    """GET /api/budgets/history?scope=&key=&limit=, newest first."""

    schema_version: int = SCHEMA_VERSION
    changes: list[BudgetChange] = []
    total: int = 0


class ReserveBody(Request, kw_only=True):
    """POST /v1/reserve: what the call may use at most; judged field by field (NaN, negatives refused)."""

    iterations: Any = 0
    tokens: Any = 0
    tool_calls: Any = 0
    cost_usd: Any = 0.0
    tool: Annotated[str, Meta(max_length=200)] = ""
    key: Annotated[str, Meta(pattern=r"^[a-z0-9-]{0,40}\Z")] = ""
    """The agent's own name of the call: asked again with it, since no answer came, the same reservation holds."""
    ttl_s: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
    """How long the call may take: what is not settled by then is counted in full."""


class ReservedView(View, kw_only=True):
    """It is set aside, and on disk. Refused (403): there is no room; which limit, is in the words."""

    schema_version: int = SCHEMA_VERSION
    id: str
    expires_in_s: float


class SettleBody(Request, kw_only=True):
    """POST /v1/settle: what the call really used."""

    id: Annotated[str, Meta(min_length=1, max_length=120)]
    iterations: Any = 0
    tokens: Any = 0
    tool_calls: Any = 0
    cost_usd: Any = 0.0
    errors: Any = 0
