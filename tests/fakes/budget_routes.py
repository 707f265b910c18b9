"""The routes behind the Budgets page of the stand-in supervisor: the mock-up's figures, fleets of any size, hostile names, refusals."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import budgets as b
from console.api import messages as m
from console.domain.budget import LIMIT_WORDS
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.view_answers import refuse, say

AT_FULL = ["The agent is stopped at once (frozen, cut off, killed).", "Reason goes to tree, audit, notification, file."]
LIMITS = ("cost_usd", "tokens", "wall_s", "tool_calls", "iterations", "step_s", "consecutive_errors", "cpu_s")

# name, below, ends in s (None: done or unknown), first limit, share, spent, cap, burn, unpriced, done since minutes
_ROWS: tuple[tuple[str, str, float | None, str, float, float, float, float | None, bool, int], ...] = (
    ("support-triage", "", 6900, "cost_usd", 0.74, 118.90, 160, 21.30, False, 0),
    ("refund-drafter", "support-triage", 190, "cost_usd", 0.98, 19.64, 20, 7.10, False, 0),
    ("release-captain", "", 16860, "cost_usd", 0.52, 31.42, 60, 6.10, False, 0),
    ("linux-arm64", "release-captain", 560, "wall_s", 0.78, 3.14, 4, 0.96, False, 0),
    ("data-sync", "", 14160, "cost_usd", 0.55, 44.10, 80, 9.10, True, 0),
    ("backfill-worker", "data-sync", 7200, "tool_calls", 0.81, 17.90, 22, 2.05, True, 0),
    ("infra-janitor", "", 25860, "cost_usd", 0.51, 12.77, 25, 1.70, False, 0),
    ("docs-gardener", "", None, "cost_usd", 0.26, 2.60, 10, None, False, 60),
    ("nightly-eval", "", None, "cost_usd", 0.99, 148.20, 150, None, False, 470),
    ("security-sweep", "", None, "cost_usd", 0.61, 54.81, 90, None, False, 262),
)


class House(Protocol):
    """What these routes need of the stand-in supervisor."""

    agents: dict[str, m.AgentView]


@lru_cache(maxsize=200)
def _curve(seed: int, rising: bool, number: int) -> tuple[float, ...]:
    """Minutes of a believable burn."""
    chance = random.Random(seed)
    level, out = 0.4 + chance.random() / 2, []
    for at in range(number):
        level = min(1.0, max(0.1, level + chance.uniform(-0.2, 0.2)))
        out.append(round((at / number) ** 2 if rising else level, 3))
    return tuple(out)


def curve(seed: int, rising: bool = False, number: int = 60) -> list[float]:
    """Minutes of a believable burn."""
    return list(_curve(seed, rising, number))


def level_of(share: float) -> Any:
    """By the marks of the page."""
    return "over" if share >= 1 else "above_90" if share >= 0.9 else "above_75" if share >= 0.75 else "within"


def mockup(now: float) -> b.BudgetsView:
    """The mock-up's figures."""
    trees: list[b.TreeBudget] = []
    for number, (name, below, ends, first, share, spent, cap, burn, unpriced, ago) in enumerate(_ROWS):
        row = b.BudgetRow(
            scope="agent" if below else "tree",
            key=name,
            name=name,
            agents=46 if name == "support-triage" else 1,
            agents_ever=52 if name == "support-triage" else 1,
            state="ended" if ago else "running",
            done=bool(ago),
            ended_at=now - ago * 60 if ago else None,
            ends_in_s=ends,
            first_limit=first,
            share=share,
            level=level_of(share),
            spent_usd=spent,
            cap_usd=cap,
            tokens=int(spent * 260_000),
            unpriced=unpriced,
            burn_usd_per_h=burn,
            burn_60=curve(number, name == "refund-drafter"),
            metered="after the fact" if unpriced else "reported",
        )
        if below:
            next(t for t in trees if t.tree.key == below).first.append(row)
        else:
            trees.append(b.TreeBudget(tree=row))
    totals = b.BudgetTotals(
        over=2,
        above_75=4,
        within=208,
        trees=7,
        spend_today_usd=412.80,
        day="2026-11-18",
        day_cap_usd=600,
        forecast_usd=793.2,
        forecast_low_usd=690,
        forecast_high_usd=930,
        passes_cap_at=now + 4.9 * 3600,
        burn_usd_per_h=38.20,
        burn_60=curve(99),
    )
    day = _wide("day", "2026-11-18", 0.69, 412.80, 600, now)
    return b.BudgetsView(at=now, totals=totals, trees=trees, projects=_projects(now), sessions=_sessions(now), days=[day])


