"""What the policy page reads: findings, one call explained, tools, sequences with the marks that stand, and what a rule decided."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.policy import page as v
from console.api.policy import policy_data
from console.api.policy.rules import PolicySaveBody, PolicyTryBody
from console.domain.calls.lineage import Mark
from console.domain.errors import NotFound
from console.enforcement.lineages import nodes_of
from console.ledger.calls import JudgedCall
from console.ledger.store import Ledger
from console.policy.dangers import Danger
from console.services.policy.exact_rules import ExactRules
from console.services.policy.page import PolicyLook
from console.services.policy.review import PolicyReview
from console.services.policy.service import PolicyDesk
from console.settings.places import Places, find_places
from tests.fakes.playbook import Playbook

RULES = {
    "permissions": {
        "allow": ["shell(ls:*)", "shell(date)", "shell(find:*)", "file(read:**/.ssh/**)", "network(outbound:*)"],
        "deny": ["shell(rm:*)"],
        "ask": ["shell(wc:*)"],
    }
}


class World:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.ledger = Ledger(places.state_dir / "ledger.db")
        self.book = Playbook().run("a", context_id="c")
        places.policy_file.write_text(json.dumps(RULES, indent=1))
        self.desk = PolicyDesk(places, lambda _text: None, policy_data.dangers, lambda _agent_id: None)
        parts: Any = SimpleNamespace(core=SimpleNamespace(state=self.book.state), scribe=SimpleNamespace(ledger=self.ledger), places=places)
        self.look = PolicyLook(parts.core, parts.scribe, self.desk)
        self.review = PolicyReview(parts.core, parts.places, parts.scribe, self.desk, ExactRules(self.ledger))


@pytest.fixture
def world(tmp_path: Path) -> Any:
    places = find_places(str(tmp_path / "state"), create=True)
    (places.workspaces_dir / "c").mkdir(parents=True)
    made = World(places)
    yield made
    made.ledger.close()


def test_lint_says_what_each_rule_swallows(world: World) -> None:
    told = world.look.lint()
    found = {one.rule: one for one in told.findings}
    assert told.refused == 1 and found["shell(find:*)"].severity == "refused" and found["shell(find:*)"].swallows == ["shell(rm:*)"]
    assert found["network(outbound:*)"].severity == "warning" and told.count == len(told.findings)


async def test_a_call_of_nobody_is_judged_by_the_rules_alone(world: World) -> None:
    told = await world.look.explain(v.ExplainBody(tool="shell", argument="ls && rm -rf /x"))
    assert (told.verdict, told.rule) == ("deny", "shell(rm:*)")
    assert [(p.verdict, p.rule) for p in told.parts if p.step == "program"] == [("allow", "shell(ls:*)"), ("deny", "shell(rm:*)")]
    assert "No agent" in told.words and not told.steps
    allowed = await world.look.explain(v.ExplainBody(tool="shell", argument="date"))
    assert allowed.verdict == "allow" and allowed.steps[0].argv == ["date"]
    world.desk.dangers = lambda: (Danger("ours", "it is ours", frozenset({"date"})),)
    assert (await world.look.explain(v.ExplainBody(tool="shell", argument="date"))).verdict == "ask", "an operator's own list asks here too"


async def test_a_call_of_an_agent_takes_the_steps_of_its_lineage_into_account(world: World) -> None:
    world.book.state.lineages.join(nodes_of("a", "c", ""))
    body = v.ExplainBody(tool="read_file", argument="/home/x/.ssh/id_rsa", agent_id="a")
    told = await world.look.explain(body)
    assert told.verdict == "allow" and any(one.startswith("takes step") for one in told.sequences)
    pattern = next(one for one in world.desk.sequences.patterns() if one.name in told.sequences[0])
    agent = world.book.agent("a")
    lineage = world.book.state.lineages.of(agent)
    mark = Mark(pattern.name, pattern.steps[0].name, "", "a", "c", "a", time.time(), "read_file \x1b[2J")
    lineage.marks[mark.key] = mark
    told = await world.look.explain(v.ExplainBody(tool="http_request", argument="https://example.org/", agent_id="a"))
    assert told.verdict == "deny" and told.rule == f"sequence {pattern.name}" and told.sequences[0].startswith("completes")
    assert lineage.marks == {mark.key: mark}, "to explain takes no step"
    with pytest.raises(NotFound):
        await world.look.explain(v.ExplainBody(tool="shell", argument="ls", agent_id="nobody"))


def test_marks_stand_by_lineage(world: World) -> None:
    lineage = world.book.state.lineages.join(nodes_of("a", "c", ""))
    for at in range(v.MARKS + 5):
        mark = Mark("p", "s", f"{at}", "a", "c", "a", float(at), "x")
        lineage.marks[mark.key] = mark
    told = world.look.sequences()
    assert (told.marks_count, len(told.marks), told.lineages, told.problem) == (v.MARKS + 5, v.MARKS, 1, "")
    assert told.marks[0].at == v.MARKS + 4 and told.marks[0].lineage == "a" and not told.marks[0].kept
    assert told.patterns and all(one.built_in and one.steps[0].takes for one in told.patterns)


def test_with_unknown_sequences_the_problem_is_said(world: World, tmp_path: Path) -> None:
    (world.places.state_dir / "sequences.yaml").write_text("[[[")
    told = world.look.sequences()
    assert told.problem and not told.patterns


def test_tools_are_told_by_what_they_do_and_bounds_are_not_pretended(world: World) -> None:
    told = world.look.tools()
    row = next(one for one in told.tools if "delete_file" in one.names)
    assert row.scopes == ["WRITE_FS", "DELETE_FS"] and row.family == "file" and told.matrix.startswith("none is in force")
    assert told.tools[-1].names == [] and "a person" in told.tools[-1].judged and set(told.granted) <= set(told.scopes)


async def test_a_matrix_that_nobody_knows_denies_and_says_so(world: World) -> None:
    assert world.look.tools().matrix_state == "none"
    matrix = world.places.state_dir / "matrix.json"
    matrix.write_text('{"tools": {"shell": {}}}')
    told = world.look.tools()
    assert (told.matrix_state, told.matrix, told.tools[0].names) == ("in_force", "", ["shell"]) and told.tools[0].constraints
    matrix.write_text("{")
    assert world.look.tools().matrix_state == "last_good"
    for good in world.places.state_dir.glob(".matrix-last-good.json"):
        good.unlink()
    desk = PolicyDesk(world.places, lambda _text: None, policy_data.dangers, lambda _agent_id: None)
    look = PolicyLook(world.look._core, world.look._scribe, desk)
    assert look.tools().matrix_state == "unknown" and "Every call is denied" in look.tools().matrix
    for agent_id in ("", "a"):
        said = await look.explain(v.ExplainBody(tool="shell", argument="date", agent_id=agent_id))
        assert (said.verdict, said.rule) == ("deny", "policy") and "could not be checked" in said.reason


def test_what_a_rule_decided_is_found_by_its_words(world: World) -> None:
    rows = [JudgedCall(float(at), "a", "c", "shell", f"ls {at}", "", "allow", "shell(ls:*)") for at in range(300)]
    rows.append(JudgedCall(999.0, "a", "c", "shell", "rm x" + "y" * 5000, "", "deny", "shell(rm:*)"))
    world.ledger.add_calls(rows)
    told = world.look.calls("shell(ls:*)", "allow")
    assert len(told.rows) == v.CALLS and told.rows[0].argument == "ls 299"
    assert [len(one.argument) for one in world.look.calls("shell(rm:*)", "deny").rows] == [2000]
    assert world.look.calls("shell(rm:*)", "allow").rows == []


def test_a_recorded_call_whose_bounds_are_not_recorded_is_left_out_of_a_try_and_counted(world: World) -> None:
    """A write's size is in its input, which no record keeps: that nothing would change is not known."""
    (world.places.state_dir / "matrix.json").write_text(json.dumps({"tools": {"write_file": {"max_size": "1KB"}}}))
    world.ledger.add_calls([JudgedCall(time.time(), "a", "c", "write_file", "n.txt", "", "ask", "no rule")])
    told = world.review.attempt(PolicyTryBody(add=["file(write:${WORKSPACE}/**)"]))
    assert (told.recorded, told.changed, told.left_out) == (1, 0, 1)


