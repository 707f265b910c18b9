"""By what Claude Code's processes are known, and where its program is installed."""

from __future__ import annotations

from console.sources.programs import Program

CLAUDE = Program("claude", "Claude Code", ("@anthropic-ai/claude-code",), service=(("daemon", "run"), "Claude Code's background service"))
USUAL = ("/usr/local/bin/claude", "/usr/bin/claude", "/opt/claude/bin/claude")
IN_HOME = (".local/bin/claude", ".claude/local/claude")
