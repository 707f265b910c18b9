"""Hostile trees that were adopted and killed: what got away before is listed and never called dead, also on a machine that is busy."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ExitCode
from console.domain.headline import headline_of
from console.domain.kill import Outcome, Receipt
from console.domain.verdict import verdict
from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import Handle
from tests.fakes.guard_world import GuardWorld, ticks, until

PYTHON = "/usr/bin/python3"
UID = 61_236
AS_UID = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")
TREE = """
import ctypes, os, sys, time
n = int(sys.argv[1])
def lives(kind):
    ctypes.CDLL(None).prctl(15, b"kworker/7:1", 0, 0, 0)
    os.write(1, b"%d\\n" % os.getpid())
    if kind % 4 == 3: os.execve("/bin/sleep", ["[kthreadd]", "600"], {})
    while True: time.sleep(600)
for kind in range(n):
    if os.fork(): continue
    if kind % 2: os.setsid()
    if kind % 5 == 4: os.chdir("/")
    if kind % 3 and os.fork(): os._exit(0)
    if kind % 7 == 6:
        if os.fork() == 0: lives(kind + 1)
    lives(kind)
try:
    while True: os.wait()
except ChildProcessError: pass
while True: time.sleep(600)
"""
"""Children: a third stays below it; the others lose their parent, in its session or in one of their own, under another name, some in
another folder, as another program with an empty environment, or with a child of their own."""


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(tmp_path_factory.mktemp("w"))) as made:
        yield made.start()


@pytest.fixture
def world(lasting: GuardWorld) -> Iterator[GuardWorld]:
    yield lasting
    lasting.clear()


SLOW = """import sys, time
from console.killswitch.kernel import descendants
walk = descendants.read_table
descendants.read_table = lambda: (time.sleep(0.4), walk())[1]
from console.killswitch.__main__ import main
sys.exit(main())"""
"""A guard whose every walk over /proc takes 0.4 s longer, as on a machine with thousands of busy processes."""

REAPER = """
import ctypes, os, subprocess, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
print(os.getpid(), flush=True)
subprocess.Popen([sys.executable, "-S", "-c", sys.argv[1]])
while True:
    try: os.wait()
    except ChildProcessError: time.sleep(0.05)
"""
"""Takes in orphans and is a child of process 1, as a user's service manager is (prctl(2), PR_SET_CHILD_SUBREAPER)."""
LEAVES = """
import os, time
if os.fork() == 0:
    if os.fork(): os._exit(0)
    os.setsid(); os.chdir("/")
print(os.getpid(), flush=True)
time.sleep(600)
"""


class Tree:
    """A tree that was started as anybody might, and every process that it ever was."""

    def __init__(self, folder: Path, n: int) -> None:
        self._list = folder / f"pids-{n}"
        with self._list.open("ab") as out:
            self.process = subprocess.Popen([*AS_UID, PYTHON, "-S", "-c", TREE, str(n)], stdin=subprocess.DEVNULL, stdout=out, cwd="/tmp")
        wanted = n + sum(kind % 7 == 6 for kind in range(n))
        until(lambda: len(self.pids()) == wanted, f"{wanted} processes live")
        self.pid, self.known = self.process.pid, {pid: ticks(pid) for pid in self.pids()}

    def pids(self) -> list[int]:
        return [int(line) for line in self._list.read_text().split()]

    def alive(self) -> set[int]:
        return {pid for pid, start in self.known.items() if processes.is_the_same(pid, start)}

    def end(self) -> None:
        for pid in self.alive():
            with contextlib.suppress(OSError):
                handle = Handle(pid, self.known[pid])
                handle.send(signal.SIGKILL)
                handle.close()
        self.process.kill()
        self.process.wait()
        until(lambda: not self.alive(), "nothing of it is left")


