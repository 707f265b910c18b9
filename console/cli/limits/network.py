"""``watchfloor network sandboxes | requests | tighten | history``: what agents may reach and asked for, and stricter modes for good."""

from __future__ import annotations

from typing import Annotated, Literal

from console.api.messages import AgentView
from console.api.network import MeantBody, ModeChangeView, ModeHistoryView, RegisterDataBody, StricterBody, StricterView
from console.cli.agents.fleet import network_words
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.shaping import shaped
from console.cli.syntax import UNSHAPED, Argument, Option, Shape, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import new_table
from console.domain.errors import ExitCode, NotFound, UsageProblem
from console.domain.process.account import named_here
from console.domain.words import counted

app = Verbs("What agents may reach: every sandbox with its mode and why; stricter modes and private data, which never loosen.")
Agent = Annotated[str, Argument(metavar="AGENT", help="Its id: its session and those of all it spawned.", show_default=False)]
Session = Annotated[str, Option("--session", metavar="ID", help="This session and those below it.")]
Dry = Annotated[bool, Option("--dry-run", help="Show what would happen, and why it would be refused; do nothing.")]
SWITCH_S = 60.0
NAMED = 20
MOST = 1000


@app.command("sandboxes")
def sandboxes(shape: Shape = UNSHAPED, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Every living agent: its sandbox, its mode, whether that is enforced, why, since when."""
    with connect(state_dir) as client:
        live = [a for a in client.fleet().agents if a.ended_at is None]
    if as_json:
        names = {"id", "name", "session", "sandbox", "sensitivity", "isolated", "network_mode", "network_asked", "network_enforced"}
        names |= {"network_note", "network_why", "network_since"}
        out.emit({"sandboxes": [{name: value for name, value in a.as_data().items() if name in names} for a in live]})
        return 0
    if not live:
        out.say("No agent lives.")
        return 0
    table = new_table("AGENT", "SESSION", "SANDBOX", "MODE", "SINCE", "WHY", "NAME")
    for agent in live:
        table.add_row(
            out.words(agent.id, limit=70),
            out.words(agent.session, limit=64),
            out.words(agent.sandbox, limit=20),
            out.words(network_words(agent), "" if agent.network_enforced else "yellow", 30),
            moment(agent.network_since) if agent.network_since else "",
            out.words(why_words(agent), limit=300),
            out.words(agent.name, limit=60),
        )
    out.show(shaped(table, shape))
    return 0


def why_words(agent: AgentView) -> str:
    """Why its mode is what it is, and why nothing enforces it where that is so."""
    if agent.network_enforced or agent.network_asked in ("", "FULL"):
        return named_here(agent.network_why)
    return f"{agent.network_asked} is not enforceable here: {agent.network_note or 'nothing holds it'} ({named_here(agent.network_why)})"


@app.command("requests")
@example("a-1b2c3d4e --blocked")
def requests(
    agent: Annotated[str, Argument(metavar="AGENT", help="Its id; without: those of all agents.", show_default=False)] = "",
    blocked: Annotated[bool, Option("--blocked", help="Only those that were refused.")] = False,
    limit: Annotated[int, Option("--limit", metavar="N", help="How many of the newest are looked at, 1 to 1000.")] = 200,
    shape: Shape = UNSHAPED,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What agents in PROXIED mode asked for, newest first: host, whether it was let through, and by which entry."""
    if not 1 <= limit <= MOST:
        raise UsageProblem(f"--limit {limit} is not possible.", f"Name a number from 1 to {MOST}.")
    with connect(state_dir) as client:
        seen = client.egress(limit, agent)
        if agent and not seen.egress:
            client.agent(agent)  # refuses one that there is not; of one that is forgotten the requests are kept
    rows = [one for one in seen.egress if not (blocked and one.allowed)]
    if as_json:
        out.emit_view(seen.replaced(egress=rows))
        return 0
    if not rows:
        which = f"No {'refused ' if blocked else ''}request{f' of {plain(agent, 70)}' if agent else ''}"
        # The older ones were not looked at, so nothing is said of them.
        out.say(f"{which} is recorded." if not seen.egress else f"{which} is among the newest {len(seen.egress)}.")
        return 0
    table = new_table("WHEN", "AGENT", "METHOD", "HOST", "PATH", "PASSED", "WHY", "NAME")
    for one in rows:
        table.add_row(
            moment(one.at, "seconds"),
            out.words(one.agent_id, limit=70),
            out.words(one.method, limit=20),
            out.words(one.host, limit=260),
            out.words(one.path, limit=200),
            out.words("yes" if one.allowed else "no", "" if one.allowed else "yellow", 3),
            out.words(one.rule, limit=300),
            out.words(one.agent_name, limit=60),
        )
    out.show(shaped(table, shape))
    return 0


@app.command("tighten")
@example("a-1b2c3d4e --mode NONE --reason 'it needs no network'")
def tighten(
    mode: Annotated[str, Option("--mode", metavar="MODE", help="PROXIED or NONE. A looser one than now is refused.")],
    reason: Reason,
    agent: Agent = "",
    session: Session = "",
    dry_run: Dry = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Switch to a stricter network mode, for good; to cut and give back, use isolate and reconnect."""
    body = build(StricterBody, scope=_meant(agent, session), mode=mode.upper(), reason=reason, dry_run=dry_run)
    with connect(state_dir, SWITCH_S) as client:
        return _told(client.stricter(body), as_json)


@example("a-1b2c3d4e --dataset payroll --sensitivity SECRET --reason 'the task needs it'")
def classify(
    dataset: Annotated[str, Option("--dataset", metavar="NAME", help="What enters the session.")],
    sensitivity: Annotated[str, Option("--sensitivity", metavar="LEVEL", help="PUBLIC, INTERNAL, CONFIDENTIAL or SECRET.")],
    reason: Reason,
    agent: Agent = "",
    session: Session = "",
    source: Annotated[str, Option("--source", metavar="NAME", help="Where it comes from.")] = "",
    dry_run: Dry = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Register private data before you hand it over: what its sensitivity asks for holds when this returns."""
    body = build(
        RegisterDataBody,
        scope=_meant(agent, session),
        dataset=dataset,
        sensitivity=sensitivity.upper(),
        source=source,
        reason=reason,
        dry_run=dry_run,
    )
    with connect(state_dir, SWITCH_S) as client:
        return _told(client.register_data(body), as_json)


@app.command("history")
@example("a-1b2c3d4e")
def history(agent: Agent = "", session: Session = "", state_dir: StateDir = None, as_json: Json = False) -> int:
    """Show how a session got its sensitivity and network mode: when, which operator, why. Newest first."""
    scope = _meant(agent, session)
    with connect(state_dir) as client:
        context = scope.target if scope.reach == "session" else _session_of(client.fleet().agents, scope.target)
        seen = client.mode_history(context, scope.target if scope.reach == "agent" else "")
    if as_json:
        out.emit_view(seen)
        return 0
    _show_history(seen)
    return 0


def _meant(agent: str, session: str) -> MeantBody:
    if bool(agent) == bool(session):
        raise UsageProblem("Name one of: AGENT, --session ID.", "watchfloor network sandboxes lists agents and their sessions.")
    reach: Literal["agent", "session"] = "agent" if agent else "session"
    return build(MeantBody, reach=reach, target=agent or session)


def _session_of(agents: list[AgentView], agent_id: str) -> str:
    for agent in agents:
        if agent.id == agent_id:
            return agent.session
    raise NotFound(f"There is no agent {agent_id[:80]!r}.", "watchfloor fleet lists the agents.")


def _told(view: StricterView, as_json: bool) -> int:
    """Exit 0 when everybody who is meant was verified; of a dry run, when it would not be refused."""
    failed = bool(view.why_not) if view.dry_run else view.not_enforceable > 0
    if as_json:
        out.emit_view(view)
        return int(ExitCode.FAILURE if failed else ExitCode.DONE)
    out.say(plain(view.words, 500))
    if view.why_not:
        out.note(f"it would be refused: {plain(view.why_not, 500)}")
    for agent in view.agents[:NAMED]:
        verb = "would be" if view.dry_run else "is"
        words = f"{plain(agent.id, 70)}  {plain(agent.name, 60)}  {agent.before} -> {agent.mode}"
        doubt = "" if agent.verified else f", NOT verified: it {verb} not enforceable here"
        note = agent.note.removeprefix("not enforceable here: ") if doubt else agent.note
        out.say(words + doubt + (f": {plain(note, 300)}" if note else ""))
    if view.agents_total > NAMED:
        out.say(f"and {view.agents_total - min(NAMED, len(view.agents))} more (the counts above are whole; --json names more)")
    return int(ExitCode.FAILURE if failed else ExitCode.DONE)


def _show_history(seen: ModeHistoryView) -> None:
    began = f", began {moment(seen.began_at)}" if seen.began_at is not None else ""
    data = counted(seen.registrations, "registration")
    out.say(f"session {plain(seen.session, 70)}: {seen.sensitivity}, network {seen.mode}{began}; {data} of data")
    if not seen.changes:
        out.say("Nothing ever changed its mode.")
        return
    table = new_table("WHEN", "MODE", "SENSITIVITY", "CAUSE", "BY", "AGENT", "WORDS")
    for change in seen.changes:
        row = (
            moment(change.at, "seconds"),
            change.mode,
            change.sensitivity,
            _cause(change),
            named_here(change.by),
            change.agent_id,
            change.words,
        )
        table.add_row(*(out.words(cell, limit=300) for cell in row))
    out.show(table)
    if seen.left_out:
        out.say(f"and {seen.left_out} older isolations and proofs")


def _cause(change: ModeChangeView) -> str:
    if change.cause != "enforced":
        return change.cause
    took = f" in {change.ms:.0f} ms" if change.ms is not None else ""
    return f"verified{took}" if change.enforced else "NOT enforceable here"
