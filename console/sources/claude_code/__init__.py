"""Claude Code: one agent kind."""
