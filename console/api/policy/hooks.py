"""What hooks ask, and since when they do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Request, View


class HookBody(Request, kw_only=True):
    """POST /v1/hook: the program, and what it told its hook. Hostile, and bounded by the door."""

    program: Annotated[str, Meta(max_length=40)]
    payload: dict[str, Any]


class HookVerdict(View, kw_only=True):
    """The answer. Only ``allow`` lets the call go on."""

    schema_version: int = SCHEMA_VERSION
    verdict: Literal["allow", "deny", "ask"]
    rule: str
    reason: str
    notices: str = ""
    """What the agent should read now; goes into its context with the answer."""


class ProgramHook(View, kw_only=True):
    """One program whose hook has reached the supervisor."""

    program: str
    calls: int
    last_at: float


class AgentHook(View, kw_only=True):
    """One agent whose tool calls have reached the supervisor."""

    calls: int
    since: float
    """Its first call since this supervisor started; before that nothing of it is called enforced."""
    last_at: float
    broken_off: int = 0
    """Calls whose hook was gone before it had its answer: whether they went on is not known."""


class HooksView(View, kw_only=True):
    """GET /api/hooks. A program that is not in it has never asked: nothing of it is enforced."""

    schema_version: int = SCHEMA_VERSION
    programs: list[ProgramHook] = []
    sessions: dict[str, float] = {}
    """The programs' own session ids, and when each asked last."""
    agents: dict[str, AgentHook] = {}
    """By agent id. One that is not in it has never asked: nothing of it is enforced by a hook."""
