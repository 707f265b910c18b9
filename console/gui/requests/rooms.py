"""The verbs by room. ``requests.fleet.kill(agent_id, tree=True).then(show).failed(warn)``."""

from __future__ import annotations

from console.api import allowlist_review as rv
from console.api import endpoints as ep
from console.api import ladder as la
from console.api import messages as m
from console.api import network as sb
from console.api import persistence as p
from console.api import rearm as rm
from console.api import secrets as ro
from console.api.agents import agent_types as so
from console.api.agents import sessions as w
from console.api.records import (
    AcknowledgeLossBody,
    AuditPage,
    AuditVerdict,
    RestoreBody,
    RollbackDetailView,
    RollbackPage,
    RollbackRow,
    VerifyBody,
)
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt, receipt_from_json
from console.gui.link.http import Link
from console.gui.link.pending import Pending
from console.gui.requests.activity import ActivityRequests
from console.gui.requests.adopt import AdoptRequests
from console.gui.requests.approvals import ApprovalRequests
from console.gui.requests.budgets import BudgetRequests
from console.gui.requests.dry_run import DryRunRequests
from console.gui.requests.policy import PolicyRequests
from console.gui.requests.programs import ProgramRequests
from console.gui.requests.settings import SettingsRequests


class FleetRequests:
    """Agents."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def fleet(self) -> Pending[m.FleetView]:
        return self._link.ask(ep.FLEET)

    def agent(self, agent_id: str) -> Pending[m.AgentDetailView]:
        return self._link.ask(ep.AGENT, agent_id)

    def launch(self, body: m.LaunchBody) -> Pending[m.LaunchedView]:
        return self._link.ask(ep.LAUNCH, body=body)

    def again(self, agent_id: str) -> Pending[m.LaunchedView]:
        """The same command once more, after a rearm."""
        return self._link.ask(ep.AGAIN, agent_id)

    def output(self, agent_id: str, offset: int = 0) -> Pending[m.OutputView]:
        return self._link.ask(ep.OUTPUT, agent_id, offset=offset)

    def preview(self, body: la.LadderBody) -> Pending[la.LadderPreview]:
        """What a rung will do; nothing is done."""
        return self._link.ask(ep.PREVIEW, body=body)

    def ladder(self, body: la.LadderBody) -> Pending[m.ActView]:
        """Freeze, thaw, isolate or reconnect over any scope."""
        return self._link.ask(ep.STEP, body=body)

    def kill(self, body: la.LadderBody) -> Pending[Receipt]:
        """The receipt once zero is proven or not."""
        return _receipt(self._link.ask(ep.STEP.answering(m.RawView), body=body))

    def type_sources(self) -> Pending[so.SourcesView]:
        """What each agent type may use: its sources.json."""
        return self._link.ask(ep.SOURCES)

    def contexts(self) -> Pending[w.ContextsView]:
        """Every session's workspace."""
        return self._link.ask(ep.CONTEXTS)

    def act_on_context(self, verb: str, context_id: str, reason: str) -> Pending[w.ContextsView]:
        """hold, release or delete."""
        return self._link.ask(ep.SESSION_ACT, context_id, verb, body=w.ContextActBody(reason=reason))


