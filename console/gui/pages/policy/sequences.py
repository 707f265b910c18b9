"""Forbidden sequences in force, and below them the steps that were taken and stand, by lineage."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Signal
from PySide6.QtWidgets import QWidget

from console.api.policy.page import MarkRow, SequenceRow, SequencesView
from console.gui.kit.layout import column, row
from console.gui.kit.table import Cell, listing, matches
from console.gui.models.fleet import Fleet
from console.gui.theme import fonts
from console.gui.theme.tokens import FILTER_BAR
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.lines import Line
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import Canvas, ManyRowView, RowView
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.split import above
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural
from console.panic.marks import draw_mark

NO_PATTERNS = "No forbidden sequence is known, so every call is denied."
NO_MARKS = "No step of a forbidden sequence was taken. Each step of an agent or its lineage stays here for good."
NONE = "Nothing matches the filter."
READING = "The sequences are being read…"


def _paint_taken(canvas: Canvas, row: SequenceRow) -> None:
    cell = canvas.cells["marks"]
    if row.marks:
        draw_mark(canvas.painter, "triangle", QRectF(cell.x() + 1, cell.center().y() - 4, 9, 9), canvas.ink.warn)
    canvas.text("marks", f"{row.marks:,}", "warn" if row.marks else "text3", weight=fonts.MEDIUM, right=True)


PATTERNS: tuple[Cell[SequenceRow], ...] = (
    Cell("name", "Forbidden sequence", share=3, words=lambda row: row.name, mono=True, size=13, sort="words"),
    Cell("steps", "Steps", share=4, words=lambda row: " → ".join(step.name for step in row.steps), sort="words"),
    Cell("why", "Why", share=4, hide_below=640, words=lambda row: row.why, role="text2", sort="words"),
    Cell("from", "From", 76, hide_below=520, words=lambda row: "built in" if row.built_in else "own", role="text2", sort="words"),
    Cell(
        "marks",
        "Steps taken",
        92,
        right=True,
        words=lambda row: f"{plural(row.marks, 'step')} taken",
        paint=_paint_taken,
        sort=lambda row: row.marks,
    ),
)
MARKS: tuple[Cell[MarkRow], ...] = (
    Cell("at", "When", 104, words=lambda row: day_clock(row.at), role="text2", mono=True, sort=lambda row: row.at),
    Cell(
        "agent",
        "Agent",
        share=3,
        words=lambda row: f"{row.agent_id}, session {row.session}",
        text=lambda row: row.agent_id,
        weight=fonts.MEDIUM,
        sort=lambda row: row.agent_id,
    ),
    Cell("step", "Step taken", share=4, words=lambda row: f"{row.step} of {row.pattern}", sort=lambda row: f"{row.pattern} {row.step}"),
    Cell("value", "Of", share=2, hide_below=600, words=lambda row: row.value or "—", role="text2", mono=True, sort=lambda row: row.value),
    Cell(
        "lineage",
        "Lineage",
        share=2,
        hide_below=700,
        words=lambda row: row.lineage or row.root_id,
        role="text2",
        sort=lambda row: row.lineage,
    ),
    Cell("text", "Call", share=5, hide_below=480, words=lambda row: row.text, role="text2", mono=True, sort=lambda row: row.text),
)


def mark_key(row: MarkRow) -> str:
    """Known by it in the list."""
    return "\0".join((row.lineage, row.pattern, row.step, row.value))


def pattern_told(row: SequenceRow) -> list[Line]:
    """For the pane."""
    lines = [Line(f"{row.why}.", role="text")]
    for number, step in enumerate(row.steps, 1):
        lines.append(Line(f"{number}. {step.name}", role="text"))
        lines.append(Line(step.takes, mono=True))
    if row.same:
        lines.append(Line(f"All steps about the same {row.same}; an unknown one counts as any."))
    if row.tighten:
        lines.append(Line(f"With the first step the sessions of the lineage lose their network: {row.tighten}."))
    lines.append(Line("The last step is denied to every agent of the lineage, whichever of them took the earlier steps, and when."))
    taken = f"{plural(row.marks, 'step')} of it stand." if row.marks else "No step of it was taken."
    lines.append(Line(taken, "triangle" if row.marks else "ring", "warn" if row.marks else "text2"))
    return lines


def mark_told(row: MarkRow, name: str) -> list[Line]:
    """For the pane."""
    lines = [
        Line(f"{name} took this step at {day_clock(row.at)}. It is never taken back.", "triangle", "warn"),
        Line(f"Of: {row.value}" if row.value else "Of no certain thing: it is taken for any.", mono=bool(row.value)),
        Line(f"Session {row.session}, tree {row.root_id}, lineage {row.lineage or row.root_id}."),
        Line("The call:", role="text"),
        Line(row.text, mono=True),
    ]
    return lines if row.kept else [*lines, Line("It counts, but is not on disk yet.", "triangle", "warn")]


def pattern_chips(row: SequenceRow) -> list[ChipSpec]:
    """For the pane."""
    found = [ChipSpec("Built in" if row.built_in else "Own"), ChipSpec(plural(len(row.steps), "step"))]
    return [*found, ChipSpec(f"{row.marks:,} taken", "warning", "warn")] if row.marks else found


def mark_chips(row: MarkRow) -> list[ChipSpec]:
    """For the pane."""
    return [ChipSpec(row.pattern, "warning", "warn"), ChipSpec("Stands")]


class _Strip(Ground):
    """The bar between the two tables."""

    edges = ("top",)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = Text("", 12, role="text2")
        title = Text("Steps that stand", 13, fonts.SEMIBOLD)
        self.setFixedHeight(FILTER_BAR)
        row(title, (self.words, 1), margins=(14, 0, 16, 0), spacing=14, on=self)


class SequenceTables(QWidget):
    """``chosen`` with the row that was looked at last: a pattern, a mark, or None."""

    chosen = Signal(object)

    def __init__(self, fleet: Fleet, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fleet = fleet
        self.view: SequencesView | None = None
        self.text = ""
        self.problem = Text("", 12, fonts.MEDIUM, "danger", wrap=True, mark="diamond")
        self.problem.hide()
        self.patterns = listing("Forbidden sequences", PATTERNS, lambda row: str(row.name), self, RowView)
        self.no_patterns = empty_note(self.patterns, READING)
        self.marks = listing("Steps that stand", MARKS, mark_key, self, ManyRowView)
        self.mark_model = self.marks.row_model
        self.no_marks = empty_note(self.marks, NO_MARKS)
        self.strip = _Strip(self)
        lower = QWidget(self)
        column(self.strip, (self.marks, 1), on=lower)
        problem = column(self.problem, margins=(16, 0, 16, 0))
        column(problem, (above(self.patterns, lower, self, (300, 300)), 1), on=self)
        self.patterns.chosen.connect(self.chosen)
        self.marks.chosen.connect(self.chosen)

    def say(self, view: SequencesView) -> None:
        """Show a newer answer."""
        self.view = view
        kept = "what is shown stays in force" if view.patterns else "no valid version is known, so every call is denied"
        words = f"The newest sequences.yaml is NOT in force: {view.problem} ({kept})" if view.problem else ""
        self.problem.say(words, "danger", "diamond")
        self.problem.setVisible(bool(view.problem))
        shown = f", the newest {len(view.marks):,} shown" if view.marks_count > len(view.marks) else ""
        self.strip.words.setText(f"{plural(view.marks_count, 'step')} in {plural(view.lineages, 'lineage')}{shown}")
        self.arrange(self.text)

    def arrange(self, text: str) -> None:
        """Show the rows that match the filter."""
        self.text = text
        if self.view is None:
            self.no_patterns.show()
            return
        patterns = [one for one in self.view.patterns if matches(text, one.name, one.why, *(step.name for step in one.steps))]
        marks = [one for one in self.view.marks if self._keeps(one, text)]
        self.patterns.show_rows(patterns)
        self.marks.show_rows(marks)
        self.no_patterns.setText(NONE if self.view.patterns else NO_PATTERNS)
        self.no_patterns.setVisible(not patterns)
        self.no_marks.setText(NONE if self.view.marks else NO_MARKS)
        self.no_marks.setVisible(not marks)

    def warn(self, words: str) -> None:
        """Above the tables: what is shown is old, and since when."""
        self.problem.say(words, "warn", "triangle")
        self.problem.setVisible(bool(words))

    def fail(self, words: str) -> None:
        """Not answered, and why."""
        self.no_patterns.setText(f"Not known: {words}")
        self.no_patterns.setVisible(self.view is None)

    def current(self) -> SequenceRow | MarkRow | None:
        """What is looked at: of the table that has the focus, else the pattern."""
        first, second = (self.marks, self.patterns) if self.marks.hasFocus() else (self.patterns, self.marks)
        found: SequenceRow | MarkRow | None = first.current() or second.current()
        return found

    def name_of(self, agent_id: str) -> str:
        """An agent's name while it is in the fleet."""
        row = self._fleet.rows.get(agent_id)
        return row.name if row is not None else agent_id

    def _keeps(self, row: MarkRow, text: str) -> bool:
        return matches(text, row.pattern, row.step, row.value, row.agent_id, row.session, row.lineage, row.text)
