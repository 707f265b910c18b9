"""Tools, what a call of each needs and is judged by: the matrix as a table. Bounds that no rule judges by are not shown."""

from __future__ import annotations

from collections.abc import Iterable

from console.api.policy.page import ToolRow, ToolsView
from console.gui.kit.table import Cell, matches
from console.gui.models.fleet import Row
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.lines import Line
from console.gui.widgets.words import plural

NOTES = (
    "The tools are being read…",
    "No tools match the filter.",
    "No tool is known. What is known of tools is part of the product (resources/policy/tools.json).",
)
"""What the list says while it is read, when nothing matches the filter, and when there is nothing."""
_NAMED = 40


def name_of(row: ToolRow) -> str:
    """The first of its names."""
    return row.names[0] if row.names else "any other tool"


def key_of(row: ToolRow) -> str:
    """Known by it in the list."""
    return f"{' '.join(row.names) or '*'}\0{row.constraints}"


def keeps(row: ToolRow, text: str) -> bool:
    """Whether a filter keeps it."""
    return matches(text, " ".join(row.names), name_of(row), row.family, row.action, " ".join(row.scopes), row.judged)


def _title(row: ToolRow) -> str:
    more = f"  +{len(row.names) - 1}" if len(row.names) > 1 else ""
    return f"{name_of(row)}{more}"


def _connects(row: ToolRow) -> str:
    return "sends data out: denied with private data present" if row.connects else "sends nothing"


COLUMNS: tuple[Cell[ToolRow], ...] = (
    Cell(
        "tool",
        "Tool",
        share=5,
        words=lambda row: ", ".join(row.names) or "any other tool",
        text=_title,
        size=13,
        sort=lambda row: name_of(row).lower(),
        role=lambda row: "text" if row.names else "text2",
        mono=lambda row: bool(row.names),
    ),
    Cell(
        "action",
        "Action",
        72,
        words=lambda row: row.action or "its own",
        text=lambda row: row.action or "—",
        role="text2",
        sort=lambda row: row.action,
    ),
    Cell(
        "scopes",
        "Needs scopes",
        share=4,
        words=lambda row: ", ".join(row.scopes) or "none",
        role="text2",
        mono=True,
        text=lambda row: " ".join(row.scopes) or "—",
        sort=lambda row: " ".join(row.scopes) or None,
    ),
    Cell("judged", "Checked by", share=5, hide_below=620, words=lambda row: row.judged, role="text2", sort="words"),
    Cell(
        "connects",
        "Sends data",
        96,
        hide_below=520,
        words=_connects,
        text=lambda row: "sends data" if row.connects else "—",
        role="text2",
        sort=lambda row: row.connects,
    ),
    Cell(
        "bounds",
        "Bounds",
        share=4,
        hide_below=460,
        words=lambda row: row.constraints or "none",
        sort=lambda row: row.constraints or None,
        text=lambda row: row.constraints or "—",
        role=lambda row: "text" if row.constraints else "text3",
    ),
)


def chips(row: ToolRow) -> list[ChipSpec]:
    """For the pane."""
    found = [ChipSpec(row.family)]
    return [*found, ChipSpec("Sends data", "network")] if row.connects else found


def matrix_words(view: ToolsView) -> tuple[str, str, str]:
    """(words above the table, colour, shape) of the permission matrix; empty: it is in force as it stands."""
    match view.matrix_state:
        case "in_force":
            return "", "text2", ""
        case "none":
            return f"Bounds of a permission matrix: {view.matrix}.", "text2", "ring"
        case "last_good":
            return f"The newest matrix.json is NOT in force: {view.matrix} The bounds that are shown are.", "danger", "diamond"
        case "unknown":
            return view.matrix, "danger", "diamond"
    return f"Whether a permission matrix is in force is not known: {view.matrix or 'the supervisor does not say'}.", "warn", "triangle"


def told(row: ToolRow, view: ToolsView, fleet: Iterable[Row]) -> list[Line]:
    """For the pane: names, scopes and who has them, bounds."""
    lines = [Line(f"Checked by: {row.judged}.", role="text")]
    lines.append(Line(f"Bounds: {row.constraints or view.matrix or 'none'}.", "" if row.constraints else "ring"))
    if row.connects:
        lines.append(Line("It sends data to other hosts or people. Denied in a session that holds private data.", "ring"))
    live = [one for one in fleet if one.is_live]
    for scope in row.scopes:
        lines.append(_scope_line(scope, scope in view.granted, live))
    if not row.scopes:
        lines.append(Line("It needs no scope."))
    if len(row.names) > 1:
        lines.append(Line(f"The same holds for {plural(len(row.names) - 1, 'more name')}:", role="text"))
        lines += [Line(name, mono=True, quiet=True) for name in row.names[1:]]
    return lines


def _scope_line(scope: str, at_birth: bool, live: list[Row]) -> Line:
    lacking = [one.name for one in live if one.view.scopes is not None and scope not in one.view.scopes]
    birth = "granted at the start, unless the launch names others" if at_birth else "not granted at birth unless the launcher names it"
    if not live:
        return Line(f"{scope}: {birth}; no agent lives.", "ring")
    if not lacking:
        return Line(f"{scope}: {birth}; each of {plural(len(live), 'living agent')} may.", "check")
    names = ", ".join(lacking[:_NAMED]) + (f" and {len(lacking) - _NAMED:,} more" if len(lacking) > _NAMED else "")
    return Line(f"{scope}: {birth}; {len(live) - len(lacking):,} of {len(live):,} living agents may. Denied to {names}.", "ban", "text")
