"""Secrets and their rotation: what would be replaced, who must refuse the old value, how the last one ended; and rotating now."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.secrets import RotationBody, RotationItemView, RotationView
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Desk
from console.gui.widgets.dialog import IN_PROGRESS, NO_REASON, Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.words import age, plural

_SHOWN = 12
_AGAIN = {
    "due": ("refused; again after a restart", "ring", "text2"),
    "refused": ("refused, also after a restart", "check", "text2"),
    "accepted": ("ACCEPTED again after a restart", "triangle", "warn"),
    "unknown": ("not known after a restart", "triangle", "warn"),
}


def item_line(item: RotationItemView) -> Fact:
    """One secret: its verifier's last word; never rotated is neither good nor bad."""
    if item.ok is False:
        words, mark, role = item.detail or "the old value was not proven refused", "triangle", "warn"
    elif item.again in _AGAIN:
        words, mark, role = _AGAIN[item.again]
    elif item.ok:
        words, mark, role = "old value refused", "check", "text2"
    else:
        words, mark, role = "never rotated", "ring", "text2"
    left = f"{item.name} · {item.verifier}" if item.verifier else item.name
    return Fact(left, words, mark, role, right_role=role)


def last_words(view: RotationView, now: float) -> tuple[str, str, str]:
    """(words, shape, colour) of the last rotation."""
    if view.unfinished:
        return f"A rotation was begun and is not proven: {view.last_detail or 'broken off'}", "triangle", "warn"
    if view.last_at is None:
        return "Never rotated", "ring", "text2"
    when = age(view.last_at, now)
    if view.last_ok:
        return f"Last rotated {when}, every old value refused", "check", "text"
    return f"Last rotated {when}, NOT proven: {view.last_detail}", "triangle", "warn"


def card_fact(view: RotationView, now: float) -> tuple[str, str]:
    """The line of the secrets card."""
    if view.unfinished:
        return "Last rotated", "begun, not proven"
    if view.last_at is None:
        return "Last rotated", "never"
    return "Last rotated", f"{age(view.last_at, now)}{'' if view.last_ok else ', NOT proven'}"


class RotationDialog(Dialog):
    """Shows the plan; rotates once a reason is there, also while killed."""

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        super().__init__("Secrets", "Rotate now", "primary", parent, width=560)
        self._desk = desk
        self.last = self.paragraph("The plan is being read…", "text2", "ring")
        self.kept = self.paragraph("", "text2")
        self.items = Facts(24, ruled=True)
        self.body.addWidget(self.items)
        self.reason = self.ask_reason()
        self.reason.textChanged.connect(lambda _text: self._judge())
        self.main.clicked.connect(self._rotate)
        self.view: RotationView | None = None
        self._busy = False
        self._judge()
        desk.requests.ask(ep.ROTATION).while_alive(self).then(self._came).failed(self._unread)

    def _came(self, view: RotationView) -> None:
        self.view, self._busy = view, False
        words, shape, role = last_words(view, self._desk.clock())
        self.last.say(words, role, shape)
        better = f" Not better, because {'; '.join(view.why_not_better)}." if view.why_not_better else ""
        plan = f" Plan: {view.plan_file}." if view.plan_file else " There is no plan file: only Watchfloor's own secrets are rotated."
        self.kept.setText(f"Kept in {view.kept_in or 'an unknown place'}.{better}{plan}")
        lines = [Fact(f"The plan is broken: {view.plan_error}", "", "triangle", "warn", left_role="warn")] if view.plan_error else []
        lines += [item_line(item) for item in view.items[:_SHOWN]]
        if len(view.items) > _SHOWN:
            lines.append(
                Fact(
                    f"and {plural(len(view.items) - _SHOWN, 'more secret')}: watchfloor secrets rotation show",
                    "",
                    left_role="text2",
                    indent=True,
                )
            )
        self.items.say(lines)
        self._judge()

    def _unread(self, error: ConsoleError) -> None:
        self.last.say("What would be rotated is not known.", "warn", "triangle")
        self.refused(error)
        self._judge()

    def _judge(self) -> None:
        busy = IN_PROGRESS if self._busy else ""
        unread = "" if self.view is not None else "The plan has not been read."
        self.main.allow(busy or unread or ("" if self.reason.text().strip() else NO_REASON))

    def _rotate(self) -> None:
        self._busy = True
        self.problem.hide()
        self._judge()
        self.last.say("Old values are replaced and presented to their verifiers…", "text2", "ring")
        asked = self._desk.requests.ask(ep.ROTATE, body=RotationBody(reason=self.reason.text().strip())).while_alive(self)
        asked.then(self._came).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self._busy = False
        self.last.say("It was refused, or its outcome is not known.", "warn", "triangle")
        self.refused(error)
        self._judge()
