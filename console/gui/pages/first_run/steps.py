"""The four steps of the set-up: what was found, the profile, the limit for the day, and a kill in front of the person."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from console.api import budgets as b
from console.api import endpoints as ep
from console.api.agents.first_run import FirstRunView, FoundProgram, SelfTestView
from console.api.messages import SourceView
from console.api.policy import rules as p
from console.domain.calls.profile import CODING, STRICT
from console.domain.errors import ConsoleError, UsageProblem
from console.gui.kit.layout import STRETCH, column, fill, row, scrolled
from console.gui.pages.budgets.words import read_cap, typed_cap
from console.gui.pages.first_run.sources import INSTALLED, now_words
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button, Pills
from console.gui.widgets.facts import Card
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import cap_usd, usd
from console.wording.agent_kinds import PLACES, TITLES

REASON = "chosen at the set-up"
_ROWS = 40
_PROCESSES = "Its processes alone: nothing reads what it does or spends."
_NO_HOOK = "It has no hook: its tool calls are seen after they ran."


class Step(QWidget):
    """One step. ``enter`` when it comes to the front; it does nothing but with its own buttons."""

    title = ""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.desk = desk
        self.column = column(spacing=8, on=self)
        self.said = Text("", 12, fonts.MEDIUM, "text2", wrap=True)

    def enter(self) -> None:
        """Asks for what it shows."""

    def paragraph(self, words: str) -> None:
        """One more."""
        self.column.addWidget(Text(words, 13, fonts.REGULAR, "text2", wrap=True))

    def end(self) -> None:
        """What it says last, and the rest of the room."""
        fill(self.column, self.said, STRETCH)

    def refused(self, error: ConsoleError) -> None:
        """In the refuser's words."""
        self.said.say(f"{error.what} {error.remedy}".strip(), "warn", "triangle")


