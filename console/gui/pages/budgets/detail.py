"""The pane beside the list: every limit of one node, who spends it, what happens at 100 %, who changed it, and what can be done."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api.budgets import BudgetChange, BudgetNodeView, BudgetRow, GaugeView, SpenderView
from console.gui.kit.layout import Part, scrolled
from console.gui.kit.pane import Offer, Pane, section
from console.gui.models.operators import person
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.pages.budgets.words import cap_words, day_minute, gauge_note, is_unpriced, typed_cap, unpriced_words
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.facts import Chips, ChipSpec, Fact, Facts, Gauges
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import long_span, plural, usd
from console.panic.marks import draw_mark
from console.wording.limits import LABELS, amount, label

NO_LIMITS = "No limit is set here: it does not end by itself. L sets one, with a reason."
_SPENDERS = 5
_CHANGES = 4
_AT_FULL = 3
_SCOPES = {"agent": "Agent", "tree": "Tree", "session": "Session", "project": "Project", "day": "Day", "type": "Agent type"}


def crumb(row: BudgetRow) -> str:
    """``Tree, 46 agents``, ``Agent, running``."""
    what = _SCOPES.get(row.scope, row.scope)
    if row.scope == "agent":
        return f"{what}, {row.state.replace('_', ' ')}" if row.state else what
    return f"{what}, {plural(row.agents, 'agent')}{' live' if row.agents_ever > row.agents else ''}"


def chips(row: BudgetRow, gauges: Sequence[GaugeView], over: int = 0) -> list[ChipSpec]:
    """Level, how many agents of it are over their own, age, what has no price."""
    level = {
        "over": ChipSpec("over budget", "alert", "danger"),
        "above_90": ChipSpec("above 90%", "warning", "danger"),
        "above_75": ChipSpec("above 75%", "warning", "warn"),
    }.get(row.level, ChipSpec("within budget"))
    found = [level if row.first_limit or row.level != "within" else ChipSpec("no limit")]
    if over and row.scope != "agent":
        words = ChipSpec(f"{plural(over, 'agent')} over budget", "alert", "danger")
        found = [*(found if row.level != "within" else []), words]
    wall = next((g.used for g in gauges if g.limit == "wall_s"), 0.0)
    if wall > 0:
        found.append(ChipSpec(long_span(wall)))
    if row.unpriced:
        found.append(ChipSpec("unpriced" if is_unpriced(row) else "spend unknown", "alert", "warn"))
    return found


def overshoot_words(row: BudgetRow) -> str:
    """How it is metered, and by how much it passed its cap."""
    unknown = unpriced_words(row)
    words = [f"{unknown[:1].upper()}{unknown[1:]}."] if unknown else []
    if row.metered == "after the fact":
        words.append("Counted after the fact: it may pass a limit by the answers in flight.")
    elif row.metered == "by telemetry":
        words.append("Reported by telemetry alone, which any process may send: no limit counts it.")
    if row.overshoot is not None and math.isfinite(row.overshoot):
        words.append(f"It had passed its limit on {label(row.overshoot_limit)} by {amount(row.overshoot_limit, row.overshoot)}, measured.")
    return " ".join(words)


def change_words(change: BudgetChange) -> str:
    """``ann (uid 1000): cost 120 → 160, ticket peak``."""
    old, new = (typed_cap(change.limit, v) or "none" for v in (change.old, change.new))
    return f"{person(change.by)}: {label(change.limit)} {old} → {new}, {change.reason}"


class Spenders(QWidget):
    """Who spends it: name, a bar of the whole, money."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: tuple[tuple[str, float, str, bool], ...] = ()
        self.setFixedHeight(0)

    def say(
        self, spenders: Sequence[SpenderView], others: int, others_usd: float, whole: float, unknown: frozenset[str] = frozenset()
    ) -> None:
        """The dearest, and all others in one line. ``unknown``: agents whose spend nothing reads."""
        rest = spenders[_SPENDERS:]
        money = {s.agent_id: usd(None if s.agent_id in unknown and not s.spent_usd else s.spent_usd) for s in spenders[:_SPENDERS]}
        lines = [(s.name or s.agent_id, s.spent_usd, money[s.agent_id], s.level == "over") for s in spenders[:_SPENDERS]]
        if others + len(rest):
            left = others_usd + sum(s.spent_usd for s in rest)
            lines.append((plural(others + len(rest), "other"), left, usd(left), False))
        top = max([whole, *(value for _, value, *_ in lines)], default=0.0)
        self._lines = tuple((safe_text(name), value / top if top > 0 else 0.0, money, over) for name, value, money, over in lines)
        self.setFixedHeight(22 * len(lines))
        self.setAccessibleName("; ".join(f"{name} {money}{' over budget' if over else ''}" for name, _, money, over in self._lines))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, (name, share, money, over) in enumerate(self._lines):
            y = number * 22
            lead = 14 if over else 0  # over budget is told by shape too
            if over:
                draw_mark(painter, "diamond", QRectF(0, y + 6.5, 9, 9), colours.danger)
            draw_text(painter, QRectF(lead, y, 112 - lead, 22), name, fonts.ui(12), colours.danger if over else colours.text2)
            bar = QRectF(123, y + 8.5, max(20, self.width() - 123 - 76), 5)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.track))
            painter.drawRoundedRect(bar, 2.5, 2.5)
            used = min(1.0, max(0.0, share)) if math.isfinite(share) else 1.0
            painter.setBrush(QColor(colours.dangerfill if over else colours.bar))
            painter.drawRoundedRect(QRectF(bar.x(), bar.y(), max(5.0, bar.width() * used), 5), 2.5, 2.5)
            draw_text(painter, QRectF(self.width() - 74, y, 74, 22), money, fonts.ui(12, fonts.MEDIUM), colours.text, right=True)
        painter.end()


