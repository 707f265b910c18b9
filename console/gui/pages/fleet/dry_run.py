"""Dry-run in the detail pane: whether the agent is in it and with which agent, its plan call by call, and the decision on the whole."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from console.api import endpoints as ep
from console.api.messages import AgentView
from console.api.policy.dry_run import DryRunBody, DryRunView, PlanBody, PlanCallView, PlanDecidedView, PlansView, PlanView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, column, fill, row
from console.gui.models.operators import person
from console.gui.pages.approvals.hostile import visible
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, plural

REASON_MAX = 500
_MARKS = {"warn": " (!)", "danger": " (!!)"}


def plan_text(plan: PlanView) -> str:
    """A whole plan as plain lines: every character that is not what it looks like is written as its code, and nothing is left out."""
    return "\n\n".join([*(_call_text(call) for call in plan.calls), *_left_out(plan)])


def _left_out(plan: PlanView) -> list[str]:
    return [f"!! {plural(plan.left_out, 'call')} more had no room: no plan holds them"] if plan.left_out else []


def _call_text(call: PlanCallView) -> str:
    times = f", asked {call.times} times" if call.times > 1 else ""
    lines = [
        f"{call.seq}. {_one(call.tool)} by {_one(call.agent_name or call.agent_id)} ({_one(call.agent_id)}): {_one(call.state)}{times}"
    ]
    lines += [f"    {line.text}" for line in visible(call.argument).lines]
    if call.cwd:
        lines.append(f"  in {_one(call.cwd)}")
    if call.detail:
        lines += ["  whole input:", *(f"    {line.text}" for line in visible(call.detail).lines)]
    lines.append(f"  rules: {_one(call.verdict)} by {_one(call.rule)}: {_one(call.reason)}")
    lines.append(f"  live: {_one(call.outcome)} ({_one(call.outcome_words)})")
    lines += [f"  {_one(line.kind)}: {_one(line.words)}{_MARKS.get(line.level, '')}" for line in call.preview]
    return "\n".join(lines)


def _one(text: str) -> str:
    return safe_text(text, 1000)


class DryRunCard(QWidget):
    """Below the head of the detail pane."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.agent_id, self.words = "", ""
        self.state = Text("", 12, fonts.MEDIUM, "accent", wrap=True, mark="ring")
        self.button = Button("Dry-run…", "list", small=True, parent=self)
        self.button.clicked.connect(self.open)
        column(self.state, self.button, margins=(0, 6, 0, 0), spacing=6, on=self)

    def show_row(self, view: AgentView, is_live: bool) -> None:
        """What the list knows."""
        self.agent_id, self.words = view.id, view.dry_run
        self.state.setText(f"In dry-run, {person(view.dry_run)}. Calls are checked and planned, not executed." if view.dry_run else "")
        self.state.setVisible(bool(view.dry_run))
        self.button.set_face("Plan and dry-run…" if view.dry_run else "Dry-run…", "list")
        self.setVisible(is_live or bool(view.dry_run))

    def open(self) -> None:
        """The dialog for this agent."""
        PlanDialog(self._desk, self.agent_id, self.words, self.window()).open()


