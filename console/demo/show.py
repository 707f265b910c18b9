"""What the demo prints: where to look, the live tree, and which promises held."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from console.api.messages import FleetView
from console.cli.agents.fleet import in_tree_order, network_words
from console.cli.terminal import out
from console.cli.terminal.tables import Table, Text, new_table
from console.demo.checks import Promise, Verdict
from console.domain.amounts import usd

_STATES = {
    "running": "green",
    "frozen": "blue",
    "halted": "yellow",
    "over_budget": "yellow",
    "alive_after_kill": "bold red",
    "failed": "red",
}
_VERDICTS = {Verdict.HELD: ("held", "green"), Verdict.NOT_HELD: ("NOT HELD", "bold red"), Verdict.NOT_SHOWN: ("not shown", "yellow")}


def program() -> str:
    """How another terminal calls us: by name where every shell finds it, else by the full path of this very installation."""
    found = shutil.which("watchfloor", path="/usr/local/bin:/usr/bin:/bin")
    beside = Path(sys.executable).with_name("watchfloor")
    if found is not None:
        return "watchfloor"
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(sys.executable)} -m console"


def commands(first: Path, other: Path | None) -> list[str]:
    """The exact commands with which another terminal looks at the demo."""
    verbs = ("", "fleet ", "status ", "allowlist list ", "audit verify ")
    at = f"--state-dir {shlex.quote(str(first))}"
    lines = [f"{program()} {verb}{at}" for verb in verbs]
    lines.append(f"{program()} panic {at} --reason 'I tried it'")
    if other is not None:
        lines.append(f"{program()} fleet --state-dir {shlex.quote(str(other))}")
    return lines


def fleet_table(fleet: FleetView) -> tuple[Table, Text]:
    """The trees, and a line of totals."""
    table = new_table()
    for name in ("AGENT", "CONTROL", "NETWORK"):
        table.add_column(name, no_wrap=True)
    table.add_column("COST", right=True, no_wrap=True)
    table.add_column("STATE", min_width=8)
    table.add_column("LAST ACTION", cut=True)
    for guide, agent in in_tree_order(fleet.agents):
        reason = agent.state_reason.removeprefix(f"{agent.state}: ")
        reason = f": {reason}" if reason else ""
        table.add_row(
            Text(guide, "dim") + out.words(agent.name, limit=40),
            out.words(agent.control_level, limit=20),
            out.words(network_words(agent), "" if agent.network_enforced else "yellow", 30),
            usd(agent.cost_usd),
            out.words(agent.state.replace("_", " ") + reason, _STATES.get(agent.state, "dim"), 80),
            out.words(agent.last_action, "dim", 70),
        )
    live = sum(1 for agent in fleet.agents if agent.ended_at is None)
    totals = f"{len(fleet.agents)} agents, {live} active, {usd(fleet.spend_today_usd)} spent, {usd(fleet.burn_usd_per_h)} an hour"
    return table, Text("KILLED" if fleet.killed else totals, "bold red" if fleet.killed else "dim")


def watch(look: Callable[[], FleetView], seconds: float) -> None:
    """The live tree for so long: redrawn in place on a terminal, else printed a few times."""
    deadline = time.monotonic() + seconds
    if sys.stdout is not None and sys.stdout.isatty():
        shown = 0
        while time.monotonic() < deadline:
            lines = out.rendered(*fleet_table(look())).splitlines()[: shutil.get_terminal_size().lines - 1]
            out.write(_over(shown) + "".join(f"{line}\n" for line in lines))
            shown = len(lines)
            time.sleep(0.5)
        out.write(_over(shown))
    pause = max(4.0, seconds / 3)
    while (left := deadline - time.monotonic()) > 0:
        out.show(*fleet_table(look()), Text(""))
        time.sleep(min(pause, left))


def _over(lines: int) -> str:
    """What takes back so many lines (ECMA-48: cursor up, erase below)."""
    return f"\x1b[{lines}A\x1b[J" if lines else ""


def promises(found: list[Promise]) -> None:
    """One line each."""
    table = new_table()
    table.add_column("", no_wrap=True)
    table.add_column("PROMISE")
    table.add_column("SEEN")
    for promise in found:
        word, style = _VERDICTS[promise.verdict]
        table.add_row(Text(word, style), Text(promise.claim), out.words(promise.words, "dim", 300))
    out.show(table)