OFFERS = (
    Offer("budgets.pause", "Freeze", "pause"),
    Offer("budgets.stop-tree", "Kill tree…", "stop", kind="danger"),
    Offer("budgets.limits", "Limits…", "pencil"),
)


class BudgetDetail(Pane):
    """One row of the page: its limits, who spends it, and what was changed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.key = ""
        self.view: BudgetNodeView | None = None
        self.lay((scrolled(self, *self._head(), *self._body(), margins=(19, 13, 20, 12)), 1), offers=OFFERS)
        self.pause, self.stop, self.limits = self.offers.values()

    def _head(self) -> tuple[Part, ...]:
        self.crumb = Text("", 11, fonts.REGULAR, "text2")
        self.name = Text("", 17, fonts.SEMIBOLD)
        self.chips = Chips()
        self.note = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.metered = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.problem = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        return (self.crumb, 4, self.name, 6, self.chips, 6, self.note, self.metered, self.problem)

    def _body(self) -> tuple[Part, ...]:
        limits = section("Limits of this tree", "75 and 90% marked")
        self.limits_title, self.limits_of = limits.title, limits.note
        self.no_limits = Text(NO_LIMITS, 12, fonts.REGULAR, "text2", wrap=True)
        self.gauges = Gauges()
        self.open = Facts(21)
        self.spenders = Spenders()
        self.nobody = Text("No agent has spent anything yet.", 12, fonts.REGULAR, "text2")
        self.at_full = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        changes = section("Changes")
        self.changes_of = changes.note
        self.changes = Facts(22, split=64)
        self.unchanged = Text("No limit was changed here.", 12, fonts.REGULAR, "text2")
        spent = (*section("Who spends it", "each without its children").parts, self.spenders, self.nobody)
        full = (*section("At 100%").parts, self.at_full)
        return (*limits.parts, self.no_limits, self.gauges, self.open, *spent, *full, *changes.parts, self.changes, self.unchanged)

    def show_row(self, key: str, row: BudgetRow) -> None:
        """What the list knows; the rest comes with ``show_node``."""
        other = key != self.key
        self.key = key
        if other:
            self.view = None
            self.problem.hide()
            self._show_gauges([])
            self.no_limits.hide()
            self.spenders.say([], 0, 0.0, 0.0)
            for facts in (self.open, self.changes):
                facts.say([])
            for words in (self.at_full, self.changes_of):
                words.setText("")
            for text in (self.nobody, self.unchanged):
                text.hide()
        self._show_head(row)

    def _show_head(self, row: BudgetRow) -> None:
        gauges = self.view.gauges if self.view is not None else []
        over = sum(s.level == "over" for s in self.view.spenders) if self.view is not None else 0
        self.crumb.setText(crumb(row))
        self.name.setText(row.name or row.key)
        self.chips.say(chips(row, gauges, over))
        self.note.setText(plain_reason(row.note))
        self.note.setVisible(bool(row.note))
        words = overshoot_words(row)
        self.metered.setText(words)
        self.metered.setVisible(bool(words))
        self.limits_title.setText(f"Limits of this {_SCOPES.get(row.scope, 'node').lower()}")
        self.stop.setText("Kill tree…" if row.scope in ("tree", "agent") else "Kill all…")

    def show_node(self, key: str, view: BudgetNodeView, unknown: frozenset[str] = frozenset()) -> None:
        """Another node's answer is ignored. ``unknown``: agents of which nothing is known of what they spent."""
        if key != self.key:
            return
        self.view = view
        self.problem.hide()
        self._show_head(view.row)
        capped = [g for g in view.gauges if g.cap is not None]
        self._show_gauges(capped)
        self.no_limits.setVisible(not capped)
        self.open.say(
            [
                Fact(f"{LABELS.get(g.limit, g.limit)}, no limit", amount(g.limit, g.used))
                for g in view.gauges
                if g.cap is None and g.used > 0
            ]
        )
        self.spenders.say(view.spenders, view.others, view.others_usd, view.row.spent_usd, unknown)
        self.nobody.setVisible(not view.spenders)
        self.at_full.setText(" ".join(view.at_full[:_AT_FULL]))
        shown = view.changes[:_CHANGES]
        self.changes.say([Fact(day_minute(c.at), change_words(c), mono=True, left_role="text2", right_role="text") for c in shown])
        self.changes_of.setText(f"last {len(shown)} of {view.changes_total}" if shown else "")
        self.unchanged.setVisible(not shown)

    def show_problem(self, key: str, words: str) -> None:
        """It could not be read; what stands there is as old as it is."""
        if key == self.key:
            self.problem.setText(words)
            self.problem.show()

    def _show_gauges(self, gauges: Sequence[GaugeView]) -> None:
        self.gauges.say([self._gauge(gauge) for gauge in gauges])

    def _gauge(self, gauge: GaugeView) -> tuple[str, str, str, float, str]:
        share = gauge.share if gauge.share is not None else math.nan
        title = LABELS.get(gauge.limit, safe_text(gauge.limit, 30))
        return title, self._used(gauge), f"of {cap_words(gauge.limit, gauge.cap or 0.0)}", share, gauge_note(gauge)

    def _used(self, gauge: GaugeView) -> str:
        row = self.view.row if self.view is not None else None
        is_unread = row is not None and row.unpriced and gauge.limit == "cost_usd" and not gauge.used
        return "unknown" if is_unread else amount(gauge.limit, gauge.used)

    def allow(self, can: dict[str, str], frozen: bool) -> None:
        """``can``: action id -> why not, or empty."""
        self.pause.set_face("Resume" if frozen else "Freeze", "play" if frozen else "pause")
        self.judge(lambda action: can.get(action, ""))
