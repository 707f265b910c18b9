"""The one way from console, command line and tests to a supervisor: one method per endpoint, views out, ConsoleError kinds raised.

Synchronous, safe to share between threads. Every method may raise Unreachable (no supervisor), TimedOut (outcome unknown) and the kind
its answer names (Denied, NotFound, Conflict, Killed ...), with the supervisor's own words and exit code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar

from console.api import endpoints as ep
from console.api import ladder as la
from console.api import messages as m
from console.api.agents import programs as pm
from console.api.agents.activity import ActivityEntryView, ActivityPage
from console.api.agents.adopt import CandidatesView
from console.api.agents.sessions import ContextActBody, ContextsView
from console.api.allowlist_review import AllowlistHistoryView
from console.api.budgets import BudgetHistoryView, BudgetNodeView, BudgetScope, BudgetsView
from console.api.client.wire import Wire
from console.api.network import ModeHistoryView
from console.api.persistence import PersistenceView
from console.api.rearm import AgainBody, RearmProof
from console.api.records import AcknowledgeLossBody, AuditPage, AuditPiece, AuditVerdict, VerifyBody
from console.domain.errors import ConsoleError, Unreachable, UsageProblem
from console.domain.kill import Receipt, receipt_from_json
from console.domain.message import Malformed, Message
from console.domain.process.standing import ahead
from console.settings.places import Places

B = TypeVar("B")
V = TypeVar("V", bound=Message)


class _Asking:
    """Asks endpoints of the table."""

    def __init__(self, places: Places, timeout_s: float = 10) -> None:
        self.places = places
        self._wire = Wire(places, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held between requests."""

    def ask(
        self,
        endpoint: ep.Endpoint[Any, V],
        *ids: str | int,
        body: Any = None,
        query: dict[str, Any] | None = None,
        wait_s: float | None = None,
    ) -> V:
        """Ask an endpoint; ``ids`` fill its path in their order. ``wait_s`` replaces the endpoint's own."""
        return self._wire.ask(endpoint, *ids, body=body, query=query, wait_s=wait_s)


def _plain(row: ep.Endpoint[None, V]) -> Callable[[_Asking], V]:
    return lambda client: client.ask(row)


def _one(row: ep.Endpoint[None, V]) -> Callable[[_Asking, str], V]:
    return lambda client, one: client.ask(row, one)


def _sends(row: ep.Endpoint[B, V]) -> Callable[[_Asking, B], V]:
    return lambda client, body: client.ask(row, body=body)


def _sends_to(row: ep.Endpoint[B, V]) -> Callable[[_Asking, str, B], V]:
    return lambda client, one, body: client.ask(row, one, body=body)