class SwitchRequests:
    """The kill switch and its receipts."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def look(self) -> Pending[m.KillSwitchView]:
        return self._link.ask(ep.KILL_SWITCH)

    def rearm_view(self) -> Pending[rm.RearmView]:
        """What a rearm would release, what it takes, who was running."""
        return self._link.ask(ep.REARM)

    def change_passphrase(self, body: rm.PassphraseBody) -> Pending[rm.PassphraseView]:
        return self._link.ask(ep.CHANGE_PASSPHRASE, body=body)

    def rearm(self, reason: str, kill_id: str, proof: rm.RearmProof) -> Pending[m.KillSwitchView]:
        """Refused, with why, unless the kill is the latched one, the proof is good and nothing remote is latched."""
        body = m.KillSwitchBody(action="rearm", reason=reason, kill_id=kill_id, proof=proof)
        return self._link.ask(ep.SWITCH, body=body)

    def receipt(self, kill_id: str) -> Pending[Receipt]:
        return _receipt(self._link.ask(ep.RECEIPT, kill_id))

    def persistence(self) -> Pending[p.PersistenceView]:
        """What could bring an agent back: the last look at each session."""
        return self._link.ask(ep.PERSISTENCE)

    def rotation(self) -> Pending[ro.RotationView]:
        """The secrets of the plan, without values, and what their last rotation came to."""
        return self._link.ask(ep.ROTATION)

    def rotate(self, reason: str) -> Pending[ro.RotationView]:
        """Everything of the plan, now; also while killed."""
        return self._link.ask(ep.ROTATE, body=ro.RotationBody(reason=reason))


class NetworkRequests:
    """The allowlist, Envoy's configuration, and what passed."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def allowlist(self) -> Pending[m.AllowlistView]:
        return self._link.ask(ep.ALLOWLIST)

    def add_entry(self, body: m.AllowlistEntryBody) -> Pending[m.AllowlistChangedView]:
        return self._link.ask(ep.ADD_ENTRY, body=body)

    def change_entry(self, entry_id: str, body: m.AllowlistEntryBody) -> Pending[m.AllowlistChangedView]:
        return self._link.ask(ep.CHANGE_ENTRY, entry_id, body=body)

    def remove_entry(self, entry_id: str, reason: str, base_version: int | None) -> Pending[m.AllowlistChangedView]:
        return self._link.ask(ep.REMOVE_ENTRY, entry_id, reason=reason, base_version=base_version)

    def test_url(self, body: m.UrlTestBody) -> Pending[m.UrlTestView]:
        return self._link.ask(ep.TEST_URL, body=body)

    def history(self, limit: int = 100) -> Pending[rv.AllowlistHistoryView]:
        """Versions with what each changed, newest first."""
        return self._link.ask(ep.ALLOWLIST_HISTORY, limit=limit)

    def revert(self, body: rv.RevertBody) -> Pending[m.AllowlistChangedView]:
        return self._link.ask(ep.REVERT, body=body)

    def backtest(self, body: rv.BacktestBody) -> Pending[rv.BacktestView]:
        """What a change would have done to recorded requests."""
        return self._link.ask(ep.BACKTEST, body=body)

    def envoy_config(self) -> Pending[m.EnvoyConfigView]:
        return self._link.ask(ep.ENVOY)

    def stricter(self, body: sb.StricterBody) -> Pending[sb.StricterView]:
        """Switches sessions to a stricter mode, for good, or says what that would do."""
        return self._link.ask(ep.STRICTER, body=body)

    def register(self, body: sb.RegisterDataBody) -> Pending[sb.StricterView]:
        """Private data on an operator's word, or what that would do; answered once it holds."""
        return self._link.ask(ep.REGISTER_DATA, body=body)

    def modes(self, session: str, agent_id: str = "") -> Pending[sb.ModeHistoryView]:
        """How a session came to its mode, newest first."""
        return self._link.ask(ep.MODES, session, agent=agent_id)

    def egress(self, limit: int = 200) -> Pending[m.EgressPage]:
        return self._link.ask(ep.EGRESS, limit=limit)


class RollbackRequests:
    """Rollback records."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def records(self) -> Pending[RollbackPage]:
        return self._link.ask(ep.ROLLBACK)

    def detail(self, record_id: str) -> Pending[RollbackDetailView]:
        return self._link.ask(ep.ROLLBACK_DETAIL, record_id)

    def restore(self, record_id: str, body: RestoreBody) -> Pending[RollbackRow]:
        """Conflict when the file is not what the operator saw."""
        return self._link.ask(ep.RESTORE, record_id, body=body)


class AuditRequests:
    """The audit log."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def page(self, *, before: int | None = None, limit: int = 200, query: str = "") -> Pending[AuditPage]:
        return self._link.ask(ep.AUDIT, before=before, limit=limit, q=query)

    def verify(self) -> Pending[AuditVerdict]:
        return self._link.ask(ep.VERIFY_AUDIT, body=VerifyBody())

    def acknowledge(self, reason: str) -> Pending[AuditVerdict]:
        body = AcknowledgeLossBody(reason=reason)
        return self._link.ask(ep.ACKNOWLEDGE, body=body)


class Requests:
    """All rooms over one link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.fleet = FleetRequests(link)
        self.switch = SwitchRequests(link)
        self.network = NetworkRequests(link)
        self.rollback = RollbackRequests(link)
        self.audit = AuditRequests(link)
        self.adopt = AdoptRequests(link)
        self.activity = ActivityRequests(link)
        self.approvals = ApprovalRequests(link)
        self.budgets = BudgetRequests(link)
        self.programs = ProgramRequests(link)
        self.dry_run = DryRunRequests(link)
        self.policy = PolicyRequests(link)
        self.settings = SettingsRequests(link)

    def status(self) -> Pending[m.StatusView]:
        return self._link.ask(ep.STATUS)

    @property
    def in_flight(self) -> int:
        """Answers still on their way."""
        return self._link.in_flight


def _receipt(raw: Pending[m.RawView]) -> Pending[Receipt]:
    made: Pending[Receipt] = Pending()

    def read(view: m.RawView) -> None:
        try:
            made.resolve(receipt_from_json(view.root))
        except (KeyError, TypeError, ValueError):
            made.reject(ConsoleError("The receipt cannot be read.", "Run console and supervisor of the same version."))

    raw.then(read).failed(made.reject)
    return made
