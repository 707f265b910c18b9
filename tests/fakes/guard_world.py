"""A real guard of its own instance, real processes to kill, and an oracle that does not look where the guard looks."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from console.domain.kill import Receipt, receipt_from_json
from console.killswitch.client.start import start_guard
from console.killswitch.client.without_guard import find_tree
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import find_mounts, remove
from tests.fakes.supervisor_client import SupervisorClient
from tests.leaks import cgroup_places

WAIT_S = 90.0
SLEEP = ("/bin/sleep", "600")

HOSTILE_TREE = r"""
import os, signal, sys, time, ctypes
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)
N = int(sys.argv[1])
SLEEPER = "import signal,time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
def sleeper(name="agent", env=None):
    os.execve(sys.executable, [name, "-S", "-c", SLEEPER], os.environ if env is None else env)
for i in range(N):
    kind = i % 4
    if os.fork() == 0:
        if kind == 1: os.setsid()
        if kind >= 2:                      # double fork: an orphan of PID 1, in a session of its own
            if os.fork(): os._exit(0)
            os.setsid()
        sleeper("[kworker/u9:3]", {}) if kind == 3 else sleeper()
for _ in range(2):                         # rabbits: fork, the parent ends, a new session each time
    if os.fork() == 0:
        while True:
            if os.fork(): os._exit(0)
            os.setsid(); time.sleep(0.003)
while True:
    try: os.wait()
    except ChildProcessError: time.sleep(1)
"""
ENTER = """while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 1; shift; done
shift
[ -z "$ENTER_AS" ] || set -- setpriv "--reuid=$ENTER_AS" "--regid=$ENTER_AS" --clear-groups "$@"
unset ENTER_AS
exec "$@\""""
ENTERING = re.compile("cgroup[.]procs|^setpriv")
NOBODY = {"ENTER_AS": "65534"}
"""Environment, beside our own, of an agent that cannot leave its leaf: it is not root."""
IMPATIENT = """import functools, sys
from console.killswitch import guard
from console.killswitch.kill import request, second_look, session
session.LAST_LOOK_S = second_look.BACK_S = 0.5
request.KillSession = functools.partial(session.KillSession, limit_s=2.0)
from console.killswitch.__main__ import main
sys.exit(main())"""
FORK_BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"


