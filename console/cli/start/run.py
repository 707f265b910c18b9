"""``watchfloor run``: starts an agent, and with --wait shows what it does and ends with its exit code."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from console.api.client.api_client import ApiClient
from console.api.endpoints import LAUNCH_S, START_S
from console.api.messages import AgentView, LaunchBody, LaunchedView, OutputView
from console.cli.agents.activity import follow_answers
from console.cli.agents.output import follow_on
from console.cli.embedded import ensure_supervisor
from console.cli.link import build
from console.cli.options import DangerousOk, Json, StateDir
from console.cli.stop.rearm import hint
from console.cli.syntax import Argument, Option, Typed, Verb, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.waiting import said_while
from console.domain.agent import AgentId, ContextId, LaunchRequest
from console.domain.budget import parse_limits
from console.domain.errors import ExitCode, NotFound, Unavailable, UsageProblem
from console.domain.process.account import named_here
from console.domain.process.environment import PATH
from console.wording.agent_kinds import EXAMPLE, STARTABLE
from console.wording.limits import with_limits

_PROGRAMS = ", ".join(STARTABLE)
_LOOK_S = 1.0
"""Between two looks at what waits for approval."""
_IT_RUNS = ("the agent to run (the first one in a container builds its image)", f"after {LAUNCH_S:.0f} s")


@example("--sandbox bubblewrap --limit cost=2.50 --wait -- python3 my_agent.py")
def run(
    typed: Typed,
    command: Annotated[list[str] | None, Argument(metavar="-- COMMAND ...", help="What to run.")] = None,
    again: Annotated[str | None, Option(metavar="AGENT", help="Start this agent of before a kill again, as it was.")] = None,
    parent: Annotated[str | None, Option(metavar="ID", help="The agent that spawns it; without: a root agent.")] = None,
    context: Annotated[str | None, Option("--session", metavar="ID", help="Session to run in; without: a new one.")] = None,
    sandbox: Annotated[
        str | None,
        Option(metavar="KIND", help="none, bubblewrap, docker or gvisor; without: none, but with --agent bubblewrap where it works."),
    ] = None,
    sensitivity: Annotated[str, Option(metavar="LEVEL", help="PUBLIC, INTERNAL, CONFIDENTIAL or SECRET.")] = "PUBLIC",
    network: Annotated[str | None, Option(metavar="MODE", help="FULL, PROXIED or NONE, if stricter than LEVEL asks.")] = None,
    limit: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="A limit of the agent, e.g. cost=2.50; repeatable.")] = None,
    tree_limit: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="A limit of its whole tree; repeatable.")] = None,
    unmeasured: Annotated[bool, Option("--unmeasured", help="Accept a limit on cost that nothing measures here.")] = False,
    name: Annotated[str, Option(metavar="WORDS", help="What people call it; without: the command.")] = "",
    agent_type: Annotated[str, Option("--type", metavar="TYPE", help="What kind of agent: settings per type apply to it.")] = "",
    project: Annotated[str, Option(metavar="NAME", help="A project whose budget is charged too, in addition to its session's.")] = "",
    scope: Annotated[list[str] | None, Option(metavar="NAME", help="Grant only such effects, e.g. READ_FS; repeatable.")] = None,
    wait: Annotated[bool, Option("--wait", help="Stream its output, or a program's answer; end with its exit code.")] = False,
    agent: Annotated[str | None, Option(metavar="PROGRAM", help=f"{_PROGRAMS}: start it; behind -- stands its prompt.")] = None,
    model: Annotated[str, Option(metavar="NAME", help="With --agent: the model it uses.")] = "",
    once: Annotated[bool, Option("--once", help="With --agent: it answers the prompt and ends. It takes no messages.")] = False,
    batch: Annotated[str | None, Option(metavar="FILE", help="Start several programs: JSON lines or a YAML list.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what it could do at worst; start nothing.")] = False,
    in_dry_run: Annotated[
        bool, Option("--in-dry-run", help="Start it in dry-run: its calls are checked and planned, not executed.")
    ] = False,
    dangerous_ok: DangerousOk = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Launch an agent. Prints its id and returns once it runs (exit 1: it cannot); starts an embedded supervisor when none runs."""
    argv = tuple(command or ())
    if wait and as_json:
        raise UsageProblem("--wait streams what the agent writes, so --json cannot be used with it.", "Leave one of them out.")
    if again is not None:
        _as_it_was(typed)
        return _again(again, state_dir, dangerous_ok, as_json=as_json, wait=wait)
    if agent is not None or batch is not None:
        if parent is not None:
            raise UsageProblem("--parent does not go with --agent: a program is started as a root.", "Leave it out.")
        given: dict[str, Any] = {"name": name, "context_id": context, "sandbox": sandbox or "auto", "sensitivity": sensitivity.upper()}
        given |= {"agent_type": agent_type, "network_mode": None if network is None else network.upper(), "model": model, "once": once}
        given |= {"limits": parse_limits(limit or ()), "tree_limits": parse_limits(tree_limit or ()), "project": project}
        given |= {"scopes": None if scope is None else [name.upper() for name in scope], "dry_run": in_dry_run, "unmeasured": unmeasured}
        return _program(agent, batch, argv, given, (state_dir, dangerous_ok), dry_run=dry_run, as_json=as_json, wait=wait)
    if model or once:
        raise UsageProblem("--model and --once go with --agent or --batch.", f"Name a program: --agent {EXAMPLE}.")
    typed_as, sandbox = argv, sandbox or "none"
    argv = as_installed(argv) if sandbox in ("none", "bubblewrap") else argv
    LaunchRequest(
        argv,
        name=name,
        parent_id=None if parent is None else AgentId(parent),
        context_id=None if context is None else ContextId(context),
        agent_type=agent_type,
        project=project,
    ).check()
    body = build(
        LaunchBody,
        argv=list(argv),
        name=name or Path(typed_as[0]).name[:200],
        parent_id=parent,
        context_id=context,
        sandbox=sandbox,
        sensitivity=sensitivity.upper(),
        network_mode=None if network is None else network.upper(),
        limits=parse_limits(limit or ()),
        tree_limits=parse_limits(tree_limit or ()),
        agent_type=agent_type,
        project=project,
        scopes=None if scope is None else [name.upper() for name in scope],
        wait_output=wait,
        dangerous_ok=dangerous_ok,
        dry_run=in_dry_run,
        unmeasured=unmeasured,
    )
    with ApiClient(ensure_supervisor(state_dir)) as client:
        hint(client)
        if dry_run:
            from console.cli.start.run_program import show_command

            return show_command(client.preview_command(body), as_json=as_json, is_confirmed=bool(dangerous_ok.strip()))
        with said_while(*_IT_RUNS):
            launched = client.launch(body)
        _tell(launched, as_json=as_json, wait=wait)
        return _follow(client, launched.id) if wait else _begun(launched)


