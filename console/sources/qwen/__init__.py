"""Qwen Code: one agent kind."""