def _projects(now: float) -> list[b.BudgetRow]:
    return [_wide("project", "/srv/shop", 0.93, 186.2, 200, now), _wide("project", "north", 0.4, 80.1, 200, now)]


def _sessions(now: float) -> list[b.BudgetRow]:
    return [_wide("session", "ctx-000a", 1.02, 40.9, 40, now), _wide("session", "shop", 0.2, 3.2, 16, now)]


def _wide(scope: Any, key: str, share: float, spent: float, cap: float | None, now: float) -> b.BudgetRow:
    return b.BudgetRow(
        scope=scope,
        key=key,
        name=key,
        agents=9,
        agents_ever=12,
        state="used_up" if share >= 1 else "open",
        ends_in_s=0.0 if share >= 1 else (1 - share) * 36_000,
        first_limit="cost_usd",
        share=share,
        level=level_of(share),
        spent_usd=spent,
        cap_usd=cap,
        burn_usd_per_h=12.0,
        burn_60=curve(len(key)),
        note="used up: nothing starts in it until its limit is raised, with a reason" if share >= 1 else "",
    )


def many(agents: Iterable[m.AgentView], now: float, capped: bool = True) -> b.BudgetsView:
    """A page over any fleet, sorted and cut as the supervisor does."""
    by_id = {a.id: a for a in agents}
    trees: dict[str, b.TreeBudget] = {}
    for number, a in enumerate(by_id.values()):
        row = _of(a, number, capped)
        if a.parent_id is None or a.parent_id not in by_id:
            trees[a.id] = b.TreeBudget(tree=row.replaced(scope="tree", agents=1))
        elif capped and number % 4 == 1:
            root = a
            while root.parent_id and root.parent_id in by_id:
                root = by_id[root.parent_id]
            if root.id in trees:
                trees[root.id].first.append(row)
    found = sorted(trees.values(), key=lambda t: min(r.ends_in_s or 1e18 for r in (t.tree, *t.first)))
    live = len(by_id)
    totals = b.BudgetTotals(
        within=live, trees=len(found), spend_today_usd=sum(min((a.cost_usd or 0.0), 1e9) for a in by_id.values()), day="2026-11-18"
    )
    return b.BudgetsView(at=now, totals=totals, trees=found[: b.ROWS], more_trees=max(0, len(found) - b.ROWS))


def _of(a: m.AgentView, number: int, capped: bool) -> b.BudgetRow:
    share = min(a.budget_share, 1e12) if capped else 0.0
    return b.BudgetRow(
        scope="agent",
        key=a.id,
        name=a.name,
        agents=1,
        state=a.state,
        control_level=a.control_level,
        ends_in_s=200.0 + number * 37 % 90_000 if capped else None,
        first_limit="cost_usd" if capped else "",
        why="" if capped else "no limit is set",
        share=share,
        level=level_of(share),
        spent_usd=(a.cost_usd or 0.0),
        cap_usd=10.0 if capped else None,
        unpriced=number % 9 == 3,
        burn_usd_per_h=number % 70 / 10,
        burn_60=curve(number % 50),
        note=a.state_reason,
    )


