"""A toy agent that spends: tokens and money every step, with no sense of a budget. Its limits have to stop it."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.integrations.client import Agent, Refused
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from client import Agent, Refused


def main() -> None:
    """Spends until the time is over; nothing else ends it from inside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--step", type=float, default=0.5, help="seconds between two steps")
    parser.add_argument("--cost", type=float, default=0.05, help="USD per step")
    options = parser.parse_args()
    agent, spent = Agent(), 0.0
    deadline = time.monotonic() + options.seconds
    while time.monotonic() < deadline:
        spent += options.cost
        try:
            agent.usage(
                iterations=1,
                tokens=random.randint(2_000, 9_000),
                tool_calls=random.randint(0, 2),
                cost_usd=options.cost,
                action=f"asks the largest model again ({spent:.2f} USD so far)",
            )
        except Refused as refusal:
            print(f"report refused: {refusal}", flush=True)
        time.sleep(options.step)


if __name__ == "__main__":
    main()
