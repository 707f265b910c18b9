"""Executing a judged call: what an agent asks on its own socket, and the lines it is answered with (one JSON object each)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import Request, View


class ExecuteBody(Request, kw_only=True):
    """POST /v1/execute."""

    tool: Literal["shell", "argv", "python"]
    argument: Annotated[str, Meta(max_length=65536)]
    """A command, a JSON list of words, or Python code."""
    cwd: Annotated[str, Meta(max_length=4096)] = ""
    """Where it runs; empty: the workspace."""
    timeout_s: Annotated[float, Meta(gt=0, le=86400)] | None = None
    says: Annotated[str, Meta(max_length=2000)] = ""
    call_id: Annotated[str, Meta(max_length=200)] = ""


class ExecuteBegun(View, kw_only=True):
    """The first line: it was judged, recorded, and runs."""

    event: Literal["begun"] = "begun"
    id: str
    rule: str
    reason: str
    programs: list[str]
    """The files that are executed, and no other."""
    warnings: list[str] = []
    limits: dict[str, float] = {}
    """``timeout_s memory_max pids_max output_max``; bytes and seconds."""
    network: str
    """What it reaches, in words."""
    rollback: list[str] = []
    """Records by which files that it names can be put back, written before it runs."""
    not_kept: list[str] = []
    """Of what it may write there is none, and why: hostile."""


class ExecuteOutput(View, kw_only=True):
    """A piece of what it writes."""

    event: Literal["output"] = "output"
    stream: Literal["stdout", "stderr"]
    b64: str
    """The bytes as they are, in base64: hostile."""


class ExecuteEnded(View, kw_only=True):
    """The last line."""

    event: Literal["ended"] = "ended"
    code: int
    """Of the last step; 128 + signal when one ended it."""
    signal: int = 0
    limit: str = ""
    """Which limit it ran into, or why it was ended: ``time limit 5 s``, ``memory limit 512 MiB``, ...; empty: by itself."""
    refused: str = ""
    """Why a step was not executed though the call was judged."""
    ms: int
    stdout_bytes: int
    stderr_bytes: int
    stdout_cut: int = 0
    """Bytes that were not handed on."""
    stderr_cut: int = 0
    proven: bool
    """The kernel says that nothing of it is left."""
