"""What a person must hear of while the window is elsewhere: a breach, a question, a kill. One notification for many agents at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from console.api.policy.approvals import ApprovalRow
from console.domain.errors import ExitCode
from console.domain.kill import Receipt
from console.domain.verdict import verdict
from console.gui.models.fleet import Fleet, Row
from console.gui.models.seen import running_words, still_running
from console.gui.models.switch import Switch
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.widgets.words import plural
from console.gui.window.desktop import Alert

NAMED = 3
ONCE_S = 3.0
"""A question comes as a state of its agent and as a request: within this time the two are one piece of news."""
_NEWS: dict[str, tuple[str, str, bool]] = {
    "over_budget": ("Over budget", "reached a limit and is being halted", True),
    "halted": ("Halted by its budget", "was halted, verified", False),
    "needs_ok": ("Waits for you", "asks for permission", False),
    "alive_after_kill": ("Still alive", "is not confirmed dead", True),
    "lost": ("Lost", "is not followed any more", False),
}
"""state -> (title, what it did, whether it stays until dismissed)."""


def state_alert(state: str, rows: Sequence[Row]) -> Alert:
    """One notification for all agents that came into a state together."""
    title, did, urgent = _NEWS[state]
    if len(rows) == 1:
        view = rows[0].view
        told = view.last_action if state == "needs_ok" and view.last_action else plain_reason(view.state_reason)
        why = f": {told}" if told else ""
        return Alert(title, f"{rows[0].name} {did}{why}", urgent)
    names = ", ".join(row.name for row in rows[:NAMED])
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    return Alert(f"{title}: {plural(len(rows), 'agent')}", f"{names}{more}", urgent)


def kill_alert(receipt: Receipt, seen: Sequence[str] = ()) -> Alert:
    """How a kill ended: anything but a whole proof says NOT PROVEN first. ``seen``: who was only seen and still runs."""
    found = verdict(receipt)
    if found.exit_code is ExitCode.NOT_PROVEN:
        return Alert("NOT PROVEN", f"{found.headline} Open the receipt.", True)
    if seen:
        who = f"{', '.join(seen[:NAMED])}{' and others' if len(seen) > NAMED else ''}"
        return Alert(f"Killed, but {running_words(list(seen))}", f"{found.headline} Not signalled: {who}.", True)
    return Alert("Killed", f"{found.headline} Nothing starts until you rearm.", True)


def asked_alert(rows: Sequence[ApprovalRow]) -> Alert:
    """One notification for all requests that came in together: the worst danger first, who asks, and the call's own beginning."""
    worst = min(rows, key=lambda row: row.danger_rank)
    title = f"{worst.danger.capitalize()}: {_NEWS['needs_ok'][0]}" if worst.danger else _NEWS["needs_ok"][0]
    if len(rows) == 1:
        name = "" if rows[0].tool == "shell" else f"{rows[0].tool} "
        why = f"{worst.reason}. " if worst.danger else ""
        return Alert(title, f"{why}{rows[0].agent_name or rows[0].agent_id} asks: {name}{rows[0].argument[:200]}")
    names = ", ".join(dict.fromkeys(row.agent_name or row.agent_id for row in rows[:NAMED]))
    return Alert(f"{title}: {plural(len(rows), 'request')}", f"{names}{' and others' if len(rows) > NAMED else ''}")


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
        fresh = [row for row in rows if self._is_news(row.agent_id)]
        if fresh and not self._switch.is_killed:
            self._show(asked_alert(fresh))
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
                self._show(state_alert(state, rows))
        receipt = self._switch.receipt
        if receipt is not None and receipt.complete and self._told_of == receipt.kill_id:
            self._told_of = ""
            self._show(kill_alert(receipt, still_running(receipt, self._fleet.rows.values())))

    def kill_began(self, kill_id: str) -> None:
        """A press, from wherever it came."""
        self._told_of = kill_id
        self._show(Alert("Kill started", "Everything is being stopped. The proof follows.", True))
