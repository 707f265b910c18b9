"""Changes of the rules: drafted from a request, tried on recorded calls before they hold, saved on record first."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter

from console.api.policy import policy_data
from console.api.policy import rules as p
from console.domain.agent import Agent, AgentId
from console.domain.calls.approval import Approval
from console.domain.calls.permission import PermissionRequest, Verdict
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, NotFound, UsageProblem
from console.domain.process.durable import replace_file
from console.ledger.calls import JudgedCall, RuleHits
from console.policy.review.draft import draft
from console.policy.review.lint import Severity, lint
from console.policy.review.positions import lines_of
from console.policy.rules.loading import Settings, read_settings
from console.services.fleet.core import Core
from console.services.policy.exact_rules import ExactRules
from console.services.policy.service import PolicyDesk
from console.services.records.record_writer import Scribe
from console.settings.places import Places

TRIED_MAX = 5000
TRY_S = 8.0
"""Longest a try takes; what is left then is said to be."""
_RANK = {"allow": 0, "ask": 1, "deny": 2}


class _Unknown(Exception):
    """What a call would be now cannot be told: its agent is gone, or the bounds that it met are not in its record."""


class PolicyReview:
    """The operator's side of the rules."""

    __slots__ = ("_core", "_places", "_scribe", "_desk", "_exact")

    def __init__(self, core: Core, places: Places, scribe: Scribe, desk: PolicyDesk, exact: ExactRules) -> None:
        self._core, self._places, self._scribe, self._desk, self._exact = core, places, scribe, desk, exact

    def view(self) -> p.PolicyView:
        """What is in force, and how often each rule decided. Blocks."""
        kept = self._desk.current()
        hits = {(hit.rule, hit.verdict): hit for hit in self._scribe.ledger.rule_hits(time.time() - p.DAYS * 86400)}
        recorded = sum(hit.hits for hit in hits.values())
        exact = [_used(one, hits.get((f"rule {one.id}", "allow"))) for one in self._exact.listed()]
        if kept.settings is None:
            nothing = hashlib.sha256(kept.good).hexdigest()
            file = str(self._places.policy_file)
            return p.PolicyView(problem=kept.problem, is_default=False, recorded=recorded, sha256=nothing, file=file, exact=exact)
        findings = {one.rule: one for one in lint(kept.settings, policy_data.catalogue())}
        rows = []
        places = lines_of(kept.good)
        for name in ("deny", "ask", "allow"):
            for rule in getattr(kept.settings, name):
                hit, found = hits.get((rule.text, name)), findings.get(rule.text)
                hits_, last = (hit.hits, hit.last_at) if hit else (0, None)
                row = p.RuleRow(rule=rule.text, list=name, hits=hits_, last_at=last, line=places.get((name, rule.text), 0))
                if found is not None and name == "allow":
                    row = row.replaced(finding=found.what, in_force=found.severity is not Severity.REFUSED)
                rows.append(row)
        is_default = kept.good == policy_data.default_rules()
        return p.PolicyView(
            text=kept.good.decode("utf-8", "backslashreplace"),
            is_default=is_default,
            problem=kept.problem,
            rules=rows,
            exact=exact,
            sha256=hashlib.sha256(kept.good).hexdigest(),
            recorded=recorded,
            file="the product's own rules" if is_default else str(self._places.policy_file),
        )

    def approval_or_404(self, approval_id: str) -> Approval:
        """Finds one, open or over. Blocks. Raises NotFound."""
        found = self._core.state.approvals.by_id.get(approval_id) or self._scribe.ledger.approval(approval_id[:40])
        if found is None:
            raise NotFound(f"There is no approval {approval_id[:60]!r}.", "watchfloor approval list shows them.")
        return found

    def draft_of(self, approval: Approval) -> p.DraftView:
        """Narrow rules for exactly this request. Blocks."""
        agent = self._core.state.agents.get(approval.agent_id)
        if agent is None:
            return p.DraftView(why_not="its agent is not known any more")
        found = self._desk.judgement(agent, approval.request)
        rules = draft(found, str(self._desk.workspace_of(agent)))
        if rules:
            return p.DraftView(rules=list(rules))
        if found.verdict is Verdict.ALLOW:
            return p.DraftView(why_not="the rules in force allow it already")
        held = next((part for part in found.parts if part.verdict is not Verdict.ALLOW), None)
        what = f"{held.rule} holds it back" if held is not None and held.rule != "no rule" else "no allow rule can say exactly this"
        return p.DraftView(why_not=f"a rule is not available, because {what}")

    def attempt(self, body: p.PolicyTryBody) -> p.PolicyTryView:
        """What a change would have decided otherwise among the recorded calls. Blocks. Raises UsageProblem."""
        data = self._text(body)
        settings = read_settings(data)
        until = time.monotonic() + TRY_S
        calls = self._scribe.ledger.calls_since(time.time() - body.days * 86400, TRIED_MAX)
        changed: list[p.ChangedCall] = []
        left_out = 0
        for index, call in enumerate(calls):
            agent = self._core.state.agents.get(AgentId(call.agent_id))
            if time.monotonic() > until:
                left_out += len(calls) - index
                break
            try:
                row = self._other(agent, call, data)
            except _Unknown:
                left_out += 1
                continue
            if row is not None:
                changed.append(row)
        return p.PolicyTryView(
            recorded=len(calls),
            changed=len(changed),
            looser=sum(row.looser for row in changed),
            # What would become looser first: that is what somebody has to have seen.
            calls=sorted(changed, key=lambda row: not row.looser)[: p.NAMED],
            findings=_findings(settings),
            sha256=hashlib.sha256(data).hexdigest(),
            text=data.decode(),
            left_out=left_out,
        )

    def compare(self) -> p.ProfilesTriedView:
        """What each profile would have decided of the recorded calls, by the disk as it is now. Blocks. Raises ConsoleError."""
        until = time.monotonic() + TRY_S
        calls = self._scribe.ledger.calls_since(time.time() - p.COMPARED_DAYS * 86400, TRIED_MAX)
        profiles = [policy_data.profile(name) for name in policy_data.PROFILES]
        counts = {one.name: Counter[Verdict]() for one in profiles}
        shown: list[p.ProfileCall] = []
        left_out = 0
        for index, call in enumerate(calls):
            agent = self._core.state.agents.get(AgentId(call.agent_id))
            if time.monotonic() > until:
                left_out += len(calls) - index
                break
            if agent is None:
                left_out += 1
                continue
            request = PermissionRequest(call.tool, call.argument, call.cwd)
            verdicts = {one.name: self._desk.judgement(agent, request, tried=one).verdict for one in profiles}
            for name, verdict in verdicts.items():
                counts[name][verdict] += 1
            if len(set(verdicts.values())) > 1 and len(shown) < p.NAMED:
                words = {name: verdict.value for name, verdict in verdicts.items()}
                shown.append(p.ProfileCall(at=call.at, agent_id=call.agent_id, tool=call.tool, argument=call.argument, verdicts=words))
        told = [
            p.ProfileCount(name=name, allowed=many[Verdict.ALLOW], asked=many[Verdict.ASK], denied=many[Verdict.DENY])
            for name, many in counts.items()
        ]
        return p.ProfilesTriedView(recorded=len(calls), counts=told, calls=shown, left_out=left_out)

    async def save(self, body: p.PolicySaveBody, by: str) -> p.PolicyView:
        """Puts a file in force: on record first. Raises UsageProblem, Conflict, NotRecorded, ConsoleError."""
        data = body.text.encode("utf-8", "strict")
        read_settings(data)
        kept = self._desk.current()
        if hashlib.sha256(kept.good).hexdigest() != body.base_sha256:
            raise Conflict("The rules were changed meanwhile.", "Look at them again; nothing was saved.")
        before, after = hashlib.sha256(kept.good).hexdigest(), hashlib.sha256(data).hexdigest()
        record = Record(by, "policy.changed", body.reason, verdict="ok", data={"before_sha256": before, "after_sha256": after})
        await asyncio.to_thread(self._scribe.record_first, record)
        try:
            await asyncio.to_thread(replace_file, self._places.policy_file, data)
        except OSError as error:
            raise ConsoleError(f"The rules could not be written: {error.strerror}.", "Those of before stay in force.") from error
        await asyncio.to_thread(self._desk.look)
        return await asyncio.to_thread(self.view)

    def _text(self, body: p.PolicyTryBody) -> bytes:
        if body.text and body.add:
            raise UsageProblem("Try a whole file, or rules to add: not both.", "Leave one of them out.")
        if body.text:
            return body.text.encode("utf-8", "strict")
        kept = self._desk.current()
        if kept.settings is None:
            raise UsageProblem("There are no rules in force to add to.", "Try a whole file.")
        document = json.loads(kept.good)
        listed = document["permissions"].setdefault(body.to, [])
        listed += [rule for rule in body.add if rule not in listed]
        return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()

    def _other(self, agent: Agent | None, call: JudgedCall, data: bytes) -> p.ChangedCall | None:
        if agent is None:
            raise _Unknown
        request = PermissionRequest(call.tool, call.argument, call.cwd)
        # Both by the disk as it is now: only the rules make the difference.
        before, after = self._desk.judgement(agent, request), self._desk.judgement(agent, request, data)
        if before.verdict is after.verdict:
            if before.rule.startswith("matrix: ") and call.verdict != "deny":
                raise _Unknown
            return None
        looser = _RANK[after.verdict.value] < _RANK[before.verdict.value]
        return p.ChangedCall(
            at=call.at,
            agent_id=call.agent_id,
            tool=call.tool,
            argument=call.argument,
            cwd=call.cwd,
            before=before.verdict.value,
            after=after.verdict.value,
            rule=after.rule,
            looser=looser,
        )


def _used(rule: p.ExactRule, found: RuleHits | None) -> p.ExactRule:
    return rule.replaced(hits=found.hits, last_at=found.last_at) if found is not None else rule


def _findings(settings: Settings) -> list[str]:
    return [f"{one.severity.value}: {one.rule}: {one.what}" for one in lint(settings, policy_data.catalogue())][:100]
