"""The press on the real kernel: hostile trees end at zero, bystanders live, nothing that is stopped or broken can delay it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, ConsoleError, Denied, Killed, NotFound
from console.domain.kill import Outcome, StepName, StepStatus, receipt_from_json
from console.domain.verdict import verdict
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.client.kill import press_and_wait, press_without_guard
from console.killswitch.kernel import processes
from tests.fakes.guard_world import FORK_BOMB, HOSTILE_TREE, NOBODY, GuardWorld, decoys, end, ticks, until
from tests.fakes.in_time import code_in_time
from tests.fakes.stuck_file import StuckFile
from tests.fakes.supervisor_client import SupervisorClient

PYTHON = ("/usr/bin/python3", "-S", "-c")
"""One that nobody may run as well."""


@pytest.fixture
def world(state_dir: Path) -> Iterator[GuardWorld]:
    made = GuardWorld(state_dir)
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def impatient(state_dir: Path) -> Iterator[GuardWorld]:
    """Its guard gives up after 2 s."""
    with contextlib.closing(GuardWorld(state_dir)) as made:
        yield made.start_impatient()


def press(world: GuardWorld, scope: str | list[str] = "all") -> dict[str, object]:
    return world.pressed(scope).as_json()


def test_hostile_trees_end_proven_and_bystanders_live(shared: GuardWorld) -> None:
    with decoys() as others:
        for n in range(3):
            shared.agent(f"hostile-{n}", *PYTHON, HOSTILE_TREE, "24", pids_max=200, env=NOBODY)
        shared.agent("bomb", *PYTHON, FORK_BOMB, pids_max=150, env=NOBODY)
        until(lambda: len(shared.oracle("bomb")) > 100, "the bomb has grown")
        until(lambda: all(len(shared.oracle(f"hostile-{n}")) > 24 for n in range(3)), "the trees have grown")
        receipt = press_and_wait(shared.state, shared.run, shared.instance, "all", "test", "tester", timeout_s=90)
        assert not verdict(receipt).may_run and receipt.complete and not receipt.survivors, receipt
        assert {t.outcome for t in receipt.targets} == {Outcome.PROVEN_ZERO}
        assert [shared.oracle(a) for a in ("hostile-0", "hostile-1", "hostile-2", "bomb")] == [[], [], [], []]
        assert code_in_time(receipt) == 0
        assert all(p.poll() is None for p in others)
    steps = {s.name: s.status for s in receipt.steps}
    assert steps == dict.fromkeys((StepName.LATCH, StepName.REFUSE, StepName.SIGNAL, StepName.ZERO, StepName.SECOND_LOOK), StepStatus.OK)


def test_receipt_on_disk_names_what_was_killed(shared: GuardWorld) -> None:
    shared.agent("one", confirm=True, env=NOBODY)
    kill_id = shared.operator.press("all", "why", "who", "12:abc", timeout_s=90)
    saved = receipt_from_json(shared.receipt(kill_id))
    target = saved.targets[0]
    assert (saved.reason, saved.by, saved.order, saved.scope, saved.instance_id) == ("why", "who", "12:abc", "all", shared.instance)
    assert target.evidence["populated"] == 0 and target.evidence["pids_before"][0]["cmdline"] == "/bin/sleep 600"
    assert target.evidence["inode"] > 0 and shared.instance in target.evidence["cgroup"]
    assert (shared.state / "guard" / "receipts" / f"{kill_id}.json").stat().st_mode & 0o777 == 0o600


def test_a_list_kills_only_those_and_leaves_no_latch(world: GuardWorld) -> None:
    first, second = world.agent("first"), world.agent("second")
    receipt = press_and_wait(world.state, world.run, world.instance, ["first"], "one only", "tester", timeout_s=90)
    assert not verdict(receipt).may_run and [t.agent_id for t in receipt.targets] == ["first"]
    assert first.wait(60) == -signal.SIGKILL and second.poll() is None
    status = world.operator.status()
    assert not status["latched"] and status["generation"] == 0
    with pytest.raises(Killed):
        world.supervisor.confirm("first", 0, second.pid, ticks(second.pid))
    world.supervisor.forget("first")
    world.agent("third")


def test_an_unknown_agent_is_never_green(shared: GuardWorld) -> None:
    receipt = press_and_wait(shared.state, shared.run, shared.instance, ["nobody"], "x", "tester", timeout_s=90)
    assert not receipt.verified_zero and receipt.targets[0].outcome is Outcome.NOT_PROVEN
    assert verdict(receipt).exit_code == 9


def test_nothing_starts_while_latched_and_unlatch_needs_everything(world: GuardWorld) -> None:
    press(world)
    with pytest.raises(Killed):
        world.supervisor.ticket("late", "process", "managed")
    press(world)
    status = world.operator.status()
    assert status["generation"] == 2 and len(status["kills"]) == 2
    with pytest.raises(Conflict):
        world.supervisor.unlatch(1, status["kills"])
    with pytest.raises(Conflict):
        world.supervisor.unlatch(2, status["kills"][:1])
    with pytest.raises(ConsoleError):
        world.operator.unlatch(2, status["kills"])  # guard.sock has no such operation
    with pytest.raises(Denied):
        world.supervisor.unlatch(2, status["kills"], "owner")  # nobody proved anything
    world.unlatch("owner")
    assert not world.operator.status()["latched"]
    world.agent("after")


def test_a_press_between_ticket_and_confirmation_wins(shared: GuardWorld) -> None:
    ticket = shared.supervisor.ticket("racer", "process", "managed")
    press(shared)
    process = shared.popen("/bin/sleep", "600")
    Path(ticket["leaf"], "cgroup.procs").write_text(str(process.pid))  # it enters its leaf only now
    with pytest.raises(Killed):
        shared.supervisor.confirm("racer", ticket["generation"], process.pid, ticks(process.pid))
    assert process.wait(60) == -signal.SIGKILL  # whatever rises among the killed is struck


def test_press_races_with_launches_and_nothing_starts_after_it(world: GuardWorld) -> None:
    started: list[tuple[float, str]] = []
    stop = threading.Event()

    def launch(n: int) -> None:
        client = SupervisorClient(world.run / "guard-supervisor.sock", timeout_s=60)
        for i in range(1000):
            if stop.is_set():
                break
            try:
                ticket = client.ticket(f"r{n}-{i}", "process", "managed")
                process = subprocess.Popen(["/bin/sleep", "600"])
                Path(ticket["leaf"], "cgroup.procs").write_text(str(process.pid))
                asked = time.monotonic()
                try:
                    client.confirm(f"r{n}-{i}", ticket["generation"], process.pid, ticks(process.pid))
                    started.append((asked, ticket["leaf"]))
                except Killed:
                    process.kill()
                reap.append(process)
            except Killed:
                break
        client.close()

    reap: list[subprocess.Popen[bytes]] = []
    threads = [threading.Thread(target=launch, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(started) >= 8, "some have started")
    kill_id = world.operator.press("all", "race", "tester", timeout_s=90)
    answered = time.monotonic()
    receipt = world.receipt(kill_id)
    stop.set()
    for thread in threads:
        thread.join(60)
    for process in reap:
        assert process.wait(60) == -signal.SIGKILL
    assert not verdict(receipt_from_json(receipt)).may_run
    late = [leaf for asked, leaf in started if asked > answered]
    assert not late, "a launch was confirmed that asked after the press"


def test_kills_while_its_starter_is_stopped(state_dir: Path) -> None:
    """The supervisor (here: whoever started the guard and the agents) hangs: SIGSTOP."""
    world = GuardWorld(state_dir)
    code = (
        "import sys,time\nfrom pathlib import Path\nfrom console.killswitch.client.start import start_guard\n"
        "print(start_guard(*map(Path, sys.argv[1:3]), sys.argv[3]), flush=True)\ntime.sleep(600)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    parent = world.popen(sys.executable, "-c", code, str(world.state), str(world.run), world.instance, stdout=subprocess.PIPE, env=env)
    try:
        assert parent.stdout is not None and int(parent.stdout.readline()) > 0
        world.start()
        agent = world.agent("held")
        end(parent.pid, signal.SIGSTOP)
        receipt = press_and_wait(world.state, world.run, world.instance, "all", "hung", "tester", timeout_s=90)
        assert not verdict(receipt).may_run and agent.wait(60) == -signal.SIGKILL
        end(parent.pid, signal.SIGKILL)
        assert world.operator.status()["latched"]  # and it outlives its starter
    finally:
        world.close()


def test_a_dead_guard_is_done_without(world: GuardWorld) -> None:
    with decoys(2):
        agents = [world.agent(f"left-{n}") for n in range(3)]
        world.python("tree", HOSTILE_TREE, "12", pids_max=100)
        world.kill_guard()
        receipt = press_and_wait(world.state, world.run, world.instance, "all", "guard is dead", "tester", timeout_s=90)
        assert not verdict(receipt).may_run and len(receipt.targets) == 4 and all(a.wait(60) == -signal.SIGKILL for a in agents)
        assert world.oracle("tree") == []
        assert all(
            "pids_before" not in t.evidence and "not looked at" in t.evidence["processes_before"] for t in receipt.targets
        )  # unknown, not none
    world.start()
    status = world.operator.status()
    assert status["latched"] and receipt.kill_id in status["kills"]


def test_a_stopped_guard_is_done_without_and_obeys_the_latch_on_disk(world: GuardWorld) -> None:
    agent = world.agent("held")
    end(world.pid, signal.SIGSTOP)
    receipt = press_and_wait(world.state, world.run, world.instance, "all", "guard hangs", "tester", timeout_s=90)
    assert not verdict(receipt).may_run and agent.wait(60) == -signal.SIGKILL
    end(world.pid, signal.SIGCONT)
    until(lambda: world.operator.status()["latched"], "the guard obeys the disk")
    with pytest.raises(Killed):
        world.supervisor.ticket("late", "process", "managed")


def test_a_guard_that_is_stopped_after_its_answer_is_done_without(world: GuardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kill is on its way, and nobody may wait for its receipt as long as for one that is slow to prove."""
    agent, press = world.agent("held"), GuardClient.press

    def stopped_then(self: GuardClient, *order: Any, **more: Any) -> str:
        kill_id = press(self, *order, **more)
        end(world.pid, signal.SIGSTOP)
        return kill_id

    monkeypatch.setattr(GuardClient, "press", stopped_then)
    receipt = press_and_wait(world.state, world.run, world.instance, "all", "guard stops", "tester", timeout_s=120)
    assert not verdict(receipt).may_run and agent.wait(60) == -signal.SIGKILL
    end(world.pid, signal.SIGCONT)
    until(lambda: receipt.kill_id in world.operator.status()["kills"], "the guard knows the second press")


