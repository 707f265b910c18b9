"""What the lint says of the rules in force: which is refused, what each swallows."""

from __future__ import annotations

from console.api.policy.page import LintFinding, LintView
from console.gui.kit.table import Cell, Shape, matches
from console.gui.pages.policy.words import SEVERITIES, UNKNOWN, shape_of
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.lines import Line
from console.gui.widgets.words import plural

NOTES = (
    "Checking the rules…",
    "No findings match the filter.",
    "The lint finds nothing wrong with these rules: none swallows what is denied, none is without effect, none says less than it seems.",
)
"""What the list says while it is read, when nothing matches the filter, and when there is nothing."""
_RANK = {"refused": 0, "warning": 1, "note": 2}


def key_of(row: LintFinding) -> str:
    """Known by it in the list."""
    return f"{row.kind} {row.rule} {row.what}"


def keeps(row: LintFinding, text: str) -> bool:
    """Whether a filter keeps it."""
    return matches(text, row.severity, row.kind, row.rule, row.what)


def _severity(row: LintFinding) -> Shape:
    return SEVERITIES.get(row.severity, UNKNOWN)


def _swallows(row: LintFinding) -> str:
    return f"swallows {plural(row.swallows_count, 'deny rule')}" if row.swallows_count else "swallows nothing"


COLUMNS: tuple[Cell[LintFinding], ...] = (
    Cell(
        "severity",
        "Severity",
        96,
        words=lambda row: _severity(row)[0],
        shape=_severity,
        quiet="text",
        sort=lambda row: -_RANK.get(row.severity, -1),
    ),
    Cell(
        "list",
        "List",
        64,
        hide_below=520,
        words=lambda row: shape_of(row.kind)[0],
        text=lambda row: row.kind,
        role="text2",
        sort=lambda row: row.kind,
    ),
    Cell("rule", "Rule", share=3, words=lambda row: row.rule, mono=True, size=13, sort="words"),
    Cell("what", "What is wrong", share=5, words=lambda row: row.what, role="text2", sort="words"),
    Cell(
        "swallows",
        "Swallows",
        92,
        right=True,
        words=_swallows,
        role="text2",
        sort=lambda row: row.swallows_count,
        text=lambda row: f"{row.swallows_count:,} deny" if row.swallows_count else "—",
    ),
)


def chips(row: LintFinding) -> list[ChipSpec]:
    """For the pane."""
    word, _, role = _severity(row)
    icon = {"danger": "alert", "warn": "warning"}.get(role, "info")
    return [ChipSpec(word, icon, role if role in ("danger", "warn") else "plain"), ChipSpec(shape_of(row.kind)[0])]


def told(row: LintFinding) -> list[Line]:
    """For the pane: what, and every deny rule it swallows."""
    word, mark, role = _severity(row)
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