class _Stops(_Asking):
    """Acts on agents, kills, and the kill switch."""

    ladder = _sends(ep.STEP)
    preview = _sends(ep.PREVIEW)
    kill_switch = _plain(ep.KILL_SWITCH)
    rearm_view = _plain(ep.REARM)
    passphrase = _plain(ep.PASSPHRASE)
    change_passphrase = _sends(ep.CHANGE_PASSPHRASE)
    receipts = _plain(ep.RECEIPTS)
    retry_remote = _plain(ep.RETRY_REMOTE)

    def freeze(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """Freeze an agent."""
        return self._act("freeze", agent_id, tree, reason)

    def thaw(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """Thaw an agent."""
        return self._act("thaw", agent_id, tree, reason)

    def isolate(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """Cut an agent's network, until ``reconnect``."""
        return self._act("isolate", agent_id, tree, reason)

    def reconnect(self, agent_id: str, *, tree: bool = False, reason: str = "") -> m.ActView:
        """Give an agent back what its session's mode allows."""
        return self._act("reconnect", agent_id, tree, reason)

    def _act(self, verb: str, agent_id: str, tree: bool, reason: str) -> m.ActView:
        return self.ask(ep.ACT, agent_id, verb, body=m.ActBody(tree=tree, reason=reason))

    def kill(self, agent_id: str, *, tree: bool = False, reason: str = "") -> Receipt:
        """Kill an agent; return the receipt once zero is proven or not."""
        with ahead():
            return _receipt(self.ask(ep.KILL_AGENT, agent_id, body=m.ActBody(tree=tree, reason=reason)))

    def kill_scope(self, scope: la.ScopeBody, reason: str = "") -> Receipt:
        """Kill a scope; return the receipt once zero is proven or not. ``all`` latches."""
        body = la.LadderBody(action="kill", scope=scope, reason=reason)
        with ahead():
            return _receipt(self.ask(ep.STEP.answering(m.RawView), body=body))

    def activate(self, reason: str) -> Receipt:
        """Kill everything. The command line presses the guard itself; this is for those who cannot."""
        body = _switch("activate", reason)
        with ahead():
            return _receipt(self.ask(ep.SWITCH.answering(m.RawView), body=body))

    def rearm(self, reason: str, kill_id: str = "", proof: RearmProof | None = None) -> m.KillSwitchView:
        """Rearm; refused with why while a remote order still blocks, or without a proof of who asks."""
        return self.ask(ep.SWITCH, body=_switch("rearm", reason, kill_id, proof))

    def receipt(self, kill_id: str) -> Receipt:
        """One receipt."""
        return _receipt(self.ask(ep.RECEIPT, kill_id))


class _Pages(_Asking):
    """Reads that take a query."""

    def output(self, agent_id: str, offset: int = 0) -> m.OutputView:
        """What an agent wrote from ``offset`` (bytes) on."""
        return self.ask(ep.OUTPUT, agent_id, query={"offset": offset})

    def activity(
        self,
        agent_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 200,
        query: str = "",
        kinds: Sequence[str] = (),
    ) -> ActivityPage:
        """The newest entries, those below ``before``, or those above ``after``; oldest first."""
        asked = {"before": before, "after": after, "limit": limit, "q": query or None, "kind": ",".join(kinds) or None}
        return self.ask(ep.ACTIVITY, agent_id, query=asked)

    def activity_entry(self, agent_id: str, seq: int) -> ActivityEntryView:
        """One entry with all that is kept of it."""
        return self.ask(ep.ACTIVITY_ENTRY, agent_id, seq)

    def adopt_candidates(self, agent_id: str) -> CandidatesView:
        """Processes that an observed agent may be."""
        return self.ask(ep.CANDIDATES, query={"agent": agent_id})

    def mode_history(self, context_id: str, agent_id: str = "") -> ModeHistoryView:
        """Changes of a session's network mode, newest first."""
        return self.ask(ep.MODES, context_id, query={"agent": agent_id or None})

    def egress(self, limit: int = 200, agent_id: str = "") -> m.EgressPage:
        """Connections of one agent, or of all, newest first."""
        return self.ask(ep.EGRESS, query={"limit": limit, "agent": agent_id or None})

    def allowlist_history(self, limit: int = 50) -> AllowlistHistoryView:
        """Versions of the allowlist, newest first."""
        return self.ask(ep.ALLOWLIST_HISTORY, query={"limit": limit})

    def budgets(self, order: str = "time") -> BudgetsView:
        """Every tree, the first to end first; ``order`` may be ``spend``."""
        return self.ask(ep.BUDGETS, query={"order": order})

    def budget_node(self, scope: BudgetScope, key: str = "") -> BudgetNodeView:
        """Limits and usage of one scope."""
        return self.ask(ep.BUDGET_NODE, query={"scope": scope, "key": key or None})

    def budget_history(self, scope: str = "", key: str = "", limit: int = 50) -> BudgetHistoryView:
        """Changes of limits, newest first."""
        return self.ask(ep.BUDGET_HISTORY, query={"scope": scope or None, "key": key or None, "limit": limit})

    def audit(self, *, before: int | None = None, limit: int = 200, q: str = "") -> AuditPage:
        """Records of the log, newest first."""
        return self.ask(ep.AUDIT, query={"before": before, "limit": limit, "q": q or None})

    def export_audit(self, fmt: str, after: int) -> AuditPiece:
        """A part of the log's file, from behind record ``after``."""
        return self.ask(ep.EXPORT_AUDIT, query={"format": fmt, "after": after})

    def verify_audit(self, kept: VerifyBody | None = None) -> AuditVerdict:
        """Verify the log. ``kept``: what it must still lead to."""
        return self.ask(ep.VERIFY_AUDIT, body=kept or VerifyBody())

    def persistence(self, session: str = "") -> PersistenceView:
        """What could start an agent again; with a session, looked at now."""
        return self.ask(ep.PERSISTENCE, query={"session": session or None})

    def events(self, last_id: int = 0) -> Iterator[m.Delta]:
        """Changes from after ``last_id`` on, until the stream breaks (Unreachable) or ends (StopIteration)."""
        return _deltas(self._wire.stream(ep.EVENTS.path, {"last-event-id": str(last_id)} if last_id else {}))


class ApiClient(_Stops, _Pages):
    """A supervisor, seen through operator.sock."""

    status = _plain(ep.STATUS)
    shutdown = _plain(ep.SHUTDOWN)
    sources = _plain(ep.SOURCES)
    settings = _plain(ep.CONFIG)
    sequences = _plain(ep.SEQUENCES)
    change_setting = _sends(ep.CHANGE_CONFIG)

    fleet = _plain(ep.FLEET)
    agent = _one(ep.AGENT)
    launch = _sends(ep.LAUNCH)
    mcp = _plain(ep.MCP)
    programs = _plain(ep.PROGRAMS)
    preview_programs = _sends(ep.PREVIEW_PROGRAMS)
    preview_command = _sends(ep.PREVIEW_COMMAND)
    start_programs = _sends(ep.START)
    adopt = _sends(ep.ADOPT)

    contexts = _plain(ep.CONTEXTS)
    stricter = _sends(ep.STRICTER)
    register_data = _sends(ep.REGISTER_DATA)
    envoy_config = _plain(ep.ENVOY)
    allowlist = _plain(ep.ALLOWLIST)
    add_entry = _sends(ep.ADD_ENTRY)
    change_entry = _sends_to(ep.CHANGE_ENTRY)
    test_url = _sends(ep.TEST_URL)
    revert_allowlist = _sends(ep.REVERT)
    backtest = _sends(ep.BACKTEST)
    allowlist_file = _plain(ep.ALLOWLIST_FILE)
    import_allowlist = _sends(ep.IMPORT)
    change_budget = _sends(ep.CHANGE_BUDGET)

    approvals = _plain(ep.APPROVALS)
    approval = _one(ep.APPROVAL)
    decide = _sends(ep.DECIDE)
    grants = _plain(ep.GRANTS)
    end_grants = _sends(ep.END_GRANTS)
    policy = _plain(ep.POLICY)
    try_policy = _sends(ep.TRY_POLICY)
    save_policy = _sends(ep.SAVE_POLICY)
    profiles = _plain(ep.PROFILES)
    choose_profile = _sends(ep.CHOOSE_PROFILE)
    draft_rule = _one(ep.DRAFT)
    offered_rule = _one(ep.OFFERED_RULE)
    add_rule = _sends_to(ep.ADD_RULE)
    remove_rule = _sends(ep.REMOVE_RULE)
    hooks = _plain(ep.HOOKS)
    dry_run = _sends(ep.DRY_RUN)
    plans = _one(ep.PLANS)
    decide_plan = _sends(ep.DECIDE_PLAN)

    rollback = _plain(ep.ROLLBACK)
    rollback_detail = _one(ep.ROLLBACK_DETAIL)
    restore = _sends_to(ep.RESTORE)
    rotation = _plain(ep.ROTATION)
    rotate = _sends(ep.ROTATE)
    tell_value = _sends(ep.TELL_VALUE)
    new_api_key = _plain(ep.NEW_API_KEY)
    operator_token = _sends(ep.TOKEN)
    revoke_token = _one(ep.REVOKE_TOKEN)
    retire_key = _sends(ep.RETIRE_KEY)
    webhook = _plain(ep.WEBHOOK)
    set_webhook = _sends(ep.SET_WEBHOOK)
    test_webhook = _plain(ep.TEST_WEBHOOK)
    remove_webhook = _plain(ep.REMOVE_WEBHOOK)

    def again(self, agent_id: str, dangerous_ok: str = "") -> m.LaunchedView:
        """Start the same command in the same session, once a rearm has been."""
        return self.ask(ep.AGAIN, agent_id, body=AgainBody(dangerous_ok=dangerous_ok))

    def say(self, agent_id: str, text: str, dangerous_ok: str = "") -> pm.SaidView:
        """Send a message. Refused (Denied) with why; Unconfirmed when it names dangerous operations."""
        return self.ask(ep.MESSAGE, agent_id, body=pm.SayBody(text=text, dangerous_ok=dangerous_ok))

    def interrupt(self, agent_id: str) -> pm.SaidView:
        """Interrupt a program; TimedOut when it does not confirm it."""
        return self.ask(ep.INTERRUPT, agent_id, body=pm.InterruptBody())

    def end(self, agent_id: str, reason: str = "", within_s: float = 30.0) -> pm.EndedView:
        """Ask a program to end. Nothing is killed.

        Raises Denied with the reason, or TimedOut when it is unknown whether the program ended.
        """
        return self.ask(ep.FINISH, agent_id, body=pm.EndBody(reason=reason, within_s=within_s), wait_s=within_s + ep.TALK_S)

    def act_on_context(self, verb: str, context_id: str, body: ContextActBody) -> ContextsView:
        """Hold, release or delete a session."""
        return self.ask(ep.SESSION_ACT, context_id, verb, body=body)

    def remove_entry(self, entry_id: str, *, reason: str, base_version: int | None = None) -> m.AllowlistChangedView:
        """Remove an entry of the allowlist."""
        return self.ask(ep.REMOVE_ENTRY, entry_id, query={"reason": reason, "base_version": base_version})

    def acknowledge_loss(self, reason: str) -> AuditVerdict:
        """Acknowledge a loss of the log; Conflict when there is none."""
        return self.ask(ep.ACKNOWLEDGE, body=AcknowledgeLossBody(reason=reason))


def _switch(action: Literal["activate", "rearm"], reason: str, kill_id: str = "", proof: RearmProof | None = None) -> la.SwitchBody:
    try:
        return la.SwitchBody.made(action=action, reason=reason, kill_id=kill_id, proof=proof)
    except Malformed as error:
        raise UsageProblem("A kill or a rearm needs a reason of 1 to 500 characters.", "Give one with --reason.") from error


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
    except ValueError as error:
        raise Unreachable("The stream of events carries something unreadable.", "Open it again and read the whole fleet again.") from error
