"""One request (or a group as a whole): what exactly, why it asked, what came before, what it could touch, and how long there is."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLayout, QScrollArea, QSizePolicy, QWidget

from console.api.policy.approvals import ApprovalDetailView, ApprovalRow
from console.domain.calls.permission import worst_of
from console.gui.kit.layout import PANE, STRETCH, column, row, scrolled
from console.gui.kit.pane import section
from console.gui.models.operators import person
from console.gui.pages.approvals.case import Case, blast_of, parts_of
from console.gui.pages.approvals.exact import ExactView
from console.gui.pages.approvals.hostile import top_findings
from console.gui.pages.approvals.sections import Blast, Cell, Countdown, Findings, Grid, Tree
from console.gui.pages.approvals.words import VERDICTS, call_line, digest_words, end_words, numbered
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Card, Chips, ChipSpec, Rule
from console.gui.widgets.side_pane import SidePane
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, day_clock, long_span, plural

SIDE = 296
GAP = 24
PARTS_SHOWN = 7
SIMILAR_SHOWN = 4
BEFORE_SHOWN = 5
RULE = "Drafts a narrow rule from this very call. It is tried on the recorded calls of the last 14 days before it can take effect."
ACTIONS = (
    ("approvals.once", "Approve once", "A", "plain"),
    ("approvals.session", "Approve for this session", "S", "plain"),
    ("approvals.deny", "Deny", "D", "danger"),
    ("approvals.rule", "Make a rule…", "R", "plain"),
)


class DetailPane(SidePane):
    """``asked`` carries an action id of the page; ``back_asked`` when the pane stands over the list and should go."""

    asked = Signal(str)
    back_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.case = Case(())
        self.is_full = False
        self._key = ""
        self.buttons: dict[str, Button] = {}
        self.problem = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.problem.hide()
        warned = row(self.problem, margins=(19, 0, 20, 0), spacing=-1)
        column(self._head(), (self._body(), 1), warned, self._foot(), margins=(1, 0, 0, 0), on=self)

    # --- building ----------------------------------------------------------------------------------------------------

    def _head(self) -> QLayout:
        self._crumb = Text("", 11, fonts.REGULAR, "text2")
        self.title = Text("", 17, fonts.SEMIBOLD)
        self._chips = Chips()
        self.countdown = Countdown()
        self.countdown.setFixedWidth(150)
        self.back = Button("Requests", keys="Esc", small=True, parent=self)
        self.back.clicked.connect(self.back_asked)
        names = column(self._crumb, self.title, self._chips, STRETCH, spacing=4)
        head = row((names, 1), margins=(19, 14, 20, 4), spacing=12)
        head.addWidget(self.back, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.countdown, 0, Qt.AlignmentFlag.AlignTop)
        return head

    def _body(self) -> QScrollArea:
        side = QWidget(self)
        side.setFixedWidth(SIDE)
        side.setLayout(self._right_column())
        self._area = scrolled(self, row((self._left_column(), 1), side, spacing=GAP), margins=(19, 0, 20, 10), fills=True)
        return self._area

    def _left_column(self) -> QLayout:
        self.says = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.exact = ExactView(self)
        self.findings = Findings(self)
        self.why = Grid("Why it asked", parent=self)
        self.reason = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.similar = Grid("Similar past decisions", ruled=False, parent=self)
        self.before = Grid("Just before", ruled=False, parent=self)
        exact = section("Exact request", room=7)
        why = section("Why it asked", room=7)
        similar = section("Similar past decisions", room=7)
        before = section("Just before", room=7)
        self._exact_note, self._why_note, self._similar_note, self._before_note = exact.note, why.note, similar.note, before.note
        asked = (Rule(5), self.says, *exact.parts, self.exact, self.findings, *why.parts, self.reason, self.why)
        return column(*asked, *similar.parts, self.similar, *before.parts, self.before, STRETCH)

    def _right_column(self) -> QLayout:
        self.tree = Tree(self)
        self.blast = Blast(self)
        card = Card(parent=self)
        card.column.addWidget(Text(RULE, 12, fonts.REGULAR, "text2", wrap=True))
        tree, blast = section("Tree and cost so far", room=5), section("Blast radius", room=7)
        rule = section("Drafted rule", "R drafts it", room=7)
        return column(*tree.parts, self.tree, *blast.parts, self.blast, *rule.parts, card, STRETCH)

    def _foot(self) -> QLayout:
        for action, words, key, kind in ACTIONS:
            self.buttons[action] = self._button(words, key, kind, action)
        self.take_back = self._button("Take back…", "D", "danger", "approvals.deny")
        self._use = Text("", 11, fonts.REGULAR, "text2", right=True)
        self._void = Text("", 11, fonts.REGULAR, "text2", right=True)
        for note in (self._use, self._void):
            note.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._void.setMinimumWidth(148)
        notes = column(self._use, self._void)
        return row(*self.buttons.values(), self.take_back, STRETCH, (notes, 1), margins=PANE, spacing=8)

    def _button(self, words: str, key: str, kind: str, action: str) -> Button:
        button = Button(words, "", kind, keys=key, parent=self)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda: self.asked.emit(action))
        return button

    # --- showing -----------------------------------------------------------------------------------------------------

    def show_case(self, case: Case, key: str) -> None:
        """``key`` names what is looked at: another one begins at the top, folded, without the old problem."""
        if key != self._key:
            self._key, self.is_full = key, False
            self.problem.hide()
            self._area.verticalScrollBar().setValue(0)
        self.case = case
        row = case.rows[0]
        self._crumb.setText(_crumb(row))
        self.title.setText(case.title)
        self._chips.say(_chips(case))
        self.says.setText(_says(case))
        self.exact.say(case.shown)
        self.findings.say(top_findings(case.shown))
        self._exact_note.setText(_exact_words(case))
        self._show_why()
        self._show_past(case.details[0] if case.details else None)
        self.blast.say(blast_of(case))

    def show_problem(self, words: str) -> None:
        """What failed, in its place; empty: nothing."""
        self.problem.setText(words)
        self.problem.setVisible(bool(words))

    def allow(self, why_not: dict[str, str], *, is_grant: bool, notes: tuple[str, str], several: int = 0) -> None:
        """``why_not`` by action id: empty when it can be done. ``several``: requests that are selected, which the denial means."""
        self.buttons["approvals.deny"].setText(f"Deny {several:,}…" if several else "Deny")
        for action, button in self.buttons.items():
            button.setVisible(not is_grant)
            button.allow(why_not.get(action, ""))
        self.take_back.setVisible(is_grant)
        self.take_back.allow(why_not.get("approvals.deny", ""))
        self._use.setText(notes[0])
        self._void.setText(notes[1])

    def turn_full(self) -> None:
        """E: every part with its step and reason, or only the first ones."""
        self.is_full = not self.is_full
        self._show_why()

    def _show_why(self) -> None:
        case = self.case
        row = case.rows[0]
        self.reason.setText(f"{row.reason} ({row.rule})" if row.danger else f"{row.rule}: {row.reason}" if row.reason else row.rule)
        self.reason.setVisible(bool(row.rule) and (self.is_full or not case.details or not case.details[0].parts))
        counted = parts_of(case)
        numbers = [number for number, _ in numbered([part for part, _ in counted])]
        lines: list[tuple[Cell, ...]] = []
        for (part, times), number in list(zip(counted, numbers, strict=True))[: None if self.is_full else PARTS_SHOWN]:
            word, mark, role = VERDICTS.get(part.verdict, (part.verdict, "triangle", "warn"))
            first = f"{times}×" if case.is_group else str(number)
            rule = Cell(part.rule or part.reason, 170, "text2")
            lines.append(
                (
                    Cell(first, 36 if case.is_group else 26, "text3", mono=True),
                    Cell(part.text, mono=True) if part.text else Cell(part.reason),
                    Cell(word, 66, role, mark=mark),
                    rule,
                )
            )
            if self.is_full:
                lines.append((Cell("", 26), Cell(f"{part.step}: {part.reason}" if part.step else part.reason, role="text2")))
        hidden = len(counted) - PARTS_SHOWN
        if hidden > 0 and not self.is_full:
            lines.append((Cell("", 26), Cell(f"and {plural(hidden, 'more part')}: E shows every part", role="text2")))
        self.why.say(lines)
        self._why_note.setText("deny > ask > allow" if counted else "checked by its name alone")

    def _show_past(self, detail: ApprovalDetailView | None) -> None:
        similar = detail.similar if detail else []
        self.similar.say([_past(row) for row in similar[:SIMILAR_SHOWN]])
        self._similar_note.setText(f"{len(similar)} kept" if similar else "none yet")
        alone = detail is not None and not self.case.is_group
        before = detail.before[:BEFORE_SHOWN] if detail is not None and alone else []
        self.before.say([(Cell(clock(b.at), 84, "text2", mono=True), Cell(b.text, mono=True), Cell(b.kind, 90, "text2")) for b in before])
        self._before_note.setText(
            "each agent's own: open the group (G)" if not alone and detail else "same agent" if before else "nothing yet"
        )
        self.tree.say(detail.tree if detail else [], detail.tree_left_out if detail else 0)

    def sizeHint(self) -> QSize:
        return QSize(880, 700)


def _says(case: Case) -> str:
    """The agent's own words, in quotes and never part of the title."""
    said = {one.says for one in case.rows}
    if len(said) > 1:
        return "The agents say different things: open the group (G) to read them."
    words = said.pop()
    return f"Agent says  “{words}”" if words else "The agent gave no reason."


