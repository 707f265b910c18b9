"""OpenCode: one agent kind."""
