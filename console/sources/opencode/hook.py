"""Our plug-in for OpenCode: one file of its plug-in folder, which asks before every tool call. Measured with OpenCode 1.18.

OpenCode runs plug-ins inside itself and stops a call when ``tool.execute.before`` throws. Ours runs the same hook program as other kinds'
and throws on everything but an allow. Nothing of the user's is in the file: installing makes it, undoing takes it away.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from console.domain.errors import UsageProblem
from console.sources.hook_settings import FILE_MAX, HookCommand

PLACE = ".config/opencode/plugin/watchfloor.js"
ANSWER = "_watchfloor/answer"
"""How our plug-in names what an answer used, on the program's standard output."""
_FIRST = "// Watchfloor asks before every tool call (watchfloor install-hook opencode --undo takes this file away)."
_COMMAND = "const COMMAND = "
_REST = """\
import { spawn } from "node:child_process"
import { resolve } from "node:path"

// {code, out, err}: code is null when it was killed or could not be started.
const ask = (payload) =>
  new Promise((done) => {
    const made = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "pipe"] })
    let out = "", err = ""
    made.stdout.on("data", (data) => { out += data })
    made.stderr.on("data", (data) => { err += data })
    made.stdin.on("error", () => {})
    const why = "Watchfloor: its hook cannot run. To install it again: watchfloor install-hook opencode"
    made.on("error", (error) => done({ code: null, out: "", err: `${why} (${error})` }))
    made.on("close", (code) => done({ code, out, err }))
    made.stdin.end(JSON.stringify(payload))
  })

// The session a person talks to, above the sub-agent that asks.
const rootOf = async (client, id) => {
  for (let level = 0; level < 20; level++) {
    const found = await client.session.get({ path: { id } })
    const session = found?.data ?? found
    if (!session?.id) throw new Error("Watchfloor: which session asks is not known; the call is blocked")
    if (!session.parentID) return session.id
    id = session.parentID
  }
  throw new Error("Watchfloor: more than 20 sessions lie above the one that asks; the call is blocked")
}

// OpenCode names a tool of an MCP server SERVER_TOOL: which server that is, only its own list tells.
const nameOf = async (client, tool) => {
  const found = await client.mcp?.status?.()
  const servers = Object.keys(found?.data ?? {}).map((name) => name.replace(/[^a-zA-Z0-9_-]/g, "_"))
  const server = servers.filter((name) => tool.startsWith(`${name}_`)).sort((a, b) => b.length - a.length)[0]
  return server ? `mcp__${server}__${tool.slice(server.length + 1)}` : tool
}

export const Watchfloor = async ({ client, directory }) => {
  const notices = new Map()
  return {
    "tool.execute.before": async (input, output) => {
      const args = output.args ?? {}
      const root = await rootOf(client, input.sessionID)
      const answer = await ask({
        hook_event_name: "PreToolUse",
        session_id: root,
        agent_id: root === input.sessionID ? "" : input.sessionID,
        tool_name: await nameOf(client, input.tool),
        tool_input: args,
        tool_use_id: input.callID,
        cwd: typeof args.workdir === "string" ? resolve(directory, args.workdir) : directory,
      })
      if (answer.code !== 0) throw new Error(answer.err.trim() || "Watchfloor: no call without an allow")
      const told = JSON.parse(answer.out || "{}").hookSpecificOutput?.additionalContext
      if (told) notices.set(input.callID, told)
    },
    "tool.execute.after": async (input, output) => {
      const told = notices.get(input.callID)
      notices.delete(input.callID)
      if (told && typeof output.output === "string") output.output += `\\n${told}`
    },
  }
}
"""

# Only in what Watchfloor starts. It begins with settings in which every call is refused: so a plug-in that does not load blocks every call.
# Standard output is its line to us, on which answers of sub-agents would be missing.
_STARTED = f"""
export const Started = async () => ({{
  config: async (settings) => {{ settings.permission = {{ "*": "allow" }} }},
  event: async ({{ event }}) => {{
    if (event.type !== "message.updated" || event.properties.info.role !== "assistant") return
    const {{ id, sessionID, providerID, modelID, cost, tokens, time }} = event.properties.info
    const params = {{ id, sessionID, providerID, modelID, cost, tokens, time }}
    process.stdout.write(JSON.stringify({{ jsonrpc: "2.0", method: "{ANSWER}", params }}) + "\\n")
  }},
}})
"""


def started_plugin(command: HookCommand) -> bytes:
    """Return the plug-in of an OpenCode that Watchfloor starts."""
    return PluginHook().added(b"", command, "") + _STARTED.encode()


class PluginHook:
    """The hook of a kind that asks through a plug-in file of its own."""

    place = PLACE
    aliases: Mapping[str, str] = MappingProxyType({"task": "Task", "todowrite": "TodoWrite", "todoread": "TodoRead"})
    gaps = (
        "A project's own .opencode/plugin folder runs plug-ins inside OpenCode: one of them can change a call after its check.",
        "OpenCode started with --pure, or with another OPENCODE_CONFIG_DIR or XDG_CONFIG_HOME, does not load it: then nothing is checked.",
    )
    advice = "OpenCode loads plug-ins when it starts: sessions that run now are not checked."

    def installed(self, data: bytes, name: str) -> str:
        """The command of our hook, or empty. Raises UsageProblem for a file that is not ours."""
        if not data.strip():
            return ""
        lines = data.decode("utf-8", "replace").splitlines()
        if lines[0] != _FIRST or len(data) > FILE_MAX:
            raise UsageProblem(f"{name} is not Watchfloor's.", "Move it, or name another file: --settings FILE. It is left as it is.")
        said = next((line.removeprefix(_COMMAND) for line in lines if line.startswith(_COMMAND)), "[]")
        try:
            return shlex.join(str(word) for word in json.loads(said))
        except (ValueError, TypeError, RecursionError):
            return said

    def added(self, data: bytes, command: HookCommand, name: str) -> bytes:
        """The whole plug-in. Raises UsageProblem for a file that is not ours."""
        self.installed(data, name)
        words = json.dumps(command.words())
        return "\n".join((_FIRST, f"{_COMMAND}{words}", _REST)).encode()

    def removed(self, data: bytes, name: str) -> bytes:
        """Nothing: the file is ours. Raises UsageProblem for one that is not."""
        self.installed(data, name)
        return b""

    def why_skipped(self, data: bytes, file: Path) -> str:
        """Why OpenCode would not load it, or empty."""
        if file.parent.name not in ("plugin", "plugins") or file.suffix != ".js":
            return "OpenCode loads *.js of its folders plugin and plugins alone"
        if self.added(b"", HookCommand("", Path(), "", Path(), 0), str(file)).split(b"\n", 2)[2:] != data.split(b"\n", 2)[2:]:
            return "the file was changed since it was installed: install it again"
        return ""
