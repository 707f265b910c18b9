"""A rule made of an approval answers exactly that call in that folder until its day, is on record, and never answers what is dangerous."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.policy import policy_data
from console.api.policy.rules import ExactBody, ExactRemoveBody, ExactRule
from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import Approval, ApprovalState, AskedPart, digest_of
from console.domain.calls.permission import PermissionRequest, Verdict
from console.domain.engine.command import Record
from console.domain.errors import Conflict, Denied, NotFound, NotRecorded
from console.ledger.calls import JudgedCall
from console.ledger.store import Ledger
from console.services.policy import exact_rules
from console.services.policy.exact_rules import DAY_S, ExactDesk, ExactRules
from console.services.policy.review import PolicyReview
from console.services.policy.service import PolicyDesk
from console.settings.places import Places, find_places
from tests.fakes.playbook import Playbook

CALL = "make -C docs html"


class World:
    """The rules of an instance with two agents in two folders, a real ledger, and a clock that can be moved."""

    def __init__(self, places: Places) -> None:
        self.places, self.moved, self.full = places, 0.0, False
        self.records: list[Record] = []
        self.ledger = Ledger(places.ledger_db)
        self.book = Playbook().run("a", context_id="c").run("b", context_id="d")
        self.again()

    def again(self) -> None:
        """As after a restart."""
        self.rules = ExactRules(self.ledger, lambda: time.time() + self.moved)
        self.policy = PolicyDesk(self.places, print, policy_data.dangers, lambda _agent_id: None, exact=self.rules)
        scribe: Any = SimpleNamespace(ledger=self.ledger, record_first=self._record_first)
        core: Any = SimpleNamespace(state=self.book.state)
        self.desk = ExactDesk(core, scribe, self.policy, self.rules)
        self.review = PolicyReview(core, self.places, scribe, self.policy, self.rules)

    def _record_first(self, record: Record) -> None:
        if self.full:
            raise NotRecorded("the disk is full", "")
        self.records.append(record)

    def approved(self, argument: str = CALL, tool: str = "shell", name: str = "q-1", **more: Any) -> Approval:
        """An approval that a person gave, as the engine keeps it."""
        state, danger = more.pop("state", ApprovalState.USED), more.pop("danger", "")
        request = PermissionRequest(tool, argument, **more)
        agent, session = AgentId("a"), ContextId("c")
        parts = (AskedPart(argument, "ask", "no rule", danger=danger),)
        made = Approval(name, agent, agent, session, request, digest_of(request, agent, session), "no rule", "", time.time(), 0.0, parts)
        self.book.state.approvals.by_id[name] = replace(made, state=state, decided_by="operator:1")
        return self.book.state.approvals.by_id[name]

    async def allow(self, approval: Approval) -> ExactRule:
        return await self.desk.add(approval.approval_id, ExactBody(digest=approval.digest, reason="builds"), "operator:1")

    def verdict(self, argument: str = CALL, agent: str = "a", tool: str = "shell", **more: Any) -> Verdict:
        return self.policy.judge(self.book.agent(agent), PermissionRequest(tool, argument, **more)).decision.verdict


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    places = find_places(str(tmp_path / "state"), create=True)
    for session in ("c", "d"):
        (places.workspaces_dir / session).mkdir(parents=True)
    made = World(places)
    yield made
    made.ledger.close()


async def test_it_answers_exactly_that_call_in_that_folder_and_says_by_whom(world: World) -> None:
    assert world.verdict() is Verdict.ASK
    rule = await world.allow(world.approved())
    found = world.policy.judge(world.book.agent("a"), PermissionRequest("shell", CALL))
    assert (found.decision.verdict, found.decision.rule) == (Verdict.ALLOW, f"rule {rule.id}")
    assert "operator:1 approved exactly this call" in found.decision.reason and found.steps
    assert world.verdict(f"{CALL} ") is Verdict.ASK and world.verdict("make -C docs pdf") is Verdict.ASK
    assert world.verdict(agent="b") is Verdict.ASK, "another folder"
    assert world.verdict(cwd=str(world.places.workspaces_dir / "c" / "docs")) is Verdict.ASK
    assert world.verdict(detail=json.dumps({"command": CALL, "run_in_background": True})) is Verdict.ASK
    world.again()
    assert world.verdict() is Verdict.ALLOW, "after a restart too"


async def test_what_an_agent_says_about_a_command_is_no_argument(world: World) -> None:
    said = json.dumps({"command": CALL, "description": "Build it"})
    await world.allow(world.approved(detail=said))
    assert world.verdict(detail=json.dumps({"description": "Again", "command": CALL})) is Verdict.ALLOW
    assert world.verdict(detail=json.dumps({"command": CALL, "timeout": 9})) is Verdict.ASK


async def test_it_expires_after_thirty_days_and_a_clock_set_back_gives_no_more(world: World) -> None:
    rule = await world.allow(world.approved())
    assert rule.until - rule.at == 30 * DAY_S
    world.moved = 30 * DAY_S - 60
    assert world.verdict() is Verdict.ALLOW
    world.moved = 30 * DAY_S + 60
    assert world.verdict() is Verdict.ASK and world.rules.listed() == [] and world.review.view().exact == []
    world.again()
    assert world.verdict() is Verdict.ASK
    world.moved = -2 * DAY_S
    assert world.verdict() is Verdict.ASK


@pytest.mark.parametrize(
    ("argument", "more", "why"),
    [
        ("git push --force origin main", {"danger": "destroys"}, "it destroys"),
        ("npm publish", {}, "it publishes"), ("git push origin main", {}, "it publishes"), ("git -C x push", {}, "it publishes"),
        ("stripe charges create", {}, "it spends"), ("chmod u+s tool", {}, "it escalates"), ("crontab new", {}, "it persists"),
        ("rm old.txt", {}, "it destroys"),
        ("make a; make b", {}, "shell operators"), ("make a && make b", {}, "shell operators"), ("make > out", {}, "shell operators"),
        ("make | tee log", {}, "shell operators"), ("(make)", {}, "it is denied"), ("make $X", {}, "it is denied"),
        ("head /srv/app/.env", {}, "it reads secrets"), ("wc /srv/ca/server.key", {}, "it reads secrets"),
        ("/srv/app/.env", {"tool": "read_file"}, "it reads secrets"), ("ls", {}, "allow it already"), ("sudo make", {}, "it is denied"),
    ],
)  # fmt: skip
async def test_the_supervisor_refuses_what_each_time_needs_a_person(world: World, argument: str, more: Any, why: str) -> None:
    approval = world.approved(argument, **more)
    offer = world.desk.offer("q-1")
    assert offer.rule is None and why in offer.why_not, offer.why_not
    with pytest.raises(Denied):
        await world.allow(approval)
    assert world.records == [] and world.rules.listed() == []


async def test_a_rule_that_is_there_never_answers_what_became_dangerous_or_denied(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.allow(world.approved())
    assert world.verdict() is Verdict.ALLOW
    monkeypatch.setattr(exact_rules, "why_not", lambda _found, _request: "it publishes")
    assert world.verdict() is Verdict.ASK
    monkeypatch.undo()
    world.places.policy_file.write_text(json.dumps({"permissions": {"allow": ["shell(ls:*)"], "ask": ["shell(make:*)"]}}))
    assert world.verdict() is Verdict.ASK, "an operator's rule asks each time"
    assert "shell(make:*) asks a person" in world.desk.offer("q-1").why_not
    world.places.policy_file.write_text(json.dumps({"permissions": {"allow": ["shell(ls:*)"], "deny": ["shell(make:*)"]}}))
    assert world.verdict() is Verdict.DENY


@pytest.mark.parametrize("state", [ApprovalState.WAITING, ApprovalState.DENIED, ApprovalState.EXPIRED, ApprovalState.VOID])
async def test_only_what_a_person_approved_becomes_a_rule(world: World, state: ApprovalState) -> None:
    approval = world.approved(state=state)
    with pytest.raises(Denied, match="was not approved"):
        await world.allow(approval)
    with pytest.raises(NotFound):
        world.desk.offer("q-9")


async def test_it_is_bound_to_what_was_shown_and_to_the_whole_request(world: World) -> None:
    approval = world.approved()
    with pytest.raises(Conflict):
        await world.desk.add("q-1", ExactBody(digest="0" * 64), "operator:1")
    cut = replace(approval, request=replace(approval.request, argument="make [hidden]"))
    world.book.state.approvals.by_id["q-1"] = cut
    with pytest.raises(Denied, match="not the whole request"):
        await world.allow(cut)


async def test_the_offer_says_what_it_would_have_answered(world: World) -> None:
    def call(argument: str, agent: str = "a", verdict: str = "ask") -> JudgedCall:
        return JudgedCall(time.time(), agent, "c", "shell", argument, "", verdict, "no rule")

    world.ledger.add_calls([call(CALL), call(CALL), call(CALL, "b"), call("make all"), call(CALL, verdict="deny"), call(CALL, "gone")])
    world.approved()
    offer = world.desk.offer("q-1")
    assert (offer.recorded, offer.answered, offer.why_not) == (6, 2, "")
    assert offer.rule is not None and offer.rule.folder == str(world.places.workspaces_dir / "c")


async def test_it_is_on_record_first_and_can_be_removed_on_record(world: World) -> None:
    approval = world.approved()
    world.full = True
    with pytest.raises(NotRecorded):
        await world.allow(approval)
    assert world.verdict() is Verdict.ASK
    world.full = False
    rule = await world.allow(approval)
    assert [(one.kind, one.actor, one.data["rule"]) for one in world.records] == [("policy.rule_added", "operator:1", rule.id)]
    world.ledger.add_calls([JudgedCall(time.time(), "a", "c", "shell", CALL, "", "allow", f"rule {rule.id}")])
    (shown,) = world.review.view().exact
    assert (shown.id, shown.argument, shown.hits) == (rule.id, CALL, 1)
    await world.desk.remove(ExactRemoveBody(id=rule.id, reason="no more"), "operator:2")
    assert world.verdict() is Verdict.ASK and world.review.view().exact == []
    assert (world.records[-1].kind, world.records[-1].actor) == ("policy.rule_removed", "operator:2")
    with pytest.raises(NotFound):
        await world.desk.remove(ExactRemoveBody(id=rule.id), "operator:2")
    world.again()
    assert world.verdict() is Verdict.ASK


async def test_what_was_kept_and_cannot_be_read_allows_nothing(world: World) -> None:
    await world.allow(world.approved())
    [kept] = json.loads(world.ledger.kv_get("policy.exact") or "")
    for damaged in ("[{", json.dumps([kept | {"until": None}])):
        world.ledger.kv_set("policy.exact", damaged)
        world.again()
        assert world.verdict() is Verdict.ASK
    world.ledger.kv_set("policy.exact", json.dumps([kept | {"of_a_newer_program": 1}]))
    world.again()
    assert world.verdict() is Verdict.ALLOW, "what a newer program adds takes no rule away"


async def test_there_are_not_endlessly_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_rules, "RULES_MAX", 1)
    await world.allow(world.approved())
    with pytest.raises(Conflict):
        await world.allow(world.approved("make other", name="q-2"))
