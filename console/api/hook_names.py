"""Programs with hooks: where each keeps its settings, and its name for people. Apart from the messages, which take longer to load."""

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
