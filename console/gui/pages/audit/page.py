"""The audit page: chain bar, records, one record with its place in the chain."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.messages import Delta
from console.api.records import AcknowledgeLossBody, AuditPage, AuditRow, AuditVerdict, VerifyBody
from console.domain.errors import ConsoleError
from console.gui.kit.asking import ReasonDialog
from console.gui.kit.paged import PagedList, Wording
from console.gui.link.pending import Pending
from console.gui.pages import declared
from console.gui.pages.audit.chain import ChainBar, known_of, newer
from console.gui.pages.audit.detail import RecordPane
from console.gui.pages.audit.rows import cells
from console.gui.pages.interface import Badge, Desk
from console.gui.pages.list_page import ListPage
from console.gui.timers import once

_LOOK_MS = 60
_ON_A_ROW = ("audit.agent", "audit.rollback", "audit.copy")
_WORDING = Wording(
    title="Audit",
    filtered="Actor, kind, what or agent",
    noun="record",
    order="The newest record comes first: each one holds the hash of the one before.",
    empty="No record yet. Every launch, decision, change and kill is written here before it takes effect. "
    "Each record holds the hash of the one before.",
    none="No records match the filter.",
)
_WHAT = (
    "Records of before are lost, or an older copy of the log was put in its place. Until a person acknowledges that, the log is shown as "
    "not intact in the window, in status and in every export. Your reason is recorded, and nothing is restored."
)


class AcknowledgeDialog(ReasonDialog):
    """The question before a loss of records is acknowledged. The page changes with the next status."""

    def __init__(self, desk: Desk, why: str, parent: QWidget) -> None:
        super().__init__("Acknowledge the loss of records?", "Acknowledge", "primary", parent, width=560)
        self.desk = desk
        self.paragraph(_WHAT)
        self.paragraph(why or "What was lost is not known.", "warn", "triangle")
        self.ask("What you found out about it, for the record")

    def send(self, reason: str) -> Pending[AuditVerdict]:
        return self.desk.requests.ask(ep.ACKNOWLEDGE, body=AcknowledgeLossBody(reason=reason))

    def answered(self, answer: AuditVerdict) -> None:
        self.desk.ask_sync()
        left = "" if answer.whole else " The log is still not intact."
        self.desk.notices.say("info" if answer.whole else "amber", f"The loss is acknowledged.{left}")


class AuditLogPage(ListPage):
    """Reads everything, and changes nothing but the acknowledgement of a loss."""

    spec = declared.AUDIT

    pane: RecordPane

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.chain = ChainBar(self)
        self.log = PagedList(self._ask, cells(self._name_of), _WORDING, self)
        self.view = self.log.view
        self._stale, self._resynced_at = True, 0.0
        self._problem: ConsoleError | None = None
        self.lay(self.log, RecordPane(self), 388, self.chain)
        self._look = once(self, _LOOK_MS, self._read_place)
        self.handlers = {
            "audit.newest": self.log.to_newest,
            "audit.filter": self.log.search.setFocus,
            "audit.copy": self._copy,
            "audit.agent": lambda: self.desk.goto("fleet", self._agent_of(self.current())),
            "audit.verify": self._verify,
            "audit.rollback": lambda: self.desk.goto("rollback", self._rollback_of(self.current())),
            "audit.acknowledge": lambda: AcknowledgeDialog(self.desk, self.chain.known.why, self.window()).open(),
            "audit.bad": lambda: self.log.go_to(self.chain.known.first_bad or 1),
            "audit.detail": self.turn_pane,
        }
        self.chain.verify.clicked.connect(lambda: self.do("audit.verify"))
        self.chain.acknowledge.clicked.connect(lambda: self.do("audit.acknowledge"))
        self.chain.jump.clicked.connect(lambda: self.do("audit.bad"))
        for told in (self.log.chosen, self.log.changed):
            told.connect(self.show_pane)
            told.connect(self._look.start)
        self.log.failed.connect(self._failed)
        self.view.opened.connect(lambda _row: self.turn_pane())

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        if argument.startswith("#") and argument[1:].isascii() and argument[1:].isdigit() and len(argument) < 17:
            self._stale = False
            self.log.go_to(int(argument[1:]))
        elif argument:
            self._stale = False
            self.log.set_query_silently(argument)
            self.log.read(argument)
        elif self._stale:
            self._stale = False
            self.log.read()
        self.on_models()
        self.view.setFocus()

    def on_models(self) -> None:
        switch = self.desk.switch
        if switch.status is not None and (switch.status_at or 0.0) >= self._resynced_at:  # before that it was perhaps of another log
            self.log.know(switch.status.audit_records)
        self._show_chain()
        self.show_pane()

    def on_tick(self, now: float) -> None:
        if self._problem is not None and not self.log.book.rows:
            self._problem = None
            self.log.read()
        self._show_chain()

    def handle(self, delta: Delta) -> None:
        newest = delta.data.get("newest")
        if delta.kind == "audit" and isinstance(newest, int):
            self.log.know(newest)

    def resync(self) -> None:
        self._resynced_at = self.desk.clock()
        if not self.log.loaded:
            self._stale = self._stale or not self.isVisible()
        elif not self.log.is_asking:
            self.log.read_newer(always=True)  # whoever reads further down keeps the place; the bar says what is new

    def badge(self) -> Badge | None:
        known = newer(self.chain.known, self.desk.switch.status)
        return Badge("broken", "danger", "alert") if known.whole is False else None

    def is_ready(self) -> bool:
        return self.log.loaded and (self.pane.row is not None or not self.log.book.rows)

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        row = self.current()
        if action_id in _ON_A_ROW and row is None:
            return "No record is selected."
        if action_id == "audit.agent" and self._agent_of(row) not in self.desk.fleet.rows:
            return "This record names no agent that is in the fleet."
        if action_id == "audit.rollback" and not self._rollback_of(row):
            return "This record has no rollback."
        if action_id == "audit.verify" and self.chain.is_verifying:
            return "It is being verified."
        if action_id == "audit.acknowledge" and not self.chain.known.is_lost:
            return "No loss of records waits to be acknowledged."
        if action_id == "audit.bad" and self.chain.known.first_bad is None:
            broken = self.chain.known.whole is False
            return "The log is not intact, not at one record: see the red bar." if broken else "No bad record is known."
        return ""

    def current(self) -> AuditRow | None:
        """The selected record."""
        found: AuditRow | None = self.view.current()
        return found

    # --- inside ------------------------------------------------------------------------------------------------------

    def _name_of(self, agent_id: str) -> str:
        row = self.desk.fleet.rows.get(agent_id)
        return row.name if row is not None else agent_id

    def _agent_of(self, row: AuditRow | None) -> str:
        return (row.agent_id or row.actor.removeprefix("agent:")) if row is not None else ""

    def _rollback_of(self, row: AuditRow | None) -> str:
        named = row.data.get("rollback_id", "") if row is not None else ""
        return named if isinstance(named, str) else ""

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.pane.json.toPlainText())
        if self.pane.row is not None:
            self.desk.notices.say("info", f"Record {self.pane.row.seq:,} copied as JSON.")

    def _ask(self, before: int | None, limit: int, query: str) -> Pending[AuditPage]:
        return self.desk.requests.ask(ep.AUDIT, before=before, limit=limit, q=query)

    def _failed(self, error: ConsoleError) -> None:
        self._problem = error
        self.chain.failed(None)
        self.desk.notices.fail(error)

    def _verify(self) -> None:
        self.chain.is_verifying = True
        self.chain.failed(None)
        began = self.desk.clock()
        asked = self.desk.requests.ask(ep.VERIFY_AUDIT, body=VerifyBody()).while_alive(self)
        asked.then(lambda verdict: self._verified(verdict, (self.desk.clock() - began) * 1000)).failed(self._not_verified)
        self._show_chain()

    def _verified(self, verdict: AuditVerdict, ms: float) -> None:
        self.chain.is_verifying = False
        self.chain.known = known_of(verdict, ms)
        self.log.know(verdict.records)
        self._show_chain()
        self.badge_changed.emit()
        if not verdict.whole and verdict.first_bad is not None:
            self.log.go_to(verdict.first_bad)

    def _not_verified(self, error: ConsoleError) -> None:
        self.chain.is_verifying = False
        self.chain.failed(error)
        self._show_chain()

    def _show_chain(self) -> None:
        status, now = self.desk.switch.status, self.desk.clock()
        silent = self.desk.switch.is_old(now)
        total = max(self.log.book.total, status.audit_records if status else 0)
        self.chain.say(newer(self.chain.known, status), total, now, silent=silent)

    def show_pane(self) -> None:
        row = self.current()
        if row is not None:
            self.pane.show_row(row)
        super().show_pane()

    def _read_place(self) -> None:
        row = self.pane.row
        if row is not None:
            asked = self.desk.requests.ask(ep.AUDIT, before=row.seq + 2, limit=3).while_alive(self)
            asked.then(lambda page: self._place_came(row, page))

    def _place_came(self, row: AuditRow, page: AuditPage) -> None:
        found = {r.seq: r for r in page.rows}
        self.pane.show_place(row, found.get(row.seq - 1), found.get(row.seq + 1), read=True)