verb = Verb(run, words_last=True)


def as_installed(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command with the whole path of a program that only the operator's own PATH has (npm, pipx, nvm), and says which one that is.

    A script whose interpreter has no other place either (``#!/usr/bin/env node``) is run by that one: an agent's PATH holds neither.
    """
    if not argv or "/" in argv[0] or shutil.which(argv[0], path=PATH) is not None:
        return argv
    found = shutil.which(argv[0]) or ""
    if not found.startswith("/"):
        return argv  # a folder such as "." means another one where the agent runs
    words, interpreter = (found, *argv[1:]), _by_env(Path(found))
    by = shutil.which(interpreter) or "" if interpreter and shutil.which(interpreter, path=PATH) is None else ""
    out.note(f"note: {plain(argv[0], 60)} is {plain(found, 300)}, by your PATH" + (f"; {plain(by, 300)} runs it" if by else ""))
    return (by, *words) if by.startswith("/") else words


def _by_env(script: Path) -> str:
    """The interpreter that env(1) looks up on PATH for a script, or empty."""
    try:
        with script.open("rb") as file:
            words = file.read(256).partition(b"\n")[0].decode("ascii", "replace").split()
    except OSError:
        return ""
    return words[1] if words[:1] == ["#!/usr/bin/env"] and len(words) == 2 else ""


def _program(
    agent: str | None,
    batch: str | None,
    argv: tuple[str, ...],
    given: dict[str, Any],
    instance: tuple[str | None, str],
    *,
    dry_run: bool,
    as_json: bool,
    wait: bool,
) -> int:
    """One program with the prompt behind ``--``, or all of a file, for which the command line's options are the defaults.

    ``instance``: its state directory, and why the operator confirms what the words name.
    """
    from console.cli.start import run_program

    if batch is not None and (argv or wait):
        raise UsageProblem("--batch takes neither a prompt nor --wait.", "The prompts stand in the file.")
    if argv and len(argv[0]) > 1 and argv[0].startswith("-") and " " not in argv[0]:
        raise UsageProblem(
            f"Behind -- stands the prompt, and no word of it becomes an option of the program: {plain(argv[0], 80)}.",
            "Leave it out. With options of its own, start it as a command: watchfloor run -- PROGRAM ...",
        )
    items = (
        run_program.batch_of(batch, given | ({"agent": agent} if agent is not None else {}))
        if batch is not None
        else [run_program.item_of(agent or "", " ".join(argv), **given)]
    )
    with ApiClient(ensure_supervisor(instance[0])) as client:
        with said_while("the supervisor to look and start", f"after {START_S:.0f} s"):
            code, started = run_program.start(items, client, dangerous_ok=instance[1], dry_run=dry_run, as_json=as_json, wait=wait)
        return _follow(client, started) if wait and started else code


def _as_it_was(given: Typed) -> None:
    """Raises UsageProblem for anything beside ``--again`` that would change what runs, or whether: it would be left out in silence."""
    for key, word in given.items():
        if key not in ("again", "wait", "state_dir", "as_json", "dangerous_ok"):
            named = word if word.startswith("--") and key != "command" else "command"
            raise UsageProblem(f"--again takes no {named}: it runs the agent as it was.", "Leave it out.")


def _again(agent_id: str, state_dir: str | None, dangerous_ok: str, *, as_json: bool, wait: bool) -> int:
    """The same command in the same session, with the same caps: after a rearm, one by one, by a person's choice."""
    with ApiClient(ensure_supervisor(state_dir)) as client:
        with said_while(*_IT_RUNS):
            launched = client.again(agent_id, dangerous_ok)
        _tell(launched, as_json=as_json, wait=wait)
        return _follow(client, launched.id) if wait else _begun(launched)


def _tell(launched: LaunchedView, *, as_json: bool, wait: bool) -> None:
    if as_json:
        out.emit_view(launched)
        return
    for words in launched.notes:
        out.note(f"note: {plain(words, 500)}")
    if wait:
        out.note(f"agent {plain(launched.id)} runs")
    else:
        out.say(plain(launched.id))


def _begun(launched: LaunchedView) -> int:
    """0 once its program runs; a program that could not be executed is a failed launch, whose agent is in the fleet all the same."""
    if not launched.not_begun:
        return int(ExitCode.DONE)
    out.note(f"agent {plain(launched.id)} did not start: {plain(launched.not_begun, 500)}")
    if " " in launched.not_begun.partition("'")[2].partition("'")[0]:  # what was run, as its quoted name says
        out.note("  Write the program and each of its arguments as a word of its own, without quotes around all of them.")
    return int(ExitCode.FAILURE)


def _follow(client: ApiClient, agent_id: str) -> int:
    """Show what it does until the agent has ended. Ctrl-C ends the view only: a line tells that the agent still runs."""
    is_program, asked = bool(_agent(client, agent_id).program), _Asked(client, agent_id)
    try:
        last = _answers(client, agent_id, asked.tell) if is_program else follow_on(client, agent_id, beside=asked.tell)
    except KeyboardInterrupt:
        out.note(f"\nagent {agent_id} still runs; stop it with: watchfloor kill {agent_id}")
        raise
    return 1 if last is None else _ended(client, agent_id, last.exit_code, is_program=is_program)


class _Asked:
    """Tells on stderr, once for each, which calls of an agent and of its children wait for a person: without one they are denied."""

    def __init__(self, client: ApiClient, root: str) -> None:
        self._client, self._root = client, root
        self._told: set[str] = set()
        self._next = 0.0

    def tell(self) -> None:
        """Look for new ones, unless it looked a moment ago."""
        if time.monotonic() < self._next:
            return
        for row in self._client.approvals().waiting:
            if row.root_id == self._root and row.id not in self._told:
                self._told.add(row.id)
                name, left = plain(row.id, 70), f"{max(1, round(row.left_s / 60))} min"
                what = f"{plain(row.tool, 40)} {plain(row.argument, 300)}"
                out.note(f"agent {plain(row.agent_id, 70)} waits for you: {what} (denied without an answer within {left})")
                out.note(f"  watchfloor approval approve {name}, or watchfloor approval deny {name}")
        self._next = time.monotonic() + _LOOK_S


def _answers(client: ApiClient, agent_id: str, beside: Callable[[], None]) -> OutputView | None:
    """What a program does, in lines for a person. Its raw output where no activity is kept."""
    try:
        return follow_answers(client, agent_id, beside)
    except Unavailable as error:
        out.note(f"{plain(error.what, 300)} What it writes follows as it is.")
        return follow_on(client, agent_id, beside=beside)


def _agent(client: ApiClient, agent_id: str) -> AgentView:
    try:
        return client.agent(agent_id).agent
    except NotFound:  # it has ended and was forgotten
        return AgentView(id=agent_id, state="")


def _ended(client: ApiClient, agent_id: str, code: int | None, *, is_program: bool) -> int:
    agent = _agent(client, agent_id)
    shown = 1 if code is None else 128 - code if code < 0 else code
    if agent.state not in ("", "ended", "failed"):
        why = f": {plain(with_limits(named_here(agent.state_reason)), 500)}" if agent.state_reason else ""
        out.note(f"agent {agent_id}: {agent.state.replace('_', ' ')}{why}")
    elif is_program:
        out.note(f"agent {agent_id} ended with exit code {shown}; its raw output: watchfloor agent output {agent_id}")
    return shown
