"""The question before an agent that was only seen is taken over: which process it is, what comes along, what it does not get."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QLayout, QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.agents.adopt import AdoptBody, AdoptedView, Candidate, CandidatesView, OrphanBody
from console.domain.errors import Conflict, ConsoleError
from console.gui.models.fleet import Row
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.rung_words import daemon_lines
from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

_ORPHANS = 8
"""Orphans that can be chosen; the server takes sixteen."""


def why_not_adopt(row: Row) -> str:
    """What is plain without asking."""
    if row.view.control_level != "observed":
        return "It is held already: only an agent that was merely seen is adopted."
    return "" if row.is_live else "It does not run any more."


def process_lines(one: Candidate) -> list[Fact]:
    """Which process it is: what the operator checks before confirming."""
    facts = [("Process", f"{one.pid}, uid {one.uid if one.uid is not None else 'not known'}"), ("Program", one.exe or "not known")]
    facts += [("Command", one.command), ("Cgroup", one.cgroup)]
    return [Fact(left, right, left_role="text2", right_role="text", right_mono=left != "Process") for left, right in facts if right]


def outcome_words(done: AdoptedView) -> tuple[str, bool]:
    """(one sentence, whether it is whole): anything left outside is said and is amber."""
    words = f"{done.agent} is {done.control_level}: {plural(done.moved, 'process', 'processes')} moved."
    doubts = [
        f"{plural(done.left_n, 'process', 'processes')} left outside." if done.left_n else "",
        f"{plural(done.orphans, 'process', 'processes')} that may be its stay outside." if done.orphans else "",
        f"A stop of it is best effort: {done.best_effort}." if done.best_effort else "",
        f"It is frozen still: {done.frozen}." if done.frozen else "",
        f"Not available: {done.owner_why_not}." if done.owner_why_not else "",
    ]
    said = " ".join(part for part in doubts if part)
    return f"{words} {said}".strip(), not said


def outside_lines(view: CandidatesView) -> list[Fact]:
    """What stays outside though it may be its: an adoption leaves it there, and a kill lists it."""
    if not view.orphans:
        return []
    stay = f"{plural(view.orphans, 'process', 'processes')} outside may be its. What is not chosen stays outside;"
    return [
        Fact(stay, "", "triangle", "warn", left_role="warn"),
        Fact("a kill lists it as a suspect and does not end it.", "", left_role="warn", indent=True),
    ]


class AdoptDialog(Dialog):
    """Nothing can be confirmed before the candidates have come; what is sent is exactly what was shown."""

    def __init__(self, desk: Desk, row: Row, parent: QWidget) -> None:
        super().__init__(f"Adopt {row.name}?", "Adopt", "primary", parent, width=560)
        self._desk, self._agent_id = desk, row.id
        column = self.layout()
        assert column is not None
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # Qt's least height is that of narrower paragraphs
        self.view: CandidatesView | None = None
        self._sent = False
        self._refusal = ""
        self.paragraph("It is moved, with all its processes, into a cgroup of its own. From then on a stop of it can be confirmed.", "text")
        self.sentence = self.paragraph("The supervisor is asked which process it is…", "text2", "ring")
        self.process = Facts(22)
        self.body.addWidget(self.process)
        self.orphans: list[tuple[QCheckBox, Candidate]] = []
        self.outside = Facts(21)
        self.body.addWidget(self.outside)
        self._lacks = Lines(3)
        self._lacks.more.clicked.connect(self.adjustSize)
        self.body.addWidget(Text("What adoption does not give it", 11, fonts.MEDIUM, "text2"))
        self.body.addWidget(self._lacks)
        self._label = Text("Reason, for the record", 11, fonts.MEDIUM, "text2")
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(500)
        self.reason.setPlaceholderText("optional")
        self.reason.setAccessibleName("Reason")
        self.body.addWidget(self._label)
        self.body.addWidget(self.reason)
        self.main.allow("The candidates have not come yet.")
        self.main.clicked.connect(self._send)
        self._ask()

    def _ask(self) -> None:
        self._desk.requests.ask(ep.CANDIDATES, agent=self._agent_id[:80]).while_alive(self).then(self._came).failed(self._unknown)

    def _came(self, view: CandidatesView) -> None:
        if self._sent:
            return
        self.view = view
        itself = self.itself()
        self.process.say(process_lines(itself) if itself is not None else [])
        along = (
            f"{plural(view.descendants, 'process', 'processes')} below it come along."
            if view.descendants
            else "It has no process below it."
        )
        self.sentence.say(f"This process is taken for it. {along}" if itself is not None else "No process is known for it.", "text", "")
        self._show_orphans([one for one in view.candidates if one.kind == "orphan"])
        self.outside.say([*daemon_lines(view), *outside_lines(view)])
        self._lacks.say([Line(words, "ring", quiet=True) for words in view.lacks])
        why_not = self.why_not()
        said = why_not or self._refusal  # why it was refused stays while what it is now is read
        self.problem.setText(said)
        self.problem.setVisible(bool(said))
        self.main.allow(why_not)

    def itself(self) -> Candidate | None:
        """The process that is the agent."""
        return next((one for one in self.view.candidates if one.kind == "itself"), None) if self.view is not None else None

    def why_not(self) -> str:
        """Empty when what is shown can be adopted."""
        itself = self.itself()
        if self.view is None:
            return "The candidates have not come yet."
        if self.view.why_not or itself is None:
            return self.view.why_not or "No process is known for it."
        return itself.why_not or ("" if itself.exe and itself.uid is not None else "What it runs, or whose it is, is not known.")

    def _show_orphans(self, found: list[Candidate]) -> None:
        for box, _ in self.orphans:
            self.body.removeWidget(box)
            box.deleteLater()
        self.orphans = []
        for number, one in enumerate(found[:_ORPHANS]):
            words = safe_text(f"Also {one.pid}: {one.command or one.exe}. It may be its; its parent is gone.", 90)
            box = QCheckBox(words.replace("&", "&&"), self)
            box.setFont(fonts.ui(12))
            box.setToolTip(tooltip(one.why_not or one.command))
            box.setEnabled(not one.why_not)
            self.body.insertWidget(self.body.indexOf(self.process) + 1 + number, box)
            box.show()
            self.orphans.append((box, one))

    def _unknown(self, error: ConsoleError) -> None:
        self.view = None
        self.sentence.say("Which process it is, is not known.", "warn", "triangle")
        self.refused(error)
        self.main.allow("The candidates are not known.")

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        itself = self.itself()
        if itself is None or self.why_not() or itself.uid is None:
            return
        self._sent, self._refusal = True, ""
        self.problem.hide()
        self.main.allow("In progress.")
        also = [OrphanBody(pid=one.pid, start_ticks=one.start_ticks) for box, one in self.orphans if box.isChecked()]
        body = AdoptBody(
            agent=self._agent_id, pid=itself.pid, start_ticks=itself.start_ticks, exe=itself.exe, uid=itself.uid, also=also,
            reason=self.reason.text().strip(),
        )  # fmt: skip
        self._desk.requests.ask(ep.ADOPT, body=body).then(self._done).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self._desk.ask_sync()
        if not self.is_open:
            self._desk.notices.fail(error)
            return
        self._sent, self._refusal = False, f"{error.what} {error.remedy}".strip()
        if isinstance(error, Conflict):
            self._ask()  # it is not what was shown: look at what it is now
        self.sentence.say("It was refused, or not finished.", "warn", "triangle")
        self.refused(error)

    def _done(self, done: AdoptedView) -> None:
        self._desk.ask_sync()
        words, whole = outcome_words(done)
        self._desk.notices.say("info" if whole else "amber", words)
        if not self.is_open:
            return
        if whole:
            self.accept()
            return
        self.sentence.say(words, "warn", "triangle")
        self._lacks.say([Line(f"{pid}: {why}", "triangle", "warn") for pid, why in list(done.left.items())[:5]])
        self.cancel.setText("Close")
        for part in (self.main, self.reason, self._label, *(box for box, _ in self.orphans)):
            part.hide()
