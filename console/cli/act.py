"""``watchfloor freeze | isolate | kill | thaw | reconnect``: a rung of the ladder over an agent, a tree, a session, a host, all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from console.api.ladder import LadderAgent, LadderBody, LadderPreview, ScopeBody
from console.api.messages import ActView
from console.cli import out, panic, receipts
from console.cli.daemons import show_daemons
from console.cli.link import build, connect
from console.cli.options import Json, StateDir, existing_places, operator
from console.cli.plain import plain
from console.cli.return_watch import after_watch
from console.cli.syntax import Argument, Option
from console.cli.tables import new_table
from console.domain.errors import AlreadyEnded, ConsoleError, ExitCode, Unreachable, UsageProblem
from console.domain.kill import Step, decided
from console.domain.ladder import Reach, Rung, Scope
from console.domain.verdict import verdict
from console.domain.words import counted
from console.killswitch.client import GuardClient

Agent = Annotated[str, Argument(metavar="AGENT", help="Its id, as watchfloor fleet lists it.", show_default=False)]
Tree = Annotated[bool, Option("--tree", help="And everything below it.")]
Session = Annotated[str, Option("--session", metavar="CONTEXT", help="Everybody in this session, and all below them.")]
Host = Annotated[bool, Option("--host", help="Everything this instance holds on this host.")]
All = Annotated[bool, Option("--all", help="Everything; a kill of everything is a panic, and latches.")]
Why = Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded.")]
Suspects = Annotated[
    str, Option("--suspects", metavar="KILL", help="Kill the suspects that the receipt of this kill names and preselects.")
]
Pids = Annotated[list[int] | None, Option("--pid", metavar="PID", help="With --suspects: exactly this one; repeatable.")]
Dry = Annotated[bool, Option("--dry-run", help="Show what would happen, to whom and how surely; do nothing.")]

DONE = {Rung.FREEZE: "frozen", Rung.THAW: "thawed", Rung.ISOLATE: "isolated", Rung.RECONNECT: "reconnected", Rung.KILL: "killed"}
_HELP = {
    Rung.FREEZE: "Reversible stop: nothing of it runs, nothing is lost; thaw undoes it.",
    Rung.THAW: "Undo your freeze. Freezes with other causes (budget, heartbeat ...) stay.",
    Rung.ISOLATE: "Cut off the network now, and of whatever it starts; reconnect undoes it.",
    Rung.RECONNECT: "Undo your isolation: back to what the session's data still allows, never more.",
}
NAMED = 20
SEEN_S = 3.0
"""Longest wait for what was frozen to be seen frozen."""


def scope_of(agent: str, tree: bool, session: str, host: bool, everything: bool) -> Scope:
    """The one scope that was named. Raises UsageProblem for none, or for several."""
    named = [bool(agent), bool(session), host, everything]
    if sum(named) != 1:
        raise UsageProblem(
            "Name one of: AGENT, --session CONTEXT, --host, --all.",
            "watchfloor fleet lists agents, watchfloor network sandboxes their sessions; see --help.",
        )
    if tree and not agent:
        raise UsageProblem("--tree goes with an AGENT.", "A session, a host and everything include what is below already.")
    if agent:
        scope = Scope(Reach.TREE if tree else Reach.AGENT, agent)
    else:
        scope = Scope(Reach.SESSION, session) if session else Scope(Reach.HOST if host else Reach.ALL)
    scope.check()
    return scope


def verb(rung: Rung) -> Callable[..., int]:
    """The function behind one verb."""

    def act(
        agent: Agent = "",
        tree: Tree = False,
        session: Session = "",
        host: Host = False,
        everything: All = False,
        reason: Why = "",
        dry_run: Dry = False,
        state_dir: StateDir = None,
        as_json: Json = False,
    ) -> int:
        return carry_out(rung, scope_of(agent, tree, session, host, everything), reason, state_dir, dry_run=dry_run, as_json=as_json)

    act.__doc__ = _HELP[rung]
    return act


def kill(
    agent: Agent = "",
    tree: Tree = False,
    session: Session = "",
    host: Host = False,
    everything: All = False,
    suspects: Suspects = "",
    pid: Pids = None,
    reason: Why = "",
    dry_run: Dry = False,
    wait_watch: panic.WaitWatch = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Kill and print the receipt. There is no way back. --all latches, as panic does."""
    if suspects:
        if agent or tree or session or host or everything:
            raise UsageProblem("--suspects goes with the id of a kill alone.", "watchfloor receipt list shows the kills.")
        return kill_suspects(suspects, pid or [], state_dir, dry_run=dry_run, as_json=as_json)
    if pid:
        raise UsageProblem("--pid names suspects of a kill.", "Add --suspects KILL.")
    scope = scope_of(agent, tree, session, host, everything)
    return carry_out(Rung.KILL, scope, reason, state_dir, dry_run=dry_run, as_json=as_json, wait_watch=wait_watch)


