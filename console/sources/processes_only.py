"""Kinds that are seen as processes, named and stopped, and of which nothing else is known: each capability lacks with its reason."""

from __future__ import annotations

from console.sources.kind import Kind, Lacks
from console.sources.programs import Program

_UNREAD = Lacks("nobody has written a reader for its files")


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
    _seen("goose", Program("goose", "Goose", native=True)),
    _seen("kimi", Program("kimi", "Kimi CLI", is_python=True)),
    _seen("droid", Program("droid", "Droid", ("@factory/cli",))),
    _seen("codebuff", Program("codebuff", "Codebuff", ("codebuff",))),
    _seen("hermes", Program("hermes", "Hermes", native=False, is_python=True)),
    _seen("antigravity", Program("antigravity", "Antigravity")),
    _seen("grok", Program("grok", "Grok Build CLI", ("@xai-official/grok", "@vibe-kit/grok-cli"))),
    _seen("zcode", Program("zcode", "ZCode")),
)
