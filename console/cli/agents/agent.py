"""``watchfloor agent show AGENT``: one agent, with what it was started as and the names of its environment."""

from __future__ import annotations

from console.api.environment import EnvironmentView
from console.api.messages import AgentDetailView, AgentView
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.conversation import started_as
from console.domain.process.account import named_here
from console.wording.limits import with_limits

ORIGINS = {"default": "every agent's", "type": "its type's", "launch": "asked for with its launch", "watchfloor": "Watchfloor's own"}
NAMED = 100


def show(seen: AgentDetailView, network: str, control: str, used: str) -> None:
    """For people; names and where they come from, never a value. ``used``: what it cost, and of which limits how much."""
    agent = seen.agent
    out.say(f"{plain(agent.id, 70)}  {plain(agent.name, 200)}")
    causes = f" ({plain(', '.join(agent.causes), 200)})" if agent.causes else ""
    why = f": {plain(with_limits(named_here(agent.state_reason)), 300)}" if agent.state_reason else causes
    out.say(f"{agent.state.replace('_', ' ')}{why}; {control}; network {network}; session {plain(agent.session, 70)}")
    out.say(f"{used}{_metered(agent)}")
    for line in _known(agent):
        out.say(line)
    if seen.hook:
        out.say(f"hook: {plain(seen.hook, 300)}")
    for line in (*_command(seen.argv), *_cannot(seen.can), *environment_lines(seen.environment)):
        out.say(line)


def _metered(agent: AgentView) -> str:
    words = f"; metered {agent.metered}" if agent.metered else ""
    if agent.overshoot is None:
        return words
    return f"{words}; passed its {plain(agent.overshoot_limit, 60)} by {agent.overshoot:,.4f}"


def _known(agent: AgentView) -> list[str]:
    """What is not the same of every agent; each is said only where there is something to say."""
    found = {
        "best effort, because": agent.best_effort,
        "rules": ", ".join(filter(None, (agent.profile, agent.profile_note))),
        "not linked to a parent:": agent.unlinked,
        "seen by": ", ".join(agent.seen_by),
        "it says of itself": agent.seen_status,
        "model": agent.model,
        "process": str(agent.pid or "") if agent.ended_at is None else "",
        "folder": agent.cwd,
        "project": agent.project,
        "isolated by": named_here(agent.isolated),
        "dry-run:": agent.dry_run,
        "steps of forbidden sequences:": ", ".join(agent.taints),
    }
    return [f"{words} {plain(text, 400)}" for words, text in found.items() if text]


def _command(argv: list[str]) -> list[str]:
    """What it was started as: of a started program its own words, without the shell line around them, which is ours."""
    started = started_as(tuple(argv))
    if started is None:
        return [f"command: {plain(' '.join(argv), 1000)}"] if argv else []
    command = f"command: {plain(' '.join((started.path, *started.words)), 1000)}"
    return [f"program: {started.program.value}{'' if started.talks else ', --once'}", f"prompt: {plain(started.prompt, 1000)}", command]


def _cannot(can: dict[str, str]) -> list[str]:
    """What cannot be done with it now, the same reason said once."""
    reasons: dict[str, list[str]] = {}
    for action, why in can.items():
        if why:
            reasons.setdefault(why, []).append(action)
    return [f"not now: {plain(', '.join(actions), 200)}: {plain(why, 300)}" for why, actions in reasons.items()]


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
