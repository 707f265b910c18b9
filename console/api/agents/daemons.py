"""A daemon or a shared program around an agent, as it is shown before an adoption or a kill."""

from __future__ import annotations

from console.api.message import View


class DaemonView(View, kw_only=True):
    """One of them. Text is hostile."""

    name: str
    pid: int = 0
    agents: list[str] = []
    """Of the scope that was asked about."""
    sessions: list[str] = []
    """Theirs, which it hosts."""
    other_sessions: list[str] = []
    """Sessions of others that it hosts."""
    plan: str
    """What a kill would do about it, and why."""
    command: str = ""
    """What drops the sessions, or removes exactly that job; empty: there is no such command."""
