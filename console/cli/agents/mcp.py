"""``watchfloor mcp list``: MCP servers with the tools that agents were seen to call. No server is started or asked for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from console.cli.link import connect
from console.cli.options import Json, StateDir
from console.cli.syntax import Verbs
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import ExitCode

if TYPE_CHECKING:
    from console.api.agents.activity import McpToolView

app = Verbs("MCP servers, by what agents were seen to call.")


@app.command("list")
def list_servers(state_dir: StateDir = None, as_json: Json = False) -> int:
    """List MCP servers with the tools that agents were seen to call, from transcripts and hooks. No server is started for it."""
    with connect(state_dir) as client:
        seen = client.mcp()
    if as_json:
        out.emit_view(seen)
        return int(ExitCode.DONE)
    if not seen.tools:
        out.say("No call of an MCP tool was seen in the activity that is kept.")
    server = ""
    for one in seen.tools:
        if one.server != server:
            server = one.server
            out.say(plain(server, 200))
        out.say(f"  {_line(one)}")
    if seen.more:
        out.note(f"{seen.more:,} more tools are not listed.")
    return int(ExitCode.DONE)


def _line(one: McpToolView) -> str:
    agents = f"{one.agents:,} agent" + ("" if one.agents == 1 else "s")
    calls = f"{one.calls:,} call" + ("" if one.calls == 1 else "s")
    last = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.last_at)) if one.last_at else "time not known"
    return plain(f"{one.tool}  {calls} of {agents}, last {last}  mcp({one.server}:{one.tool})", 600)
