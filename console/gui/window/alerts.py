"""What a person must hear of while the window is elsewhere: a breach, a question, a kill. One notification for many agents at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from PySide6.QtCore import QObject

from console.api.alerts import AlertKind, AlertView
from console.api.messages import Delta
from console.api.policy.approvals import ApprovalRow
from console.domain.errors import ExitCode
from console.domain.headline import headline_of
from console.domain.kill import Receipt
from console.domain.verdict import verdict
from console.domain.words import listed
from console.gui.actions.catalogue import why_not_by_role
from console.gui.models.fleet import Fleet, Row
from console.gui.models.seen import running_words, still_running
from console.gui.models.switch import Switch
from console.gui.pages.approvals.notified import APPROVE, DENY, FOLDER_MAX, shows_all
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.widgets.words import plural
from console.gui.window.desktop import Alert

NAMED = 3
ONCE_S = 3.0
"""A question comes as a state of its agent and as a request: within this time the two are one piece of news."""
_NEWS: dict[str, tuple[str, str, bool, AlertKind | None]] = {
    "over_budget": ("Over budget", "reached a limit and is being halted", True, AlertKind.LIMIT_REACHED),
    "halted": ("Halted by its budget", "was halted, verified", False, AlertKind.LIMIT_REACHED),
    "needs_ok": ("Waits for you", "asks for permission", False, AlertKind.APPROVAL_WAITING),
    "alive_after_kill": ("Not confirmed dead", "is not confirmed dead", True, AlertKind.NOT_CONFIRMED),
    "lost": ("Lost", "is not followed any more", False, None),
}
"""state -> (title, what it did, whether it stays until dismissed, by which it is turned off)."""
OLD_S = 600.0
"""An alert that is older, heard after a gap in the stream, is no news."""


def state_alert(state: str, rows: Sequence[Row]) -> Alert:
    """One notification for all agents that came into a state together."""
    title, did, urgent, kind = _NEWS[state]
    page = "approvals" if state == "needs_ok" else "fleet"
    if len(rows) == 1:
        view = rows[0].view
        told = view.last_action if state == "needs_ok" and view.last_action else plain_reason(view.state_reason)
        why = f": {told}" if told else ""
        argument = rows[0].id if page == "fleet" else ""
        return Alert(title, f"{rows[0].name} {did}{why}", urgent, kind, f"agent {rows[0].id}", page, argument)
    names = ", ".join(row.name for row in rows[:NAMED])
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    return Alert(f"{title}: {plural(len(rows), 'agent')}", f"{names}{more}", urgent, kind, state, page)


def kill_alert(receipt: Receipt, seen: Sequence[str] = ()) -> Alert:
    """How a kill ended: anything but a whole proof says NOT PROVEN first. ``seen``: who was only seen and still runs."""
    words = headline_of(receipt)
    if verdict(receipt).exit_code is ExitCode.NOT_PROVEN:
        return Alert("NOT PROVEN", f"{words} Open the receipt.", True, AlertKind.NOT_CONFIRMED, "kill", "receipt", receipt.kill_id)
    whole = Alert("Killed", f"{words} Nothing starts until you rearm.", True, AlertKind.PANIC, "kill", "receipt", receipt.kill_id)
    if seen:
        who = f"{', '.join(seen[:NAMED])}{' and others' if len(seen) > NAMED else ''}"
        return replace(whole, title=f"Killed, but {running_words(list(seen))}", text=f"{words} Not signalled: {who}.")
    return whole


def asked_alert(rows: Sequence[ApprovalRow], *, may_decide: bool = False) -> Alert:
    """One notification for all requests that came in together: the worst danger first, who asks, and the call's own beginning."""
    worst = min(rows, key=lambda row: row.danger_rank)
    title = f"{worst.danger.capitalize()}: {_NEWS['needs_ok'][0]}" if worst.danger else _NEWS["needs_ok"][0]
    if len(rows) == 1:
        name = "" if rows[0].tool == "shell" else f"{rows[0].tool} "
        why = f"{worst.reason}. " if worst.danger else ""
        text = f"{why}{rows[0].agent_name or rows[0].agent_id} asks: {name}{rows[0].argument[:200]}"
        if rows[0].cwd:
            text += f" (in {rows[0].cwd[:FOLDER_MAX]})"
        asked = Alert(title, text, False, AlertKind.APPROVAL_WAITING, f"agent {worst.agent_id}", "approvals", worst.id)
        if not may_decide:
            return asked
        approve = ((APPROVE, "Approve once"),) if shows_all(worst) else ()
        return replace(asked, choices=(*approve, (DENY, "Deny")), about=worst)
    names = ", ".join(dict.fromkeys(row.agent_name or row.agent_id for row in rows[:NAMED]))
    words = f"{names}{' and others' if len(rows) > NAMED else ''}"
    title = f"{title}: {plural(len(rows), 'request')}"
    return Alert(title, words, False, AlertKind.APPROVAL_WAITING, "approvals", "approvals", worst.id)