class GuardWorld:
    """One instance. ``close`` ends what it started and removes its cgroups."""

    def __init__(self, state_dir: Path, **options: Any) -> None:
        self.state = state_dir
        self.run = state_dir / "run"
        self.instance = secrets.token_hex(4)
        self.options = {"heartbeat_s": 600.0} | options  # nobody beats here: a slow test is no silent supervisor
        self.pid = 0
        self.supervisor = SupervisorClient(self.run / "guard-supervisor.sock", timeout_s=WAIT_S)
        self.operator = SupervisorClient(self.run / "guard.sock", timeout_s=WAIT_S)
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, **options: Any) -> GuardWorld:
        self.supervisor.close()
        self.operator.close()
        self.pid = start_guard(self.state, self.run, self.instance, **{**self.options, **options})
        return self

    def start_impatient(self) -> GuardWorld:
        """A guard that says "not proven" after 2 s instead of 5, for tests that wait for just that."""
        return self.start_by(IMPATIENT)

    def start_by(self, code: str) -> GuardWorld:
        """A guard that a program of the test's starts."""
        command = [sys.executable, "-P", "-c", code, "--detach", f"--instance={self.instance}"]
        command += [f"--state-dir={self.state}", f"--run-dir={self.run}"]
        for option in ("engine_socket", "heartbeat_s"):
            command += [f"--{option.replace('_', '-')}={self.options[option]}"] if option in self.options else []
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S, check=True, env=env)
        self.pid = int(done.stdout.split()[1])
        return self

    def clear(self) -> None:
        """The same guard as if it were new: no agent, no latch, nothing frozen."""
        self._end_started()
        until(lambda: (self.operator.status()["kill"] or {"done": True})["done"], "its kills are done")
        status = self.operator.status()
        if status["latched"]:
            self.unlatch()
        for hold in status["holds"]:
            self.operator.call("let_go", hold_id=hold["hold_id"])
        for entry in json.loads((self.state / "guard" / "registry.json").read_text())["body"]["agents"]:
            self.supervisor.forget(entry["agent_id"])
        until(lambda: self.operator.status()["agents"] == 0, "nobody is left")

    def agent(self, agent_id: str, *argv: str, pids_max: int | None = None, confirm: bool = True, **popen: Any) -> subprocess.Popen[bytes]:
        """A process launched as a supervisor launches it: ticket, enter the leaf, confirm."""
        ticket = self.supervisor.ticket(agent_id, "process", "managed", pids_max=pids_max)
        process = self.spawn_in(ticket, *(argv or SLEEP), **popen)
        if confirm:
            self.supervisor.confirm(agent_id, ticket["generation"], process.pid, ticks(process.pid))
        return process

    def spawn_in(self, ticket: dict[str, Any], *argv: str, **popen: Any) -> subprocess.Popen[bytes]:
        folders = [ticket["leaf"], *ticket["limit_leaves"]]
        return self.popen("/bin/sh", "-c", ENTER, "sh", *(f for f in folders if f), "--", *argv, **popen)

    def popen(self, *argv: str, **popen: Any) -> subprocess.Popen[bytes]:
        if "env" in popen:
            popen["env"] = {**os.environ, **popen["env"]}  # as it is now: what was imported may have been forked
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **popen)
        self._started.append(process)
        if ENTER in argv:
            until(lambda: not ENTERING.search(processes.command_line(process.pid) or "setpriv"), "it entered its leaf")
        return process

    def python(self, agent_id: str, code: str, *args: str, **more: Any) -> subprocess.Popen[bytes]:
        return self.agent(agent_id, sys.executable, "-S", "-c", code, *args, **more)

    def oracle(self, agent_id: str) -> list[int]:
        """Members of the agent's group in the *pids* hierarchy of cgroup v1, which the guard never reads."""
        found: list[int] = []
        for folder in Path(f"/sys/fs/cgroup/pids/watchfloor-{self.instance}").glob(f"{agent_id}-*"):
            with contextlib.suppress(OSError):
                found += [int(p) for p in (folder / "cgroup.procs").read_text().split()]
        return [pid for pid in found if processes.is_alive(pid)]

    def pressed(self, scope: str | list[str] = "all", reason: str = "test", by: str = "tester") -> Receipt:
        """By the guard and nobody else, however long it takes to answer (``press_and_wait`` does its work after 0.3 s)."""
        return receipt_from_json(self.receipt(self.operator.press(scope, reason, by, timeout_s=WAIT_S)))

    def receipt(self, kill_id: str) -> dict[str, Any]:
        until(lambda: self.operator.progress(kill_id)["done"], "the kill is done")
        return dict(json.loads((self.state / "guard" / "receipts" / f"{kill_id}.json").read_text()))

    def unlatch(self, by: str = "test") -> None:
        """As a person does who typed the id of the kill."""
        seen = self.supervisor.call("challenge")
        proof = self.supervisor.prove("typed", seen["generation"], by, kill_id=seen["to_type"])
        self.supervisor.unlatch(seen["generation"], self.operator.status()["kills"], by, proof=proof)

    def kill_guard(self) -> None:
        """SIGKILL, as a crash would be."""
        end(self.pid)
        self.supervisor.close()
        self.operator.close()

    def _end_started(self) -> None:
        """Whatever was started, and what that started in its leaf, is dead and reaped."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        with contextlib.suppress(OSError):
            tree = find_tree(self.instance, find_mounts())
            if tree is not None:
                until(lambda: tree.agents.kill() and not tree.agents.is_populated(), "the agents are gone")
                tree.close()
        for process in self._started:
            process.wait(WAIT_S)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        self._started.clear()

    def close(self) -> None:
        self._end_started()
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                end(self.pid)
        self.supervisor.close()
        self.operator.close()
        name = f"watchfloor-{self.instance}"
        for place in cgroup_places():
            if (place / name).exists():
                until(lambda p=place: remove(p / name), f"{name} is removed")  # type: ignore[misc]


def ticks(pid: int) -> int:
    found = processes.start_ticks(pid)
    assert found is not None
    return found


def end(pid: int, number: int = signal.SIGKILL) -> None:
    """Through a pidfd, and waits until it is gone. ProcessLookupError when it was already."""
    fd = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(fd, number)
        if number == signal.SIGKILL:
            until(lambda: not processes.is_alive(pid), f"process {pid} ended")
    finally:
        os.close(fd)


def until(is_so: Callable[[], object], what: str, seconds: float = WAIT_S) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.01)


@contextlib.contextmanager
def decoys(count: int = 5) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that no kill may touch."""
    made = [subprocess.Popen(SLEEP, start_new_session=bool(i % 2)) for i in range(count)]
    try:
        yield made
        assert all(p.poll() is None for p in made), "a bystander was killed"
    finally:
        for process in made:
            process.kill()
            process.wait()
