"""What a living guard has loaded once it has killed, frozen and rearmed, and that no helper of its holds up a kill."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from console.domain.errors import Unavailable
from console.killswitch.kernel import processes
from tests.fakes.guard_world import NOBODY, SLEEP, GuardWorld, end, until

ROOT = Path(__file__).parents[2]
MODULES, LINES = 58, 12_385
"""A little above what it loads today (58 and 12,331); the goal is 25 and 6,000. These only become smaller."""
TELLS = """import json, signal, sys
from console.killswitch.__main__ import main
def tell(*_):
    with open(PLACE, "w") as file:
        json.dump({name: getattr(one, "__file__", None) for name, one in sys.modules.items() if name.split(".")[0] == "console"}, file)
signal.signal(signal.SIGUSR2, tell)
sys.exit(main())"""
DEAF = """import sys
from console.killswitch.guard import helper
helper.command = lambda name: [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
from console.killswitch.__main__ import main
sys.exit(main())"""
"""A guard whose helpers never answer."""


@pytest.fixture
def world(state_dir: Path) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(state_dir)) as made:
        yield made


def test_after_a_kill_a_freeze_and_a_rearm_it_has_loaded_no_more_than_it_needs(world: GuardWorld, tmp_path: Path) -> None:
    place = tmp_path / "loaded.json"
    world.start_by(TELLS.replace("PLACE", repr(str(place))))
    world.agent("one", *SLEEP, env=NOBODY)
    world.operator.call("freeze", scope=["one"], by="test")
    assert world.pressed().verified_zero
    world.unlatch()
    end(world.pid, signal.SIGUSR2)

    def loaded() -> dict[str, str | None]:
        with contextlib.suppress(OSError, ValueError):
            return dict(json.loads(place.read_text()))
        return {}

    until(lambda: len(loaded()) > 10, "it told what it has loaded")
    files = [Path(file) for name, file in loaded().items() if file and name != "__main__"]
    assert not [name for name in loaded() if name.startswith("console.killswitch.helpers")]
    assert all(file.is_relative_to(ROOT / "console") for file in files)
    lines = sum(len(file.read_text().splitlines()) for file in files)
    assert len(files) <= MODULES and lines <= LINES, f"{len(files)} modules, {lines} lines: {sorted(loaded())}"


def test_a_helper_that_hangs_holds_up_no_kill_and_ends_with_the_guard(world: GuardWorld) -> None:
    world.start_by(DEAF)
    agent = world.agent("one", *SLEEP, env=NOBODY)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(world.supervisor.call, "doubts", timeout_s=120)
        until(lambda: processes.children(world.pid), "its helper runs")
        [helper] = processes.children(world.pid)
        assert world.pressed(["one"]).verified_zero and agent.wait(60) == -9
        assert not asked.done() and processes.is_alive(helper)
        with pytest.raises(Unavailable, match="no answer"):
            asked.result(120)
    assert not processes.is_alive(helper)