class ProgramRow(Card):
    """One program that was found. ``hook_asked`` with its kind."""

    hook_asked = Signal(str)

    def __init__(self, found: FoundProgram, seen: str, stopped: str, hook: SourceView | None, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        where = Text(safe_text(found.path or f"its files in {found.wrote}", 200), 12, role="text2", right=True)
        head = row(Text(safe_text(found.title, 60), 13, fonts.SEMIBOLD), (where, 1), spacing=-1)
        says = [Text(safe_text(words, 400), 12, fonts.REGULAR, "text2", wrap=True) for words in (f"Seen: {seen}", f"Stopped: {stopped}")]
        self.button = Button(
            "Take the hook out…" if hook is not None and hook.state in INSTALLED else "Add a hook…", small=True, parent=self
        )
        self.button.setVisible(found.kind in PLACES)
        self.button.clicked.connect(lambda: self.hook_asked.emit(found.kind))
        of_hook = Text(self._hook_words(hook), 12, fonts.REGULAR, "text2", wrap=True)
        fill(self.column, head, *says, row((of_hook, 1), self.button, spacing=-1))

    def _hook_words(self, hook: SourceView | None) -> str:
        if hook is None:
            return _NO_HOOK
        if hook.state in INSTALLED:
            return f"Hook: {now_words(hook)[0].lower()}. Each tool call is checked before it happens."
        return "A hook would have each tool call checked before it happens."


class FoundStep(Step):
    """Which programs are here, what is read of each, how surely each can be stopped, and its hook."""

    title = "What was found here"
    hook_asked = Signal(str)

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.paragraph("Agents of these programs appear in the fleet by themselves. Nothing has been changed in any of them.")
        self._rows = column(STRETCH, margins=(0, 0, 6, 0), spacing=-1)
        area = scrolled(self, self._rows, fills=True)
        fill(self.column, (area, 1), self.said)
        self._told = FirstRunView()
        self._shown: list[ProgramRow] = []

    def enter(self) -> None:
        self.desk.requests.ask(ep.FIRST_RUN).while_alive(self).then(self._came).failed(self.refused)

    def _came(self, view: FirstRunView) -> None:
        self.take(view, self.desk.switch.status.sources if self.desk.switch.status is not None else [])

    def take(self, told: FirstRunView, sources: Sequence[SourceView]) -> None:
        """Found programs as rows, the best known others by name. ``sources`` say what is seen of each."""
        self._told = told
        self._show(sources)

    def rows(self) -> list[ProgramRow]:
        """Those that are shown."""
        return list(self._shown)

    def _show(self, sources: Sequence[SourceView]) -> None:
        for old in self._shown:
            self._rows.removeWidget(old)
            old.deleteLater()
        self._shown.clear()
        by_name = {one.source: one for one in sources}
        hooks = {one.source.removeprefix("hook_"): one for one in self._told.looks if one.source.startswith("hook_")}
        any_kind = by_name.get("processes")
        for found in self._told.programs[:_ROWS]:
            source, hook = by_name.get(found.source), hooks.get(found.kind)
            stops = source or any_kind
            row = ProgramRow(found, source.can_see if source else _PROCESSES, stops.can_stop if stops else "not known", hook)
            row.hook_asked.connect(self.hook_asked)
            self._rows.insertWidget(self._rows.count() - 1, row)
            self._shown.append(row)
        missing = [title for kind, title in TITLES.items() if kind not in {one.kind for one in self._told.programs}]
        words = self._told.programs_note or (f"Not found here: {', '.join(missing)}." if missing else "")
        self.said.say(safe_text(words, 300), "text2", "")


class ProfileStep(Step):
    """Strict or coding, for every kind of coding agent."""

    title = "Which rules decide tool calls"

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.paragraph("A tool call is allowed, asked of you, or denied. The profile holds for every kind of coding agent.")
        self.pills = Pills({CODING: "Coding", STRICT: "Strict"}, self)
        self.column.addWidget(self.pills, 0, Qt.AlignmentFlag.AlignLeft)
        self.words = Text("", 13, fonts.REGULAR, "text", wrap=True)
        self.column.addWidget(self.words)
        self.use = Button("", kind="primary", parent=self)
        self.column.addWidget(self.use, 0, Qt.AlignmentFlag.AlignLeft)
        self.paragraph("Other profiles for single programs, with what each would have decided in the last week: page Policy, tab Profiles.")
        self.end()
        self._view: p.ProfilesView | None = None
        self._left: list[str] = []
        self.pills.changed.connect(lambda _name: self._show())
        self.use.clicked.connect(self._choose)

    def enter(self) -> None:
        self.desk.requests.ask(ep.PROFILES).while_alive(self).then(self._came).failed(self.refused)

    def _in_force(self, kind: str) -> str:
        assert self._view is not None
        chosen = next((one.profile for one in self._view.choices if one.agent_type == kind), "")
        return chosen or ("own" if self._view.own_rules else CODING)

    def _came(self, view: p.ProfilesView) -> None:
        self._view = view
        self._show()

    def _show(self) -> None:
        view, name = self._view, self.pills.chosen()
        if view is None:
            return
        row = next((one for one in view.profiles if one.name == name), None)
        self.words.setText(f"{row.title} {row.why}" if row is not None else "Not known to this supervisor.")
        others = [kind for kind in TITLES if self._in_force(kind) != name]
        self.use.setText(f"Use {name}")
        self.use.allow("" if others else "It is in force already.")
        if not others:
            self.said.say(f"{name.capitalize()} is in force for every kind of coding agent.", "text2", "check")
        else:
            self.said.say("", "text2", "")

    def _choose(self) -> None:
        self._left = [kind for kind in TITLES if self._in_force(kind) != self.pills.chosen()]
        self.use.allow("In progress.")
        self._next()

    def _next(self) -> None:
        """One after the other: each is a record of its own."""
        if not self._left:
            return
        body = p.ProfileBody(agent_type=self._left.pop(0), profile=self.pills.chosen(), reason=REASON)
        asked = self.desk.requests.ask(ep.CHOOSE_PROFILE, body=body).while_alive(self)
        asked.then(self._came).then(lambda _view: self._next()).failed(self.refused)


class LimitStep(Step):
    """What all agents together may spend in a day."""

    title = "What agents may spend in a day"

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.paragraph("At this sum every agent that Watchfloor started or adopted is halted until the next day, or until you raise it.")
        self.field = QLineEdit(self)
        self.field.setMaxLength(20)
        self.field.setMaximumWidth(140)
        self.field.setPlaceholderText("no limit")
        self.field.setAccessibleName("Limit for the day in US dollars")
        self.set = Button("Set the limit", kind="primary", parent=self)
        title = Text("US dollars a day", 12, fonts.MEDIUM, "text2")
        self.column.addLayout(row(title, self.field, self.set, STRETCH, spacing=-1))
        self.end()
        self._cap: float | None = None
        self._confirmed: float | None = None
        self.set.clicked.connect(self._send)
        self.field.returnPressed.connect(self._send)

    def enter(self) -> None:
        self.desk.requests.ask(ep.BUDGETS, limit=1).while_alive(self).then(self._came).failed(self.refused)

    def _came(self, view: b.BudgetsView) -> None:
        self._cap = view.totals.day_cap_usd
        self.field.setText(typed_cap("cost_usd", self._cap))
        spent = f"{usd(view.totals.spend_today_usd)} were spent today."
        held = f"The limit is {cap_usd(self._cap)} a day." if self._cap is not None else "No limit is set."
        self.said.say(f"{held} {spent}", "text2", "check" if self._cap is not None else "ring")

    def _send(self) -> None:
        try:
            cap = read_cap("cost_usd", self.field.text())
        except UsageProblem as error:
            self.refused(error)
            return
        if cap is None and self._cap is None:
            self.said.say("No limit is set.", "text2", "ring")
            return
        limits, clear = ({"cost": cap}, []) if cap is not None else ({}, ["cost"])
        body = b.BudgetBody(scope="day", limits=limits, clear=clear, reason=REASON, dry_run=cap != self._confirmed)
        asked = self.desk.requests.ask(ep.CHANGE_BUDGET, body=body).while_alive(self)
        asked.then(lambda view: self._answered(cap, view)).failed(self.refused)

    def _answered(self, cap: float | None, view: b.BudgetSetView) -> None:
        """A limit that halts nothing is set at once; one that does is set by the second click."""
        if view.dry_run and view.halted:
            self._confirmed = cap
            words = f"This halts {len(view.halted)} agents at once: {', '.join(view.halted[:5])}. Click again to set it."
            self.said.say(safe_text(words, 400), "warn", "triangle")
        elif view.dry_run:
            self._confirmed = cap
            self._send()
        else:
            self._confirmed = None
            self.enter()


class KillStep(Step):
    """A canary is started and killed while the person looks on."""

    title = "A test of the kill switch"

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.paragraph(
            "Watchfloor starts a process that does nothing, kills it the way a panic does, and waits until the kernel confirms it."
        )
        self.button = Button("Test now", kind="primary", parent=self)
        self.column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        self.result = Text("", 17, fonts.SEMIBOLD, wrap=True)
        self.column.addWidget(self.result)
        self.end()
        self.button.clicked.connect(self._test)

    def _test(self) -> None:
        self.button.allow("In progress.")
        self.result.say("A process was started…", "text2", "ring")
        self.said.say("", "text2", "")
        self.desk.requests.ask(ep.SELF_TEST).while_alive(self).then(self.take).failed(self.fail)

    def take(self, view: SelfTestView) -> None:
        """How it went."""
        self.button.allow("")
        if view.proven:
            took = f" in {view.ms:.0f} ms" if view.ms is not None else ""
            self.result.say(f"Confirmed dead{took}", "ok", "check")
            self.said.say("A kill on this host works now. The same test runs by itself at intervals.", "text2", "")
        else:
            self.result.say("NOT confirmed", "danger", "diamond")
            self.said.say(f"{safe_text(view.words, 300)}. watchfloor doctor says what is missing here.", "warn", "triangle")

    def fail(self, error: ConsoleError) -> None:
        """It was not tested."""
        self.button.allow("")
        self.result.say("Not tested", "warn", "triangle")
        self.refused(error)
