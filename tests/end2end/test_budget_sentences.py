"""What an agent may spend is set before it starts or while it runs, is charged to all who pay, and ends it in the middle of a run."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api import budgets as b
from console.cli.main import main
from console.domain.errors import Denied, NotFound, UsageProblem
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

HUNDRED = """
from concurrent.futures import ThreadPoolExecutor
agent.usage(tool_calls=9)
def call(n):
    try:
        return agent.reserve(tool_calls=1, tool=f'call {n}')['id']
    except client.Refused as refusal:
        return refusal.status
with ThreadPoolExecutor(12) as pool:
    got = list(pool.map(call, range(100)))
passed = [x for x in got if isinstance(x, str)]
print(f'{len(passed)} of {len(got)} passed, others {sorted(set(x for x in got if not isinstance(x, str)))}', flush=True)
time.sleep(1.5)  # a hundred requests a second are all that an agent may make
print('settled at', agent.settle(passed[0], tool_calls=1)['usage']['tool_calls'], flush=True)
time.sleep(300)
"""


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with standing_instance() as instance:
        yield instance


def change(it: Instance, scope: b.BudgetScope, key: str, reason: str = "a test", **limits: float) -> b.BudgetSetView:
    return it.api.change_budget(b.BudgetBody(scope=scope, key=key, limits=limits, reason=reason))


def audit(it: Instance, kind: str, word: str = "") -> list[str]:
    return [row.what for row in it.api.audit(limit=200).rows if row.kind == kind and word in row.what]


def test_a_limit_on_cost_that_nothing_measures_is_refused_or_accepted_and_shown_as_not_measured(it: Instance) -> None:
    with tempfile.TemporaryDirectory() as prefix:
        package = Path(prefix) / "node_modules" / "@github" / "copilot"
        package.mkdir(parents=True)
        Path(prefix).chmod(0o755)
        program = str(shutil.copy("/bin/sleep", package / "copilot"))
        why = "nothing reads what GitHub Copilot CLI spends: "
        with pytest.raises(UsageProblem, match=f"cannot be measured, because {why}.*--unmeasured"):
            it.launch(program, "300", limits={"cost": 1.0})
        with pytest.raises(UsageProblem, match="cannot be measured"):
            it.launch(program, "300", tree_limits={"cost": 1.0})
        it.api.kill(it.launch(program, "300", limits={"wall": 900.0}), reason="over")
        agent = it.launch(program, "300", limits={"cost": 1.0}, unmeasured=True)

        def shown() -> bool:
            cost = next(g for g in it.api.budget_node("agent", agent).gauges if g.limit == "cost_usd")
            return (cost.cap, cost.share) == (1.0, None) and cost.why.startswith(f"not measured: {why}")

        until(shown, words="its gauge says that it is not measured")
        assert it.agent(agent).cost_usd is None and it.agent(agent).cost_unknown.startswith(why)
        it.api.kill(agent, reason="over")
        it.state_becomes(agent, "killed")
        assert it.api.fleet().spend_unknown >= 2, "what they spent today stays unknown when they have ended"


def test_of_a_hundred_calls_for_the_last_place_exactly_one_passes_and_at_the_cap_the_agent_is_halted(it: Instance) -> None:
    agent = it.python(HUNDRED, limits={"tool_calls": 10})
    assert "1 of 100 passed, others [403" in it.says(agent, "passed")
    node = it.api.budget_node("agent", agent)
    calls = next(g for g in node.gauges if g.limit == "tool_calls")
    assert (calls.used, calls.held, calls.cap) == (9, 1, 10) or calls.used == 10
    view = it.state_becomes(agent, "halted")
    assert view.state_reason == "agent limit tool_calls: 10 of 10"
    assert (view.overshoot, view.overshoot_limit) == (0.0, "tool_calls")
    until(lambda: audit(it, "budget.halt", "tool_calls: 10 of 10"), words="the audit has it")
    until(lambda: any(agent in text and "tool_calls" in text for text in it.api.status().notices), words="it is said")
    assert len(audit(it, "budget.denied")) == 1, "refusals are recorded once, however often it asks"


def test_a_call_that_takes_too_long_is_ended_in_its_middle_and_the_owner_finds_out_why(it: Instance) -> None:
    agent = it.python("print('calling', flush=True); agent.reserve(cost_usd=0.25, ttl_s=600); time.sleep(600)", limits={"step": 1.5})
    it.says(agent, "calling")
    view = it.state_becomes(agent, "halted")
    assert view.state_reason.startswith("agent limit step_s: ")
    until(lambda: it.agent(agent).cost_usd == 0.25, words="what was not settled is counted in full")
    for folder in (it.places.output_dir, it.places.workspaces_dir / view.session / "output"):
        note = folder / f"HALTED-{agent}.txt"
        until(note.exists, words=f"{note}")
        assert "agent limit step_s" in note.read_text() and stat.S_ISREG(note.lstat().st_mode)
    receipts = until(lambda: [r for r in it.api.receipts().receipts if r.scope == agent])
    assert receipts[0].verified_zero and receipts[0].by == "budget"


def test_a_childs_spend_is_charged_to_its_session_which_ends_whole_and_opens_again_when_the_limit_is_raised(it: Instance) -> None:
    change(it, "session", "shop", cost=1.0)
    spawn = "agent.spawn([sys.executable, '-c', os.environ['CHILD']], name='child')"
    child = (
        "import os, sys, time; sys.path.insert(0, os.environ['WATCHFLOOR_TOYS']); import client; agent = client.Agent(); "
        "agent.usage(cost_usd=0.8); agent.usage(cost_usd=0.3); time.sleep(300)"
    )
    parent = it.python(f"os.environ['CHILD'] = {child!r}; {spawn}; print('spawned', flush=True); time.sleep(300)", context_id="shop")
    other = it.launch("sleep", "300", context_id="shop")
    bystander = it.launch("sleep", "300")
    for agent in (parent, other):
        assert it.state_becomes(agent, "halted").state_reason == "session limit cost_usd: 1.1 of 1 (shop)"
    assert it.agent(bystander).state == "running"
    until(lambda: [a.state for a in it.api.fleet().agents if a.parent_id == parent] == ["halted"])
    with pytest.raises(Denied, match=r"session's budget is used up.*watchfloor budget set --session shop"):
        it.launch("sleep", "300", context_id="shop", name="another name")
    assert "0.3 more" in change(it, "session", "shop", reason="0.3 more", cost=1.4).words
    again = it.launch("sleep", "300", context_id="shop")
    assert it.agent(again).state == "running"
    history = it.api.budget_history("session", "shop").changes
    assert [(x.limit, x.old, x.new, x.reason) for x in history] == [("cost_usd", 1.0, 1.4, "0.3 more"), ("cost_usd", None, 1.0, "a test")]
    row = next(s for s in it.api.budgets().sessions if s.key == "shop")
    assert (row.spent_usd, row.cap_usd, row.agents, row.agents_ever, row.level) == (1.1, 1.4, 1, 4, "above_75")
    for agent in (again, bystander):
        it.api.kill(agent)


def test_a_limit_is_raised_and_lowered_while_it_runs_and_only_by_an_operator(it: Instance) -> None:
    code = (
        "agent.usage(tokens=500)\n"
        "for path in ('/api/budgets', '/v1/budgets', '/v1/limits'):\n"
        "    try: agent.call('POST', path, {'scope': 'agent', 'key': agent.me()['id'], 'limits': {'tokens': 10**9}, 'reason': 'more'})\n"
        "    except client.Refused as refusal: print(refusal.status, flush=True)\n"
        "for wrong in ({'tokens': -5}, {'cost_usd': float('nan')}, {'cost_usd': 1e308}, {'tokens': 400, 'totals': True}):\n"
        "    try: agent.usage(**wrong)\n"
        "    except client.Refused as refusal: print('refused', refusal.status, flush=True)\n"
        "print('done', flush=True)\ntime.sleep(300)"
    )
    agent = it.python(code, limits={"tokens": 1000}, project="north")
    said = it.says(agent, "done")
    assert said.split() == ["404"] * 3 + ["refused", "400"] * 4 + ["done"]
    assert it.agent(agent).usage["tokens"] == 500
    until(lambda: len(audit(it, "usage.refused")) >= 4, words="each is on record")
    assert change(it, "agent", agent, tokens=2000).halted == []
    assert change(it, "tree", agent, tokens=2000).halted == []
    look = b.BudgetBody(scope="project", key="north", limits={"tokens": 400}, reason="asked before", dry_run=True)
    would = it.api.change_budget(look)
    assert would.halted == [agent] and would.dry_run, "what it would do is said before it is done"
    assert (
        it.agent(agent).state == "running"
        and it.api.budget_history("project", "north").total == 0
        and not audit(it, "budget.changed", "north")
    )
    assert change(it, "project", "north", tokens=400, reason="enough").halted == [agent]
    assert it.state_becomes(agent, "halted").state_reason == "project limit tokens: 500 of 400 (north)"
    with pytest.raises(NotFound):
        change(it, "agent", "a-nobody", tokens=1)
    with pytest.raises(UsageProblem, match="has ended"):
        change(it, "agent", agent, tokens=1)
    with pytest.raises(Denied, match="project's budget"):
        it.launch("sleep", "1", project="north")
    with pytest.raises(Denied, match="project's budget"):
        it.api.again(agent)  # the same work under a new id is charged to the same project


def test_from_the_command_line(it: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--state-dir", str(it.state_dir)]
    assert main(["budget", "set", "cost=5", "wall=86000", "--session", "later", "--reason", "before it starts", *where]) == 0
    assert "cost_usd none -> 5" in capsys.readouterr().out
    agent = it.python("agent.usage(cost_usd=4.5); print('spent', flush=True); time.sleep(300)", context_id="later")
    it.says(agent, "spent")
    assert main(["budget", "set", "cost=0", "--session", "closed", "--reason", "nobody works here", *where]) == 0
    assert main(["budget", "list", *where]) == 0
    said = capsys.readouterr().out
    assert "session later" in said and "90%" in said and "used up" in said, said
    assert main(["budget", "list", "--session", "later", *where]) == 0
    assert "cost_usd" in capsys.readouterr().out
    assert main(["budget", "remove", "wall", "--session", "later", "--reason", "takes as long as it takes", *where]) == 0
    assert main(["budget", "history", "--session", "later", *where]) == 0
    assert "wall_s 86000 -> none" in capsys.readouterr().out
    assert main(["budget", "set", "cost=1", "--reason", "no scope", *where]) == 2
    assert main(["budget", "set", "price=1", "--day", "--reason", "no such limit", *where]) == 2
    assert main(["run", "--session", "closed", *where, "--", "sleep", "1"]) == 4
    assert "budget set --session closed" in capsys.readouterr().err
    it.api.kill(agent)


def test_a_crash_between_reserve_and_settle_frees_nothing_and_counts_nothing_twice_and_no_warning_is_said_again(state_dir: Path) -> None:
    code = (
        "got = agent.reserve(cost_usd=0.3, tokens=10, key='one'); print('reserved', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.05)\n"
        "def stubborn(call):\n"
        "    while True:\n"
        "        try: return call()\n"
        "        except client.Refused as refusal:\n"
        "            if refusal.status: raise\n"
        "            time.sleep(0.1)\n"
        "same = stubborn(lambda: agent.reserve(cost_usd=0.3, tokens=10, key='one')); print('same', same['id'] == got['id'], flush=True)\n"
        "try: agent.reserve(cost_usd=0.1)\n"
        "except client.Refused as refusal: print('no room', refusal.status, flush=True)\n"
        "stubborn(lambda: agent.settle(got['id'], cost_usd=0.1, tokens=7)); print('settled', flush=True)\n"
        "agent.usage(cost_usd=0.01); print('last', flush=True)\n"
        "time.sleep(300)"
    )
    with Instance(state_dir) as it:
        agent = it.python("agent.usage(cost_usd=0.8)\n" + code, limits={"cost": 1.15}, context_id="c", project="p")
        it.says(agent, "reserved")
        assert it.stop(signal.SIGKILL) != 0
        it.start()
        held = next(g for g in it.api.budget_node("agent", agent).gauges if g.limit == "cost_usd")
        assert (held.used, held.held) == (0.8, 0.3), "neither freed nor doubled"
        (it.places.workspaces_dir / "c" / "go").touch()
        said = it.says(agent, "last")
        assert "same True" in said and "no room 403" in said and "settled" in said
        view = it.agent(agent)
        assert (view.cost_usd, view.usage["tokens"], view.tree_usage["tokens"]) == (0.91, 7, 7)
        for scope, key in (("session", "c"), ("project", "p"), ("day", "")):
            gauges = it.api.budget_node(scope, key).gauges  # type: ignore[arg-type]
            assert [(g.used, g.held) for g in gauges if g.limit == "cost_usd"] == [(0.91, 0.0)], scope
        before = audit(it, "budget.warned", "75 % of the agent limit")
        assert len(before) == 1
        it.stop(signal.SIGKILL)
        it.start()
        until(lambda: it.agent(agent).usage["wall_s"] > view.usage["wall_s"], words="it is metered again")
        assert audit(it, "budget.warned", "75 % of the agent limit") == before
        assert it.agent(agent).usage["wall_s"] > 0 and os.path.exists(f"/proc/{it.agent(agent).pid}")
