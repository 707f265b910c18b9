"""Every agent kind: one list. A kind is added by its folder and a line here."""

from __future__ import annotations

from console.sources.aider.kind import AIDER
from console.sources.claude_code.kind import CLAUDE_CODE
from console.sources.codex.kind import CODEX
from console.sources.daemons.interface import Daemons
from console.sources.gemini.kind import GEMINI
from console.sources.kind import Kind, Lacks
from console.sources.opencode.kind import KILOCODE, OPENCODE
from console.sources.pi.kind import OPENCLAW, PI
from console.sources.programs import Program
from console.sources.qwen.kind import QWEN

# --- Kinds that are seen as processes, named and stopped, and of which nothing else is known: each capability lacks with its reason.


_UNREAD = Lacks("Watchfloor cannot read its files")


def _seen(name: str, program: Program, *, why: Lacks = _UNREAD) -> Kind:
    return Kind(name, program, why, why, why, why, why, why, Lacks("it is not known to have one"), why)


PROCESSES_ONLY = (
    _seen("cursor", Program("cursor-agent", "Cursor CLI"), why=Lacks("the layout of its databases is not public")),
    _seen("copilot", Program("copilot", "GitHub Copilot CLI", ("@github/copilot",), native=False)),
    _seen(
        "amp",
        Program("amp", "Amp", ("@sourcegraph/amp", "@ampcode/cli"), native=False),
        why=Lacks("its threads are kept by its vendor's server"),
    ),
    _seen(
        "goose",
        Program("goose", "Goose", native=True),
        why=Lacks("its database holds one sum of tokens for a session, and not what came from a cache or which model gave it"),
    ),
    _seen(
        "kimi",
        Program("kimi", "Kimi CLI", is_python=True),
        why=Lacks("its files name no model of an answer, so that no price is known"),
    ),
    _seen("droid", Program("droid", "Droid", ("@factory/cli",))),
    _seen("codebuff", Program("codebuff", "Codebuff", ("codebuff",))),
    _seen("hermes", Program("hermes", "Hermes", native=False, is_python=True)),
    _seen("antigravity", Program("antigravity", "Antigravity")),
    _seen("grok", Program("grok", "Grok Build CLI", ("@xai-official/grok", "@vibe-kit/grok-cli"))),
    _seen("zcode", Program("zcode", "ZCode")),
)


KINDS: tuple[Kind, ...] = (CLAUDE_CODE, CODEX, GEMINI, QWEN, OPENCODE, PI, AIDER, KILOCODE, OPENCLAW, *PROCESSES_ONLY)
TRANSCRIPTS = tuple(kind.transcripts for kind in KINDS if not isinstance(kind.transcripts, Lacks))
VENDORS = {one.source: one.vendor for one in TRANSCRIPTS}
PROGRAMS = tuple(kind.program for kind in KINDS)
ACTIVITIES = {kind.activity.source: kind.activity for kind in KINDS if not isinstance(kind.activity, Lacks)}
WOKEN_BY_SUMS = frozenset(one.source for kind in KINDS if kind.is_woken_by_sums and not isinstance(one := kind.transcripts, Lacks))
HOOKS = {kind.name: kind.hook for kind in KINDS if not isinstance(kind.hook, Lacks)}
STARTS = {kind.start.name: kind.start for kind in KINDS if not isinstance(kind.start, Lacks)}
TELEMETRY = tuple(kind.telemetry for kind in KINDS if not isinstance(kind.telemetry, Lacks))
HOME_FOLDERS = tuple(dict.fromkeys(folder.home for one in TRANSCRIPTS for folder in one.own))
"""Where in the home of an agent of ours programs keep their files."""


def daemons_of(source: str) -> Daemons | None:
    """Of an agent that a source saw (``Sighting.source``); None: its kind has no daemons."""
    return next((kind.daemons for kind in KINDS if not isinstance(kind.daemons, Lacks) and source.startswith(kind.daemons.kind)), None)