def pictures(now: float, hostile: bool = False) -> b.BudgetPictures:
    """The mock-up's charts."""
    there = time.localtime(now)
    midnight = time.mktime((there.tm_year, there.tm_mon, there.tm_mday, 0, 0, 0, 0, 0, -1))
    slices = int((now - midnight) // 900) + 1
    wave = [max(2.0, 30 + 10 * math.sin(n / 6) + curve(7, number=100)[n % 100] * 6) for n in range(slices)]
    names = HOSTILE_NAMES[:6] if hostile else ("claude-opus", "claude-sonnet", "gpt-codex")
    models = []
    for at in range(7):
        day = time.strftime("%Y-%m-%d", time.strptime(f"2026-11-{12 + at}", "%Y-%m-%d"))
        for rank, name in enumerate(names):
            cost = (205.1, 142.3, 65.4, 30.0, 20.0, 10.0)[rank] * (0.45, 1.02, 1.2, 0.93, 1.27, 1.08, 1.0)[at]
            models.append(b.ModelDay(day=day, model=name, cost_usd=cost, tokens=1000))
        if at not in (0, 2):
            models.append(b.ModelDay(day=day, model=names[0] * 3 if hostile else "local-coder-32b", unpriced=4, unpriced_tokens=1_900_000))
    windows = [
        b.WindowView(program="Claude", window="5 h", share=0.62, renews_at=now + 7000, seen_at=now),
        b.WindowView(program="Claude", window="week", share=0.41, renews_at=now + 400_000, seen_at=now),
        b.WindowView(program="Codex", window="5 h", share=0.18, renews_at=now + 11_000, seen_at=now),
        b.WindowView(program="Codex", window="week", share=0.78, renews_at=now + 500_000, seen_at=now),
    ]
    burn = b.DayBurn(since=midnight, usd_per_h=wave, projected_usd_per_h=38.2, low_usd_per_h=27, high_usd_per_h=52)
    return b.BudgetPictures(at=now, burn=burn, models=models, windows=windows, prices="18 Nov")


def not_available() -> list[b.WindowView]:
    """What a machine says whose programs keep no such figure."""
    claude = "not available, because Claude Code's own files do not say how much of its subscription's window is used"
    codex = "not available, because no rollout of Codex that was read says how much of its subscription's window is used"
    return [b.WindowView(program=p, window=w, why_not=why) for p, why in (("Claude", claude), ("Codex", codex)) for w in ("5 h", "week")]


class FakeBudgets:
    """Tests set ``view``, ``drawn``, ``refused``, ``broken`` and read ``log``."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.view: b.BudgetsView | None = None
        self.drawn: b.BudgetPictures | None = None
        self.caps: dict[tuple[str, str], dict[str, float]] = {}
        self.changes: list[b.BudgetChange] = []
        self.halts: list[str] = []
        self.cannot_stop: list[str] = []
        self.refused = ""
        """Every change is refused with it."""
        self.broken = ""
        """Every read is refused with it."""
        self.log: list[dict[str, Any]] = []
        self.asked: list[str] = []

    def routes(self) -> list[Route]:
        return [
            Route("/api/budgets", self._page, methods=["GET"]),
            Route("/api/budgets/node", self._node, methods=["GET"]),
            Route("/api/budgets/pictures", self._pictures, methods=["GET"]),
            Route("/api/budgets", self._change, methods=["POST"]),
        ]

    def page(self) -> b.BudgetsView:
        """As set, else made of the fleet."""
        if self.view is None:
            agents = self._house.agents
            self.view = mockup(time.time()) if "support-triage" in agents else many(agents.values(), time.time())
        return self.view

    async def _page(self, request: Request) -> Response:
        order = request.query_params.get("order", "")
        self.asked.append(f"page {order} {request.query_params.get('limit', '')}".strip())
        if self.broken:
            return refuse(503, self.broken)
        view = self.page().replaced()
        if order == "spend":
            view.trees = sorted(view.trees, key=lambda t: (t.tree.done, -t.tree.spent_usd))
        limit = int(request.query_params.get("limit", b.ROWS))
        view.more_trees += max(0, len(view.trees) - limit)
        view.trees = view.trees[:limit]
        return say(view)

    def _rows(self) -> list[b.BudgetRow]:
        view = self.page()
        return [*(r for t in view.trees for r in (t.tree, *t.first)), *view.projects, *view.sessions, *view.days]

    async def _node(self, request: Request) -> Response:
        scope, key = request.query_params.get("scope", ""), request.query_params.get("key", "")
        self.asked.append(f"node {scope} {key}")
        if self.broken:
            return refuse(503, self.broken)
        found = next((r for r in self._rows() if r.key == key and (r.scope == scope or {r.scope, scope} == {"agent", "tree"})), None)
        row = found.replaced(scope=scope) if found else b.BudgetRow(scope=scope, key=key, name=key)  # type: ignore[arg-type]
        return say(self.node(row))

    def caps_of(self, row: b.BudgetRow) -> dict[str, float]:
        """What holds: set here before, else by the row."""
        made: dict[str, float] = {}
        if row.first_limit:
            made = {"cost_usd": row.cap_usd or 20.0, "tokens": 60_000_000, "wall_s": 86_400.0, "tool_calls": 6000, "iterations": 400}
        return self.caps.setdefault((row.scope, "" if row.scope == "day" else row.key), made)

    def node(self, row: b.BudgetRow) -> b.BudgetNodeView:
        """The detail pane's figures."""
        caps = self.caps_of(row)
        used = {"cost_usd": row.spent_usd, "tokens": 31.4e6, "wall_s": 68_520.0, "tool_calls": 3812.0, "iterations": 212.0, "cpu_s": 812.0}
        rates = {"cost_usd": row.burn_usd_per_h, "tokens": 3.4e6, "wall_s": 3600.0, "tool_calls": 200.0}
        gauges = []
        for name in LIMITS:
            cap, value, rate = caps.get(name), used.get(name, 0.0) if row.name else 0.0, rates.get(name)
            left = (cap - value) / rate * 3600 if cap is not None and rate else None
            share = value / cap if cap else None
            gauges.append(b.GaugeView(limit=name, used=value, cap=cap, share=share, rate_per_h=rate, ends_in_s=left))
        first = next((t.first for t in self.page().trees if t.tree.key == row.key), [])
        spenders = [b.SpenderView(agent_id=r.key, name=r.name, spent_usd=r.spent_usd, level="over") for r in first]
        spenders += [b.SpenderView(agent_id="inbox-reader", name="inbox-reader", spent_usd=22.35)] if row.key == "support-triage" else []
        return b.BudgetNodeView(
            row=row,
            gauges=gauges,
            spenders=sorted(spenders, key=lambda s: -s.spent_usd),
            others=42 if spenders else 0,
            others_usd=67.21 if spenders else 0.0,
            changes=self.changes[:20],
            changes_total=len(self.changes),
            at_full=AT_FULL,
        )

    async def _pictures(self, _request: Request) -> Response:
        self.asked.append("pictures")
        if self.broken:
            return refuse(503, self.broken)
        hostile = any(a.name in HOSTILE_NAMES for a in self._house.agents.values())
        empty = b.BudgetPictures(
            at=time.time(), burn=b.DayBurn(note="no projection: nothing was spent in the last hour"), windows=not_available()
        )
        drawn = self.drawn or (pictures(time.time(), hostile) if self._house.agents else empty)
        return say(drawn)

    async def _change(self, request: Request) -> Response:
        body = b.BudgetBody.read(json.loads(await request.body()))
        self.log.append(body.as_data())
        if self.refused:
            return refuse(409, self.refused, "Look at the disk.")
        row = b.BudgetRow(scope=body.scope, key=body.key, name=body.key)
        known = next((r for r in self._rows() if r.key == body.key), row).replaced(scope=body.scope)
        held = self.caps_of(known if body.key else row)
        new = {n: v for n, v in held.items() if n not in [LIMIT_WORDS[c] for c in body.clear]}
        new |= {LIMIT_WORDS[n]: v for n, v in body.limits.items()}
        changes = [
            b.BudgetChange(at=time.time(), scope=body.scope, key=body.key, limit=n, old=o, new=w, by="operator:0", reason=body.reason)
            for n in LIMITS
            if (o := held.get(n)) != (w := new.get(n))
        ]
        view = b.BudgetSetView(scope=body.scope, key=body.key, changes=changes, halted=self.halts, dry_run=body.dry_run)
        if body.dry_run:
            view.cannot_stop = self.cannot_stop
            view.words = f"{len(self.halts)} agents have used it up and will be halted at once." if self.halts else "It halts no agent now."
            return say(view)
        held.clear()
        held.update(new)
        self.changes = [*changes, *self.changes]
        view.words = f"{body.scope} {body.key}: {len(changes)} limits changed: {body.reason}"
        return say(view)
