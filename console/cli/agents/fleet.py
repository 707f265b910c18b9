"""``watchfloor fleet``: agent trees with depth, control level, network mode, cost, limits used and state."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated

from console.cli.link import look
from console.cli.options import Json, StateDir
from console.cli.syntax import UNSHAPED, Argument, Shape, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import Table, Text, new_table
from console.domain.amounts import usd
from console.domain.budget import GAUGES, LIMIT_NAMES
from console.domain.conversation import started_as
from console.domain.errors import NotFound, Unreachable
from console.domain.process.account import named_here
from console.domain.words import NO_REASON, counted
from console.wording.agent_kinds import TITLES
from console.wording.limits import with_limits

if TYPE_CHECKING:
    from console.api.client.reading import ReadingClient
    from console.api.messages import AgentView, FleetView

_STATE_STYLES = {
    "running": "green",
    "waiting": "cyan",
    "needs_ok": "yellow",
    "frozen": "blue",
    "over_budget": "yellow",
    "halted": "yellow",
    "alive_after_kill": "bold red",
    "failed": "red",
    "lost": "red",
}
_STATE_WORDS = {"alive_after_kill": "not confirmed dead"}
"""Killed without proof may well be dead: the name of the state would claim that it lives."""
_UNITS = {
    "iterations": "it",
    "tokens": "tok",
    "wall_s": "s",
    "tool_calls": "calls",
    "cost_usd": "$",
    "cpu_s": "s cpu",
    "step_s": "s step",
    "consecutive_errors": "errors",
}
"""Of each of ``LIMIT_NAMES``: a limit without a unit would be left out, and its agent shown as one without limits."""


SETTLED_S = 2.0
"""After every source's first look, until it is believed that there is no agent."""
WIDE = 100
"""Columns that a table with a line for each agent takes."""
WITH_BURN = 130
"""Columns that the table with the burn takes, too."""
FIRST_LOOK_S = 5.0
"""So long the first list of an instance that was just started waits for each source's first look."""


