"""What every message is made of: requests are strict, views take unknown keys from a newer peer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

Name = Annotated[str, Field(max_length=200)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


class Request(BaseModel):
    """A request body: unknown fields and wrong types are refused, with the field named."""

    model_config = ConfigDict(extra="forbid", strict=True)


class View(BaseModel):
    """Something the supervisor shows; keys are stable, more may be added."""

    model_config = ConfigDict(extra="ignore")


class StartBody(Request):
    """What the start of anybody may say, agent or program."""

    name: Name = ""
    context_id: Id | None = None
    sandbox: Literal["none", "bubblewrap", "docker", "gvisor"] = "none"
    sensitivity: Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"] = "PUBLIC"
    network_mode: Literal["FULL", "PROXIED", "NONE"] | None = None
    limits: dict[str, float] = {}
    tree_limits: dict[str, float] = {}
    env: dict[str, str] = {}
    agent_type: Annotated[str, Field(max_length=63)] = ""
    """Whose settings hold; empty: of a program its own name."""
    project: Annotated[str, Field(max_length=400)] = ""
    """What it is charged to besides its session; empty: its session. Children have their parent's."""
    scopes: Annotated[list[str] | None, Field(max_length=20)] = None
    """READ_FS WRITE_FS DELETE_FS READ_DB WRITE_DB SEND_EMAIL CALL_API RUN_CODE; None: what its parent has, or the options say."""
    dry_run: bool = False
    """Its calls are judged and planned, not executed, until an operator says otherwise."""
    unmeasured: bool = False
    """A limit on cost is accepted though nothing measures what it spends; without it that is refused."""
