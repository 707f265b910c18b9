"""Rules that a person made of an approval: exactly these arguments, in this folder, for 30 days.

Each is on record. Calls that are dangerous, read secrets or have shell operators are asked each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from console.api.policy import policy_data
from console.api.policy import rules as p
from console.domain.agent import Agent, AgentId
from console.domain.calls.approval import Approval, ApprovalState, digest_of, exact_key, has_operators
from console.domain.calls.permission import PermissionRequest, Verdict
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, NotFound
from console.domain.words import NO_REASON
from console.ledger.store import Ledger
from console.policy.files.disk import Disk
from console.policy.judge import Call, tool_named
from console.policy.rules.profiles import WORK
from console.policy.rules.verdicts import NO_RULE, Judgement
from console.policy.sequences.find import matches_of, things_of
from console.services.fleet.core import Core
from console.services.records.record_writer import Scribe

_KEY = "policy.exact"
DAYS = 30
DAY_S = 86_400.0
RULES_MAX = 500
TRIED_MAX = 50_000
NOWHERE = "/nonexistent"
"""The folder of an agent whose folder is not known."""
READS_SECRET = "credential-then-network"  # noqa: S105 - the name of a built-in sequence
"""Its first step is a call that reads a credential."""
Clock = Callable[[], float]


class ExactRules:
    """Those that hold. Thread-safe; ``clock``: seconds since the epoch."""

    __slots__ = ("_ledger", "_clock", "_lock", "_rules")

    def __init__(self, ledger: Ledger, clock: Clock = time.time) -> None:
        self._ledger, self._clock, self._lock = ledger, clock, threading.Lock()
        self._rules = {rule.key: rule for rule in _read(ledger)}

    def answer(self, found: Judgement, request: PermissionRequest, folder: str) -> Judgement:
        """Allow a call that asks, where a rule names exactly it and it is still nothing that each time needs a person."""
        if found.verdict is not Verdict.ASK or not self._rules:
            return found
        rule = self._rules.get(key_of(request, folder))
        if rule is None or not self._holds(rule) or why_not(found, request):
            return found
        why = f"{rule.by} approved exactly this call and allowed it in this folder until {_day(rule.until)}"
        return Judgement(Verdict.ALLOW, f"rule {rule.id}", why, found.parts, found.steps)

    def listed(self) -> list[p.ExactRule]:
        """Those that hold, newest first."""
        return sorted((rule for rule in self._rules.values() if self._holds(rule)), key=lambda rule: -rule.at)

    def make(self, approval: Approval, folder: str, reason: str, by: str) -> p.ExactRule:
        """A rule as it would hold from now on; nothing is kept yet."""
        said, at = approval.request, self._clock()
        key = key_of(said, folder)
        return p.ExactRule(
            id=f"x-{key[:12]}", key=key, tool=said.tool, argument=said.argument[: p.SHOWN], cwd=said.cwd, folder=folder,
            approval_id=approval.approval_id, by=by, reason=reason, at=at, until=at + DAYS * DAY_S,
        )  # fmt: skip

    def keep(self, rule: p.ExactRule) -> None:
        """Durable on return. Raises Conflict, NotRecorded."""
        with self._lock:
            left = {one.key: one for one in self._rules.values() if self._holds(one)}
            if len(left) >= RULES_MAX:
                raise Conflict(f"There are {RULES_MAX} such rules already.", "Remove some on the Policy page first.")
            self._write(left | {rule.key: rule})

    def remove(self, rule_id: str) -> None:
        """It does not hold any more, at once. Raises NotRecorded."""
        with self._lock:
            self._rules = {key: one for key, one in self._rules.items() if one.id != rule_id}
            self._write(self._rules)

    def _holds(self, rule: p.ExactRule) -> bool:
        """A clock that was set back before its beginning gives it no more time."""
        return rule.at - DAY_S <= self._clock() < rule.until

    def _write(self, rules: dict[str, p.ExactRule]) -> None:
        self._ledger.kv_set(_KEY, json.dumps([one.as_data() for one in rules.values()]))
        self._rules = rules


class Rules(Protocol):
    """Who judges by the rules in force."""

    def judgement(self, agent: Agent, request: PermissionRequest, data: bytes | None = None) -> Judgement: ...

    def workspace_of(self, agent: Agent) -> Path: ...


class ExactDesk:
    """The operator's side: offers a rule after an approval, makes and removes it."""

    __slots__ = ("_core", "_scribe", "_desk", "rules")

    def __init__(self, core: Core, scribe: Scribe, desk: Rules, rules: ExactRules) -> None:
        self._core, self._scribe, self._desk, self.rules = core, scribe, desk, rules

    def offer(self, approval_id: str) -> p.ExactOffer:
        """The rule that an approval could become, and what it would have answered. Blocks. Raises NotFound."""
        approval = self._approval(approval_id)
        agent = self._core.state.agents.get(approval.agent_id)
        folder = str(self._desk.workspace_of(agent)) if agent is not None else NOWHERE
        if words := self._why_not(approval, agent, folder):
            return p.ExactOffer(why_not=words)
        recorded, answered = self._backtest(approval, folder)
        rule = self.rules.make(approval, folder, "", "")
        return p.ExactOffer(rule=rule, days=p.DAYS, recorded=recorded, answered=answered)

    async def add(self, approval_id: str, body: p.ExactBody, by: str) -> p.ExactRule:
        """Makes the rule; on record first. Raises NotFound, Conflict, Denied, NotRecorded."""
        approval = await asyncio.to_thread(self._approval, approval_id)
        if approval.digest != body.digest:
            raise Conflict("The request is not the one that was shown.", "Look again; nothing was allowed.")
        offer = await asyncio.to_thread(self.offer, approval_id)
        if offer.rule is None:
            raise Denied(f"No rule can answer this: {offer.why_not}.", "Each such call is asked.")
        rule = self.rules.make(approval, offer.rule.folder, body.reason.strip(), by)
        await asyncio.to_thread(self._scribe.record_first, _record(by, "policy.rule_added", rule, body.reason.strip() or NO_REASON))
        await asyncio.to_thread(self.rules.keep, rule)
        return rule

    async def remove(self, body: p.ExactRemoveBody, by: str) -> None:
        """Takes a rule away. Raises NotFound, NotRecorded."""
        rule = next((one for one in self.rules.listed() if one.id == body.id), None)
        if rule is None:
            raise NotFound(f"There is no rule {body.id[:60]!r}.", "watchfloor policy rules shows them.")
        reason = body.reason.strip() or NO_REASON
        await asyncio.to_thread(self._scribe.record_first, _record(by, "policy.rule_removed", rule, reason))
        await asyncio.to_thread(self.rules.remove, rule.id)

    def _approval(self, approval_id: str) -> Approval:
        found = self._core.state.approvals.by_id.get(approval_id) or self._scribe.ledger.approval(approval_id[:40])
        if found is None:
            raise NotFound(f"There is no approval {approval_id[:60]!r}.", "watchfloor approval list shows them.")
        return found

    def _why_not(self, approval: Approval, agent: Agent | None, folder: str) -> str:
        """Why no rule can be made of it; empty: one can."""
        if approval.state not in (ApprovalState.APPROVED, ApprovalState.USED):
            return "it was not approved"
        if agent is None or folder == NOWHERE:
            return "the folder of its agent is not known any more"
        if digest_of(approval.request, approval.agent_id, approval.context_id) != approval.digest:
            return "what was kept of it is not the whole request"
        if approval.danger:
            return f"it {approval.danger}"
        return why_not(self._desk.judgement(agent, approval.request), approval.request)

    def _backtest(self, approval: Approval, folder: str) -> tuple[int, int]:
        """Recorded calls of the last days, and how many of them it would have answered that were asked."""
        said, state = approval.request, self._core.state
        calls = self._scribe.ledger.calls_since(time.time() - p.DAYS * DAY_S, TRIED_MAX)
        folders: dict[str, str] = {}
        answered = 0
        for call in calls:
            if (call.tool, call.argument, call.cwd, call.verdict) != (said.tool, said.argument, said.cwd, "ask"):
                continue
            if call.agent_id not in folders:
                agent = state.agents.get(AgentId(call.agent_id))
                folders[call.agent_id] = str(self._desk.workspace_of(agent)) if agent is not None else NOWHERE
            answered += folders[call.agent_id] == folder
        return len(calls), answered


