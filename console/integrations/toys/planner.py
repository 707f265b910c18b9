"""A toy agent that plans: it spawns the children that its options name, then works in small steps that cost a little.

``--spawn`` takes a JSON object (repeatable): ``{"toy": "writer", "args": ["--seconds", "30"], "name": ..., "limits": ...}``. What is not
``toy`` or ``args`` goes into the launch unchanged. A child planner's ``args`` may hold ``--spawn`` again: trees of any depth.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from console.integrations.client import Agent, Refused
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from client import Agent, Refused

_WORK = ("reads the brief", "compares sources", "drafts an outline", "checks a figure", "waits for a child", "sums up")


def spawn(agent: Agent, told: dict[str, Any]) -> None:
    """One child, by the name of its toy; a refusal is said and survived."""
    toy = str(told.pop("toy"))
    script = Path(__file__).resolve().with_name(f"{Path(toy).name}.py")
    argv = ["python3", str(script), *[str(a) for a in told.pop("args", [])]]
    try:
        child = agent.spawn(argv, **{"name": toy, **told})
        print(f"spawned {child['id']} ({toy})", flush=True)
    except Refused as refusal:
        print(f"spawn of {toy} refused: {refusal}", flush=True)


def work(agent: Agent, seconds: float, step_s: float, cost: float) -> None:
    """Reports one iteration a step until the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            agent.usage(iterations=1, tokens=random.randint(200, 1200), cost_usd=cost, action=random.choice(_WORK))
        except Refused as refusal:
            print(f"report refused: {refusal}", flush=True)
        time.sleep(step_s)


def main() -> None:
    """Reads the options, registers private data if told to, spawns, asks once, works."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--step", type=float, default=1.0, help="seconds between two steps")
    parser.add_argument("--cost", type=float, default=0.01, help="USD per step")
    parser.add_argument("--private", default="", help="NAME=LEVEL: data to register first")
    parser.add_argument("--spawn", action="append", default=[], type=json.loads, help="a child as JSON")
    options = parser.parse_args()
    agent = Agent()
    if options.private:
        dataset, _, level = options.private.partition("=")
        print("private data:", agent.private_data(dataset, level, "demo"), flush=True)
    for told in options.spawn:
        spawn(agent, dict(told))
    verdict = agent.permission("run_shell", "rm -rf /")
    print(f"asked for a shell: {verdict['verdict']} ({verdict['reason']})", flush=True)
    work(agent, options.seconds, options.step, options.cost)


if __name__ == "__main__":
    main()
