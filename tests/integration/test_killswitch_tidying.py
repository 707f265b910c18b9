"""A guard that ends in order leaves no cgroup of its own, latched or not; one with somebody alive leaves all of them."""

from __future__ import annotations

import signal
from pathlib import Path

from console.domain.verdict import verdict
from console.killswitch.kernel import processes
from tests.fakes.guard_world import GuardWorld, end, until
from tests.leaks import cgroup_places


def trees(world: GuardWorld) -> list[Path]:
    """Of its instance, in every hierarchy."""
    return [place / f"watchfloor-{world.instance}" for place in cgroup_places() if (place / f"watchfloor-{world.instance}").exists()]


def ends(world: GuardWorld) -> None:
    end(world.pid, signal.SIGTERM)
    until(lambda: not processes.is_alive(world.pid), "the guard ended")


def test_a_killed_guard_leaves_nothing_at_its_end_and_the_next_one_knows_what_was_proven(state_dir: Path) -> None:
    world = GuardWorld(state_dir).start()
    try:
        process = world.agent("one", pids_max=50)
        assert len(trees(world)) > 1, "its bounds are in other hierarchies"
        ends(world)
        assert process.poll() is None and len(trees(world)) > 1, "somebody lives: all of it stays"
        world.start()
        assert world.oracle("one")
        assert not verdict(world.pressed()).may_run
        process.wait(60)
        ends(world)
        assert trees(world) == []
        world.start()
        receipt = world.pressed()
        # It runs as root here and might have left its cgroup: best effort, then as now.
        assert not verdict(receipt).may_run and [t.outcome.value for t in receipt.targets] == ["best_effort"]
        ends(world)
        assert trees(world) == []
    finally:
        world.close()
