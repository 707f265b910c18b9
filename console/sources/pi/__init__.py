"""pi: one agent kind."""
