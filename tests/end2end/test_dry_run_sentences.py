"""An agent in dry-run: everything is judged as live, nothing happens, and what was approved as a whole happens once, exactly as shown."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.api.policy.approvals import ApprovalRow, DecideBody, Decided
from console.api.policy.dry_run import DryRunBody, PlanBody, PlanDecidedView, PlanView
from console.domain.errors import Conflict, Killed
from tests.fakes.instance import Instance, until
from tests.fakes.standing import end_all

# Reads calls from its standard input's stand-in, a file of the workspace, and makes each: what a person types there is what it asks.
ASKER = (
    "import json\n"
    "def ask(tool, argument, who=agent):\n"
    "    while True:\n"
    "        try: v = who.permission(tool, argument); break\n"
    "        except client.Refused as error:\n"
    "            print('refused', error.status, flush=True); time.sleep(0.3)\n"
    "    if v['verdict'] == 'allow' and tool == 'write_file': open(argument, 'w').write('written')\n"
    "    print('answer', tool, argument, v['verdict'], '|', v['rule'], '|', v['reason'], '|', flush=True)\n"
    "done = 0\n"
    "while True:\n"
    "    lines = open('todo').read().split('\\n')[:-1] if os.path.exists('todo') else []\n"
    "    for line in lines[done:]:\n"
    "        ask(*json.loads(line)); done += 1\n"
    "    time.sleep(0.05)\n"
)
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def it(standing: Instance) -> Iterator[Instance]:
    rules(standing)
    yield standing
    end_all(standing)


def rules(it: Instance, **more: list[str]) -> None:
    allow = ["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)", "shell(ls:*)"]
    it.places.policy_file.write_text(json.dumps({"permissions": {"allow": allow, "deny": ["shell(wc:*)"]} | more}))


def starts(it: Instance, *, dry_run: bool = True, **options: object) -> str:
    agent = it.python(ASKER, dry_run=dry_run, **options)
    until(lambda: it.agent(agent).state == "running")
    return agent


def asks(it: Instance, agent: str, tool: str, argument: str, times: int = 1) -> str:
    """It makes this call; the answer's line."""
    before = it.output(agent).count(f"answer {tool} {argument} ")
    todo = it.places.workspaces_dir / it.agent(agent).session / "todo"
    with todo.open("a") as file:
        file.write(json.dumps([tool, argument]) + "\n")
    todo.chmod(0o644)
    if times == 0:
        return ""
    return answered(it, agent, tool, argument, before + 1)


def answered(it: Instance, agent: str, tool: str, argument: str, number: int = 1) -> str:
    head = f"answer {tool} {argument} "
    until(lambda: len([x for x in it.output(agent).split("\n")[:-1] if x.startswith(head)]) >= number, words=f"{head} is answered")
    return [x for x in it.output(agent).split("\n") if x.startswith(head)][number - 1]


def plan(it: Instance, agent: str, number: int = 0) -> PlanView:
    return it.api.plans(agent).plans[number]


def approves(it: Instance, agent: str) -> PlanDecidedView:
    seen = plan(it, agent)
    return it.api.decide_plan(PlanBody(plan=seen.id, sha256=seen.sha256, verdict="approve", reason="as shown"))


def waiting(it: Instance, agent: str) -> ApprovalRow:
    return until(lambda: [row for row in it.api.approvals().waiting if row.agent_id == agent], words="it waits in the inbox")[0]


def decide(it: Instance, row: ApprovalRow, verdict: str, **fields: str) -> None:
    body = DecideBody.read({"requests": [Decided(id=row.id, digest=row.digest)], "verdict": verdict, **fields})
    (result,) = it.api.decide(body).results
    assert result.done, result.words


def file_of(it: Instance, agent: str, name: str) -> Path:
    return it.places.workspaces_dir / it.agent(agent).session / name


