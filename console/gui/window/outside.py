"""What of the console is seen outside its window: tray, notifications, panic process. What the desktop lacks stands in the status bar."""

from __future__ import annotations

from time import time

from PySide6.QtCore import QObject

from console.api.alerts import AlertKind, WebhookView
from console.api.policy.approvals import ApprovalRow
from console.gui.pages.approvals.answers import HOLD_S
from console.gui.pages.approvals.notified import APPROVE, DENY, Notified
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.widgets.words import clock, plural
from console.gui.window.alerts import Alerts
from console.gui.window.desktop import Alert, Desktop
from console.gui.window.main import Window
from console.gui.window.panic_process import PanicProcess
from console.gui.window.tray import Tray


class Outside(QObject):
    """One for a console that a person opened; pictures and tests have none."""

    def __init__(self, window: Window, desktop: Desktop | None = None) -> None:
        super().__init__(window)
        self._window = window
        self.panic = PanicProcess(self)
        self.desktop = desktop or Desktop()
        self.tray = Tray(window)
        self.alerts = Alerts(window.fleet, window.switch, self.desktop.show, self)
        window.sync.changed.connect(self._look)
        window.sync.follower.changed.connect(self._look)
        window.sync.follower.kill_began.connect(self.alerts.kill_began)
        approvals = window.pages["approvals"] if "approvals" in window.pages.kinds else None
        if isinstance(approvals, ApprovalsPage):
            approvals.arrived.connect(self.alerts.asked)
            self._notified = Notified(window.desk.requests, window.switch, approvals.book, approvals.deciding.answers, self)
            self._notified.held.connect(self._held)
            self._notified.undecided.connect(self._undecided)
            approvals.deciding.answers.problem.connect(self._problem)
            approvals.unsent.connect(lambda words: self.desktop.show(Alert("Answer not sent", words)))
        self.desktop.told.connect(lambda _why: self._say())
        self.desktop.opened.connect(self._open)
        self.desktop.chosen.connect(self._chosen)
        self.desktop.unshown.connect(self.tray.show_alert)
        self.tray.alert_clicked.connect(self._open)
        window.sync.delta.connect(self.alerts.take)
        self.tray.asked.connect(self._come)
        self.tray.came.connect(self._say)
        self.tray.panic_asked.connect(self.panic.bring)

    def start(self) -> None:
        """Begins; what is not to be had here is said."""
        self.tray.start()
        self.desktop.start()
        self._look()
        self._say()

    def stop(self) -> None:
        """Ends the thread and takes the icon away."""
        self.desktop.stop()
        self.tray.stop()
        self.panic.stop()

    def _look(self) -> None:
        self.alerts.look()
        self.tray.say(*self._window.switch.light(time()))
        self._say()

    def _say(self) -> None:
        lacks = []
        if self.desktop.why_not:
            lacks.append(f"No notifications: {self.desktop.why_not}")
        if self.tray.why_not:
            lacks.append(f"No tray icon: {self.tray.why_not}")
        status = self._window.switch.status
        lacks += webhook_lacks(status.alerts.webhook) if status is not None else []
        self._window.status.show_lacks(". ".join(lacks))

    def _open(self, alert: Alert) -> None:
        """A person clicked it: the window comes with the place that it is about."""
        if alert.page:
            self._window.goto(alert.page, alert.argument)
        self._come()

    def _chosen(self, alert: Alert, key: str) -> None:
        """A person chose Approve or Deny. The answer is held, and can be taken back in the window."""
        if isinstance(alert.about, ApprovalRow) and key in (APPROVE, DENY):
            self._notified.answer(alert.about, key)

    def _held(self, row: ApprovalRow, verdict: str) -> None:
        title = "Approval held" if verdict == APPROVE else "Denial held"
        words = f"The agent gets it in {HOLD_S:.0f} s. Open takes you to where you can take it back."
        self.desktop.show(Alert(title, words, False, AlertKind.APPROVAL_WAITING, f"agent {row.agent_id}", "approvals", row.id))

    def _undecided(self, row: ApprovalRow, why_not: str) -> None:
        """Nothing was decided: the window comes with the request, and with why."""
        self._window.goto("approvals", row.id)
        self._window.notices.say("amber", f"Not decided: {why_not}")
        self._come()

    def _problem(self, words: str) -> None:
        if words and not self._window.isActiveWindow():
            self.desktop.show(Alert("Answer not sent", words, page="approvals"))

    def _come(self) -> None:
        self._window.showNormal()
        self._window.raise_()
        self._window.activateWindow()


def webhook_lacks(webhook: WebhookView) -> list[str]:
    """Which alerts did not reach the webhook's receiver, and since when."""
    found = []
    if webhook.waiting and webhook.waiting_since is not None and (webhook.trouble or webhook.stopped):
        found.append(f"Webhook: {plural(webhook.waiting, 'alert')} not delivered since {clock(webhook.waiting_since)}")
    if webhook.given_up and webhook.given_up_since is not None:
        found.append(f"Webhook: {plural(webhook.given_up, 'alert')} never delivered, the first of {clock(webhook.given_up_since)}")
    return found
