"""What an agent asks waits for a human; what the human says is what happens: once, on exactly what was shown, and on record."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from console.api.policy.approvals import ApprovalRow, DecideBody, Decided, EndGrantBody
from console.api.policy.rules import PolicySaveBody, PolicyTryBody
from console.domain.errors import Conflict, Killed, UsageProblem
from tests.fakes.instance import Instance, until

ASK = "v = agent.permission({tool!r}, {argument!r}); print('verdict', v['verdict'], '-', v['reason'], flush=True)\n"
TWICE = ASK * 2 + "time.sleep(300)"


Say = Callable[..., tuple[int, str, str]]


def asks(it: Instance, tool: str = "launch_rocket", argument: str = "now", more: str = "time.sleep(300)", **options: object) -> str:
    return it.python(ASK.format(tool=tool, argument=argument) + more, **options)


def waiting(it: Instance, agent: str) -> ApprovalRow:
    found = until(lambda: [row for row in it.api.approvals().waiting if row.agent_id == agent], words="it waits in the inbox")
    return found[0]


def decide(it: Instance, row: ApprovalRow, verdict: str, **fields: str) -> None:
    body = DecideBody.read({"requests": [{"id": row.id, "digest": row.digest}], "verdict": verdict, **fields})
    (result,) = it.api.decide(body).results
    assert result.done, result.words


def test_it_waits_is_approved_once_and_asks_again(it: Instance) -> None:
    agent = it.python(TWICE.format(tool="launch_rocket", argument="now"))
    row = waiting(it, agent)
    assert (row.tool, row.argument) == ("launch_rocket", "now") and it.agent(agent).state == "needs_ok"
    decide(it, row, "approve")
    it.says(agent, "verdict allow")
    again = waiting(it, agent)
    assert again.id != row.id
    decide(it, again, "deny", reason="once is enough")
    assert "once is enough" in it.says(agent, "verdict deny")
    kinds = [record.kind for record in it.api.audit(q=agent).rows if record.kind.startswith("approval.")]
    assert sorted(kinds) == ["approval.approved", "approval.asked", "approval.asked", "approval.denied", "approval.used"]
    assert it.api.verify_audit().whole


def test_equal_requests_of_one_tree_that_wait_are_one_item_and_each_keeps_its_own_decision(it: Instance, watchfloor: Say) -> None:
    root = it.python("time.sleep(300)")
    below = [
        asks(it, "launch_rocket", "now", more="print(agent.permission('launch_rocket', 'now')['verdict']); time.sleep(300)", parent_id=root)
        for _ in range(3)
    ]
    other = asks(it, "launch_rocket", "later", parent_id=root)
    rows = [waiting(it, agent) for agent in (*below, other)]
    assert len({row.equal for row in rows[:3]}) == 1 and rows[3].equal != rows[0].equal
    listed = [line.split() for line in watchfloor("approval", "list")[1].splitlines() if "launch_rocket" in line]
    assert sorted(line[2] for line in listed) == ["1", "3"]
    code, out, _ = watchfloor("approval", "approve", rows[0].id, "--equal", "--reason", "lift off")
    assert code == 0 and out.count("approved once") == 3
    for agent in below:
        it.says(agent, "verdict allow")
    # Each was for one call: the same question that comes later is asked again.
    assert {waiting(it, agent).id for agent in below}.isdisjoint(row.id for row in rows)
    assert waiting(it, other).id == rows[3].id


def test_an_approval_becomes_a_rule_for_exactly_that_call_until_it_is_removed(it: Instance, watchfloor: Say) -> None:
    asking = "while True: print('verdict', agent.permission('launch_rocket', 'now')['verdict'], flush=True); time.sleep(0.2)"
    agent = it.python(asking)
    row = waiting(it, agent)
    assert watchfloor("approval", "rule", row.id)[0] == 4, "only what was approved"
    decide(it, row, "approve")
    again = waiting(it, agent)
    code, out, _ = watchfloor("approval", "rule", row.id, "--reason", "lift off")
    assert code == 0 and "exactly: launch_rocket now" in out
    (rule,) = it.api.policy().exact
    decide(it, again, "approve")
    until(lambda: it.api.policy().exact[0].hits > 1, words="the rule answers")
    assert not [one for one in it.api.approvals().waiting if one.agent_id == agent]
    assert watchfloor("policy", "remove", rule.id, "--reason", "no more")[0] == 0
    records = [record for kind in ("policy.rule_added", "policy.rule_removed") for record in it.api.audit(q=kind).rows]
    assert [rule.id in record.what for record in records] == [True, True]
    assert waiting(it, agent).argument == "now" and rule.id not in watchfloor("policy", "rules")[1]


def test_for_the_session_it_is_not_asked_again_until_that_is_taken_back(it: Instance) -> None:
    agent = it.python(TWICE.format(tool="launch_rocket", argument="now"))
    row = waiting(it, agent)
    decide(it, row, "approve", scope="session")
    until(lambda: it.output(agent).count("verdict allow") == 2)
    session = it.agent(agent).session
    assert [grant.session for grant in it.api.grants().grants] == [session]
    it.api.end_grants(EndGrantBody(session=session, reason="enough"))
    other = asks(it, context_id=session)
    decide(it, waiting(it, other), "deny", reason="no more")
    it.says(other, "verdict deny")


def test_a_press_answers_everything_that_waits_and_nothing_of_it_can_be_approved_later(it: Instance) -> None:
    agent = asks(it)
    row = waiting(it, agent)
    it.api.kill(agent, reason="test")
    assert not it.api.approvals().waiting
    body = DecideBody(requests=[Decided(id=row.id, digest=row.digest)], verdict="approve")
    (result,) = it.api.decide(body).results
    assert not result.done and "void" in result.words


def test_what_waits_outlives_a_crash_of_the_supervisor_and_is_used_by_the_same_request_alone(state_dir: Path) -> None:
    retry = (
        "while True:\n"
        "    try:\n"
        "        v = agent.permission('launch_rocket', 'now')\n"
        "        print('verdict', v['verdict'], flush=True); break\n"
        "    except Exception as error: print('lost', flush=True); time.sleep(0.2)\n"
        "time.sleep(300)"
    )
    with Instance(state_dir) as it:
        agent = it.python(retry)
        row = waiting(it, agent)
        it.stop(signal.SIGKILL)
        it.start()
        found = waiting(it, agent)
        assert (found.id, found.digest) == (row.id, row.digest)
        decide(it, found, "approve")
        it.says(agent, "verdict allow")
        assert it.api.approval(row.id).row.state == "used"


def test_who_edits_the_rules_decides_the_next_call_and_a_broken_edit_changes_nothing(it: Instance) -> None:
    file = it.places.policy_file
    file.write_text(json.dumps({"permissions": {"deny": ["shell(ls:*)"], "allow": ["shell(wc:*)"]}}))
    agent = it.python(ASK.format(tool="shell", argument="ls") + ASK.format(tool="shell", argument="wc -l") + "time.sleep(300)")
    it.says(agent, "verdict allow")
    assert "verdict deny - blocked by rule" in it.output(agent)
    file.write_text("{")
    again = it.python(ASK.format(tool="shell", argument="ls") + "time.sleep(300)")
    it.says(again, "verdict deny")
    until(lambda: any("last good rules stay in force" in notice for notice in it.api.status().notices))
    file.write_text((Path(__file__).parents[2] / "resources/policy/default.json").read_text())


def test_who_does_not_wait_comes_back_with_the_same_call_and_hears_a_denial_once_and_for_all(it: Instance) -> None:
    code = (
        "import json\n"
        "def ask(): return agent.permission('launch_rocket', 'now', wait_s=0, call_id='c1')\n"
        "first = ask(); print('asked', json.dumps(first), flush=True)\n"
        "while agent.asked(first['approval_id'])['state'] == 'waiting': time.sleep(0.1)\n"
        "print('then', json.dumps([ask(), ask()]), flush=True); time.sleep(300)"
    )
    agent = it.python(code)
    row = waiting(it, agent)
    asked = json.loads(it.says(agent, "asked ").split("asked ", 1)[1].splitlines()[0])
    assert (asked["verdict"], asked["approval_id"], asked["digest"]) == ("ask", row.id, row.digest) and asked["left_s"] > 0
    other = it.python(f"try: agent.asked({row.id!r})\nexcept client.Refused as no: print('other', no.status, flush=True)\ntime.sleep(300)")
    assert it.says(other, "other ").split("other ", 1)[1].split()[0] == "404"
    decide(it, row, "deny", reason="no rockets")
    then = json.loads(it.says(agent, "then ").split("then ", 1)[1].splitlines()[0])
    assert [(one["verdict"], "no rockets" in one["reason"]) for one in then] == [("deny", True)] * 2
    assert not it.api.approvals().waiting


def test_the_client_of_forty_lines_asks_for_any_program_and_lets_it_run_on_an_allow_alone(it: Instance) -> None:
    ask = 'python3 -I -S "$WATCHFLOOR_TOYS/ask.py"'
    agent = it.launch("sh", "-c", f"{ask} launch_rocket now && echo went; {ask} launch_rocket later || echo stayed $?; sleep 300")
    decide(it, waiting(it, agent), "approve")
    it.says(agent, "went")
    decide(it, waiting(it, agent), "deny", reason="one is enough")
    said = it.says(agent, "stayed 4")
    assert said.count("went") == 1 and "one is enough" in said


def test_an_agent_has_no_way_to_approve(it: Instance) -> None:
    code = (
        "import http.client, socket\n"
        "def knock(path, route):\n"
        "    with socket.socket(socket.AF_UNIX) as s:\n"
        "        s.settimeout(60)\n"
        "        try: s.connect(path)\n"
        "        except OSError as error: return type(error).__name__\n"
        "        s.sendall(f'POST {route} HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 2\\r\\n\\r\\n{{}}'.encode())\n"
        "        return s.recv(200).split(b' ')[1].decode()\n"
        f"print('knocked', knock(agent.path, '/api/approvals'), knock({str(it.places.operator_sock)!r}, '/api/approvals'), flush=True)\n"
        "time.sleep(300)"
    )
    agent = it.python(code)
    said = it.says(agent, "knocked")
    own, operators = said.split("knocked", 1)[1].split()[:2]
    assert own == "404" and operators in ("403", "FileNotFoundError", "PermissionError", "ConnectionRefusedError")


def test_the_command_line_shows_it_whole_and_decides_on_what_it_showed(it: Instance, watchfloor: Say) -> None:
    agent = asks(it, "launch_rocket", "\u202e\x1b[2K moon")
    row = waiting(it, agent)
    code, out, _ = watchfloor("approval", "show", row.id)
    assert code == 0 and "\x1b" not in out and "\u202e" not in out and "\\u202e" in out and row.digest in out
    code, _, err = watchfloor("approval", "approve", row.id, "--digest", "0" * 64)
    assert code == 1 and "not the one with that digest" in err
    assert watchfloor("approval", "deny", row.id, "--reason", "no rockets")[0] == 0
    assert "no rockets" in it.says(agent, "verdict deny")
    code, _, err = watchfloor("approval", "approve", row.id)
    assert code == 3 and "waits" in err
    assert "denied" in watchfloor("approval", "list", "--decided")[1]


def test_while_killed_nothing_is_approved(state_dir: Path) -> None:
    with Instance(state_dir) as own:
        agent = asks(own)
        row = waiting(own, agent)
        own.api.activate("test")
        with pytest.raises(Killed):
            own.api.decide(DecideBody(requests=[Decided(id=row.id, digest=row.digest)], verdict="approve"))
        assert own.api.approval(row.id).row.state == "void"


def test_a_rule_is_drafted_from_a_request_tried_on_what_was_recorded_and_put_in_force(it: Instance, watchfloor: Say) -> None:
    agent = it.python(TWICE.format(tool="shell", argument="touch made.txt"))
    row = waiting(it, agent)
    code, out, _ = watchfloor("policy", "draft", row.id)
    assert (code, out.strip()) == (0, "shell(touch made.txt)")
    until(lambda: it.api.try_policy(PolicyTryBody(add=["shell(touch made.txt)"])).changed, words="the call is among the recorded ones")
    code, out, _ = watchfloor("policy", "backtest", "--allow", "shell(touch made.txt)")
    assert code == 1 and "decided otherwise" in out and "ask -> allow  shell touch made.txt" in out
    code, out, _ = watchfloor("policy", "backtest", "--deny", "shell(touch:*)")
    assert code == 0 and "ask -> deny  shell touch made.txt" in out
    assert watchfloor("policy", "save", "--allow", "shell(touch made.txt)", "--reason", "it makes that file")[0] == 0
    decide(it, row, "approve")
    until(lambda: it.output(agent).count("verdict allow") == 2)  # the second by the rule, with nobody asked
    mine = next(rule for rule in it.api.policy().rules if rule.rule == "shell(touch made.txt)")
    assert until(lambda: [r for r in it.api.policy().rules if r.rule == mine.rule and r.hits])[0].last_at is not None
    assert [record.what for record in it.api.audit(q="policy.changed").rows][:1] == ["it makes that file"]
    stale = PolicySaveBody(text="{}", base_sha256="0" * 64, reason="late")
    with pytest.raises(UsageProblem):
        it.api.save_policy(stale)
    with pytest.raises(Conflict):
        it.api.save_policy(stale.replaced(text=it.api.policy().text))
    it.places.policy_file.write_text((Path(__file__).parents[2] / "resources/policy/default.json").read_text())
