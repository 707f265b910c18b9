"""A toy agent that writes and deletes files of its workspace, each time after asking: every change leaves a rollback record."""

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


def write(agent: Agent, workspace: Path, name: str, text: str) -> None:
    """Writes one file if it may."""
    if allowed(agent, "write_file", name):
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def delete(agent: Agent, workspace: Path, name: str) -> None:
    """Deletes one file if it may."""
    if allowed(agent, "delete_file", name):
        (workspace / name).unlink(missing_ok=True)


def allowed(agent: Agent, tool: str, name: str) -> bool:
    """Asks, and says what was answered. Anything but ``allow`` means no."""
    try:
        answer = agent.permission(tool, name)
    except Refused as refusal:
        print(f"{tool} {name}: refused: {refusal}", flush=True)
        return False
    print(f"{tool} {name}: {answer['verdict']} ({answer['reason']})", flush=True)
    return bool(answer["verdict"] == "allow")


def main() -> None:
    """Each step one edition of a report; every third step the draft goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--step", type=float, default=2.0, help="seconds between two steps")
    options = parser.parse_args()
    agent, workspace = Agent(), Path(os.environ.get("WATCHFLOOR_WORKSPACE") or Path.cwd())
    deadline, edition = time.monotonic() + options.seconds, 0
    while time.monotonic() < deadline:
        edition += 1
        lines = [f"# Report, edition {edition}", "", *[f"Finding {n}: checked in edition {edition}." for n in range(1, 4)]]
        write(agent, workspace, "output/draft.md", f"draft of edition {edition}\n")
        write(agent, workspace, "output/report.md", "\n".join(lines) + "\n")
        if edition % 3 == 0:
            delete(agent, workspace, "output/draft.md")
        allowed(agent, "write_file", "../../outside.txt")  # must be denied: not in the workspace
        try:
            agent.usage(iterations=1, tokens=300, tool_calls=2, cost_usd=0.004, action=f"writes edition {edition}")
        except Refused as refusal:
            print(f"report refused: {refusal}", flush=True)
        time.sleep(options.step)


if __name__ == "__main__":
    main()