def kill_suspects(kill_id: str, pids: list[int], state_dir: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Ends suspects of a kill through the guard: the ones named, or the preselected ones. Exit 0 when all of them are dead."""
    places = existing_places(state_dir)
    if dry_run:
        with connect(state_dir) as client:
            receipts.show_suspects(client.receipt(kill_id), as_json=as_json)
        return int(ExitCode.DONE)
    guard = GuardClient(places.guard_sock, timeout_s=10)
    try:
        answer = guard.end_suspects(kill_id, pids, operator())
    finally:
        guard.close()
    if as_json:
        out.emit({key: answer.get(key) for key in ("kill_id", "ended", "n", "n_done")})
    else:
        out.say(f"{int(answer.get('n_done', 0))} of {counted(int(answer.get('n', 0)), 'suspect')} dead")
        for one in answer.get("ended", []):
            words = f"process {int(one.get('pid', 0))}: {plain(str(one.get('words', '')), 300)}"
            (out.say if one.get("done") else out.note)(words)
        if not answer.get("n"):
            out.note("No suspect of this kill is preselected: name them with --pid.")
    return int(ExitCode.DONE if answer.get("n") and answer.get("n") == answer.get("n_done") else ExitCode.FAILURE)


freeze, thaw, isolate, reconnect = (verb(rung) for rung in (Rung.FREEZE, Rung.THAW, Rung.ISOLATE, Rung.RECONNECT))


def carry_out(
    rung: Rung, scope: Scope, reason: str, state_dir: str | None, *, dry_run: bool, as_json: bool, wait_watch: bool = False
) -> int:
    """One rung over one scope, or its preview; the exit code."""
    wanted = build(ScopeBody, reach=scope.reach.value, target=scope.target)
    body = build(LadderBody, action=rung.value, scope=wanted, reason=reason)
    if dry_run:
        with connect(state_dir) as client:
            return _show_preview(client.preview(body), as_json)
    if rung is Rung.KILL and scope.reach is Reach.ALL:
        return panic.panic(reason, state_dir, as_json, wait_watch)  # works without a supervisor
    if rung is Rung.KILL:
        return _kill(wanted, reason, state_dir, as_json, wait_watch)
    try:
        with connect(state_dir) as client:
            return _told(DONE[rung], client.ladder(body), as_json)
    except Unreachable as error:
        if rung is Rung.FREEZE and scope.is_everything:
            return _freeze_without_supervisor(state_dir, as_json, error)
        raise


def _kill(scope: ScopeBody, reason: str, state_dir: str | None, as_json: bool, wait_watch: bool) -> int:
    """The headline at zero, each later step as it is decided, then the whole receipt, which the exit code is of."""
    with connect(state_dir) as client:
        try:
            receipt = client.kill_scope(scope, reason)
        except AlreadyEnded as ended:
            if as_json:
                out.emit({"already_ended": True, "agent": scope.target, "words": ended.what, "exit_code": int(ended.exit_code)})
            else:
                out.say(plain(ended.what, 500))
            return int(ended.exit_code)
        if not as_json:
            out.note(f"killed: {verdict(receipt).headline}")
        if not panic.is_whole(receipt):
            tell = _ignored if as_json else _told_of_step
            receipt = panic.see_through(client, receipt, time.monotonic() + panic.FINISH_S, tell)
    receipt = receipt if panic.is_whole(receipt) else decided(receipt, f"not finished within {panic.FINISH_S:g} s")
    if wait_watch:
        receipt = after_watch(existing_places(state_dir), receipt, quiet=as_json)
    receipts.show_receipt(receipt, as_json=as_json)
    return int(verdict(receipt).exit_code)


def _told_of_step(step: Step) -> None:
    out.note(f"{step.name.value.replace('_', ' ')}: {step.status.value}" + (f", {plain(step.detail, 200)}" if step.detail else ""))


def _ignored(_step: Step) -> None:
    pass


def _freeze_without_supervisor(state_dir: str | None, as_json: bool, why: ConsoleError) -> int:
    """The guard freezes on its own word; only the supervisor knows a session or a tree."""
    places = existing_places(state_dir)
    guard = GuardClient(places.guard_sock, timeout_s=5)
    try:
        answer = guard.freeze("all", "operator", operator())
        doubts, unseen = _look_at_freeze(guard, dict(answer.get("unconfirmed", {})))
    except ConsoleError:
        raise why from None  # neither answers: how to start them is what helps
    finally:
        guard.close()
    asked = int(answer.get("frozen", 0)) + len(dict(answer.get("unconfirmed", {})))
    frozen = max(0, asked - unseen)
    failed = {str(agent): str(words) for agent, words in dict(answer.get("failed", {})).items()}
    failed |= {str(agent): f"not confirmed: {words}" for agent, words in doubts.items()}
    if as_json:
        out.emit({"agents": [], "frozen": frozen, "failed": failed, "by": "guard"})
    else:
        out.say(f"the supervisor does not answer; the guard has frozen {counted(frozen, 'agent')}")
        for agent, words in list(failed.items())[:NAMED]:
            out.note(f"NOT frozen: {plain(agent, 70)}: {plain(words, 500)}")
    return 1 if failed else 0


def _look_at_freeze(guard: GuardClient, asked: dict[str, str]) -> tuple[dict[str, str], int]:
    """Who is not seen to be frozen after ``SEEN_S`` at most (ten by name, all counted): that it was asked for is no proof."""
    until = time.monotonic() + SEEN_S
    try:
        while (look := guard.call("freezing", scope="all")).get("n") and time.monotonic() < until:
            time.sleep(0.05)
    except ConsoleError as error:
        return asked | {"all": f"the guard does not say who is frozen: {error}"}, len(asked)
    return {str(i): str(words) for i, words in dict(look.get("unconfirmed", {})).items()}, int(look.get("n", 0))


def _told(done: str, answer: ActView, as_json: bool) -> int:
    if as_json:
        out.emit_view(answer)
    else:
        if answer.agents:
            out.say(f"{done}: {_named(answer.agents)}")
        for agent, why in list(answer.failed.items())[:NAMED]:
            out.note(f"NOT {done}: {plain(agent, 70)}: {plain(why, 500)}")
        for agent, why in list(answer.excluded.items())[:NAMED]:
            out.note(f"left alone: {plain(agent, 70)}: {plain(why, 500)}")
        for words in answer.notes[:NAMED]:
            out.note(plain(words, 500))
    return int(ExitCode.FAILURE if answer.failed or not answer.agents else ExitCode.DONE)


def _named(ids: list[str]) -> str:
    words = ", ".join(plain(a, 70) for a in ids[:NAMED])
    return words + (f" and {len(ids) - NAMED} more" if len(ids) > NAMED else "")


def _show_preview(seen: LadderPreview, as_json: bool) -> int:
    """Exit 0 when it could be done now, 1 when it would be refused."""
    if as_json:
        out.emit_view(seen)
        return int(ExitCode.FAILURE if seen.why_not else ExitCode.DONE)
    out.say(plain(seen.words, 500))
    if seen.why_not:
        out.note(f"it would be refused: {plain(seen.why_not, 500)}")
    when = f" ({seen.count_age})" if seen.count_age else ""
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
    words = f"{plain(agent.id, 70)}  {plain(agent.name, 60)}  {plain(agent.control_level)}  {plain(agent.state)}"
    said = "; ".join(part for part in (plain(agent.why, 300), plain(agent.outside, 300)) if part)
    return words + (f": {said}" if said else "")
