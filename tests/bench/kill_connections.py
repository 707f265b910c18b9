"""What the dump of connections costs a kill: the first SIGKILL with it and without, in one run, interleaved.

``python tests/bench/kill_connections.py [--rounds N] [--agents N] [--sockets N]``

"first sent" is the guard's own measure (tests/bench/kill.py). ``--sockets``: so many connections of a bystander to itself, which the
kernel has to list as well. "recorded" counts the kills whose dump was whole within its 10 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import socket
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from console.domain.kill import Receipt, StepName  # noqa: E402 - needs the line above to find the project
from console.killswitch.kernel.processes import raise_descriptors  # noqa: E402
from tests.fakes.guard_world import NOBODY, GuardWorld  # noqa: E402

WITHOUT = """import sys
from console.killswitch.kill.outside import Outside
Outside.begin = lambda self: None
Outside.seek = lambda self, targets, spared: None
from console.killswitch.kill.connections import Connections
Connections.start = lambda self: None
from console.killswitch.__main__ import main
sys.exit(main())"""


@contextlib.contextmanager
def worlds(folder: Path) -> Iterator[dict[str, GuardWorld]]:
    """One guard with connections, one without."""
    with contextlib.ExitStack() as stack:
        made = {}
        for name in ("with", "without"):
            place = folder / name
            place.mkdir()
            world = made[name] = stack.enter_context(contextlib.closing(GuardWorld(place)))
            if name == "with":
                world.start()
            else:
                world.start_by(WITHOUT)
        yield made


@contextlib.contextmanager
def bystander(sockets: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(sockets // 2):
            for end in socket.socketpair():
                stack.enter_context(end)
        yield


def first_ms(receipt: Receipt) -> float:
    detail = next(step.detail for step in receipt.steps if step.name is StepName.SIGNAL)
    found = re.search(r"the first ([0-9.]+) ms", detail)
    if found is None:
        raise RuntimeError(f"no time in {detail!r}")
    return float(found[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--sockets", type=int, default=0)
    given = parser.parse_args()
    raise_descriptors()
    times: dict[str, list[float]] = {"with": [], "without": []}
    recorded = 0
    with tempfile.TemporaryDirectory() as folder, worlds(Path(folder)) as both, bystander(given.sockets):
        for _ in range(given.rounds):
            for name in random.sample(["with", "without"], 2):  # noqa: S311 - an order, no secret
                world = both[name]
                for n in range(given.agents):
                    world.agent(f"a-{n}", env=NOBODY)
                receipt = world.pressed([f"a-{n}" for n in range(given.agents)])
                times[name].append(first_ms(receipt))
                recorded += name == "with" and receipt.connections_state == "recorded"
                world.clear()
    for name, found in times.items():
        ordered = sorted(found)
        p95 = ordered[int(0.95 * (len(ordered) - 1))]
        print(
            f"{name:8} first SIGKILL: median {statistics.median(found):.3f} ms, p95 {p95:.3f} ms, max {max(found):.3f} ms, n {len(found)}"
        )
    ratio = statistics.median(times["with"]) / statistics.median(times["without"])
    print(f"with / without, medians: {ratio:.2f}; recorded {recorded} of {given.rounds}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
