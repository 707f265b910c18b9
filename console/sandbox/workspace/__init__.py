"""Workspaces of sessions: made, described, measured, deleted, and their signed tools."""
