"""What the ladder of stops asks and answers: a rung over a scope, and what it will do before it is done."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.agents.daemons import DaemonView
from console.api.message import SCHEMA_VERSION, Request, View
from console.api.messages import KillSwitchBody

NAMED = 100
"""Agents a preview names in each list; the counts are always whole."""
MOST = 200
"""Ids of one order: a person reads each of them. More are a session, or this host."""


class ScopeBody(Request, kw_only=True, omit_defaults=True):
    """Which agents are meant: one agent, its tree, a session, this host, or everything."""

    reach: Literal["agent", "tree", "session", "host", "all"]
    target: Annotated[str, Meta(max_length=63)] = ""
    """Agent or session id (``[a-z0-9][a-z0-9-]*``); empty for host and all."""
    others: Annotated[list[Annotated[str, Meta(max_length=63)]], Meta(max_length=MOST - 1)] = []
    """Further ids of the same kind: one order, and of a kill one receipt, for all of them."""


class LadderBody(Request, kw_only=True):
    """POST /api/ladder and POST /api/ladder/preview.

    freeze, isolate, thaw and reconnect answer ``ActView``; kill answers ``Receipt.as_json()``. A kill of ``all`` is the press: it latches.
    """

    action: Literal["freeze", "isolate", "kill", "thaw", "reconnect"]
    scope: ScopeBody
    reason: Annotated[str, Meta(max_length=500)] = ""
    """Required for a kill of everything."""


class LadderAgent(View, kw_only=True):
    """One agent of a preview. Text is hostile."""

    id: str
    name: str = ""
    session: str = ""
    control_level: str
    state: str = ""
    why: str = ""
    """Why it is best effort or left alone; otherwise what to expect, or empty."""
    container: bool = False
    egress: bool = False
    """Whether it can reach anything now."""
    outside: str = ""
    """Of a kill: what it is connected to on this host, or could be, or that its sandbox allows no such connection. Empty: not known."""


class LadderPreview(View, kw_only=True):
    """POST /api/ladder/preview, GET /api/ladder/preview?action=&reach=&target=: what will happen, before it happens. Nothing is done.

    Made by the function that the act itself uses.
    """

    schema_version: int = SCHEMA_VERSION
    action: str
    reach: str
    target: str = ""
    """Of several ids all of them, parted by commas."""
    words: str
    """One sentence for the person."""
    daemons: list[DaemonView] = []
    """Of a kill: programs outside that host its sessions or would start them again, and what the kill does about each."""
    why_not: str = ""
    """Why it would be refused now, or empty."""
    undone_by: str = ""
    """thaw or reconnect; empty: cannot be undone."""
    latches: bool = False
    """Nothing starts afterwards until you rearm."""
    counts: dict[str, dict[str, int]] = {}
    """control level -> {certain, best_effort, excluded} -> agents. Whole."""
    processes: int = 0
    """Of the agents it touches, counted for this answer where that takes no more than a second."""
    counted_s: float | None = None
    """How old that count is, in seconds; None: they were never counted, and each agent is taken for one process."""
    containers: int = 0
    egress: int = 0
    """Agents it touches that can reach anything now."""
    outside: str = ""
    """Of a kill, in sentences: what it does not cover, since agents gave work to other programs or could, and what it covers wholly."""
    acts: list[LadderAgent] = []
    """Touched for certain; at most 100, as the next two."""
    best_effort: list[LadderAgent] = []
    """Touched, but no proof is possible: why."""
    excluded: list[LadderAgent] = []
    """Left alone: why."""
    unnamed: int = 0
    """Agents counted but not named in the three lists."""


class SwitchBody(KillSwitchBody, kw_only=True):
    """POST /api/kill-switch {action, reason, scope}.

    activate: kill the scope; ``"all"`` (the default) is the press, which latches. rearm (also: deactivate): release a local kill.
    """

    action: Literal["activate", "rearm", "deactivate"]  # type: ignore[assignment]
    scope: Literal["all"] | ScopeBody = "all"  # type: ignore[assignment]
