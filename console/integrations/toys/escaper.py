"""A toy agent that tries to get away: double fork, setsid, empty environment, another name, all files closed. It must die all the same.

The runaway ends by itself after ``--seconds``, so that even a broken kill leaves nothing for ever.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.integrations.client import Agent, Refused
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from client import Agent, Refused

_RUNAWAY = "import signal, time\nfor s in (1, 2, 3, 15):\n    signal.signal(s, signal.SIG_IGN)\ntime.sleep(float({seconds!r}))"


def run_away(seconds: float) -> None:
    """Leaves a process behind that has no parent, terminal, session, environment or open file in common with us (daemon(7))."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, 1024)
    os.execve(sys.executable, ["[kworker/u4:1]", "-I", "-S", "-c", _RUNAWAY.format(seconds=seconds)], {})


def main() -> None:
    """Runs away a few times, then keeps reporting as if nothing were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runaways", type=int, default=2)
    options = parser.parse_args()
    for _ in range(max(0, min(options.runaways, 20))):
        run_away(options.seconds)
    agent = Agent()
    deadline = time.monotonic() + options.seconds
    while time.monotonic() < deadline:
        try:
            agent.usage(iterations=1, tokens=50, cost_usd=0.001, action="does as if nothing were")
        except Refused as refusal:
            print(f"report refused: {refusal}", flush=True)
        time.sleep(1)


if __name__ == "__main__":
    main()
