"""What can be done to agents from the fleet page, when not, and how the outcome is told."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api.messages import ActView, AgentDetailView, LaunchedView
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt
from console.gui.models.fleet import Row
from console.gui.models.switch import counts, is_proven, zero_ms
from console.gui.pages.fleet.launch import LaunchDialog
from console.gui.pages.fleet.stop import StopDialog
from console.gui.pages.interface import Desk
from console.gui.widgets.words import plural, took


class FleetActs:
    """Pause, isolate, stop, launch."""

    def __init__(self, desk: Desk, page: QWidget) -> None:
        self._desk, self._page = desk, page

    def why_not(self, row: Row, action_id: str, detail: AgentDetailView | None) -> str:
        """Empty when the action can be done to the row and all below it."""
        tree = self._desk.fleet.tree(row.id)
        if not any(one.is_live for one in tree):
            return "It has ended."
        if action_id != "fleet.stop-tree" and self._desk.switch.is_killed:
            return "Killed: nothing changes until rearm."
        verb = {"fleet.pause": "thaw" if row.view.state == "frozen" else "freeze", "fleet.stop-tree": "kill"}.get(action_id, "isolate")
        if detail is not None and detail.agent.id == row.id and len(tree) == 1:
            return detail.can.get(verb, "")
        return ""

    def act(self, row: Row, action_id: str) -> None:
        """Carries it out; stopping asks first."""
        asks = self._desk.requests.fleet
        if action_id == "fleet.stop-tree":
            self._ask_stop(row)
        elif action_id == "fleet.pause":
            frozen = row.view.state == "frozen"
            sent = asks.thaw(row.id, tree=True) if frozen else asks.freeze(row.id, tree=True)
            sent.then(lambda done: self._acted("resumed" if frozen else "paused", done)).failed(self._desk.notices.fail)
        elif action_id == "fleet.isolate":
            asks.isolate(row.id, tree=True).then(lambda done: self._acted("cut off the network", done)).failed(self._desk.notices.fail)

    def ask_launch(self) -> None:
        """The dialog that starts an agent."""
        dialog = LaunchDialog(self._page.window())

        def launch() -> None:
            try:
                body = dialog.body_to_send()
            except ConsoleError as error:
                dialog.refused(error)
                return
            dialog.main.setEnabled(False)
            sent = self._desk.requests.fleet.launch(body).while_alive(dialog)
            sent.then(lambda view: self._launched(dialog, view)).failed(dialog.refused)

        dialog.main.clicked.connect(launch)
        dialog.open()

    def _launched(self, dialog: LaunchDialog, view: LaunchedView) -> None:
        dialog.accept()
        notes = f" {' '.join(view.notes)}" if view.notes else ""
        doubtful = not view.network_enforced and view.network_mode != "FULL"
        words = f"{view.id} runs, {view.control_level}, {view.network_mode}.{notes}"
        self._desk.notices.say("amber" if doubtful else "info", words)
        self._desk.ask_sync()

    def _acted(self, words: str, done: ActView) -> None:
        if done.failed:
            first, why = next(iter(done.failed.items()))
            self._desk.notices.say("amber", f"{plural(len(done.failed), 'agent')} not {words}: {first}: {why}")
        else:
            self._desk.notices.say("info", f"{plural(len(done.agents), 'agent')} {words}.")
        self._desk.ask_sync()

    def _ask_stop(self, row: Row) -> None:
        dialog = StopDialog(self._desk.fleet.tree(row.id), self._page.window())

        def stop() -> None:
            dialog.main.setEnabled(False)
            sent = self._desk.requests.fleet.kill(row.id, tree=True, reason=dialog.reason.text().strip())
            sent.then(lambda receipt: self._stopped(row.name, receipt)).failed(self._desk.notices.fail)
            dialog.accept()

        dialog.main.clicked.connect(stop)
        dialog.open()

    def _stopped(self, name: str, receipt: Receipt) -> None:
        proven, provable, best = counts(receipt)
        if is_proven(receipt):
            extra = f"; {plural(best, 'agent')} best effort, not counted" if best else ""
            text = f"{name}: {proven} of {provable} proven zero in {took(zero_ms(receipt))}{extra}."
            self._desk.notices.say("amber" if best or not provable else "info", text, receipt=receipt.kill_id)
        else:
            self._desk.notices.say(
                "amber", f"{name}: {proven} of {provable} proven zero.", "Look at what is left.", receipt=receipt.kill_id
            )
        self._desk.ask_sync()