def _crumb(row: ApprovalRow) -> str:
    root = row.root_name or row.root_id
    own = row.agent_name or row.agent_id
    return f"{root}  ›  {own}" if row.root_id and row.root_id != row.agent_id else own


def _chips(case: Case) -> list[ChipSpec]:
    row = case.rows[0]
    word, mark, role = end_words(row)
    state = ChipSpec("Needs OK", "warning", "warn") if row.state == "waiting" else ChipSpec(word, "check" if mark == "check" else "ban")
    danger = worst_of(one.danger for one in case.rows)
    chips = [ChipSpec(danger.capitalize(), "warning", "danger")] if danger else []
    chips += [state, ChipSpec(row.tool, "terminal" if row.tool == "shell" else "")]
    if row.depth:
        chips.append(ChipSpec(f"Depth {row.depth}"))
    if row.sensitivity:
        is_private = row.sensitivity.upper() in ("CONFIDENTIAL", "SECRET")
        chips.append(ChipSpec(row.sensitivity.capitalize(), "shield", "warn" if is_private else "plain"))
    if case.shown.hidden:
        chips.append(ChipSpec(plural(case.shown.hidden, "hidden character"), "eye", "warn"))
    return chips


def _exact_words(case: Case) -> str:
    if not case.is_read:
        return f"{len(case.details)} of {len(case.rows)} read"
    lines = plural(sum(1 for line in case.shown.lines if line.number), "line")
    if case.is_group:
        return f"{lines} · {'a digest is NOT that of its text' if case.unbound else 'each bound to its sha256'}"
    digest = digest_words(case.rows[0].digest)
    return f"{lines} · sha256 {digest} is NOT that of this text" if case.unbound else f"{lines} · bound to sha256 {digest}"


def _past(row: ApprovalRow) -> tuple[Cell, ...]:
    word, mark, _ = end_words(row)
    words = {"Once": "Approved once", "Session": "Approved for session"}.get(word, word)
    took = f" · {long_span(row.took_s)}" if row.took_s is not None else ""
    at = day_clock(row.decided_at or row.asked_at).rsplit(" ", 1)[0]
    who = person(row.decided_by) or "no operator"
    return (
        Cell(at, 58, "text2", mono=True),
        Cell(call_line(row)),
        Cell(words, 150, mark=mark),
        Cell(f"{who}{took}", 150, "text2", right=True),
    )
