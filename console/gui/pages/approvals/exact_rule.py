"""After an approval: a rule for exactly this call in its workspace, for 30 days, with what it would have answered."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.policy.approvals import ApprovalRow
from console.api.policy.rules import ExactBody, ExactOffer, ExactRule
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.dialog import IN_PROGRESS, Dialog
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural

ARGUMENT_SHOWN = 600


class ExactRuleDialog(Dialog):
    """Allow stays off until the supervisor has offered the rule, with its backtest."""

    def __init__(self, desk: Desk, row: ApprovalRow, parent: QWidget) -> None:
        super().__init__("Allow exactly this call for 30 days?", "Allow for 30 days", "danger", parent, width=560)
        self._desk, self._row = desk, row
        self.offer: ExactOffer | None = None
        self.body.addWidget(Text(f"{row.tool} {row.argument}"[:ARGUMENT_SHOWN], 12, fonts.REGULAR, "text", mono=True, wrap=True))
        self.words = self.paragraph("The supervisor tries it on the recorded calls…", mark="ring")
        self.reason = self.ask_reason(label="Reason (optional)")
        self.main.allow("The recorded calls are being tried.")
        self.main.clicked.connect(self._send)
        desk.requests.ask(ep.OFFERED_RULE, row.id).while_alive(self).then(self._offered).failed(self.refused)

    def _offered(self, offer: ExactOffer) -> None:
        self.offer = offer
        rule = offer.rule
        if rule is None:
            self.words.say(f"No rule can answer this: {offer.why_not}. Each such call is asked.", "warn", "triangle")
            self.main.allow("No rule can answer this.")
        else:
            answered = f"It would have answered {offer.answered:,} of {plural(offer.recorded, 'recorded call')} in {offer.days} days."
            where = f"It holds for these arguments alone, in {rule.folder}, until {day_clock(rule.until)}."
            self.words.say(f"{answered} {where} The Policy page lists it, and removes it.", "text", "check")
            self.main.allow("")

    def _send(self) -> None:
        self.main.allow(IN_PROGRESS)
        body = ExactBody(digest=self._row.digest, reason=self.reason.text().strip())
        self._desk.requests.ask(ep.ADD_RULE, self._row.id, body=body).while_alive(self).then(self._made).failed(self.refused)

    def _made(self, rule: ExactRule) -> None:
        self._desk.notices.say("info", f"Rule {rule.id} allows exactly this call until {day_clock(rule.until)}.")
        self.accept()
