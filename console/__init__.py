"""Watchfloor: the operator console for AI agents, and the enforcement beneath it."""

__version__ = "0.1.0"
