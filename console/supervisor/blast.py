"""What a call that asks could touch, from its judged parts alone: nothing an agent says about itself counts."""

from __future__ import annotations

from typing import Literal

from console.api.approval_messages import BlastLine
from console.domain.agent import Agent
from console.domain.approval import Approval, AskedPart
from console.domain.network import NetworkMode, Sensitivity

_FILES = frozenset({"file", "redirect"})
_REVERSIBLE = frozenset({"write_file", "delete_file"})
NAMED = 3


def blast_of(approval: Approval, agent: Agent | None) -> list[BlastLine]:
    """Files, hosts, programs, data class, undo. What is not known says so, in amber."""
    files = [p for p in approval.parts if p.step in _FILES]
    hosts = [p for p in approval.parts if p.step == "network"]
    programs = [p for p in approval.parts if p.step in ("program", "options")]
    lines = [
        _line("files", files, "none that the judgement knows of"),
        _line("hosts", hosts, "none that the judgement knows of"),
        _line("programs", programs, "none"),
        _data(approval, agent, bool(hosts)),
        _undo(approval, files),
    ]
    if not approval.parts:
        lines[:3] = [BlastLine(kind="files", words="not known: the call was judged by its name alone", level="warn")]
    return lines


def _line(kind: Literal["files", "hosts", "programs"], parts: list[AskedPart], none: str) -> BlastLine:
    if not parts:
        return BlastLine(kind=kind, words=none)
    named = ", ".join(p.text[:120] for p in parts[:NAMED])
    more = f" and {len(parts) - NAMED} more" if len(parts) > NAMED else ""
    worst = {p.verdict for p in parts}
    return BlastLine(kind=kind, words=named + more, level="danger" if "deny" in worst else "warn" if "ask" in worst else "plain")


def _data(approval: Approval, agent: Agent | None, reaches_out: bool) -> BlastLine:
    if agent is None:
        return BlastLine(kind="data", words="not known: the agent is not there any more", level="warn")
    level = agent.sensitivity
    out = "may leave" if reaches_out and agent.effective_mode is not NetworkMode.NONE else "stays"
    words = f"{level.value.capitalize()} data {out}: network {agent.effective_mode.value}"
    danger = out == "may leave" and level.level > Sensitivity.INTERNAL.level
    return BlastLine(kind="data", words=words, level="danger" if danger else "plain")


def _undo(approval: Approval, files: list[AskedPart]) -> BlastLine:
    if approval.request.tool in _REVERSIBLE:
        return BlastLine(kind="undo", words="a rollback record is written first")
    if files or not approval.parts:
        return BlastLine(kind="undo", words="none is kept for this call", level="warn")
    return BlastLine(kind="undo", words="nothing on disk to put back")
