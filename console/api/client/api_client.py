"""The one way from console, command line and tests to a supervisor: one method per route, views out, ConsoleError kinds raised.

Synchronous, safe to share between threads. Every method may raise Unreachable (no supervisor), TimedOut (outcome unknown) and the kind
its answer names (Denied, NotFound, Conflict, Killed ...), with the supervisor's own words and exit code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import ValidationError

from console.api import ladder as la
from console.api import messages as m
from console.api import network as sb
from console.api import persistence as p
from console.api import rearm as rm
from console.api import secrets as s
from console.api.agents import sessions as w
from console.api.agents.agent_types import SourcesView
from console.api.alerts import WebhookBody, WebhookTestView, WebhookView
from console.api.client.agent_routes import ActivityRoutes, AdoptRoutes, ProgramRoutes
from console.api.client.limit_routes import AllowlistRoutes, BudgetRoutes, SettingsRoutes
from console.api.client.rule_routes import ApprovalRoutes, DryRunRoutes
from console.api.client.wire import CHANGE_S, V, Wire, segment
from console.api.records import (
    AcknowledgeLossBody,
    AuditPage,
    AuditPiece,
    AuditVerdict,
    RestoreBody,
    RollbackDetailView,
    RollbackPage,
    RollbackRow,
)
from console.api.secrets import RetiredKeyView, RetireKeyBody
from console.domain.errors import ConsoleError, Unreachable, UsageProblem
from console.domain.kill import Receipt, receipt_from_json
from console.domain.process.precedence import ahead
from console.settings.places import Places

RETIRE_S = 30.0


class KeyRoutes:
    """Taking a key out."""

    _wire: Wire

    def retire_key(self, body: RetireKeyBody) -> RetiredKeyView:
        """POST /api/keys/retire; NotFound, Conflict (the rest could not sign any more), NotRecorded: then it is as it was."""
        return self._wire.ask(RetiredKeyView, "POST", "/api/keys/retire", body=body, timeout_s=RETIRE_S)


LAUNCH_S = 300.0
"""A first container launch builds its image."""
KILL_S = 30.0
LADDER_S = 60.0
"""A whole session or host, with every network looked at."""
ROTATION_S = 120.0
"""A plan may hold programs that take their time."""
WEBHOOK_S = 30.0
"""A receiver has 10 s, and a keyring 5 s before it."""


class _FleetRoutes:
    """Agents: list, look at one, start, act."""

    _wire: Wire

    def fleet(self) -> m.FleetView:
        """GET /api/fleet."""
        return self._wire.ask(m.FleetView, "GET", "/api/fleet")

    def agent(self, agent_id: str) -> m.AgentDetailView:
        """GET /api/agents/{id}."""
        return self._wire.ask(m.AgentDetailView, "GET", f"/api/agents/{segment(agent_id)}")

    def launch(self, body: m.LaunchBody) -> m.LaunchedView:
        """POST /api/agents; returns once the agent runs."""
        return self._wire.ask(m.LaunchedView, "POST", "/api/agents", body=body, timeout_s=LAUNCH_S)

    def output(self, agent_id: str, offset: int = 0) -> m.OutputView:
        """GET /api/agents/{id}/output: what it wrote from ``offset`` (bytes) on."""
        return self._wire.ask(m.OutputView, "GET", f"/api/agents/{segment(agent_id)}/output", query={"offset": offset})

    def freeze(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """POST /api/agents/{id}/freeze."""
        return self._act("freeze", agent_id, tree, reason)

    def thaw(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """POST /api/agents/{id}/thaw."""
        return self._act("thaw", agent_id, tree, reason)

    def isolate(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """POST /api/agents/{id}/isolate: no network, until ``reconnect``."""
        return self._act("isolate", agent_id, tree, reason)

    def reconnect(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """POST /api/agents/{id}/reconnect: back to what its session's mode allows."""
        return self._act("reconnect", agent_id, tree, reason)

    def ladder(self, body: la.LadderBody) -> m.ActView:
        """POST /api/ladder: freeze, isolate, thaw or reconnect over any scope."""
        return self._wire.ask(m.ActView, "POST", "/api/ladder", body=body, timeout_s=LADDER_S)

    def kill_scope(self, scope: la.ScopeBody, reason: str = "") -> Receipt:
        """POST /api/ladder, kill; returns the receipt once zero is proven or not. ``all`` latches."""
        body = la.LadderBody(action="kill", scope=scope, reason=reason)
        with ahead():
            return _receipt(self._wire.ask(m.RawView, "POST", "/api/ladder", body=body, timeout_s=LADDER_S))

    def preview(self, body: la.LadderBody) -> la.LadderPreview:
        """POST /api/ladder/preview: what it will do; nothing is done."""
        return self._wire.ask(la.LadderPreview, "POST", "/api/ladder/preview", body=body)

    def kill(self, agent_id: str, *, tree: bool = False, reason: str = "") -> Receipt:
        """POST /api/agents/{id}/kill; returns the receipt once zero is proven or not."""
        path = f"/api/agents/{segment(agent_id)}/kill"
        with ahead():
            return _receipt(self._wire.ask(m.RawView, "POST", path, body=m.ActBody(tree=tree, reason=reason), timeout_s=KILL_S))

    def _act(self, verb: str, agent_id: str, tree: bool, reason: str) -> m.ActView:
        path = f"/api/agents/{segment(agent_id)}/{verb}"
        return self._wire.ask(m.ActView, "POST", path, body=m.ActBody(tree=tree, reason=reason), timeout_s=KILL_S)


