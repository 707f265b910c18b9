"""An ordinary user's guard where no cgroup is writable: PID namespaces are killed through their init, and it says how."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

USER = 64322
PYTHON = "/usr/bin/python3"

AS_USER = r"""
import json, os, signal, subprocess, sys, time
from pathlib import Path
from console.killswitch.kernel import processes
from console.killswitch.client.guard_client import GuardClient
from console.domain.verdict import verdict
from console.killswitch.client.kill import press_and_wait, press_without_guard
from console.killswitch.client.start import start_guard
from tests.fakes.supervisor_client import SupervisorClient

state, instance, mode = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
run = state / "run"
pid = start_guard(state, run, instance)
sup, out = SupervisorClient(run / "guard-supervisor.sock", timeout_s=60), {}
TREE = (
    "import os,time\nfor i in range(20):\n    if os.fork()==0:\n        os.setsid()\n"
    "        if os.fork(): os._exit(0)\n        time.sleep(600)\ntime.sleep(600)"
)
def until(f):
    end = time.monotonic() + 60
    while not f():
        assert time.monotonic() < end
        time.sleep(0.02)
def boxed(name):
    ticket = sup.ticket(name, "process", "managed")
    outer = subprocess.Popen(["/usr/bin/unshare", "-Urp", "--fork", "--kill-child", "--mount-proc", sys.executable, "-S", "-c", TREE])
    kids = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    until(lambda: kids.read_text().split())
    init = int(kids.read_text().split()[0])
    answer = sup.confirm(name, ticket["generation"], init, processes.start_ticks(init))
    until(lambda: sup.call("procs", agent_id=name)["count"] >= 21)
    return outer, init, answer["pid_namespace"], ticket
outer, init, ns, ticket = boxed("boxed")
out["leaf"], out["why"], out["ns"] = ticket["leaf"], sup.status()["caps"]["why"], bool(ns)
op = GuardClient(run / "guard.sock", timeout_s=60)
op.freeze(["boxed"])
until(lambda: all(processes.state(p) == "T" for p in processes.members(ns)))
out["frozen"] = True
op.thaw(["boxed"])
until(lambda: all(processes.state(p) != "T" for p in processes.members(ns)))
bare_ticket = sup.ticket("bare", "process", "managed")
bare = subprocess.Popen(["/bin/sleep", "600"])
sup.confirm("bare", bare_ticket["generation"], bare.pid, processes.start_ticks(bare.pid))
decoy = subprocess.Popen(["/bin/sleep", "600"])
if mode == "without guard":
    fd = os.pidfd_open(pid); signal.pidfd_send_signal(fd, 9)
    receipt = press_without_guard(state, run, instance, "all", "user", "t")
else:
    receipt = press_and_wait(state, run, instance, "all", "user", "t", timeout_s=90)
out["zero"] = not verdict(receipt).may_run
out["targets"] = {t.agent_id: [t.outcome, t.evidence["method"]] for t in receipt.targets}
out["left"] = processes.members(ns)
out["bare"] = bare.wait(60)
out["decoy"] = decoy.poll()
outer.wait(60)
decoy.kill(); decoy.wait()
if mode != "without guard":
    fd = os.pidfd_open(pid); signal.pidfd_send_signal(fd, 9)
sup.close(); op.close()
print("RESULT " + json.dumps(out))
"""


@pytest.mark.parametrize("mode", ["guard", "without guard"])
def test_pid_namespaces_are_killed_and_proven_without_cgroups(state_dir: Path, mode: str) -> None:
    home = state_dir / "mine"
    home.mkdir()
    os.chown(home, USER, USER)
    instance = os.urandom(4).hex()
    command = ["/usr/bin/setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", PYTHON, "-c", AS_USER, str(home), instance, mode]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, timeout=200, check=False, env=env)
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("RESULT ")]
    assert lines, done.stderr.decode()[-3000:]
    out = json.loads(lines[0][7:])
    assert out["leaf"] == "" and out["why"] and out["ns"] and out["frozen"]
    assert out["zero"] and out["left"] == [] and out["bare"] in (-9, -15) and out["decoy"] is None
    assert out["targets"]["boxed"][0] == "proven_zero" and "PID namespace" in out["targets"]["boxed"][1]
    assert out["targets"]["bare"][0] == "best_effort"
