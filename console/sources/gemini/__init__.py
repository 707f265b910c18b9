"""Gemini CLI: one agent kind."""