class _SwitchRoutes:
    """The kill switch and its receipts."""

    _wire: Wire

    def kill_switch(self) -> m.KillSwitchView:
        """GET /api/kill-switch."""
        return self._wire.ask(m.KillSwitchView, "GET", "/api/kill-switch")

    def activate(self, reason: str) -> Receipt:
        """POST /api/kill-switch, activate. The command line presses the guard itself; this is for those who cannot."""
        with ahead():
            return _receipt(self._switch(m.RawView, "activate", reason, ""))

    def rearm(self, reason: str, kill_id: str = "", proof: rm.RearmProof | None = None) -> m.KillSwitchView:
        """POST /api/kill-switch, rearm; refused with why while a remote order still blocks, or without a proof of who asks."""
        return self._switch(m.KillSwitchView, "rearm", reason, kill_id, proof)

    def rearm_view(self) -> rm.RearmView:
        """GET /api/kill-switch/rearm: what a rearm would release, what it takes, who was running."""
        return self._wire.ask(rm.RearmView, "GET", "/api/kill-switch/rearm")

    def passphrase(self) -> rm.PassphraseView:
        """GET /api/passphrase."""
        return self._wire.ask(rm.PassphraseView, "GET", "/api/passphrase")

    def change_passphrase(self, body: rm.PassphraseBody) -> rm.PassphraseView:
        """POST /api/passphrase."""
        return self._wire.ask(rm.PassphraseView, "POST", "/api/passphrase", body=body, timeout_s=CHANGE_S)

    def again(self, agent_id: str, dangerous_ok: str = "") -> m.LaunchedView:
        """POST /api/agents/{id}/again: the same command in the same session, once a rearm has been."""
        body = rm.AgainBody(dangerous_ok=dangerous_ok)
        return self._wire.ask(m.LaunchedView, "POST", f"/api/agents/{segment(agent_id)}/again", body=body, timeout_s=LAUNCH_S)

    def receipts(self) -> m.ReceiptsView:
        """GET /api/receipts, newest first."""
        return self._wire.ask(m.ReceiptsView, "GET", "/api/receipts")

    def receipt(self, kill_id: str) -> Receipt:
        """GET /api/receipts/{id}."""
        return _receipt(self._wire.ask(m.RawView, "GET", f"/api/receipts/{segment(kill_id)}"))

    def retry_remote(self) -> m.KillSwitchView:
        """POST /api/remote/retry."""
        return self._wire.ask(m.KillSwitchView, "POST", "/api/remote/retry", timeout_s=CHANGE_S)

    def _switch(
        self, view: type[V], action: Literal["activate", "rearm"], reason: str, kill_id: str, proof: rm.RearmProof | None = None
    ) -> V:
        try:
            body = m.KillSwitchBody(action=action, reason=reason, kill_id=kill_id, proof=proof)
        except ValidationError as error:
            raise UsageProblem("A kill or a rearm needs a reason of 1 to 500 characters.", "Give one with --reason.") from error
        return self._wire.ask(view, "POST", "/api/kill-switch", body=body, timeout_s=CHANGE_S)