def test_judged_as_live_planned_not_executed_then_approved_as_a_whole_and_each_made_once(it: Instance, watchfloor: Say) -> None:
    agent = starts(it)
    assert it.agent(agent).dry_run.startswith("by operator:")
    told = asks(it, agent, "write_file", "a.txt")
    assert (
        "deny | dry run | not executed. Live it would have been allowed (file(write:${WORKSPACE}/**)" in told
        and "call 1 of plan p-" in told
    )
    assert "deny | shell(wc:*)" in asks(it, agent, "shell", "wc -l")
    assert not file_of(it, agent, "a.txt").exists() and not it.api.rollback().records, "not even its rollback record was made"
    seen = plan(it, agent)
    assert [(c.seq, c.tool, c.verdict, c.outcome, c.state) for c in seen.calls] == [
        (1, "write_file", "allow", "allow", "planned"),
        (2, "shell", "deny", "deny", "refused"),
    ]
    assert {line.kind for line in seen.calls[0].preview} >= {"files", "data", "undo", "cost"}
    assert "running, dry-run" in watchfloor("fleet")[1]
    code, out, _ = watchfloor("agent", "plan", agent)
    assert code == 0 and seen.sha256 in out and "a.txt" in out and "rules: deny by shell(wc:*)" in out
    assert watchfloor("agent", "plan", agent, "--approve", "0" * 64, "--reason", "r")[0] == 1
    code, out, err = watchfloor("agent", "plan", agent, "--approve", seen.sha256, "--reason", "as shown")
    assert code == 0 and "1 call may be made, each once" in out, err
    assert "write_file a.txt allow" in asks(it, agent, "write_file", "a.txt")
    assert file_of(it, agent, "a.txt").read_text() == "written" and len(it.api.rollback().records) == 1
    assert "dry run" in asks(it, agent, "write_file", "a.txt"), "each once"
    assert "dry run" in asks(it, agent, "write_file", "b.txt"), "everything else stays dry"
    assert plan(it, agent, 1).state == "done"
    kinds = {row.kind for row in it.api.audit(q=agent).rows}
    assert {"plan.approved", "plan.used"} <= kinds and it.api.verify_audit().whole


def test_a_plan_that_changed_after_it_was_shown_is_not_approved(it: Instance) -> None:
    agent = starts(it)
    asks(it, agent, "write_file", "a.txt")
    seen = plan(it, agent)
    asks(it, agent, "write_file", "b.txt")
    with pytest.raises(Conflict, match="not the one that was shown"):
        it.api.decide_plan(PlanBody(plan=seen.id, sha256=seen.sha256, verdict="approve", reason="r"))
    assert approves(it, agent).calls == 2
    with pytest.raises(Conflict, match="approved already"):
        it.api.decide_plan(PlanBody(plan=seen.id, sha256=plan(it, agent).sha256, verdict="approve", reason="twice"))


def test_an_ask_waits_for_its_human_in_dry_run_too_and_the_plan_stands_for_exactly_that_ask(it: Instance) -> None:
    agent = starts(it)
    for tool, verdict in (("launch_rocket", "approve"), ("open_gate", "deny")):
        asks(it, agent, tool, "now", times=0)
        decide(it, waiting(it, agent), verdict, reason="why not")
        answered(it, agent, tool, "now")
    told = it.output(agent)
    assert "answer launch_rocket now deny | dry run | not executed. Live it would have been allowed (approval q-" in told
    assert "answer open_gate now deny | approval q-" in told
    both = [("ask", "planned"), ("ask", "refused")]
    until(lambda: [(c.verdict, c.state) for c in plan(it, agent).calls] == both, words="both are in the plan")
    assert approves(it, agent).calls == 1
    assert "launch_rocket now allow | plan p-" in asks(it, agent, "launch_rocket", "now")
    asks(it, agent, "open_gate", "now", times=0)
    decide(it, waiting(it, agent), "deny", reason="still not")


def test_an_approved_plan_bypasses_nothing(it: Instance) -> None:
    agent = starts(it)
    for name in ("denied.txt", "asked.txt", "frozen.txt"):
        asks(it, agent, "write_file", name)
    approves(it, agent)
    rules(it, deny=["file(write:${WORKSPACE}/denied.txt)"], ask=["file(write:${WORKSPACE}/asked.txt)"])
    assert "deny | file(write:${WORKSPACE}/denied.txt)" in asks(it, agent, "write_file", "denied.txt")
    asks(it, agent, "write_file", "asked.txt", times=0)
    decide(it, waiting(it, agent), "approve")
    assert "allow" in answered(it, agent, "write_file", "asked.txt", 2), "an ask that the plan did not show is asked"
    it.api.kill(agent, reason="test")
    assert plan(it, agent, 1).state == "void" or plan(it, agent).state == "void"
    with pytest.raises((Conflict, Killed)):
        approves(it, agent)


