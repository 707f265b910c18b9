"""Codex: one agent kind."""
