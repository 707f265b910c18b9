"""What a person sees, against a real supervisor, a real guard and real agents."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.records import RestoreBody
from console.domain.errors import Conflict, Denied, Killed
from console.killswitch.client.guard_client import GuardClient
from tests.fakes.in_time import code_in_time
from tests.fakes.instance import ROOT, Instance, processes_with, until
from tests.fakes.standing import end_all


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    with Instance(state_dir) as instance:
        yield instance


@pytest.fixture
def calm(standing: Instance) -> Iterator[Instance]:
    """The standing instance, with nothing running before and after."""
    yield standing
    end_all(standing)


def panic(it: Instance, reason: str = "test") -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "console", "panic", "--reason", reason, "--json", "--state-dir", str(it.state_dir)],
        cwd=ROOT, capture_output=True, timeout=150, check=False,
    )  # fmt: skip
    receipt = json.loads(done.stdout)
    receipt["exit"] = done.returncode
    return dict(receipt)


def step(receipt: dict[str, object], name: str) -> str:
    steps = receipt["steps"]
    assert isinstance(steps, list)
    return str(next(s["status"] for s in steps if s["name"] == name))


def test_an_agent_runs_as_managed_and_is_seen_with_its_tree(calm: Instance) -> None:
    parent = calm.python("print(agent.spawn(['sleep', '300'], name='kid')['id'], flush=True); time.sleep(300)", name="root")
    child = calm.says(parent, "a-").strip()
    view = calm.agent(child)
    assert (view.parent_id, view.depth, view.control_level, view.state) == (parent, 2, "managed", "running")
    assert view.network_mode == "FULL"
    assert not view.network_enforced


def test_an_agent_is_not_root_sees_no_secret_and_no_other_process(calm: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = calm.python(
        f"print(os.getuid(), sorted(p for p in os.listdir('/proc') if p.isdigit()), os.path.exists({str(calm.state_dir / 'ledger.db')!r}),"
        "sorted(os.environ), flush=True)"
    )
    out = calm.says(agent, "WATCHFLOOR_AGENT_ID")
    assert not out.startswith("0 ")
    assert "'1'" in out
    assert f"'{os.getpid()}'" not in out.split("]")[0]
    assert "] False [" in out
    calm.state_becomes(agent, "ended")


def test_a_panic_ends_at_zero_proven_and_the_latch_survives_a_restart(it: Instance) -> None:
    mark = "m" + os.urandom(6).hex()
    escape = f"import subprocess as s; s.Popen(['sh', '-c', 'trap \"\" TERM; sleep 300 # {mark}'], start_new_session=True, env={{}})"
    agents = [it.python(f"{escape}; time.sleep(300) # {mark}") for _ in range(3)]
    until(lambda: len(processes_with(mark)) >= 6, words="all run")
    receipt = panic(it)
    assert receipt["verified_zero"] is True
    assert receipt["exit"] in (0, 8) and code_in_time(receipt) == 0
    assert processes_with(mark) == []
    targets = receipt["targets"]
    assert isinstance(targets, list)
    assert {t["agent_id"]: t["outcome"] for t in targets} == dict.fromkeys(agents, "proven_zero")
    assert {n: step(receipt, n) for n in ("latch", "refuse", "signal", "zero", "second_look", "rotate", "evidence")} == dict.fromkeys(
        ("latch", "refuse", "signal", "zero", "second_look", "rotate", "evidence"), "ok"
    )
    assert step(receipt, "remote") == "skipped"
    with pytest.raises(Killed):
        it.launch("sleep", "1")
    it.stop(signal.SIGKILL)
    it.start()
    assert it.api.fleet().killed
    assert {it.agent(a).state for a in agents} == {"killed"}
    with pytest.raises(Killed):
        it.launch("sleep", "1")
    it.api.rearm("looked into it")
    assert not it.api.fleet().killed
    assert [a for a in it.api.fleet().agents if a.state == "running"] == []
    it.state_becomes(it.launch("sleep", "300"), "running")


def test_a_panic_kills_with_the_supervisor_stopped(it: Instance) -> None:
    mark = "m" + os.urandom(6).hex()
    it.launch("sh", "-c", f"sleep 300; : {mark}")
    until(lambda: processes_with(mark))
    assert it.process is not None
    it.process.send_signal(signal.SIGSTOP)
    client = GuardClient(it.places.guard_sock, timeout_s=60)
    kill_id = client.press("all", "the supervisor hangs", "test", timeout_s=90)
    until(lambda: client.progress(kill_id)["done"])
    client.close()
    assert processes_with(mark) == []
    it.process.send_signal(signal.SIGCONT)
    until(lambda: (r := next((r for r in it.api.kill_switch().receipts if r.kill_id == kill_id), None)) and r.complete)
    assert it.api.fleet().killed


def test_a_restarted_supervisor_follows_its_agents_and_loses_nothing(it: Instance) -> None:
    agent = it.python(
        "agent.usage(cost_usd=0.25); print('acknowledged', flush=True)\nwhile True: time.sleep(0.2); open('alive', 'w')", name="lasting"
    )
    it.says(agent, "acknowledged")
    it.stop(signal.SIGKILL)
    it.start()
    view = it.agent(agent)
    assert (view.state, view.cost_usd, view.name) == ("running", 0.25, "lasting")
    it.api.kill(agent, tree=True)
    assert it.state_becomes(agent, "killed").state_reason


def test_an_agent_speaks_again_after_its_supervisor_was_restarted(it: Instance) -> None:
    agent = it.python(
        "n = 0\nwhile True:\n  try: agent.usage(tokens=1); n += 1; print('ok', n, flush=True)\n  except client.Refused as e: pass\n"
        "  time.sleep(0.2)"
    )
    it.says(agent, "ok 2")
    it.stop()
    it.start()
    before = it.agent(agent).usage["tokens"]
    until(lambda: it.agent(agent).usage["tokens"] > before + 1)


def test_a_budget_halts_in_the_middle_of_the_run_and_says_why(calm: Instance) -> None:
    mark = "m" + os.urandom(6).hex()
    agent = calm.python(f"while True: agent.usage(cost_usd=0.1, iterations=1); time.sleep(0.05) # {mark}", limits={"cost": 1.0})
    view = calm.state_becomes(agent, "halted")
    assert "agent limit cost_usd" in view.state_reason
    assert processes_with(mark) == []
    assert (view.cost_usd or 0.0) < 1.5
    until(lambda: any(r.kind == "budget.halt" and r.agent_id == agent for r in calm.api.audit(limit=200).rows), words="it is on record")
    assert not calm.api.fleet().killed


def test_wall_time_halts_an_agent_that_reports_nothing(calm: Instance) -> None:
    agent = calm.launch("sleep", "300", limits={"wall": 2})
    assert "wall_s" in calm.state_becomes(agent, "halted").state_reason


def test_nonsense_usage_is_refused_and_changes_nothing(calm: Instance) -> None:
    agent = calm.python(
        "bad = 0\nfor v in (float('nan'), float('inf'), -1, 1e308, 'x', True, None, [], 0.5):\n"
        "  try: agent.usage(tokens=v)\n  except client.Refused as e: bad += 1\nprint('refused', bad, flush=True); time.sleep(300)"
    )
    assert "refused 9" in calm.says(agent, "refused")
    assert calm.agent(agent).usage["tokens"] == 0


def test_fifty_parallel_spawns_at_limit_minus_one_start_exactly_one(calm: Instance) -> None:
    parent = calm.python(
        "import threading\nfor _ in range(5): agent.spawn(['sleep', '300'])\ndone = []\n"
        "def go():\n  try: agent.spawn(['sleep', '300']); done.append(1)\n  except client.Refused: done.append(0)\n"
        "ts = [threading.Thread(target=go) for _ in range(50)]\n[t.start() for t in ts]; [t.join() for t in ts]\n"
        "print('started', sum(done), 'of', len(done), flush=True); time.sleep(300)"
    )
    assert "started 1 of 50" in calm.says(parent, "started")
    assert calm.agent(parent).children_live == 6


def test_the_fourth_level_is_refused(calm: Instance) -> None:
    code = "import sys; print('level', flush=True)"
    first = calm.launch("sleep", "300")
    second = calm.launch("sleep", "300", parent_id=first)
    third = calm.launch("sleep", "300", parent_id=second)
    with pytest.raises(Denied, match="Depth 4"):
        calm.launch("python3", "-c", code, parent_id=third)


def test_an_agents_socket_has_no_way_to_stop_release_or_approve(calm: Instance) -> None:
    agent = calm.python(
        "for m, r in (('POST', '/api/kill-switch'), ('GET', '/api/fleet'), ('POST', '/v1/kill'), ('GET', '/v1/')):\n"
        "  try: agent.call(m, r, {'action': 'rearm', 'reason': 'x'}); print('SERVED', r)\n"
        "  except client.Refused as e: print(r, e.status)\n"
        f"for p in ({str(calm.places.operator_sock)!r}, {str(calm.places.guard_sock)!r}):\n"
        "  try: client.Agent(p).call('GET', '/api/fleet'); print('SERVED', p)\n"
        "  except client.Refused as e: print('refused', e.status)\nprint('done', flush=True)"
    )
    out = calm.says(agent, "done")
    assert "SERVED" not in out
    assert out.count("404") == 4
    assert out.count("refused 0") == 2


def test_another_process_cannot_use_an_agents_socket(calm: Instance) -> None:
    agent = calm.launch("sleep", "300")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(calm.places.agents_dir / agent / "agent.sock"))
        assert sock.recv(4096).startswith(b"HTTP/1.1 403")  # before a single byte was asked


def test_a_write_is_allowed_only_after_its_snapshot_and_can_be_put_back(calm: Instance) -> None:
    agent = calm.python(
        "open('a.txt', 'w').write('old')\nv = agent.permission('write_file', 'a.txt')\nassert v['verdict'] == 'allow', v\n"
        "open('a.txt', 'w').write('new')\nprint('done', v['rollback_id'], flush=True); time.sleep(300)"
    )
    record_id = calm.says(agent, "done").split()[-1]
    until(lambda: calm.api.rollback_detail(record_id).row.state == "can_restore")
    detail = calm.api.rollback_detail(record_id)
    with pytest.raises(Conflict):
        calm.api.restore(record_id, RestoreBody(reason="back", expect_now_sha256="0" * 64))
    calm.api.restore(record_id, RestoreBody(reason="back", expect_now_sha256=detail.now_sha256))
    assert (calm.places.workspaces_dir / calm.agent(agent).session / "a.txt").read_text() == "old"


@pytest.mark.parametrize("path", ["../../ledger.db", "/etc/passwd", "link/x", "fifo"])
def test_nothing_outside_the_workspace_is_touched(calm: Instance, path: str) -> None:
    agent = calm.python(
        "os.symlink('/etc', 'link'); os.mkfifo('fifo')\n"
        f"told = [agent.permission('write_file', {path!r}), agent.permission('shell', 'rm -rf /')]\n"
        "print('verdict', *(one['verdict'] for one in told), flush=True)",
        dangerous_ok="it only asks",
    )
    assert "verdict deny deny" in calm.says(agent, "verdict")


def test_freeze_stops_an_agent_and_thaw_lets_it_go_on(calm: Instance) -> None:
    agent = calm.python("n = 0\nwhile True: n += 1; print(n, flush=True); time.sleep(0.05)")
    calm.says(agent, "5\n")
    calm.api.freeze(agent)
    calm.state_becomes(agent, "frozen")
    # What it had printed is still being copied: it comes to an end, and then nothing more follows.
    until(lambda: calm.output(agent) == (threading.Event().wait(0.5) or calm.output(agent)), words="it prints nothing any more")
    still = calm.output(agent)
    threading.Event().wait(0.5)
    assert calm.output(agent) == still
    calm.api.thaw(agent)
    calm.state_becomes(agent, "running")
    until(lambda: len(calm.output(agent)) > len(still))


def test_a_silent_supervisor_freezes_its_agents_and_its_return_thaws_them(state_dir: Path) -> None:
    with Instance(state_dir, "--heartbeat-s", "2") as it:
        agent = it.python("n = 0\nwhile True: n += 1; print(n, flush=True); time.sleep(0.05)")
        it.says(agent, "5\n")
        assert it.process is not None
        it.process.send_signal(signal.SIGSTOP)
        client = GuardClient(it.places.guard_sock, timeout_s=60)
        until(lambda: "heartbeat" in client.status()["frozen"].get(agent, []))
        it.process.send_signal(signal.SIGCONT)
        until(lambda: not client.status()["frozen"])
        client.close()


def test_a_second_supervisor_is_told_who_holds_the_state(calm: Instance) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "console.supervisor", "serve", "--state-dir", str(calm.state_dir)],
        cwd=ROOT, capture_output=True, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert calm.process is not None
    assert f"pid {calm.process.pid}" in done.stderr.decode()


def test_secret_data_takes_the_network_for_good(it: Instance) -> None:
    probe = "import socket\ns = socket.socket(); s.settimeout(2)\nprint('net', sorted(n for _, n in socket.if_nameindex()), flush=True)\n"
    wait = "while not os.path.exists('data/go'): time.sleep(0.05)\n"
    told = "agent.private_data('payroll', 'SECRET'); print('told', flush=True); time.sleep(300)"
    first = it.python(probe + wait + told, context_id="c1", network_mode="PROXIED")
    assert "net ['lo']" in it.says(first, "net")
    it.launch("sleep", "300", parent_id=first, context_id="c3")  # what it spawned in a session of its own shares its data
    (it.places.workspaces_dir / "c1" / "data" / "go").touch()
    it.says(first, "told")
    it.stop(signal.SIGKILL)  # what was answered is kept, whatever happens next
    it.start()
    second = it.python(probe + "time.sleep(300)", context_id="c1", sensitivity="PUBLIC")
    assert (it.agent(second).network_mode, it.agent(second).sensitivity) == ("NONE", "SECRET")
    child = it.launch("sleep", "300", parent_id=second, context_id="c2")
    assert it.agent(child).network_mode == "NONE"
    beside = it.launch("sleep", "300", context_id="c3", sensitivity="PUBLIC")
    assert (it.agent(beside).network_mode, it.agent(beside).sensitivity) == ("NONE", "SECRET")


def test_the_audit_is_whole_and_names_who_did_what(calm: Instance) -> None:
    agent = calm.launch("sleep", "300")
    calm.api.kill(agent)
    verdict = calm.api.verify_audit()
    assert verdict.whole
    assert verdict.records >= 4
    until(lambda: {"supervisor.started", "launch", "kill.pressed", "kill.judged"} <= {r.kind for r in calm.api.audit(limit=200).rows})


def test_hostile_names_and_wrong_bodies_get_clear_words(calm: Instance) -> None:
    name = "<b>x</b>\u202e\x1b[31m\n"
    agent = calm.launch("sleep", "300", name=name)
    assert calm.agent(agent).name == name
    bodies: list[dict[str, object]] = [
        {"argv": []},
        {"argv": ["x"], "name": "n" * 201},
        {"argv": ["x"], "surprise": 1},
        {"argv": ["x"], "limits": {"cost": -1}},
        {"argv": ["x"], "context_id": "../../x"},
    ]
    for bad in bodies:
        status, body = raw(calm, "POST", "/api/agents", json.dumps(bad).encode())
        assert status == 400, bad
        assert body["error"] and body["exit_code"] == 2
    assert raw(calm, "POST", "/api/agents", b"x" * 300_000)[0] == 413
    assert raw(calm, "POST", "/api/agents", b"\xff\xfe")[0] == 400
    assert raw(calm, "GET", "/api/agents/nobody", b"")[0] == 404
    assert "127" in calm.state_becomes(calm.launch("/no/such/program"), "failed").state_reason


def raw(it: Instance, method: str, path: str, body: bytes) -> tuple[int, dict[str, object]]:
    import http.client

    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(it.places.operator_sock))
        connection = http.client.HTTPConnection("localhost")
        connection.sock = sock
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_a_rearm_covers_every_press_however_many_there_were(it: Instance) -> None:
    client = GuardClient(it.places.guard_sock, timeout_s=60)
    kills = {client.press("all", f"press {number}", "test", timeout_s=90) for number in range(40)}  # a storm's presses join
    until(lambda: (k := client.status()["kill"]) and k["done"])
    client.close()
    until(lambda: kills <= {r.kill_id for r in it.api.receipts().receipts if r.complete}, words="every press has its receipt")
    it.api.rearm("all of them were seen")
    assert not it.api.fleet().killed


def test_a_guard_that_was_killed_comes_back_and_still_says_killed(it: Instance) -> None:
    agent = it.launch("sleep", "300")
    it.api.activate("first")
    os.kill(it.living_guard(), signal.SIGKILL)  # our own guard, named by its own answer
    until(lambda: it.guard_pid(), words="the supervisor starts the guard again")
    assert it.api.fleet().killed
    with pytest.raises(Killed):
        it.launch("sleep", "1")
    assert it.agent(agent).state == "killed"
    until(lambda: it.api.status().guard_ok)
    until(lambda: all(r.complete for r in it.api.receipts().receipts))
    it.api.rearm("seen")
    it.state_becomes(it.launch("sleep", "300"), "running")
