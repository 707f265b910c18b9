"""aider: one agent kind."""
