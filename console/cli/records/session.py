"""``watchfloor session list | show | hold | delete``: sessions' workspaces."""

from __future__ import annotations

from typing import Annotated

from console.api.agents.sessions import ContextActBody, ContextsView, ContextView
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.syntax import Argument, Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import new_table
from console.domain.errors import NotFound

Context = Annotated[str, Argument(metavar="SESSION", help="Its id, as session list shows it.")]
_MIB = 1 << 20


def list_sessions(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Every session with a workspace."""
    with connect(state_dir) as client:
        seen = client.contexts()
    return _show(seen, as_json)


@example("c-1b2c3d4e")
def show(context: Context, state_dir: StateDir = None, as_json: Json = False) -> int:
    """One session: its agent, size, last use, and how long its workspace stays."""
    with connect(state_dir) as client:
        seen = client.contexts()
    found = [one for one in seen.contexts if one.context_id == context]
    if not found:
        raise NotFound(f"No session {plain(context, 70)} has a workspace.", "watchfloor session list shows those that have one.")
    if as_json:
        out.emit_view(found[0])
    else:
        _print(found)
    return 0


@example("c-1b2c3d4e --reason 'evidence'")
def hold(
    context: Context,
    reason: Reason,
    remove: Annotated[bool, Option("--remove", help="Remove the hold: the time to live counts again.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Keep its workspace as evidence: the time to live is paused."""
    return _act("release" if remove else "hold", context, reason, state_dir, as_json)


@example("c-1b2c3d4e --reason 'the case is closed'")
def delete(context: Context, reason: Reason, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Delete its workspace for good. Refused while it is used or held."""
    return _act("delete", context, reason, state_dir, as_json)


def _act(verb: str, context: str, reason: str, state_dir: str | None, as_json: bool) -> int:
    with connect(state_dir) as client:
        return _show(client.act_on_context(verb, context, build(ContextActBody, reason=reason)), as_json)


def _show(seen: ContextsView, as_json: bool) -> int:
    if as_json:
        out.emit_view(seen)
        return 0
    more = "" if seen.complete else ", at least"
    out.say(f"{seen.used / _MIB:,.1f} MiB used of {seen.capacity / _MIB:,.0f} MiB (grows to {seen.maximum / _MIB:,.0f} MiB){more}")
    if seen.is_full:
        out.say("Full: nothing is started any more.")
    if not seen.contexts:
        out.say("No session has a workspace.")
        return 0
    _print(seen.contexts)
    return 0


def _print(contexts: list[ContextView]) -> None:
    table = new_table("SESSION", "AGENT", "AGENTS", "MIB", "LAST USED", "STAYS", "WHY")
    for c in contexts:
        table.add_row(
            out.words(c.context_id, limit=64),
            out.words(c.agent, limit=40),
            str(c.agents_live),
            f"{'' if c.complete else '>= '}{c.bytes / _MIB:,.1f}" if c.measured_at is not None else "not measured yet",
            moment(c.last_used),
            _stays(c),
            out.words(c.hold or c.over or ("stateless run" if c.stateless else ""), limit=200),
        )
    out.show(table)


def _stays(context: ContextView) -> str:
    if context.hold:
        return "held"
    if context.goes_at is None:
        return "in use"
    if not context.stateless:
        return f"until {moment(context.goes_at)}"
    return "expires soon (run ended)"  # at the next look (option workspaces.sweep_s)
