"""``watchfloor contexts list | hold | release | delete``: sessions' workspaces."""

from __future__ import annotations

from typing import Annotated

from console.api.context_messages import ContextActBody, ContextsView, ContextView
from console.cli import out
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.plain import moment
from console.cli.syntax import Argument, Verbs
from console.cli.tables import new_table

app = Verbs("Sessions' workspaces: what they hold, how long they stay, what is held as evidence.")
Context = Annotated[str, Argument(metavar="SESSION", help="Its id, as contexts list shows it.")]
_MIB = 1 << 20


@app.command("list")
def list_contexts(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Every session with a workspace."""
    with connect(state_dir) as client:
        seen = client.contexts()
    return _show(seen, as_json)


@app.command("hold")
def hold(context: Context, reason: Reason, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Keep it as evidence: its time to live is paused."""
    return _act("hold", context, reason, state_dir, as_json)


@app.command("release")
def release(context: Context, reason: Reason, state_dir: StateDir = None, as_json: Json = False) -> int:
    """End a hold."""
    return _act("release", context, reason, state_dir, as_json)


@app.command("delete")
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
    table = new_table("SESSION", "AGENT", "AGENTS", "MIB", "LAST USED", "STAYS", "WHY")
    for c in seen.contexts:
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
    return 0


def _stays(context: ContextView) -> str:
    if context.hold:
        return "held"
    if context.goes_at is None:
        return "in use"
    if not context.stateless:
        return f"until {moment(context.goes_at)}"
    return "expires soon (run ended)"  # at the next look (option workspaces.sweep_s)
