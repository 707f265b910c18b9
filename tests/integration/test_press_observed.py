"""A press of everything that includes who was only seen, on a real guard: by pid, start time, program and account; best effort."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from console.domain.kill import Outcome
from console.domain.verdict import verdict
from console.killswitch.client.kill import press_and_wait
from console.killswitch.kernel import processes
from console.services.stop.observed_targets import tell
from tests.fakes.guard_world import GuardWorld, decoys, ticks, until

TREE = (
    "import os, time\nfor n in range(2):\n  if os.fork() == 0:\n    os.setsid() if n else None\n    time.sleep(600); os._exit(0)\n"
    "print('grown', flush=True)\nwhile True: time.sleep(1)"
)


@pytest.fixture
def world(state_dir: Any) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(state_dir)) as made:
        yield made.start()


def shown(process: subprocess.Popen[bytes], agent: str, **changed: object) -> dict[str, Any]:
    exe = processes.describe(process.pid)["exe"]
    return {"id": agent, "pid": process.pid, "start_ticks": ticks(process.pid), "exe": exe, "uid": 0} | changed


def test_who_was_seen_is_signalled_with_what_descends_from_it_and_who_is_not_what_was_seen_is_not(world: GuardWorld) -> None:
    meant = subprocess.Popen([sys.executable, "-S", "-c", TREE], stdout=subprocess.PIPE)
    other, unsaid = (subprocess.Popen(["/bin/sleep", "600"]) for _ in range(2))
    try:
        assert meant.stdout is not None
        assert meant.stdout.readline() == b"grown\n"
        below = [pid for pid, row in _table().items() if row == meant.pid]
        until(lambda: processes.describe(other.pid)["exe"] != processes.describe(meant.pid)["exe"], "it runs its own program")
        tell(
            world.supervisor,
            [shown(meant, "o-1"), shown(other, "o-2", exe="/usr/bin/claude"), *(shown(other, f"o-{n}", uid=5) for n in range(3, 9))],
        )
        with decoys():
            receipt = world.pressed()
        assert [(t.agent_id, t.control_level, t.outcome) for t in receipt.targets] == [("o-1", "observed", Outcome.BEST_EFFORT)]
        assert verdict(receipt).exit_code == 8 and sum("left alone" in words for words in receipt.excluded) == 7
        assert meant.wait(60) < 0 and len(below) == 2 and not any(processes.is_alive(pid) for pid in below)
        assert other.poll() is None and unsaid.poll() is None
        world.unlatch()
        tell(world.supervisor, [])
        assert world.pressed().targets == () and other.poll() is None
    finally:
        for process in (meant, other, unsaid):
            process.kill()
            process.wait()
        assert meant.stdout is not None
        meant.stdout.close()


@pytest.mark.parametrize("supervisor_said", [True, False])
def test_with_a_dead_guard_observed_agents_are_killed_and_named_as_the_guard_does_it(world: GuardWorld, supervisor_said: bool) -> None:
    meant, changed = (subprocess.Popen(["/bin/sleep", "600"]) for _ in range(2))
    try:
        until(lambda: all(b"sleep" in str(processes.describe(p.pid)["exe"]).encode() for p in (meant, changed)), "they run their program")
        if supervisor_said:
            tell(world.supervisor, [shown(meant, "o-1"), shown(changed, "o-2", start_ticks=1)])
        world.kill_guard()
        receipt = press_and_wait(world.state, world.run, world.instance, "all", "guard is dead", "tester", timeout_s=60)
        outcomes = [(t.agent_id, t.control_level, t.outcome) for t in receipt.targets]
        assert outcomes == ([("o-1", "observed", Outcome.BEST_EFFORT)] if supervisor_said else [])
        assert (meant.poll() is not None or meant.wait(60) is not None) if supervisor_said else meant.poll() is None
        assert changed.poll() is None and verdict(receipt).exit_code == (8 if supervisor_said else 0)
        assert any("o-2" in words and "left alone" in words for words in receipt.excluded) == supervisor_said
    finally:
        for process in (meant, changed):
            process.kill()
            process.wait()


@pytest.mark.parametrize("has_guard", [True, False])
def test_a_kill_that_names_an_observed_agent_kills_it_as_a_best_effort_and_a_panic_leaves_it_alone(
    world: GuardWorld, has_guard: bool
) -> None:
    meant, spared = subprocess.Popen([sys.executable, "-S", "-c", TREE], stdout=subprocess.PIPE), subprocess.Popen(["/bin/sleep", "600"])
    try:
        assert meant.stdout is not None and meant.stdout.readline() == b"grown\n"
        below = [pid for pid, row in _table().items() if row == meant.pid]
        until(lambda: b"sleep" in str(processes.describe(spared.pid)["exe"]).encode(), "it runs its program")
        tell(world.supervisor, [shown(meant, "o-1"), shown(spared, "o-2")], in_panic=False)
        if not has_guard:
            world.kill_guard()
        receipt = press_and_wait(world.state, world.run, world.instance, ["o-1"], "it burns", "tester", timeout_s=60)
        assert [(t.agent_id, t.control_level, t.outcome) for t in receipt.targets] == [("o-1", "observed", Outcome.BEST_EFFORT)]
        assert not receipt.verified_zero and verdict(receipt).exit_code == 8, receipt
        assert meant.wait(60) < 0 and len(below) == 2 and not any(processes.is_alive(pid) for pid in below)
        panic = press_and_wait(world.state, world.run, world.instance, "all", "everything", "tester", timeout_s=60)
        assert panic.targets == () and spared.poll() is None
    finally:
        for process in (meant, spared):
            process.kill()
            process.wait()
        assert meant.stdout is not None
        meant.stdout.close()


def _table() -> dict[int, int]:
    return {pid: processes.parent(pid) for pid in processes.every_pid()}