def test_each_rule_in_force_has_its_file_and_line(world: World) -> None:
    told = world.review.view()
    lines = {row.rule: row.line for row in told.rules}
    text = world.places.policy_file.read_text().split("\n")
    assert told.file == str(world.places.policy_file) and lines and all(f'"{rule}"' in text[line - 1] for rule, line in lines.items())


async def test_where_no_rules_were_ever_good_the_first_ones_can_be_put_in_force(tmp_path: Path) -> None:
    places = find_places(str(tmp_path / "none"), create=True)
    places.policy_file.write_text("{}")
    ledger = Ledger(places.state_dir / "ledger.db")
    desk = PolicyDesk(places, lambda _text: None, policy_data.dangers, lambda _agent_id: None)
    scribe = SimpleNamespace(ledger=ledger, record_first=lambda _record: None)
    parts: Any = SimpleNamespace(core=SimpleNamespace(state=Playbook().state), scribe=scribe, places=places)
    review, look = (
        PolicyReview(parts.core, parts.places, parts.scribe, desk, ExactRules(ledger)),
        PolicyLook(parts.core, parts.scribe, desk),
    )
    view = review.view()
    assert view.problem and not view.rules and look.lint().problem
    told = await look.explain(v.ExplainBody(tool="shell", argument="ls"))
    assert (told.verdict, told.rule) == ("deny", "no policy")
    saved = await review.save(PolicySaveBody(text=json.dumps(RULES), base_sha256=view.sha256, reason="first"), "operator:0")
    assert saved.rules and not saved.problem
    ledger.close()
