"""What the lint says of the rules in force: which is refused, what each swallows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.api.policy.page import LintFinding, LintView
from console.gui.pages.policy.words import SEVERITIES, UNKNOWN, VERDICTS, matches, paint_shape
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.lines import Line
from console.gui.widgets.rows import Canvas, Column
from console.gui.widgets.words import plural

COLUMNS = (
    Column("severity", "Severity", 96),
    Column("list", "List", 64, hide_below=520),
    Column("rule", "Rule", share=3),
    Column("what", "What is wrong", share=5),
    Column("swallows", "Swallows", 92, right=True),
)
EMPTY = "The lint finds nothing wrong with these rules: none swallows what is denied, none is without effect, none says less than it seems."
NONE = "No findings match the filter."
READING = "Checking the rules…"
_RANK = {"refused": 0, "warning": 1, "note": 2}
SORTS: dict[str, Callable[[LintFinding], Any]] = {
    "severity": lambda row: -_RANK.get(row.severity, -1),
    "list": lambda row: row.kind,
    "rule": lambda row: row.rule.lower(),
    "what": lambda row: row.what,
    "swallows": lambda row: row.swallows_count,
}


def key_of(row: LintFinding) -> str:
    """Known by it in the list."""
    return f"{row.kind} {row.rule} {row.what}"


def keeps(row: LintFinding, text: str) -> bool:
    """Whether a filter keeps it."""
    return matches(text, row.severity, row.kind, row.rule, row.what)


def cell_words(row: LintFinding, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    match key:
        case "severity":
            return SEVERITIES.get(row.severity, UNKNOWN)[0]
        case "list":
            return VERDICTS.get(row.kind, UNKNOWN)[0]
        case "rule":
            return row.rule
        case "swallows":
            return f"swallows {plural(row.swallows_count, 'deny rule')}" if row.swallows_count else "swallows nothing"
    return row.what


def paint_finding(canvas: Canvas, row: LintFinding) -> None:
    """One finding."""
    paint_shape(canvas, "severity", SEVERITIES.get(row.severity, UNKNOWN))
    canvas.text("list", row.kind, "text2")
    canvas.text("rule", row.rule, mono=True, size=13)
    canvas.text("what", row.what, "text2")
    canvas.text("swallows", f"{row.swallows_count:,} deny" if row.swallows_count else "—", "text2", right=True)


def chips(row: LintFinding) -> list[ChipSpec]:
    """For the pane."""
    word, _, role = SEVERITIES.get(row.severity, UNKNOWN)
    icon = {"danger": "alert", "warn": "warning"}.get(role, "info")
    return [ChipSpec(word, icon, role if role in ("danger", "warn") else "plain"), ChipSpec(VERDICTS.get(row.kind, UNKNOWN)[0])]


def told(row: LintFinding) -> list[Line]:
    """For the pane: what, and every deny rule it swallows."""
    word, mark, role = SEVERITIES.get(row.severity, UNKNOWN)
    lines = [Line(f"{word}: {row.what}", mark, role if role != "text2" else "text")]
    if row.severity == "refused":
        lines.append(Line("The rule is not in force. It asks a human instead, as what no rule names does."))
    if row.swallows_count:
        lines.append(Line(f"A call that it allows could break {plural(row.swallows_count, 'deny rule')}:", role="text"))
        lines += [Line(rule, "ban", "text2", mono=True, quiet=True) for rule in row.swallows]
        if row.swallows_count > len(row.swallows):
            lines.append(Line(f"and {row.swallows_count - len(row.swallows):,} more"))
    return lines


def counted(view: LintView) -> str:
    """``3 findings, 1 refused``; how many are not shown."""
    more = f", the first {len(view.findings):,} shown" if view.count > len(view.findings) else ""
    return f"{plural(view.count, 'finding')}, {view.refused:,} refused{more}"