class _NetworkRoutes:
    """What sessions may reach and hold: Envoy, modes, data, workspaces, sources, and what passed."""

    _wire: Wire

    def envoy_config(self) -> m.EnvoyConfigView:
        """GET /api/envoy/config."""
        return self._wire.ask(m.EnvoyConfigView, "GET", "/api/envoy/config")

    def contexts(self) -> w.ContextsView:
        """GET /api/contexts."""
        return self._wire.ask(w.ContextsView, "GET", "/api/contexts")

    def act_on_context(self, verb: str, context_id: str, body: w.ContextActBody) -> w.ContextsView:
        """POST /api/contexts/{id}/hold | release | delete."""
        path = f"/api/contexts/{segment(context_id)}/{segment(verb)}"
        return self._wire.ask(w.ContextsView, "POST", path, body=body, timeout_s=CHANGE_S)

    def stricter(self, body: sb.StricterBody) -> sb.StricterView:
        """POST /api/network/stricter; returns once it is on disk, applied and looked at."""
        return self._wire.ask(sb.StricterView, "POST", "/api/network/stricter", body=body, timeout_s=CHANGE_S)

    def register_data(self, body: sb.RegisterDataBody) -> sb.StricterView:
        """POST /api/network/private-data; the same."""
        return self._wire.ask(sb.StricterView, "POST", "/api/network/private-data", body=body, timeout_s=CHANGE_S)

    def mode_history(self, context_id: str, agent_id: str = "") -> sb.ModeHistoryView:
        """GET /api/contexts/{id}/modes, newest first."""
        return self._wire.ask(sb.ModeHistoryView, "GET", f"/api/contexts/{segment(context_id)}/modes", query={"agent": agent_id or None})

    def sources(self) -> SourcesView:
        """GET /api/sources."""
        return self._wire.ask(SourcesView, "GET", "/api/sources")

    def egress(self, limit: int = 200) -> m.EgressPage:
        """GET /api/egress, newest first."""
        return self._wire.ask(m.EgressPage, "GET", "/api/egress", query={"limit": limit})


class _RecordRoutes:
    """Rollback records and the audit log."""

    _wire: Wire

    def rollback(self) -> RollbackPage:
        """GET /api/rollback, newest first."""
        return self._wire.ask(RollbackPage, "GET", "/api/rollback")

    def rollback_detail(self, record_id: str) -> RollbackDetailView:
        """GET /api/rollback/{id}."""
        return self._wire.ask(RollbackDetailView, "GET", f"/api/rollback/{segment(record_id)}")

    def restore(self, record_id: str, body: RestoreBody) -> RollbackRow:
        """POST /api/rollback/{id}/restore; Conflict when the file is not what the operator saw."""
        return self._wire.ask(RollbackRow, "POST", f"/api/rollback/{segment(record_id)}/restore", body=body)

    def audit(self, *, before: int | None = None, limit: int = 200, q: str = "") -> AuditPage:
        """GET /api/audit, newest first."""
        return self._wire.ask(AuditPage, "GET", "/api/audit", query={"before": before, "limit": limit, "q": q or None})

    def export_audit(self, fmt: str, after: int) -> AuditPiece:
        """GET /api/audit/export: a part of the file, from behind record ``after``."""
        return self._wire.ask(AuditPiece, "GET", "/api/audit/export", query={"format": fmt, "after": after}, timeout_s=CHANGE_S)

    def persistence(self, session: str = "") -> p.PersistenceView:
        """GET /api/persistence: what could bring an agent back; with a session, looked at now."""
        return self._wire.ask(p.PersistenceView, "GET", "/api/persistence", query={"session": session or None}, timeout_s=CHANGE_S)

    def verify_audit(self) -> AuditVerdict:
        """POST /api/audit/verify."""
        return self._wire.ask(AuditVerdict, "POST", "/api/audit/verify", timeout_s=CHANGE_S)

    def acknowledge_loss(self, reason: str) -> AuditVerdict:
        """POST /api/audit/acknowledge; Conflict when there is no loss."""
        body = AcknowledgeLossBody(reason=reason)
        return self._wire.ask(AuditVerdict, "POST", "/api/audit/acknowledge", body=body, timeout_s=CHANGE_S)


