"""``watchfloor freeze | isolate | kill | thaw | reconnect``: a rung of the ladder over an agent, a tree, a session, a host, all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from console.cli.link import look
from console.cli.options import Json, StateDir, WaitWatch
from console.cli.stop.daemons import show_daemons
from console.cli.syntax import Argument, Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import new_table
from console.domain.errors import ExitCode, UsageProblem
from console.domain.ladder import Reach, Rung, Scope, count_age
from console.domain.words import counted

if TYPE_CHECKING:
    from console.api.ladder import LadderAgent, LadderPreview

Agents = Annotated[list[str] | None, Argument(metavar="AGENT...", help="Ids, as watchfloor fleet lists them.", show_default=False)]
Tree = Annotated[bool, Option("--tree", help="And everything below it.")]
Sessions = Annotated[
    list[str] | None, Option("--session", metavar="ID", help="Every agent in this session, and all that they started; repeatable.")
]
Host = Annotated[bool, Option("--host", help="Everything this instance holds on this host.")]
All = Annotated[bool, Option("--all", help="Everything; a kill of everything is a panic and blocks new agents.")]
Why = Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded.")]
Suspects = Annotated[
    str, Option("--suspects", metavar="KILL", help="Kill the suspects that the receipt of this kill names and preselects.")
]
Pids = Annotated[list[int] | None, Option("--pid", metavar="PID", help="With --suspects: exactly this one; repeatable.")]
Dry = Annotated[bool, Option("--dry-run", help="Show which agents would be stopped, and how surely. Do nothing.")]

NAMED = 20


def scope_of(agents: list[str] | None, tree: bool, sessions: list[str] | None, host: bool, everything: bool) -> Scope:
    """The one scope that was named: of one kind, for one or several. Raises UsageProblem for none, or for two kinds."""
    named = [bool(agents), bool(sessions), host, everything]
    if sum(named) != 1:
        raise UsageProblem(
            f"Name {'only ' if any(named) else ''}one of: AGENT..., --session ID, --host, --all.",
            "watchfloor fleet lists agents, watchfloor session list their sessions; see --help.",
        )
    if tree and not agents:
        raise UsageProblem("--tree goes with an AGENT.", "A session, a host and everything include what is below already.")
    reach = Reach.TREE if tree else Reach.AGENT if agents else Reach.SESSION if sessions else Reach.HOST if host else Reach.ALL
    first, *others = agents or sessions or [""]
    scope = Scope(reach, first, tuple(others))
    scope.check()
    return scope


def _verb(rung: Rung, words: str, shown: str) -> Callable[..., int]:
    """The function behind one verb that can be undone; ``words`` are its help, ``shown`` its example."""

    @example(shown)
    def act(
        agents: Agents = None,
        tree: Tree = False,
        session: Sessions = None,
        host: Host = False,
        everything: All = False,
        reason: Why = "",
        dry_run: Dry = False,
        state_dir: StateDir = None,
        as_json: Json = False,
    ) -> int:
        scope = scope_of(agents, tree, session, host, everything)
        if dry_run:
            return _preview(rung, scope, reason, state_dir, as_json)
        from console.cli.stop.carry_out import carry_out

        return carry_out(rung, scope, reason, state_dir, as_json=as_json)

    act.__doc__ = words
    return act


@example("a-1b2c3d4e --tree --reason 'it loops'")
def kill(
    agents: Agents = None,
    tree: Tree = False,
    session: Sessions = None,
    host: Host = False,
    everything: All = False,
    suspects: Suspects = "",
    pid: Pids = None,
    reason: Why = "",
    dry_run: Dry = False,
    wait_watch: WaitWatch = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Kill and print the receipt. Cannot be undone. --all also blocks new agents, as panic does."""
    if suspects:
        if agents or tree or session or host or everything:
            raise UsageProblem("--suspects goes with the id of a kill alone.", "watchfloor receipt list shows the kills.")
        from console.cli.stop.carry_out import kill_suspects

        return kill_suspects(suspects, pid or [], state_dir, dry_run=dry_run, as_json=as_json)
    if pid:
        raise UsageProblem("--pid names suspects of a kill.", "Add --suspects KILL.")
    scope = scope_of(agents, tree, session, host, everything)
    if dry_run:
        return _preview(Rung.KILL, scope, reason, state_dir, as_json)
    from console.cli.stop.carry_out import carry_out

    return carry_out(Rung.KILL, scope, reason, state_dir, as_json=as_json, wait_watch=wait_watch)


freeze = _verb(
    Rung.FREEZE,
    "Pause every process of the agent. Nothing is lost. Thaw undoes it.",
    "a-1b2c3d4e --tree --reason 'I want to look first'",
)
thaw = _verb(Rung.THAW, "Undo your freeze. Freezes with other causes (budget, heartbeat ...) stay.", "a-1b2c3d4e --tree")
isolate = _verb(
    Rung.ISOLATE,
    "Cut off the network of the agent and of all that it starts. Reconnect undoes it.",
    "a-1b2c3d4e --reason 'it reads mail'",
)
reconnect = _verb(Rung.RECONNECT, "Undo your isolation. The network returns as far as the session's data allows.", "a-1b2c3d4e")


def _preview(rung: Rung, scope: Scope, reason: str, state_dir: str | None, as_json: bool) -> int:
    """What would be done; what carries it out is not even loaded."""
    return _show_preview(look(state_dir).preview(rung.value, scope, reason), as_json)


def _show_preview(seen: LadderPreview, as_json: bool) -> int:
    """Exit 0 when it could be done now, 1 when it would be refused."""
    if as_json:
        out.emit_view(seen)
        return int(ExitCode.FAILURE if seen.why_not else ExitCode.DONE)
    out.say(plain(seen.words, 500))
    if seen.why_not:
        out.note(f"it would be refused: {plain(seen.why_not, 500)}")
    when = f" ({age})" if (age := count_age(seen.counted_s)) else ""
    processes, containers = counted(seen.processes, "process", "processes"), counted(seen.containers, "container")
    out.say(f"{processes}{when}, {containers}, {counted(seen.egress, 'agent')} that can reach the network now")
    table = new_table()
    for name in ("CONTROL LEVEL", "CERTAIN", "BEST EFFORT", "LEFT ALONE"):
        table.add_column(name)
    for level, row in seen.counts.items():
        table.add_row(out.words(level), *(str(row.get(kind, 0)) for kind in ("certain", "best_effort", "excluded")))
    if seen.counts:
        out.show(table)
    if seen.outside:
        out.say(plain(seen.outside, 1000))
    for title, agents in (("", seen.acts), ("best effort: ", seen.best_effort), ("left alone: ", seen.excluded)):
        for agent in agents[:NAMED]:
            out.say(title + _line(agent))
    show_daemons(seen.daemons)
    hidden = seen.unnamed + sum(max(0, len(a) - NAMED) for a in (seen.acts, seen.best_effort, seen.excluded))
    if hidden:
        out.say(f"and {hidden} more (the counts above are whole; --json names more)")
    return int(ExitCode.FAILURE if seen.why_not else ExitCode.DONE)


def _line(agent: LadderAgent) -> str:
    words = f"{plain(agent.id, 70)}  {plain(agent.name, 60)}  {plain(agent.control_level)}  {plain(agent.state.replace('_', ' '))}"
    said = "; ".join(part for part in (plain(agent.why, 300), plain(agent.outside, 300)) if part)
    return words + (f": {said}" if said else "")
