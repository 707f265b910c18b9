"""Whether tool calls of other people's programs are judged before they happen: only what was seen is called enforced."""

from __future__ import annotations

from console.api.messages import AgentDetailView
from console.wording.agent_kinds import PLACES

NEVER = "not enforced: no call has reached the supervisor"
_SOURCES = {program.replace("-", "_"): program for program in PLACES}


def hook_words(detail: AgentDetailView) -> str:
    """Of one agent, in the supervisor's words; empty: it is no program that has hooks."""
    if detail.hook:
        return f"Tool calls: {detail.hook}."
    program = next((_SOURCES[name] for name in (detail.agent.source, *detail.agent.seen_by) if name in _SOURCES), "")
    if not program or detail.agent.state == "ended":
        return ""
    return f"Tool calls: {NEVER}. To have them checked: watchfloor install-hook {program}."
