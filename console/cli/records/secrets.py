"""``watchfloor secrets rotation show | run | put | api-key`` and ``watchfloor secrets revoke AGENT``: secrets, and what became of them."""

from __future__ import annotations

import sys
import time
from typing import Annotated

from console.api.secrets import RotationBody, RotationValueBody, RotationView
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.stop.secret_input import hidden
from console.cli.syntax import Argument, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import new_table
from console.domain.errors import ExitCode, UsageProblem
from console.domain.words import counted

ROTATION_S = 120.0
"""A plan may hold programs that take their time."""
_LONGEST = 8192

rotation_app = Verbs("Secrets that are replaced after a kill, and the proof that the old ones are refused.")


@rotation_app.command("show")
def show(state_dir: StateDir = None, as_json: Json = False) -> int:
    """The plan without any value, what the last rotation came to, and what is still owed."""
    with connect(state_dir) as client:
        return _told(client.rotation(), as_json)


@rotation_app.command("run")
@example("github-token --reason 'the leak'")
def run(
    reason: Reason,
    items: Annotated[list[str] | None, Argument(metavar="[ITEM]...", help="Names; without any, everything.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Rotate now, or take up what is unfinished. Works while killed. Exit 7 when something is not proven."""
    with connect(state_dir, ROTATION_S) as client:
        return _told(client.rotate(build(RotationBody, items=items or [], reason=reason)), as_json)


@rotation_app.command("put")
@example("github-token")
def put(
    name: Annotated[str, Argument(metavar="ITEM", help="An item of kind command or http.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Tell the value in force of an item that cannot be read back, on standard input: never as an argument."""
    if sys.stdin.isatty():
        value = hidden("Value in force (not shown): ")
    else:
        value = sys.stdin.read(_LONGEST + 2).removesuffix("\n")
    if not 8 <= len(value) <= _LONGEST:
        raise UsageProblem(f"A value has 8 to {_LONGEST} characters.", "Give it on standard input.")
    with connect(state_dir) as client:
        return _told(client.tell_value(build(RotationValueBody, name=name, value=value)), as_json)


@rotation_app.command("api-key")
def api_key(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Make a new API key and show it, this once; the one before is refused from now on."""
    with connect(state_dir) as client:
        made = client.new_api_key()
    if as_json:
        out.emit_view(made)
    else:
        out.say(made.api_key)
    return int(ExitCode.DONE)


@example("a-1b2c3d4e")
def revoke(
    agent: Annotated[str, Argument(metavar="AGENT", help="Its id, as watchfloor fleet lists it.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Revoke one agent's tokens, for good, and refuse it on its own socket. It goes on running: freeze or kill it as well."""
    with connect(state_dir) as client:
        done = client.revoke_token(agent)
    if as_json:
        out.emit_view(done)
    else:
        out.say(f"revoked: {plain(done.agent, 70)}; {counted(done.connections_cut, 'connection')} cut")
    return int(ExitCode.DONE)


def _told(view: RotationView, as_json: bool) -> int:
    if as_json:
        out.emit_view(view)
    else:
        _print(view)
    proven = view.last_ok is not False and not view.unfinished and not view.plan_error
    return int(ExitCode.DONE if proven else ExitCode.LATER_STEP)


def _print(view: RotationView) -> None:
    out.say(f"kept in {plain(view.kept_in, 100)}")
    for words in view.why_not_better:
        out.say(f"  because {plain(words, 400)}")
    out.say(f"plan {plain(view.plan_file, 300)}")
    if view.plan_error:
        out.note(plain(view.plan_error, 600))
    table = new_table("ITEM", "KIND", "REPLACED BY", "VERIFIER", "LAST", "AGAIN")
    for item in view.items:
        last = "-" if item.ok is None else ("proven" if item.ok else "NOT PROVEN")
        table.add_row(*(out.words(text, limit=300) for text in (item.name, item.kind, item.how, item.verifier, last, item.again or "-")))
    out.show(table)
    for item in view.items:
        if item.ok is False:
            out.note(f"{plain(item.name)}: {plain(item.detail, 500)}")
    if view.last_at is not None:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(view.last_at))
        out.say(
            f"last rotation {at}: {plain(view.last_detail, 300)}" + (f" (kill {plain(view.last_kill_id)})" if view.last_kill_id else "")
        )
    if view.unfinished:
        out.note("a rotation is not proven: watchfloor secrets rotation run takes it up")
