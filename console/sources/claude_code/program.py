"""By what Claude Code's processes are known."""

from __future__ import annotations

from console.sources.programs import Program

CLAUDE = Program("claude", "Claude Code", ("@anthropic-ai/claude-code",))