class PlanDialog(Dialog):
    """The newest plan whole; approves exactly what is shown. A decision, or a way in or out, needs a reason."""

    def __init__(self, desk: Desk, agent_id: str, words: str, parent: QWidget) -> None:
        super().__init__(f"Dry-run of {agent_id}", "Approve the plan", "primary", parent, width=min(900, max(560, parent.width() - 60)))
        self._desk, self._agent_id, self._is_dry = desk, agent_id, bool(words)
        self.plan: PlanView | None = None
        self._busy = ""
        self.head = self.paragraph("The plan is asked for…")
        self.text = QPlainTextEdit(self)
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Plan")
        self.text.setFont(fonts.mono(12))
        self.text.setFixedHeight(max(160, min(420, parent.height() - 380)))
        self.sha = Text("", 11, fonts.REGULAR, "text2", mono=True)
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(REASON_MAX)
        self.reason.setAccessibleName("Reason")
        self.reason.textChanged.connect(lambda _text: self._allow())
        self.discard = Button("Throw the plan away", parent=self)
        self.change = Button("Leave dry-run" if self._is_dry else "Put it into dry-run", kind="danger" if self._is_dry else "", parent=self)
        self.again = Button("Look again", parent=self)
        for button, act in ((self.discard, self._discard), (self.change, self._change), (self.again, self.look)):
            button.clicked.connect(act)
        buttons = row(self.discard, self.change, self.again, STRETCH, spacing=-1)
        fill(self.body, self.text, self.sha, Text("Reason; recorded", 11, fonts.MEDIUM, "text2"), self.reason, buttons)
        self.main.clicked.connect(self._approve)
        self._allow()
        self.look()
        self.reason.setFocus()

    def look(self) -> None:
        """Asks for the plan as it is now."""
        self._desk.requests.ask(ep.PLANS, self._agent_id).while_alive(self).then(self._came).failed(self._not_known)

    def _came(self, view: PlansView) -> None:
        self._is_dry = bool(view.head)
        self.plan = view.plans[0] if view.plans else None
        state = f"In dry-run, {view.words}." if view.head else "Live: what is allowed is executed."
        above = (
            f" Its parent {view.head} put it there. To leave dry-run, take {view.head} out."
            if view.head and view.head != self._agent_id
            else ""
        )
        self.head.setText(f"{state}{above} {self._plan_words()}".strip())
        self.text.setPlainText(plan_text(self.plan) if self.plan is not None else "")
        self.sha.setText(f"sha256 {self.plan.sha256}" if self.plan is not None else "")
        self.change.setText("Leave dry-run" if self._is_dry else "Put it into dry-run")
        self._allow()

    def _not_known(self, error: ConsoleError) -> None:
        self.plan = None
        self.head.setText(f"The plan is not known: {error.what}")
        self._allow()

    def _plan_words(self) -> str:
        if self.plan is None:
            return "Nothing was planned yet."
        told = f"Plan {self.plan.id} is {self.plan.state}, with {plural(len(self.plan.calls), 'call')}, since {clock(self.plan.opened_at)}."
        if self.plan.state == "approved":
            return f"{told} Its calls may be made, each once, for {int(self.plan.left_s)} s more."
        return f"{told} It cannot be approved: {self.plan.why_not}." if self.plan.why_not else told

    def why_not(self, verb: str) -> str:
        """``approve``, ``discard`` or ``change``; empty: it can be asked for."""
        if self._busy:
            return self._busy
        if self._desk.switch.is_killed:
            return "Killed: nothing changes until you rearm."
        plan = self.plan
        if verb != "change" and plan is None:
            return "There is no plan."
        if verb == "approve" and plan is not None and plan.why_not:
            return f"It cannot be approved: {plan.why_not}."
        if verb == "discard" and plan is not None and plan.state not in ("open", "approved"):
            return f"It is {plan.state} already."
        return "" if self.reason.text().strip() else "Give a reason."

    def _allow(self) -> None:
        self.main.allow(self.why_not("approve"))
        self.discard.allow(self.why_not("discard"))
        self.change.allow(self.why_not("change"))

    def _approve(self) -> None:
        self._decide("approve")

    def _discard(self) -> None:
        self._decide("discard")

    def _decide(self, verdict: str) -> None:
        plan = self.plan
        if self.why_not(verdict) or plan is None:
            return
        body = PlanBody.read({"plan": plan.id, "sha256": plan.sha256, "verdict": verdict, "reason": self.reason.text().strip()})
        self._begin("It is being decided.")
        self._desk.requests.ask(ep.DECIDE_PLAN, body=body).while_alive(self).then(self._decided).failed(self._failed)

    def _decided(self, view: PlanDecidedView) -> None:
        approved = view.state == "approved"
        words = f"{plural(view.calls, 'call')} of plan {view.plan} may be made, each once" if approved else view.words
        self._end(words, odd=not approved)

    def _change(self) -> None:
        if self.why_not("change"):
            return
        body = DryRunBody(agent=self._agent_id, on=not self._is_dry, reason=self.reason.text().strip())
        self._begin("It is being changed.")
        self._desk.requests.ask(ep.DRY_RUN, body=body).while_alive(self).then(self._changed).failed(self._failed)

    def _changed(self, view: DryRunView) -> None:
        self._end(f"{view.agent} is {'in dry-run' if view.on else 'live'}. {' '.join(view.notes)}".strip())

    def _begin(self, words: str) -> None:
        self._busy = words
        self.problem.hide()
        self._allow()

    def _end(self, words: str, *, odd: bool = False) -> None:
        self._desk.notices.say("amber" if odd else "info", words)
        self._desk.ask_sync()
        if self.is_open:
            self.accept()

    def _failed(self, error: ConsoleError) -> None:
        self._busy = ""
        self.refused(error)
        self._allow()
        self.look()
