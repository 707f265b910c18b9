"""What a guard that ends at once leaves behind: nothing that was answered is undone by its successor."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.kernel import processes
from tests.fakes.guard_world import GuardWorld, end, until


@pytest.fixture
def world(state_dir: Path) -> Iterator[GuardWorld]:
    made = GuardWorld(state_dir)
    try:
        yield made.start()
    finally:
        made.close()


def is_frozen(world: GuardWorld, agent_id: str) -> bool:
    folder = next(Path(f"/sys/fs/cgroup/unified/watchfloor-{world.instance}/agents").glob(f"{agent_id}-*"))
    return "frozen 1" in (folder / "cgroup.events").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_freeze_just_answered_outlives_its_guard(world: GuardWorld, number: signal.Signals) -> None:
    world.agent("one")
    world.operator.freeze(["one"])
    end(world.pid, number)
    until(lambda: not processes.is_alive(world.pid), "it ended")
    world.start()
    assert world.operator.status()["frozen"] == {"one": ["operator"]} and is_frozen(world, "one")
    world.supervisor.thaw(["one"])  # whose freeze it was is not known for certain any more: the supervisor thaws any
    until(lambda: not is_frozen(world, "one"), "thawed")


HUNG_DISK = r"""
import json, sys, threading
from pathlib import Path
from console.domain.verdict import verdict
from console.killswitch.client import kill
from console.killswitch.store import atomic_file
from console.killswitch.kill import request
atomic_file.write_whole.__globals__["_replace"] = lambda *_: threading.Event().wait()
kill.RECORD_S = request.RECORD_S = 0.5
receipt = kill.press_without_guard(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], "all", "hung disk", "t")
print(json.dumps({"zero": not verdict(receipt).may_run, "latch": next(s.status for s in receipt.steps if s.name == "latch")}))
"""


def test_a_disk_that_hangs_delays_no_proof_without_a_guard(world: GuardWorld) -> None:
    agent = world.agent("one")
    world.kill_guard()
    command = [sys.executable, "-c", HUNG_DISK, str(world.state), str(world.run), world.instance]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, cwd=Path(__file__).parents[2])
    assert agent.wait(60) == -signal.SIGKILL
    assert json.loads(done.stdout) == {"zero": True, "latch": "unknown"}, done.stderr.decode()[-2000:]
    world.start()
    assert world.operator.status()["latched"]  # by its marker