def key_of(request: PermissionRequest, folder: str) -> str:
    """What a rule is bound to, as SHA-256 (hex)."""
    return hashlib.sha256(f"{exact_key(request)}\0{folder}".encode("utf-8", "surrogatepass")).hexdigest()


def why_not(found: Judgement, request: PermissionRequest) -> str:
    """Why such a call is asked each time; empty: a rule may answer it. Blocks for a folder that is read."""
    if found.verdict is not Verdict.ASK:
        return "the rules in force allow it already" if found.verdict is Verdict.ALLOW else f"it is denied by {found.rule}"
    if found.danger:
        return f"it {found.danger}"
    if any(part.step == "danger" for part in found.parts):
        return "the list of dangerous operations has it"
    if any("delete" in (part.action, part.use) for part in found.parts):
        return "it destroys: it deletes files"
    if _pushes(request):
        return "it publishes: it pushes commits"
    if has_operators(request):
        return "its text has shell operators"
    tool = tool_named(Call(request.tool, request.argument, detail=request.detail), policy_data.tools())
    things = things_of(request.tool, request.argument, request.detail, tool, found, Disk())
    secrets = [pattern for pattern in policy_data.sequences() if pattern.name == READS_SECRET]
    if any(seen.step == 0 for match in matches_of(secrets, things) for seen in match.seen):
        return "it reads secrets"
    asked = next((part.rule for part in found.parts if part.verdict is Verdict.ASK and part.rule not in (NO_RULE, WORK)), "")
    return f"the rule {asked} asks a person each time" if asked else ""


def _pushes(request: PermissionRequest) -> bool:
    """A push is no danger by itself, but others get what it sends."""
    words = request.argument.replace('"', " ").replace("'", " ").replace(",", " ").split()
    return "push" in words and any(word.rpartition("/")[2].strip("[]") == "git" for word in words)


def _record(by: str, kind: str, rule: p.ExactRule, reason: str) -> Record:
    data = {"rule": rule.id, "approval_id": rule.approval_id, "tool": rule.tool[:100], "argument": rule.argument[:400]}
    data |= {"folder": rule.folder[:400], "until": _day(rule.until)}
    return Record(by, kind, f"rule {rule.id}: {rule.tool[:100]} {rule.argument[:200]}: {reason}", verdict="ok", data=data)


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _read(ledger: Ledger) -> list[p.ExactRule]:
    """What was kept. What cannot be read allows nothing: then such calls are asked again."""
    try:
        return [p.ExactRule.read(one) for one in json.loads(ledger.kv_get(_KEY) or "[]")]
    except (ValueError, TypeError, ConsoleError):
        return []