class _SecretRoutes:
    """Rotation, the API key, operator tokens, and the revocation of one agent's."""

    _wire: Wire

    def rotation(self) -> s.RotationView:
        """GET /api/rotation: the plan without any value, and what the last rotation came to."""
        return self._wire.ask(s.RotationView, "GET", "/api/rotation")

    def rotate(self, body: s.RotationBody) -> s.RotationView:
        """POST /api/rotation; also while killed."""
        return self._wire.ask(s.RotationView, "POST", "/api/rotation", body=body, timeout_s=ROTATION_S)

    def tell_value(self, body: s.RotationValueBody) -> s.RotationView:
        """POST /api/rotation/value."""
        return self._wire.ask(s.RotationView, "POST", "/api/rotation/value", body=body)

    def new_api_key(self) -> s.ApiKeyView:
        """POST /api/api-key: shown this once."""
        return self._wire.ask(s.ApiKeyView, "POST", "/api/api-key")

    def operator_token(self, body: s.TokenBody) -> s.TokenView:
        """POST /api/tokens: an operator token for an API key."""
        return self._wire.ask(s.TokenView, "POST", "/api/tokens", body=body)

    def revoke_token(self, agent_id: str) -> s.RevokedView:
        """POST /api/agents/{id}/revoke-token."""
        return self._wire.ask(s.RevokedView, "POST", f"/api/agents/{segment(agent_id)}/revoke-token")


class _WebhookRoutes:
    """Where alerts go."""

    _wire: Wire

    def webhook(self) -> WebhookView:
        """GET /api/webhook."""
        return self._wire.ask(WebhookView, "GET", "/api/webhook")

    def set_webhook(self, body: WebhookBody) -> WebhookView:
        """POST /api/webhook; UsageProblem for a URL or a secret that cannot be used."""
        return self._wire.ask(WebhookView, "POST", "/api/webhook", body=body, timeout_s=WEBHOOK_S)

    def test_webhook(self) -> WebhookTestView:
        """POST /api/webhook/test: send one alert now; NotFound when no webhook is set."""
        return self._wire.ask(WebhookTestView, "POST", "/api/webhook/test", timeout_s=WEBHOOK_S)

    def remove_webhook(self) -> WebhookView:
        """POST /api/webhook/remove: alerts that wait are dropped."""
        return self._wire.ask(WebhookView, "POST", "/api/webhook/remove", timeout_s=WEBHOOK_S)


class ApiClient(
    _FleetRoutes,
    _SwitchRoutes,
    _NetworkRoutes,
    AllowlistRoutes,
    _RecordRoutes,
    _SecretRoutes,
    ProgramRoutes,
    ActivityRoutes,
    AdoptRoutes,
    BudgetRoutes,
    SettingsRoutes,
    ApprovalRoutes,
    DryRunRoutes,
    KeyRoutes,
    _WebhookRoutes,
):
    """A supervisor, seen through operator.sock."""

    def __init__(self, places: Places, timeout_s: float = 10) -> None:
        self.places = places
        self._wire = Wire(places, timeout_s)

    def __enter__(self) -> ApiClient:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held between requests."""

    def status(self) -> m.StatusView:
        """GET /api/status."""
        return self._wire.ask(m.StatusView, "GET", "/api/status")

    def shutdown(self) -> m.DoneView:
        """POST /api/shutdown: the supervisor ends cleanly. Denied while agents live."""
        return self._wire.ask(m.DoneView, "POST", "/api/shutdown")

    def events(self, last_id: int = 0) -> Iterator[m.Delta]:
        """GET /api/events from after ``last_id`` on, until the stream breaks (Unreachable) or ends (StopIteration)."""
        headers = {"last-event-id": str(last_id)} if last_id else {}
        return _deltas(self._wire.stream("/api/events", headers))


def _receipt(raw: m.RawView) -> Receipt:
    try:
        return receipt_from_json(raw.root)
    except (KeyError, TypeError, ValueError) as error:
        raise ConsoleError("The supervisor's receipt cannot be read.", "Run console and supervisor of the same version.") from error


def _deltas(lines: Iterator[str]) -> Iterator[m.Delta]:
    """Server-sent events (HTML Living Standard, 9.2.6) as deltas; comments are heartbeats."""
    seq, kind, data = 0, "message", ""
    for line in lines:
        if line.startswith(":"):
            continue
        if not line:
            if data:
                yield _delta(seq, kind, data)
            kind, data = "message", ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id" and value.isdigit():
            seq = int(value)
        elif name == "event":
            kind = value
        elif name == "data":
            data = f"{data}\n{value}" if data else value


def _delta(seq: int, kind: str, data: str) -> m.Delta:
    try:
        parsed: Any = json.loads(data)
        return m.Delta(seq=seq, kind=kind, data=parsed)
    except (ValueError, ValidationError) as error:
        raise Unreachable("The stream of events carries something unreadable.", "Open it again and read the whole fleet again.") from error
