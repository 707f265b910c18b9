"""The rules in force as a table: deny before ask before allow, how often each decided, when last, and what is odd about it."""

from __future__ import annotations

import time

from PySide6.QtCore import QRectF

from console.api.policy.rules import DAYS, ExactRule, PolicyView, RuleRow
from console.gui.kit.table import Cell, matches
from console.gui.models.operators import person
from console.gui.pages.policy.words import ORDER, kind_words, means, shape_of
from console.gui.theme import fonts
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.lines import Line
from console.gui.widgets.marks import chip_width, draw_chip, draw_text
from console.gui.widgets.rows import Canvas
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import age, count, day_clock, plural, span

NOTES = (
    "The rules are being read…",
    "No rules match the filter.",
    "No rule is in force: every call is denied. Rules stand in policy.json of the state directory; B writes the first ones.",
)
"""What the list says while it is read, when nothing matches the filter, and when there is nothing."""


class ExactRow(RuleRow):
    """A rule that a person made of an approval, as one more row."""

    exact: ExactRule


def rows_of(view: PolicyView) -> list[RuleRow]:
    """Every rule in force, those that people made of approvals last."""
    made = [
        ExactRow(rule=f"exactly({one.tool} {one.argument})", list="allow", hits=one.hits, last_at=one.last_at, exact=one)
        for one in view.exact
    ]
    return [*view.rules, *made]


def key_of(row: RuleRow) -> str:
    """Known by it in the list."""
    return f"{row.list} {row.rule} {row.exact.id}" if isinstance(row, ExactRow) else f"{row.list} {row.rule}"


def decided_as(row: RuleRow) -> str:
    """What a recorded call names when this rule decided it."""
    return f"rule {row.exact.id}" if isinstance(row, ExactRow) else row.rule


def use_of(row: RuleRow) -> str:
    """Another one as soon as it decided a call more."""
    return f"{key_of(row)}\0{row.hits} {row.last_at}"


def keeps(row: RuleRow, text: str) -> bool:
    """Whether a filter keeps it; ``never`` and ``not in force`` are words too."""
    return matches(text, row.list, row.rule, kind_words(row.rule), row.finding, mark_words(row))


def mark_words(row: RuleRow) -> str:
    """What is odd about it; empty: nothing."""
    unused = f"never used in {DAYS} d" if not row.hits else ""
    finding = row.finding if row.in_force else f"NOT in force: {row.finding}"
    return "; ".join(part for part in (finding, unused) if part)


def _paint_mark(canvas: Canvas, row: RuleRow) -> None:
    cell = canvas.cells.get("mark")
    if cell is None:
        return
    words, icon, kind = "", "", "plain"
    if not row.in_force:
        words, icon, kind = "Not in force", "alert", "danger"
    elif row.finding:
        words, icon, kind = "Lint", "warning", "warn"
    elif not row.hits:
        words, icon = f"Never in {DAYS} d", "clock"
    if not words:
        return
    box = QRectF(cell.x(), cell.y() + 4.5, min(chip_width(words, True), cell.width()), 20)
    draw_chip(canvas.painter, box, words, icon, kind, canvas.ink)
    draw_text(canvas.painter, cell.adjusted(box.width() + 8, 0, 0, 0), safe_text(row.finding), fonts.ui(12), canvas.ink.text2)


def _last_words(row: RuleRow) -> str:
    return f"last used {age(row.last_at, time.time())}" if row.last_at is not None else f"never used in {DAYS} days"


def _last(row: RuleRow) -> str:
    return span(time.time() - row.last_at) if row.last_at is not None else "never"


def _hits_role(row: RuleRow) -> str:
    return "text" if row.hits else "text3"