def raised_alert(alert: AlertView) -> Alert | None:
    """A notification for what no model of the window tells: readiness lost, an agent that came back. None: the models tell it."""
    facts = alert.facts
    if alert.event is AlertKind.READINESS_LOST:
        why = listed(str(words) for words in list(facts.get("why", []))[:NAMED])
        return Alert(
            "Kill switch not ready", f"Not every way to stop this host is tested: {why}", True, alert.event, "light", "kill-switch"
        )
    if alert.event is AlertKind.CAME_BACK:
        name, again = facts.get("name") or facts.get("agent_id"), " and was killed again" if facts.get("killed_again") else ""
        words = f"{name} ran again after its kill{again}." if facts.get("certain") else f"{name} may run again after its kill."
        subject = f"back {facts.get('agent_id')}"
        return Alert("Came back after a kill", words, True, alert.event, subject, "receipt", str(facts.get("kill_id", "")))
    return None


class Alerts(QObject):
    """Reads what the fleet noted since the last look; what was there when the console opened is no news."""

    def __init__(self, fleet: Fleet, switch: Switch, show: Callable[[Alert], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._fleet, self._switch, self._show = fleet, switch, show
        self._told_of = ""
        """The kill whose end was told."""
        self._asked: dict[str, float] = {}
        """Agent id -> when a person was notified of its request (monotonic seconds)."""

    def asked(self, rows: Sequence[ApprovalRow]) -> None:
        """Requests that have just come in."""
        # What came as a state of its agent had no choices: a single request takes the place of that notification.
        fresh = [row for row in rows if self._is_news(row.agent_id)] or list(rows if len(rows) == 1 else ())
        if fresh and not self._switch.is_killed:
            self._tell(asked_alert(fresh, may_decide=not why_not_by_role("approvals.once", self._switch.rights)))
            self._asked |= dict.fromkeys((row.agent_id for row in fresh), time.monotonic())

    def _is_news(self, agent_id: str) -> bool:
        at = time.monotonic()
        self._asked = {key: when for key, when in self._asked.items() if at - when < ONCE_S}
        return agent_id not in self._asked

    def look(self) -> None:
        """At every change of the models."""
        news, self._fleet.news = self._fleet.news, []
        grouped: dict[str, list[Row]] = {}
        for row, state in news:
            if state == "needs_ok" and not self._is_news(row.id):
                continue
            if state in _NEWS and row.view.state == state:
                grouped.setdefault(state, []).append(row)
        self._asked |= dict.fromkeys((row.id for row in grouped.get("needs_ok", [])), time.monotonic())
        for state, rows in grouped.items():
            if not (self._switch.is_killed and state in ("lost", "halted")):
                self._tell(state_alert(state, rows))
        receipt = self._switch.receipt
        if receipt is not None and receipt.complete and self._told_of == receipt.kill_id:
            self._told_of = ""
            self._tell(kill_alert(receipt, still_running(receipt, self._fleet.rows.values())))

    def kill_began(self, kill_id: str) -> None:
        """A press, from wherever it came."""
        self._told_of = kill_id
        words = "Everything is being stopped. The proof follows."
        self._tell(Alert("Kill started", words, True, AlertKind.PANIC, "kill", "receipt", kill_id))

    def take(self, delta: Delta) -> None:
        """A message of the supervisor's; of an alert that no model of the window tells, a notification. Raises ValueError."""
        if delta.kind != "alert":
            return
        raised = AlertView.read(delta.data)
        shown = raised_alert(raised)
        if shown is not None and time.time() - datetime.fromisoformat(raised.time).timestamp() < OLD_S:
            self._tell(shown)

    def _tell(self, alert: Alert) -> None:
        status = self._switch.status
        if alert.kind is None or status is None or alert.kind not in status.alerts.desktop_off:
            self._show(alert)