def fleet(shape: Shape = UNSHAPED, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Agent trees: depth, control level, network mode, cost, limits used, state."""
    seen, waiting = _looked(state_dir)
    if as_json:
        out.emit({"killed": seen.killed, "kill_reason": seen.kill_reason, "agents": [_as_json(a) for a in seen.agents]})
        return 0
    if seen.killed:
        out.show(out.words(f"KILLED: {seen.kill_reason or NO_REASON}. Nothing starts until you rearm.", "bold red", 600))
    if not seen.agents:
        first = f"No agents are seen yet: {plain(', '.join(waiting))} had no look so far." if waiting else "No agents."
        out.say(f"{first} Start one with: watchfloor run -- COMMAND")
        return 0
    if shape:
        from console.cli.shaping import shaped

        out.show(shaped(_table([("", agent) for _, agent in in_tree_order(seen.agents)], room=WITH_BURN, with_depth=True), shape))
        return 0
    out.show(_table(in_tree_order(seen.agents), room=out.columns()))
    live = sum(1 for a in seen.agents if a.ended_at is None)
    out.say(f"{counted(len(seen.agents), 'agent')}, {live} active, spent today {usd(seen.spend_today_usd)}{unread_words(seen)}")
    return 0


def _looked(state_dir: str | None) -> tuple[FleetView, list[str]]:
    """The fleet, and the sources that had no look yet while it is empty. An account's own instance is started when it does not run."""
    try:
        return _read(look(state_dir))
    except (NotFound, Unreachable):
        from console.cli.embedded import start_own

        if not start_own(state_dir):
            raise
    client, began = look(state_dir), time.monotonic()
    last = began
    while True:
        (seen, waiting), now = _read(client), time.monotonic()
        last = now if waiting else last
        # A program that the first look at processes finds has its sessions looked at once more.
        if seen.agents or now > began + FIRST_LOOK_S or now > last + SETTLED_S:
            return seen, waiting
        time.sleep(0.1)


def _read(client: ReadingClient) -> tuple[FleetView, list[str]]:
    if (seen := client.fleet()).agents:
        return seen, []
    waiting = [one.source for one in client.status().sources if not one.looked_at]
    return seen if waiting else client.fleet(), waiting  # the last look may have ended between the two


@example("a-1b2c3d4e")
def show_agent(
    agent: Annotated[str, Argument(metavar="AGENT", help="Its id, as watchfloor fleet lists it.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """One agent: why it is in its state, what it used, what it was started as, and the names of its environment."""
    seen = look(state_dir).agent(agent)
    if as_json:
        out.emit(seen.as_data(exclude={"schema_version"}) | {"agent": _as_json(seen.agent)})
    else:
        from console.cli.agents.agent import show

        why = f" ({plain(seen.agent.cost_unknown, 200)})" if seen.agent.cost_unknown else ""
        used = f"{cost_words(seen.agent)}{why}; {_limits_used(seen.agent)}"
        show(seen, network_words(seen.agent), control_words(seen.agent), used)
        if seen.agent.source == "watchfloor" and started_as(tuple(seen.argv)) is None:  # a known program's is a protocol: see activity
            out.say(f"what it wrote: watchfloor agent output {plain(agent, 70)}")
    return 0


def network_words(agent: AgentView) -> str:
    """``PROXIED``; without an enforced namespace it is FULL, whatever was asked."""
    return agent.network_mode if agent.network_enforced else "FULL, not enforced"


def control_words(agent: AgentView) -> str:
    """``managed``, or ``managed, BEST EFFORT`` where a stop of it cannot be proven."""
    return f"{agent.control_level}, BEST EFFORT" if agent.best_effort else agent.control_level


def unread_words(seen: FleetView) -> str:
    """What is in no sum of money, behind the sum."""
    return f", and what {counted(seen.spend_unknown, 'agent')} spent is unknown" if seen.spend_unknown else ""


def cost_words(agent: AgentView) -> str:
    """``$1.20``; never $0.00 for what nothing measured: ``unknown``, ``unpriced``, or ``$1.20 + unpriced``."""
    if not agent.cost_usd and (agent.unpriced or agent.cost_usd is None):
        return "unpriced" if agent.unpriced else "unknown"
    return usd(agent.cost_usd) + (" + unpriced" if agent.unpriced else "")


def program_words(agent: AgentView) -> str:
    """The name of the program, by the source that reads its files or by its start; ``-``: none of those that Watchfloor knows."""
    kinds = (source.replace("_", "-") for source in (agent.source, *agent.seen_by, agent.program))
    return next((kind for kind in kinds if kind in TITLES), "-")


def burn_words(agent: AgentView) -> str:
    """What it spends in an hour, by its last minutes; ``-``: it has ended."""
    if agent.ended_at is not None:
        return "-"
    return "unknown" if agent.cost_usd is None and not agent.burn_usd_per_h else usd(agent.burn_usd_per_h)


def _as_json(agent: AgentView) -> dict[str, object]:
    row: dict[str, object] = agent.as_data()
    if not agent.network_enforced:
        row["network_mode"] = "FULL"
    return row


def _table(ordered: list[tuple[str, AgentView]], *, room: int, with_depth: bool = False) -> Table:
    """In less than WIDE columns the name stands below the id, the tree's lines alone show the depth, and no number is cut in two."""
    if room < WIDE:
        return _narrow_table(ordered, room)
    heads = ["AGENT", *(["DEPTH"] if with_depth else []), "PROGRAM", "CONTROL", "NETWORK"]
    table = new_table()
    for name in heads:
        table.add_column(name, no_wrap=True)
    for name in ("COST", "BURN/H") if room >= WITH_BURN else ("COST",):
        table.add_column(name, right=True, no_wrap=True)
    for name in ("LIMITS USED", "STATE", "NAME"):
        table.add_column(name, min_width=16 if name == "LIMITS USED" else None)
    for guide, agent in ordered:
        table.add_row(
            _id_cell(guide, agent),
            *([str(agent.depth)] if with_depth else []),
            program_words(agent),
            *_held_cells(agent),
            cost_words(agent),
            *([burn_words(agent)] if room >= WITH_BURN else []),
            Text(_limits_used(agent)),
            _state_cell(agent),
            out.words(agent.name, limit=60),
        )
    return table


def _id_cell(guide: str, agent: AgentView) -> Text:
    return Text(guide, "dim") + out.words(agent.id, limit=70)


def _held_cells(agent: AgentView) -> tuple[Text, Text]:
    return (
        out.words(control_words(agent), "yellow" if agent.best_effort else "", 40),
        out.words(network_words(agent), "" if agent.network_enforced else "yellow", 30),
    )


def _state_cell(agent: AgentView) -> Text:
    state = _STATE_WORDS.get(agent.state, agent.state.replace("_", " ")) + (f" ({', '.join(agent.causes)})" if agent.causes else "")
    state += ", dry-run" if agent.dry_run and agent.ended_at is None else ""
    state += f", {agent.profile_note}" if agent.profile_note and agent.ended_at is None else ""
    if agent.state_reason:
        state += f": {with_limits(named_here(agent.state_reason))}"
    return out.words(state, _STATE_STYLES.get(agent.state, "dim"), 120)


def _narrow_table(ordered: list[tuple[str, AgentView]], room: int) -> Table:
    widest = max((len(guide) + len(plain(agent.id, 70)) for guide, agent in ordered), default=0)
    widths = {"AGENT": widest, "CONTROL": 9, "NETWORK": 9, "COST": 8, "LIMITS USED": 14}
    table = new_table()
    for name, width in widths.items():
        table.add_column(name, width=width, right=name == "COST")
    table.add_column("STATE", width=max(8, room - sum(widths.values()) - 2 * len(widths)))
    for guide, agent in ordered:
        table.add_row(
            Text("\n").join((_id_cell(guide, agent), out.words(agent.name, limit=60))),
            *_held_cells(agent),
            cost_words(agent),
            Text(_limits_used(agent).replace("/", "/ ")),  # a place to break that is in no number
            _state_cell(agent),
        )
    return table


def in_tree_order(agents: list[AgentView]) -> list[tuple[str, AgentView]]:
    """Every agent once with its guide lines, children below parents; one whose parent is missing or in a loop is shown as a root."""
    by_id = {a.id: a for a in agents}
    children: dict[str | None, list[AgentView]] = {}
    for agent in agents:
        children.setdefault(agent.parent_id if agent.parent_id in by_id else None, []).append(agent)
    rows: list[tuple[str, AgentView]] = []
    shown: set[str] = set()

    def walk(siblings: list[AgentView], lead: str, top: bool) -> None:
        for number, agent in enumerate(siblings):
            if agent.id in shown:
                continue
            shown.add(agent.id)
            last = number == len(siblings) - 1
            rows.append(("" if top else f"{lead}{'└─ ' if last else '├─ '}", agent))
            walk(children.get(agent.id, []), "" if top else f"{lead}{'   ' if last else '│  '}", False)

    walk(children.get(None, []), "", True)
    for agent in agents:  # what a loop kept from the roots
        if agent.id not in shown:
            walk([agent], "", True)
    return rows


def _limits_used(agent: AgentView) -> str:
    parts: list[str] = []
    for name in LIMIT_NAMES:
        unit, used_alone = _UNITS[name], _used(agent.usage, name)
        own, tree = (agent.limits.get(name), used_alone), (agent.tree_limits.get(name), _used(agent.tree_usage, name))
        if name in GAUGES:  # of a tree they bound each of its agents
            own, tree = (min((cap for cap in (own[0], tree[0]) if cap is not None), default=None), used_alone), (None, 0.0)
        for (cap, used), scope in ((own, ""), (tree, " tree")):
            if cap is not None and not (scope and tree == own):  # an agent without children is its own tree
                parts.append(f"{_number(used)}/{_number(cap)} {unit}{scope}")
    return ", ".join(parts) or "no limits"


def _used(usage: dict[str, float], name: str) -> float:
    """NaN: not known, which is left out of what is known."""
    return usage.get(name, math.nan if usage else 0.0)


def _number(value: float) -> str:
    """Whole numbers whole, however large; others with at most two digits behind the point, rounded."""
    return "unknown" if math.isnan(value) else f"{value:,.2f}".rstrip("0").rstrip(".")
