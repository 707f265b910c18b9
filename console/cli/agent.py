"""``watchfloor fleet AGENT``: one agent, with what it was started as and the names of its environment."""

from __future__ import annotations

from console.api.environment import EnvironmentView
from console.api.messages import AgentDetailView
from console.cli import out
from console.cli.plain import plain

ORIGINS = {"default": "every agent's", "type": "its type's", "launch": "asked for with its launch", "watchfloor": "Watchfloor's own"}
NAMED = 100


def show(seen: AgentDetailView, network: str, control: str) -> None:
    """For people; names and where they come from, never a value."""
    agent = seen.agent
    out.say(f"{plain(agent.id, 70)}  {plain(agent.name, 200)}")
    out.say(f"{agent.state.replace('_', ' ')}; {control}; network {network}; session {plain(agent.session, 70)}")
    if seen.argv:
        out.say(f"command: {plain(' '.join(seen.argv), 1000)}")
    for line in environment_lines(seen.environment):
        out.say(line)


def environment_lines(view: EnvironmentView | None) -> list[str]:
    """The names by where they come from; secrets marked."""
    if view is None:
        return ["environment: not known"]
    lines = [f"environment{f' of type {plain(view.agent_type, 63)}' if view.agent_type else ''}, by name:"]
    for origin, words in ORIGINS.items():
        names = [f"{plain(v.name, 64)}{' (SECRET)' if v.secret else ''}" for v in view.variables if v.origin == origin]
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            lines.append(f"  {words}: {', '.join(names[:NAMED])}{more}")
    return lines + [f"  left out: {plain(words, 300)}" for words in view.left_out[:NAMED]]