def test_press_without_guard_takes_a_list_too(world: GuardWorld) -> None:
    first, second = world.agent("first"), world.agent("second")
    world.kill_guard()
    receipt = press_without_guard(world.state, world.run, world.instance, ["second"], "one", "tester")
    assert not verdict(receipt).may_run and first.poll() is None and second.wait(60) == -signal.SIGKILL
    world.start()
    assert not world.operator.status()["latched"]


def test_sigusr1_presses_everything(shared: GuardWorld) -> None:
    agent = shared.agent("one")
    end(shared.pid, signal.SIGUSR1)
    assert agent.wait(60) == -signal.SIGKILL
    until(lambda: shared.operator.status()["latched"], "latched")


def test_an_agent_may_ask_for_nothing(shared: GuardWorld) -> None:
    code = (
        "import socket,sys,json\n"
        "for name,op in (('guard.sock','press'),('guard.sock','status'),('guard.sock','hold'),('guard-supervisor.sock','heartbeat')):\n"
        "    s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]+'/'+name)\n"
        "    s.sendall(json.dumps({'op':op,'scope':'all','reason':'','by':'agent'}).encode()+b'\\n')\n"
        "    print(s.recv(4096).decode().strip(), flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    bystander = shared.agent("bystander")
    agent = shared.python("rogue", code, str(shared.run), stdout=subprocess.PIPE)
    assert agent.stdout is not None
    answers = [json.loads(agent.stdout.readline()) for _ in range(4)]
    assert [a["ok"] for a in answers] == [False] * 4 and {a["kind"] for a in answers} == {"Denied"}
    assert bystander.poll() is None and not shared.operator.status()["latched"]
    assert any("refused" in n for n in shared.operator.status()["notices"])


def test_a_peer_in_another_pid_namespace_may_press_but_not_thaw(shared: GuardWorld) -> None:
    shared.agent("one")
    shared.operator.freeze("all")
    code = (
        "import socket,sys,json\n"
        "s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]+'/guard.sock')\n"
        "for op in ('thaw','press'):\n"
        "    s.sendall(json.dumps({'op':op,'scope':'all','reason':'','by':'x'}).encode()+b'\\n')\n"
        "    print(s.recv(4096).decode().strip(), flush=True)\n"
    )
    stranger = shared.popen(
        "/usr/bin/unshare", "--pid", "--fork", sys.executable, "-S", "-c", code, str(shared.run), stdout=subprocess.PIPE
    )
    assert stranger.stdout is not None
    thaw, pressed = (json.loads(stranger.stdout.readline()) for _ in range(2))
    assert not thaw["ok"] and thaw["kind"] == "Denied" and pressed["ok"]


def test_the_operators_socket_has_no_supervisors_operation(shared: GuardWorld) -> None:
    for op in ("ticket", "confirm", "heartbeat", "lease", "soft_stop", "unlatch", "halt", "forget", "quit"):
        with pytest.raises(ConsoleError):
            shared.operator.call(op)


def test_a_process_outside_its_leaf_is_not_confirmed(shared: GuardWorld) -> None:
    ticket = shared.supervisor.ticket("outside", "process", "managed")
    process = shared.popen("/bin/sleep", "600")
    with pytest.raises(Denied):
        shared.supervisor.confirm("outside", ticket["generation"], process.pid, ticks(process.pid))
    with pytest.raises(Denied):
        shared.supervisor.confirm("outside", ticket["generation"], process.pid, ticks(process.pid) + 1)
    with pytest.raises(NotFound):
        shared.supervisor.confirm("ghost", 0, process.pid, ticks(process.pid))


def test_a_stray_that_left_its_leaf_is_hunted_by_its_marks(shared: GuardWorld) -> None:
    env = {**os.environ, "WATCHFLOOR_AGENT_ID": "escapee", "WATCHFLOOR_INSTANCE": shared.instance}
    foreign = {**env, "WATCHFLOOR_INSTANCE": "00000000"}
    shared.supervisor.call("ticket", agent_id="somebody", kind="process", control_level="managed", uid=65534)
    shared.agent("escapee", env=env)
    stray = shared.popen("/bin/sleep", "600", env=env, user=65534)  # it got out of its cgroup somehow
    other = shared.popen("/bin/sleep", "600", env=foreign)
    receipt = press_and_wait(shared.state, shared.run, shared.instance, "all", "stray", "tester", timeout_s=90)
    assert stray.wait(60) == -signal.SIGKILL and other.poll() is None
    (target,) = (t for t in receipt.targets if t.agent_id == "escapee")
    assert not verdict(receipt).may_run and str(stray.pid) in json.dumps(target.evidence["strays"])


def test_not_proven_is_said_with_pid_state_and_place(impatient: GuardWorld) -> None:
    """Who waits for an answer of a file system ignores SIGKILL until there is one: a survivor on demand."""
    with contextlib.closing(StuckFile()) as stuck:
        agent = impatient.agent("stuck", "/bin/cat", str(stuck.path))
        until(stuck.asked.is_set, "it waits")
        receipt = impatient.pressed("all", "stuck")
        assert not receipt.verified_zero and verdict(receipt).exit_code == 9
        assert [(s.agent_id, s.pid, s.state) for s in receipt.survivors] == [("stuck", agent.pid, "D")]
        assert receipt.targets[0].outcome is Outcome.NOT_PROVEN and receipt.survivors[0].wchan not in ("", None)
        stuck.close()
        assert agent.wait(60) == -signal.SIGKILL


def test_forget_refuses_while_alive_and_removes_the_leaf(shared: GuardWorld) -> None:
    agent = shared.agent("one", pids_max=50)
    leaf = Path(f"/sys/fs/cgroup/unified/watchfloor-{shared.instance}/agents")
    assert shared.supervisor.call("procs", agent_id="one")["pids"] == [agent.pid]
    with pytest.raises(Conflict):
        shared.supervisor.forget("one")
    agent.kill()
    agent.wait()
    shared.supervisor.forget("one")
    until(lambda: not list(leaf.glob("one-*")), "the leaf is removed")
    assert processes.is_alive(shared.pid)


def test_an_agent_that_may_leave_its_cgroup_is_best_effort_and_that_is_said_before(world: GuardWorld) -> None:
    """Here: one that is root. In user mode: every one without a PID namespace, because it has the guard's uid."""
    world.agent("captive", env=NOBODY)
    assert not any("best effort" in notice for notice in world.operator.status()["notices"])
    world.agent("free")
    assert any("best effort" in notice for notice in world.operator.status()["notices"])
    receipt = press_and_wait(world.state, world.run, world.instance, "all", "test", "tester", timeout_s=90)
    assert {t.agent_id: t.outcome for t in receipt.targets} == {"captive": Outcome.PROVEN_ZERO, "free": Outcome.BEST_EFFORT}
    assert verdict(receipt).exit_code == 8 and all("may leave" in t.evidence["note"] for t in receipt.targets if t.agent_id == "free")


def test_a_shell_with_a_copied_environment_is_listed_and_not_killed(shared: GuardWorld) -> None:
    shared.agent("one", env=NOBODY)
    env = {**os.environ, "WATCHFLOOR_AGENT_ID": "one", "WATCHFLOOR_INSTANCE": shared.instance}
    shell = shared.popen("/bin/sleep", "600", env=env)
    receipt = press_and_wait(shared.state, shared.run, shared.instance, "all", "shell", "tester", timeout_s=90)
    assert shell.poll() is None and not receipt.verified_zero and verdict(receipt).exit_code == 9
    assert [(s.pid, s.agent_id) for s in receipt.survivors] == [(shell.pid, "one")] and "not signalled" in receipt.survivors[0].why
    assert {s.name: s.status for s in receipt.steps}[StepName.SECOND_LOOK] is StepStatus.UNKNOWN


FEW_DESCRIPTORS = r"""
import functools, json, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from console.domain.verdict import verdict
from console.killswitch.client import kill
from console.killswitch.kill import request, session
from console.killswitch.client.kill import press_without_guard
request.KillSession, session.LAST_LOOK_S = functools.partial(session.KillSession, limit_s=1.5), 0.5  # it would give up after 5 s and 2
ids = [f"a{n:02d}" for n in range(20)]
receipt = press_without_guard(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], ids, "few descriptors", "t")
print(json.dumps({"exit": int(verdict(receipt).exit_code), "proven": [t.agent_id for t in receipt.targets if t.outcome == "proven_zero"]}))
"""


def test_an_agent_that_could_not_be_opened_is_not_called_zero(world: GuardWorld) -> None:
    agents = {f"a{n:02d}": world.agent(f"a{n:02d}") for n in range(20)}
    world.kill_guard()
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(world.state), str(world.run), world.instance]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    out = json.loads(done.stdout)
    alive = {agent_id for agent_id, process in agents.items() if process.poll() is None}
    assert alive, "64 descriptors are enough by now: this test needs fewer"
    assert out["exit"] == 9 and not alive.intersection(out["proven"])
