"""Agent kinds as people read of them: their names, where each keeps its hooks, and examples. Imports nothing: help texts load it."""

from __future__ import annotations

PLACES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "opencode": ".config/opencode/plugin/watchfloor.js",
}
"""Below the home: where each program reads hooks of its user."""
TITLES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "qwen": "Qwen Code",
    "opencode": "OpenCode",
    "kilo": "Kilo",
    "pi": "pi",
    "aider": "aider",
}
"""Names of programs whose sessions are seen, for people."""
STARTABLE = {name: TITLES[name] for name in ("claude-code", "codex", "opencode", "gemini")}
"""Programs that ``run --agent`` starts."""
EXAMPLE = "claude-code"
"""The kind that examples in texts name."""
GOES_ON = (
    "when the hook's shell is killed or stopped too long, the program goes on: not enforced in that case, because it sees "
    "a broken hook. This was seen in Claude Code 2.1 and Codex 0.169. The sandbox and the network mode of watchfloor run --agent "
    "still hold. Nothing holds a program that you started yourself"
)
"""What no hook of these programs can prevent. It is shown wherever a hook is installed or checked."""
