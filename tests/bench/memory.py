"""Memory of a supervisor while agents report: what it grows by after its first minutes, against the limit. One run.

    .venv/bin/python -m tests.bench.memory [--agents 100] [--every 1.0] [--minutes 15] [--settled 3]

Each agent reports its usage once every ``--every`` seconds. Growth is counted from minute ``--settled`` to the end; the limit is 5 MB.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.fakes.instance import Instance

LIMIT_MB = 5.0
REPORT = """
import os, sys, time
sys.path.insert(0, os.environ["WATCHFLOOR_TOYS"])
import client
agent, every = client.Agent(), float(sys.argv[1])
while True:
    agent.usage(iterations=1, tokens=120, tool_calls=1, cost_usd=0.0001, action="a step")
    time.sleep(every)
"""


def resident_mb(pid: int) -> float:
    """Resident memory (proc(5), VmRSS) in MB."""
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS:"))
    return int(line.split()[1]) / 1000


def main() -> None:
    """Prints a line a minute, then the growth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--settled", type=float, default=3.0)
    parser.add_argument("--step", type=float, default=60.0, help="seconds between two lines")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wf-memory-") as folder, Instance(Path(folder)) as it:
        assert it.process is not None
        for _ in range(given.agents):
            it.launch("/usr/bin/python3", "-c", REPORT, str(given.every))
        pid, begun, settled = it.process.pid, time.monotonic(), 0.0
        while (passed := time.monotonic() - begun) < given.minutes * 60:
            now = resident_mb(pid)
            if not settled and passed >= given.settled * 60:
                settled = now
            steps = sum(float(a.usage.get("iterations", 0)) for a in it.api.fleet().agents)
            print(f"{passed:7.0f} s  {now:8.1f} MB  {steps:10.0f} reports", flush=True)
            time.sleep(given.step)
        grown = resident_mb(pid) - settled
    print(f"growth after {given.settled:g} min: {grown:.1f} MB, {grown / LIMIT_MB:.2f} x the limit of {LIMIT_MB:g} MB")


if __name__ == "__main__":
    main()
