"""What a guard that ends at once leaves behind: nothing that was answered is undone by its successor."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch import processes
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
    world.operator.thaw(["one"])
    until(lambda: not is_frozen(world, "one"), "thawed")