def test_only_an_operator_leaves_it_and_children_are_never_looser(it: Instance, watchfloor: Say) -> None:
    code = (
        "made = agent.spawn(['sleep', '300'], dry_run=False)['id']; print('child', made, flush=True)\n"
        "for route in ('/v1/dry-run', '/api/dry-run', '/v1/plans', '/api/plans'):\n"
        "    try: agent.call('POST', route, {'agent': made, 'on': False, 'reason': 'r'}); print('LET OUT', flush=True)\n"
        "    except client.Refused as error: print('refused', error.status, flush=True)\n"
        "time.sleep(300)"
    )
    agent = it.python(code, dry_run=True)
    child = it.says(agent, "child").split("child ")[1].split()[0]
    until(lambda: it.output(agent).count("refused 404") == 4)
    assert it.agent(child).dry_run.startswith(f"below {agent}: ") and it.agent(agent).dry_run
    code_, _, err = watchfloor("agent", "dry-run", child, "--leave", "--reason", "r")
    assert code_ == 1 and "never looser than its parent" in err
    live = starts(it, dry_run=False)
    assert watchfloor("agent", "dry-run", live, "--reason", "look first")[0] == 0 and "look first" in it.agent(live).dry_run
    assert "dry run" in asks(it, live, "write_file", "x.txt")
    assert watchfloor("agent", "dry-run", live, "--leave", "--reason", "seen enough")[0] == 0 and it.agent(live).dry_run == ""
    assert "allow" in asks(it, live, "write_file", "x.txt") and plan(it, live).state == "void"
    assert watchfloor("agent", "dry-run", agent, "--leave", "--reason", "done")[0] == 0
    assert it.agent(child).dry_run == "" and it.agent(agent).dry_run == ""


def test_forbidden_sequences_are_seen_in_dry_run_and_leave_no_mark_behind(it: Instance) -> None:
    (it.places.policy_file.with_name("sequences.yaml")).unlink(missing_ok=True)
    rules(it, allow=["file(read:${WORKSPACE}/**)", "network(outbound:*)"])
    agent = starts(it)
    assert "dry run" in asks(it, agent, "read_file", ".env")
    assert "deny | sequence " in asks(it, agent, "http_request", "https://example.com/")
    assert it.agent(agent).taints == []
    it.api.dry_run(DryRunBody(agent=agent, on=False, reason="enough"))
    assert "allow | network FULL" in asks(it, agent, "http_request", "https://example.com/"), "nothing was read, so nothing is tainted"


def test_calls_that_come_by_a_hook_or_for_the_executor_are_dry_too(it: Instance) -> None:
    code = (
        "def told(route, body):\n"
        "    try: print(route, agent.call('POST', route, body), flush=True)\n"
        "    except client.Refused as error: print(route, error, flush=True)\n"
        "payload = {'hook_event_name': 'PreToolUse', 'session_id': 's-1', 'tool_name': 'Bash', 'tool_input': {'command': 'ls'}}\n"
        "told('/v1/hook', {'program': 'claude-code', 'payload': payload})\n"
        "told('/v1/execute', {'tool': 'shell', 'argument': 'ls'})\n"
        "print('done', flush=True); time.sleep(300)"
    )
    agent = it.python(code, dry_run=True)
    said = it.says(agent, "done")
    hook, executor = (next(line for line in said.split("\n") if line.startswith(route)) for route in ("/v1/hook", "/v1/execute"))
    assert "'verdict': 'deny', 'rule': 'dry run'" in hook and "not executed" in executor and "dry run" in executor
    assert {call.outcome for call in plan(it, agent).calls} == {"allow"}


def test_it_outlives_a_crash_of_the_supervisor_and_so_does_the_approval(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        rules(it)
        agent = starts(it)
        for name in ("a.txt", "b.txt"):
            asks(it, agent, "write_file", name)
        sha = plan(it, agent).sha256
        it.stop(signal.SIGKILL)
        it.start()
        assert it.agent(agent).dry_run and plan(it, agent).sha256 == sha
        assert approves(it, agent).calls == 2
        assert "allow" in asks(it, agent, "write_file", "a.txt")
        it.stop(signal.SIGKILL)
        it.start()
        assert "dry run" in asks(it, agent, "write_file", "a.txt"), "used is used"
        assert "allow" in asks(it, agent, "write_file", "b.txt")
        assert it.agent(agent).dry_run
