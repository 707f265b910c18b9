"""Programs that can be started and talked to: what is asked, what it would reach, what came of it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Request, View
from console.api.start import StartBody
from console.domain.conversation import MOST_MESSAGE, MOST_WITHIN_S, ProgramName

MOST_ITEMS = 50
Model = Annotated[str, Meta(max_length=100)]


class ProgramItem(StartBody, kw_only=True):
    """One program to start."""

    agent: ProgramName
    prompt: Annotated[str, Meta(min_length=1, max_length=MOST_MESSAGE)]
    sandbox: Literal["auto", "none", "bubblewrap", "docker", "gvisor"] = "auto"  # type: ignore[assignment]
    """``auto``: bubblewrap where it works here, PROXIED where its model is reached so; the answer's line ``sandbox`` says why not."""
    model: Model = ""
    """Empty: the setting programs.models, else the program's own choice."""
    project: Annotated[str, Meta(max_length=200)] = ""
    once: bool = False
    """It answers the prompt and ends. It takes no messages."""


class ProgramsBody(Request, kw_only=True):
    """POST /api/programs starts all, POST /api/programs/preview none: each item is checked before any starts."""

    items: Annotated[list[ProgramItem], Meta(min_length=1, max_length=MOST_ITEMS)]
    dangerous_ok: Annotated[str, Meta(max_length=500)] = ""
    """Why they are started though their words name dangerous operations; without it that is refused (428)."""


class ReachView(View, kw_only=True):
    """One line of what it could do at worst."""

    what: str
    """``files hosts scopes data cost program memory sandbox``."""
    words: str
    amber: bool = False
    """Wider than a person may expect."""


class ProgramPreview(View, kw_only=True):
    """What one item would start. Nothing is started."""

    agent: str
    path: str = ""
    version: str = ""
    model: str = ""
    network_mode: str = ""
    network_enforced: bool = False
    sensitivity: str = ""
    cost_cap_usd: float | None = None
    reach: list[ReachView] = []
    dangers: list[str] = []
    """Dangerous operations that its words name (hostile): to be confirmed with a reason."""
    why_not: str = ""
    """Why it would be refused now, or empty."""
    remedy: str = ""
    exit_code: int = 0
    """Of the refusal."""


class ProgramPreviews(View, kw_only=True):
    """Answer of POST /api/programs/preview."""

    schema_version: int = SCHEMA_VERSION
    items: list[ProgramPreview] = []


class StartedView(View, kw_only=True):
    """What became of one item."""

    id: str = ""
    control_level: str = ""
    network_mode: str = ""
    network_enforced: bool = False
    notes: list[str] = []
    reach: list[ReachView] = []
    error: str = ""
    remedy: str = ""
    exit_code: int = 0


class ProgramsStarted(View, kw_only=True):
    """Answer of POST /api/programs."""

    schema_version: int = SCHEMA_VERSION
    items: list[StartedView] = []


class ProgramView(View, kw_only=True):
    """One program that this host may start."""

    agent: str
    path: str = ""
    version: str = ""
    why_not: str = ""
    """``not available, because ...``, or empty."""
    note: str = ""


class TemplateView(View, kw_only=True):
    """A beginning for a person who starts a program: what the fields are set to."""

    name: str
    words: str
    sandbox: str
    sensitivity: str
    network_mode: str | None = None
    limits: dict[str, float] = {}


class ProgramsView(View, kw_only=True):
    """GET /api/programs."""

    schema_version: int = SCHEMA_VERSION
    programs: list[ProgramView] = []
    templates: list[TemplateView] = []
    memory_free_mib: int | None = None
    memory_free_min_mib: int = 0


class SayBody(Request, kw_only=True):
    """POST /api/agents/{id}/message."""

    text: Annotated[str, Meta(min_length=1, max_length=MOST_MESSAGE)]
    dangerous_ok: Annotated[str, Meta(max_length=500)] = ""
    """Why the message is sent although it names dangerous operations. Without a reason such a message is refused (428)."""


class InterruptBody(Request, kw_only=True):
    """POST /api/agents/{id}/interrupt."""


class EndBody(Request, kw_only=True):
    """POST /api/agents/{id}/end."""

    reason: Annotated[str, Meta(max_length=500)] = ""
    within_s: Annotated[float, Meta(ge=0, le=MOST_WITHIN_S)] = 30.0
    """Seconds that a turn under way may take to finish."""


class EndedView(View, kw_only=True):
    """Answer of an end. ``ended``: no process is left, as the guard confirms. ``runs``: a process still runs. ``killed``: a kill came
    first."""

    schema_version: int = SCHEMA_VERSION
    id: str
    done: Literal["ended", "runs", "killed"]
    processes: int = 0
    """How many the guard counted last; 0 with ``runs``: it could not list them."""
    words: str = ""
    best_effort: str = ""
    """Why others of it may run unseen, or empty."""


class SaidView(View, kw_only=True):
    """Answer of a message or an interrupt: it is on record, and written to the program; an interrupt was confirmed by it."""

    schema_version: int = SCHEMA_VERSION
    id: str
    done: Literal["said", "interrupted"]