COLUMNS: tuple[Cell[RuleRow], ...] = (
    Cell(
        "list",
        "Verdict",
        92,
        words=lambda row: shape_of(row.list)[0],
        shape=lambda row: shape_of(row.list),
        quiet="text",
        sort=lambda row: -ORDER.get(row.list, 3),
    ),
    Cell(
        "rule",
        "Rule",
        share=6,
        words=lambda row: row.rule,
        role=lambda row: "text" if row.in_force else "text2",
        mono=True,
        size=13,
        sort="words",
    ),
    Cell("kind", "About", 96, hide_below=560, words=lambda row: kind_words(row.rule), role="text2", sort="words"),
    Cell(
        "mark",
        "Marks",
        share=4,
        hide_below=480,
        words=mark_words,
        paint=_paint_mark,
        sort=lambda row: (not row.in_force, bool(row.finding), row.hits == 0),
    ),
    Cell(
        "line",
        "Line",
        52,
        right=True,
        hide_below=700,
        words=lambda row: f"line {row.line}" if row.line else "line not known",
        text=lambda row: str(row.line) if row.line else "—",
        role="text3",
        mono=True,
        sort=lambda row: row.line,
    ),
    Cell("last", "Last used", 84, right=True, hide_below=520, words=_last_words, text=_last, role="text2", sort=lambda row: row.last_at),
    Cell(
        "hits",
        f"Hits {DAYS} d",
        76,
        right=True,
        words=lambda row: f"decided {plural(row.hits, 'call')} in {DAYS} days",
        text=lambda row: count(row.hits),
        role=_hits_role,
        weight=fonts.MEDIUM,
        sort=lambda row: row.hits,
    ),
)


def chips(row: RuleRow) -> list[ChipSpec]:
    """For the pane."""
    word, _, role = shape_of(row.list)
    icons = {"danger": "ban", "warn": "warning", "text2": "check"}
    found = [ChipSpec(word, icons[role], role if role in ("danger", "warn") else "plain"), ChipSpec(kind_words(row.rule))]
    if not row.in_force:
        found.append(ChipSpec("Not in force", "alert", "danger"))
    elif not row.hits:
        found.append(ChipSpec("Never used", "clock"))
    return found


def told(row: RuleRow, view: PolicyView) -> list[Line]:
    """For the pane: what it says, where it stands, how it was used."""
    if isinstance(row, ExactRow):
        return _exact_told(row.exact)
    place = f"line {row.line} of " if row.line else "a line that is not known of "
    lines = [Line(means(row.rule), role="text"), Line(f"Stands in {place}{view.file or 'a file that the supervisor does not name'}.")]
    if not row.in_force:
        lines.append(Line(f"Not in force until it is marked unconfined: {row.finding}", "diamond", "danger"))
    elif row.finding:
        lines.append(Line(f"Lint: {row.finding}", "triangle", "warn"))
    if row.hits and row.last_at is not None:
        used = f"Decided {plural(row.hits, 'call')} in {DAYS} days, the last at {day_clock(row.last_at)}."
        lines.append(Line(used))
    elif view.recorded:
        lines.append(Line(f"Decided none of the {view.recorded:,} calls that were checked in {DAYS} days.", "ring"))
    else:
        lines.append(Line(f"No call was checked in {DAYS} days: whether it is of use is not known.", "ring"))
    return lines


def _exact_told(one: ExactRule) -> list[Line]:
    used = f"Decided {plural(one.hits, 'call')} in {DAYS} days." if one.hits else f"Decided no call in {DAYS} days."
    return [
        Line("Exactly this call, with the same whole input.", role="text"),
        Line(f"In {one.folder}.", mono=True),
        Line(f"Allowed until {day_clock(one.until)}; then such a call is asked again.", "clock"),
        Line(f"Made by {person(one.by)} of approval {one.approval_id}, {day_clock(one.at)}{f': {one.reason}' if one.reason else ''}."),
        Line(used, "" if one.hits else "ring"),
    ]


def title(row: RuleRow) -> str:
    """One safe line."""
    return safe_text(row.rule, 300)
