"""Sentences about a supervisor and a guard that are both killed at once: what goes on, what does not, and who can still stop it."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.client.kill import press_without_guard
from console.killswitch.kernel.cgroups import find_mounts
from console.killswitch.kernel.processes import cgroup_line, is_the_same, start_ticks
from tests.fakes.instance import Instance, until

RULES = {"permissions": {"allow": ["shell(sleep:*)"], "ask": [], "deny": []}}
CALLER = """print('up', flush=True)
try: agent.execute('shell', 'sleep 3600')
except client.Refused: print('REFUSED', flush=True)
time.sleep(600)"""


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    (state_dir / "policy.json").write_text(json.dumps(RULES))
    with Instance(state_dir, envoy=True) as instance:
        yield instance


def leaf_of(pid: int) -> Path:
    mount, line = find_mounts().v2, cgroup_line(pid)
    folder = mount.locate(line) if mount is not None and line is not None else None
    assert folder is not None
    return folder


def both_die(it: Instance) -> None:
    guard = it.living_guard()
    descriptor = os.pidfd_open(guard)
    assert it.process is not None
    it.process.send_signal(signal.SIGSTOP)  # it starts no other guard in between
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    it.stop(signal.SIGKILL)
    os.close(descriptor)


def test_a_sandbox_outlives_both_its_call_does_not_and_whoever_comes_next_holds_it_and_proves_its_end(it: Instance) -> None:
    agent = it.python(CALLER, sandbox="bubblewrap")
    it.says(agent, "up")
    pid = it.agent_pid(agent)
    ticks, leaf = start_ticks(pid), leaf_of(pid)
    assert ticks is not None
    [call] = until(lambda: [one for one in leaf.glob("call-*") if (one / "cgroup.procs").read_text()], words="its call runs")
    both_die(it)
    it.says(agent, "REFUSED")  # its call ended with the supervisor: it hears so
    until(lambda: not call.exists() or "populated 0" in (call / "cgroup.events").read_text())
    assert is_the_same(pid, ticks), "the agent itself goes on: nothing is lost by a crash of ours"
    it.start()
    assert (it.agent(agent).state, it.agent(agent).pid) == ("running", pid), "it is followed, and held, as before"
    both_die(it)
    receipt = press_without_guard(it.places.state_dir, it.places.run_dir, it.places.instance_id, "all", "nobody is there", "test")
    [outcome] = [t.outcome.value for t in receipt.targets if t.agent_id == agent]
    assert receipt.verified_zero and outcome == "proven_zero" and not is_the_same(pid, ticks)
    it.start()
    assert it.api.fleet().killed
    until(lambda: it.agent(agent).state == "killed")


BEATS = """import socket
def reaches(port):
    with socket.socket() as s: s.settimeout(60); return s.connect_ex(('127.0.0.1', port))
def asks():
    try: agent.permission('shell', 'sleep 1'); return 'answered'
    except client.Refused: return 'refused'
held = socket.create_connection(('127.0.0.1', PORT))
held.setblocking(False)
def stays():
    try: return 'open' if held.recv(1) else 'closed'
    except BlockingIOError: return 'open'
    except OSError: return 'closed'
while True:
    print('beat', reaches(PORT), stays(), asks(), flush=True)
    time.sleep(0.2)
"""


@pytest.mark.envoy
def test_with_both_dead_a_proxied_agent_has_no_network_a_full_one_keeps_its_own_and_only_the_kernel_bounds_them(it: Instance) -> None:
    with socket.create_server(("127.0.0.1", 0)) as host:
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        full = it.python(f"PORT = {host.getsockname()[1]}\n{BEATS}")
        proxied = it.python(f"PORT = 3128\n{BEATS}", network_mode="PROXIED")
        for agent in (full, proxied):
            it.says(agent, "beat 0 open answered")
        pid = it.agent_pid(full)
        both_die(it)
        it.says(proxied, "beat 111 closed refused")
        it.says(full, "beat 0 open refused")
        assert most_processes(pid) == 512, "by the kernel, as before"
        it.start()
        assert [it.agent(agent).state for agent in (full, proxied)] == ["running", "running"]


def most_processes(pid: int) -> int:
    mounts, line = find_mounts(), cgroup_line(pid, "pids")
    folder = mounts.v1["pids"].locate(line) if "pids" in mounts.v1 and line is not None else leaf_of(pid)
    assert folder is not None
    return int((folder / "pids.max").read_text())
