"""What the start of anything may say: of an agent by its command, or of a program that is known."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import Id, Name, Request


class StartBody(Request, kw_only=True):
    """What the start of anybody may say, agent or program."""

    name: Name = ""
    context_id: Id | None = None
    sandbox: Literal["none", "bubblewrap", "docker", "gvisor"] = "none"
    sensitivity: Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"] = "PUBLIC"
    network_mode: Literal["FULL", "PROXIED", "NONE"] | None = None
    limits: dict[str, float] = {}
    tree_limits: dict[str, float] = {}
    env: dict[str, str] = {}
    agent_type: Annotated[str, Meta(max_length=63)] = ""
    """Whose settings hold; empty: of a program its own name."""
    project: Annotated[str, Meta(max_length=400)] = ""
    """What it is charged to besides its session; empty: its session. Children have their parent's."""
    scopes: Annotated[list[str], Meta(max_length=20)] | None = None
    """READ_FS WRITE_FS DELETE_FS READ_DB WRITE_DB SEND_EMAIL CALL_API RUN_CODE; None: what its parent has, or the options say."""
    dry_run: bool = False
    """Its calls are judged and planned, not executed, until an operator says otherwise."""
    unmeasured: bool = False
    """A limit on cost is accepted though nothing measures what it spends; without it that is refused."""
