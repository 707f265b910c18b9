"""Kinds that are seen as processes, named and stopped, and of which nothing else is known: each capability lacks with its reason."""

from __future__ import annotations

from console.sources.kind import Kind, Lacks
from console.sources.programs import Program

_UNREAD = Lacks("nobody has written a reader for its files")


def _seen(name: str, program: Program, *, why: Lacks = _UNREAD) -> Kind:
    return Kind(name, program, why, why, why, why, why, why, Lacks("it is not known to have one"), why)


PROCESSES_ONLY = (
    _seen("gemini", Program("gemini", "Gemini CLI", ("@google/gemini-cli",))),
    _seen("opencode", Program("opencode", "OpenCode", ("opencode-ai", "opencode"))),
    _seen("qwen", Program("qwen", "Qwen Code", ("@qwen-code/qwen-code",))),
    _seen("cursor", Program("cursor-agent", "Cursor CLI")),
    _seen("aider", Program("aider", "aider", is_python=True)),
    _seen("copilot", Program("copilot", "GitHub Copilot CLI", ("@github/copilot",), native=False)),
)
