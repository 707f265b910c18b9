"""A change of the rules is tried by the rules alone, what would be looser first, and is saved on what was seen."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.policy import policy_data
from console.api.policy.rules import PolicySaveBody, PolicyTryBody
from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import Approval
from console.domain.calls.permission import PermissionRequest
from console.domain.engine.command import Record
from console.domain.errors import Conflict, NotFound, NotRecorded, UsageProblem
from console.ledger.calls import JudgedCall
from console.ledger.store import Ledger
from console.services.policy import review
from console.services.policy.exact_rules import ExactRules
from console.services.policy.review import PolicyReview
from console.services.policy.service import PolicyDesk
from console.settings.places import Places, find_places
from tests.fakes.playbook import Playbook

RULES = {"permissions": {"allow": ["shell(ls:*)"], "deny": ["shell(rm:*)"], "ask": ["shell(wc:*)"]}}


class World:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.records: list[Record] = []
        self.full = False
        self.ledger = Ledger(places.state_dir / "ledger.db")
        self.book = Playbook().run("a", context_id="c")
        places.policy_file.write_text(json.dumps(RULES))
        self.desk = PolicyDesk(places, lambda _text: None, policy_data.dangers, lambda _agent_id: None)
        scribe = SimpleNamespace(ledger=self.ledger, record_first=self.record_first)
        parts: Any = SimpleNamespace(core=SimpleNamespace(state=self.book.state), scribe=scribe, places=places)
        self.review = PolicyReview(parts.core, parts.places, parts.scribe, self.desk, ExactRules(self.ledger))

    def record_first(self, record: Record) -> None:
        if self.full:
            raise NotRecorded("the disk is full", "")
        self.records.append(record)

    def called(self, *arguments: str, agent: str = "a") -> None:

        self.ledger.add_calls(JudgedCall(time.time(), agent, "c", "shell", x, "", "ask", "no rule") for x in arguments)


@pytest.fixture
def world(tmp_path: Path) -> Any:
    places = find_places(str(tmp_path / "state"), create=True)
    (places.workspaces_dir / "c").mkdir(parents=True)
    made = World(places)
    yield made
    made.ledger.close()


def test_what_would_be_decided_otherwise_is_told_and_what_is_looser_comes_first(world: World) -> None:
    world.called("ls", "rm x", "wc", "touch a", agent="a")
    world.called("ls", agent="gone")
    told = world.review.attempt(PolicyTryBody(text=json.dumps({"permissions": {"allow": ["shell(wc:*)"], "deny": ["shell(ls:*)"]}})))
    assert (told.recorded, told.left_out) == (5, 1)
    assert [(c.argument, c.before, c.after, c.looser) for c in told.calls if c.looser] == [
        ("wc", "ask", "allow", True),
        ("rm x", "deny", "ask", True),
    ]
    assert ("ls", "allow", "deny") in [(c.argument, c.before, c.after) for c in told.calls] and told.looser == 2
    assert told.calls[0].looser and not told.calls[-1].looser


def test_rules_are_added_to_what_is_in_force(world: World) -> None:
    world.called("touch a")
    told = world.review.attempt(PolicyTryBody(add=["shell(touch a)", "shell(ls:*)"]))
    assert told.changed == 0 and json.loads(told.text)["permissions"]["allow"] == ["shell(ls:*)", "shell(touch a)"]  # its file asks still
    with pytest.raises(UsageProblem):
        world.review.attempt(PolicyTryBody(add=["shell("]))
    with pytest.raises(UsageProblem):
        world.review.attempt(PolicyTryBody(add=["shell(ls)"], text="{}"))


def test_a_try_ends_in_time_and_says_what_it_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.called(*(f"touch {n}" for n in range(20)))
    monkeypatch.setattr(review, "TRY_S", -1.0)
    assert world.review.attempt(PolicyTryBody(add=["shell(touch 1)"])).left_out == 20


async def test_it_is_saved_on_record_first_and_only_over_what_was_seen(world: World) -> None:
    base = world.review.view().sha256
    assert base == hashlib.sha256(json.dumps(RULES).encode()).hexdigest()
    new = json.dumps({"permissions": {"allow": ["shell(wc:*)"]}})
    with pytest.raises(Conflict):
        await world.review.save(PolicySaveBody(text=new, base_sha256="0" * 64, reason="r"), "operator:0")
    with pytest.raises(UsageProblem):
        await world.review.save(PolicySaveBody(text="{", base_sha256=base, reason="r"), "operator:0")
    world.full = True
    with pytest.raises(NotRecorded):
        await world.review.save(PolicySaveBody(text=new, base_sha256=base, reason="r"), "operator:0")
    assert world.places.policy_file.read_text() == json.dumps(RULES) and world.records == []
    world.full = False
    view = await world.review.save(PolicySaveBody(text=new, base_sha256=base, reason="less"), "operator:0")
    assert [row.rule for row in view.rules] == ["shell(wc:*)"] and world.records[0].data["before_sha256"] == base


def test_rules_show_their_hits_and_what_is_wrong_with_them(world: World) -> None:
    world.places.policy_file.write_text(json.dumps({"permissions": {"allow": ["shell(bash:*)", "shell(ls:*)"], "deny": ["shell(rm:*)"]}}))

    world.ledger.add_calls([JudgedCall(time.time(), "a", "c", "shell", "ls", "", "allow", "shell(ls:*)")])
    rows = {row.rule: row for row in world.review.view().rules}
    assert rows["shell(ls:*)"].hits == 1 and rows["shell(rm:*)"].hits == 0 and not rows["shell(bash:*)"].in_force


def test_a_draft_is_narrow_or_says_why_not(world: World) -> None:
    request = PermissionRequest("shell", "touch x")
    approval = Approval("q-1", AgentId("a"), AgentId("a"), ContextId("c"), request, "d", "no rule", "why", 1.0, 2.0)
    world.ledger.add_approval(approval, "boot")
    assert world.review.approval_or_404("q-1") == approval
    assert world.review.draft_of(approval).rules == ["shell(touch x)", "file(write:${WORKSPACE}/x)"]
    denied = world.review.draft_of(replace(approval, request=PermissionRequest("shell", "rm x")))
    assert denied.rules == [] and "shell(rm:*) holds it back" in denied.why_not
    assert "already" in world.review.draft_of(replace(approval, request=PermissionRequest("shell", "ls"))).why_not
    assert world.review.draft_of(replace(approval, agent_id=AgentId("gone"))).why_not
    with pytest.raises(NotFound):
        world.review.approval_or_404("q-9")


def test_profiles_are_compared_on_the_calls_of_the_last_week(world: World) -> None:
    world.called("git status", "ssh host", "cat ~/.ssh/id_rsa")
    world.called("ls", agent="gone")
    old = JudgedCall(time.time() - 8 * 86400, "a", "c", "shell", "git log", "", "ask", "no rule")
    world.ledger.add_calls([old])
    told = world.review.compare()
    counts = {one.name: (one.allowed, one.asked, one.denied) for one in told.counts}
    assert (told.recorded, told.left_out) == (4, 1)
    assert counts["observe"] == (3, 0, 0)
    assert counts["coding"] == (1, 1, 1)
    assert counts["strict"] == (1, 0, 2)
    first = next(one for one in told.calls if one.argument == "ssh host")
    assert (first.verdicts["coding"], first.verdicts["observe"]) == ("ask", "allow")
    assert not world.records  # nothing was changed


def test_a_comparison_that_takes_too_long_says_what_it_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.called("ls", "wc")
    monkeypatch.setattr(review, "TRY_S", -1.0)
    told = world.review.compare()
    assert (told.recorded, told.left_out, told.calls) == (2, 2, [])
