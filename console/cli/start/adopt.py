"""``watchfloor adopt AGENT``: which process a seen agent is, and, with --pid, taking it over."""

from __future__ import annotations

import re
from typing import Annotated

from console.api.agents.adopt import AdoptBody, AdoptedView, Candidate, CandidatesView
from console.cli.link import build, connect
from console.cli.options import Json, StateDir
from console.cli.stop.daemons import show_daemons
from console.cli.syntax import Argument, Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import new_table
from console.domain.errors import Conflict, ExitCode, UsageProblem
from console.domain.words import counted

ADOPT_S = 60.0
_NAMED = re.compile(r"([0-9]{1,7}):([0-9]{1,18})")
Agent = Annotated[str, Argument(metavar="AGENT", help="An observed agent's id, as watchfloor fleet lists it.", show_default=False)]
Process = Annotated[str, Option("--pid", metavar="PID:START", help="Adopt it: the candidate exactly as it was listed.")]
Also = Annotated[list[str] | None, Option("--also", metavar="PID:START", help="An orphan that is its too; repeatable.")]
Why = Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded.")]


@example("a-1b2c3d4e --pid 4242:1234567 --reason 'it burns money'")
def adopt(agent: Agent, pid: Process = "", also: Also = None, reason: Why = "", state_dir: StateDir = None, as_json: Json = False) -> int:
    """List the process of an agent that was only seen, with reasons; with --pid take it over, so that freeze and kill hold it."""
    named, others = _one(pid) if pid else None, [_one(word) for word in also or ()]
    if others and named is None:
        raise UsageProblem("--also goes with --pid.", "Run it without both to see the candidates.")
    with connect(state_dir, ADOPT_S) as client:
        seen = client.adopt_candidates(agent)
        if named is None:
            return _show(seen, as_json)
        chosen = _chosen(seen, named)
        fields = {"pid": chosen.pid, "start_ticks": chosen.start_ticks, "exe": chosen.exe, "uid": chosen.uid}
        orphans = [{"pid": p, "start_ticks": t} for p, t in others]
        return _told(client.adopt(build(AdoptBody, agent=seen.agent, **fields, also=orphans, reason=reason)), as_json)


def _one(word: str) -> tuple[int, int]:
    """UsageProblem for a bare pid: its number may be another process's by the time of the answer."""
    match = _NAMED.fullmatch(word)
    if match is None:
        raise UsageProblem(f"{plain(word, 40)!r} is not PID:START.", "Name the process as watchfloor adopt AGENT lists it.")
    return int(match[1]), int(match[2])


def _chosen(seen: CandidatesView, named: tuple[int, int]) -> Candidate:
    for candidate in seen.candidates:
        if candidate.kind == "itself" and (candidate.pid, candidate.start_ticks) == named:
            return candidate
    why = f": {seen.why_not}" if seen.why_not else ""
    raise Conflict(f"Agent {seen.agent} is not process {named[0]} started at {named[1]}{why}.", "Look at the candidates again.")


def _show(seen: CandidatesView, as_json: bool) -> int:
    """Exit 0 when it may be adopted now, 1 when not."""
    code = int(ExitCode.FAILURE if seen.why_not else ExitCode.DONE)
    if as_json:
        out.emit_view(seen)
        return code
    table = new_table("PID:START", "WHAT", "UID", "MAY BE ADOPTED", "PROGRAM", "COMMAND")
    for one in seen.candidates:
        may = out.words(f"no: {one.why_not}", "yellow", 300) if one.why_not else out.words("yes")
        uid = "" if one.uid is None else str(one.uid)
        table.add_row(
            f"{one.pid}:{one.start_ticks}", _what(one), uid, may, out.words(one.exe, limit=200), out.words(one.command, limit=120)
        )
    if seen.candidates:
        out.show(table)
    if seen.why_not:
        out.note(f"it cannot be adopted: {plain(seen.why_not, 500)}")
        return code
    out.say(f"{counted(1 + seen.descendants, 'process comes', 'processes come')} along.")
    show_daemons(seen.daemons)
    if seen.orphans:
        why = "of its account, started after it, with the same session, folder, program or cgroup: a guess"
        out.say(f"{counted(seen.orphans, 'process stays', 'processes stay')} outside and may be its ({why}).")
        out.say("Those that you know are its come along with --also PID:START. A kill lists the others as suspects.")
    for words in seen.lacks:
        out.say(f"not had by adopting: {words}")
    first = seen.candidates[0]
    out.say(f"to adopt it: watchfloor adopt {plain(seen.agent, 70)} --pid {first.pid}:{first.start_ticks} --reason ...")
    return code


def _what(one: Candidate) -> str:
    return f"{_KIND[one.kind]}: same {one.by}" if one.by else _KIND[one.kind]


_KIND = {"itself": "the agent", "descendant": "comes along", "orphan": "stays outside"}


def _told(done: AdoptedView, as_json: bool) -> int:
    """Exit 8 when what was adopted can only be stopped as a best effort."""
    code = int(ExitCode.BEST_EFFORT if done.best_effort else ExitCode.DONE)
    if as_json:
        out.emit_view(done)
        return code
    out.say(f"adopted: {plain(done.agent, 70)}, {counted(done.moved, 'process', 'processes')}")
    for pid, why in done.left.items():
        out.note(f"NOT moved: process {plain(pid, 20)}: {plain(why, 300)}")
    if done.orphans:
        out.note(f"{done.orphans} orphans that may be its were left outside")
    if done.best_effort:
        out.note(f"a kill of it is best effort: {plain(done.best_effort, 300)}")
    if done.owner_folder:
        out.say(f"its owner reads in {plain(done.owner_folder, 300)} that it was adopted, and why when a budget stops it")
    if done.owner_why_not:
        out.note(plain(done.owner_why_not, 500))
    if done.frozen:
        out.note(f"it is FROZEN still: {plain(done.frozen, 300)}")
    return code