def adopt(world: GuardWorld, tree: Tree, agent: str) -> dict[str, Any]:
    shown = world.supervisor.call("adoptable", timeout_s=120, pid=tree.pid, start_ticks=ticks(tree.pid), spare=[os.getpid()], around=agent)
    assert shown["orphans_n"] and shown["descendants_n"], "what would be left outside is shown before it is confirmed"
    asked = {"pid": tree.pid, "start_ticks": shown["start_ticks"], "exe": shown["exe"], "uid": shown["uid"]}
    return world.supervisor.call("adopt", timeout_s=120, agent_id=agent, spare=[os.getpid()], by="test", **asked)


def check(receipt: Receipt, tree: Tree) -> None:
    """Whatever lives on is listed, and nothing calls the agent dead."""
    left, listed = tree.alive(), {one.pid for one in receipt.suspects} | {one.pid for one in receipt.survivors}
    assert left and left <= listed, f"{len(left - listed)} of {len(left)} that live on are not listed"
    assert not receipt.verified_zero and verdict(receipt).exit_code is ExitCode.BEST_EFFORT
    assert [target.outcome for target in receipt.targets] == [Outcome.BEST_EFFORT]
    assert "outside may be an agent's work" in headline_of(receipt)


@pytest.mark.parametrize("n", [20, 100])
def test_what_a_hostile_tree_left_outside_is_listed_and_never_called_dead(world: GuardWorld, tmp_path: Path, n: int) -> None:
    tree = Tree(tmp_path, n)
    try:
        done = adopt(world, tree, f"hostile-{n}")
        assert done["moved"] >= n // 3 and "left outside its cgroup" in done["best_effort"]
        receipt = world.pressed([f"hostile-{n}"])
        check(receipt, tree)
        assert tree.process.wait(60) == -signal.SIGKILL
        answer = world.operator.end_suspects(receipt.kill_id, sorted(tree.alive())[:100], "tester")
        assert answer["n"] == answer["n_done"] and not tree.alive()
    finally:
        tree.end()


def test_an_orphan_that_a_service_manager_took_in_is_listed_once_the_agent_is_dead(world: GuardWorld) -> None:
    with subprocess.Popen([*AS_UID, PYTHON, "-S", "-c", REAPER, LEAVES], stdout=subprocess.PIPE, cwd="/tmp", text=True) as started:
        assert started.stdout is not None
        reaper, one, other = (int(started.stdout.readline()) for _ in range(3))
    pids = {pid: ticks(pid) for pid in (reaper, one, other)}
    agent, orphan = (one, other) if os.getsid(other) == other else (other, one)
    try:
        until(lambda: processes.parent(orphan) == reaper, "the service manager took it in")
        shown = world.supervisor.call(
            "adoptable", timeout_s=120, pid=agent, start_ticks=ticks(agent), spare=[os.getpid()], around="managed"
        )
        assert [orphan, ticks(orphan)] in shown["orphans"]
        asked = {"pid": agent, "start_ticks": shown["start_ticks"], "exe": shown["exe"], "uid": shown["uid"]}
        world.supervisor.call("adopt", timeout_s=120, agent_id="managed", spare=[os.getpid()], by="test", **asked)
        receipt = world.pressed(["managed"])
        (suspect,) = receipt.suspects
        assert suspect.pid == orphan and processes.is_alive(orphan) and f"a child of process {reaper}" in suspect.why
        assert verdict(receipt).exit_code is ExitCode.BEST_EFFORT
    finally:
        for pid, start in pids.items():
            with contextlib.suppress(OSError):
                handle = Handle(pid, start)
                handle.send(signal.SIGKILL)
                handle.close()


def test_a_walk_that_takes_seconds_ends_in_a_whole_adoption_all_the_same(state_dir: Path, tmp_path: Path) -> None:
    tree = Tree(tmp_path, 20)
    try:
        with contextlib.closing(GuardWorld(state_dir)) as world:
            world.start_by(SLOW)
            done = adopt(world, tree, "slow")
            assert done["whole"] and not done["left"] and done["frozen"] == "" and "left outside its cgroup" in done["best_effort"]
            check(world.pressed(["slow"]), tree)
    finally:
        tree.end()
