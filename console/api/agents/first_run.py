"""What a person sees before the first agent: where else is looked than by the sources, what holds unless told otherwise, a hook's diff."""

from __future__ import annotations

from console.api.message import SCHEMA_VERSION, View
from console.api.messages import SourceView


class DefaultView(View, kw_only=True):
    """One default that holds until an operator changes it."""

    name: str
    words: str
    amber: bool = False
    """Wider than a person may expect."""


class FoundProgram(View, kw_only=True):
    """A program whose agents are seen, found on this account by its file or by what it wrote."""

    kind: str
    title: str
    source: str = ""
    """The source that reads what it writes; empty: its processes alone are seen."""
    path: str = ""
    """Its file, if one is on PATH or where package managers put it."""
    wrote: str = ""
    """A folder of its own that is there."""


class FirstRunView(View, kw_only=True):
    """GET /api/first-run."""

    schema_version: int = SCHEMA_VERSION
    looks: list[SourceView] = []
    """``agent_sockets``, ``hook_KIND`` of each kind with a hook, ``remote_file``: shown below the sources. ``reason`` says what it is,
    ``watching`` what was found."""
    defaults: list[DefaultView] = []
    programs: list[FoundProgram] = []
    programs_note: str = ""
    """Why none is looked for, or empty."""


class SelfTestView(View, kw_only=True):
    """POST /api/kill-switch/test: a process that was started for it was killed by the guard."""

    schema_version: int = SCHEMA_VERSION
    proven: bool
    """It is confirmed dead."""
    words: str
    ms: float | None = None
    """From the order to its end; None: it was not seen to end."""


class HookPreview(View, kw_only=True):
    """GET /api/hooks/{program}/preview: what ``watchfloor install-hook PROGRAM`` would change now. Nothing is written."""

    schema_version: int = SCHEMA_VERSION
    program: str
    file: str
    changed: bool
    """False: the file is as it should be already."""
    diff: list[str] = []
    """Unified, unprintable characters escaped."""
    gaps: list[str] = []
    """What a hook of this program cannot hold, and what it needs besides."""
