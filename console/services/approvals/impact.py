"""What a call that asks could touch, from its judged parts alone: nothing an agent says about itself counts."""

from __future__ import annotations

from typing import Literal

from console.api.policy.approvals import BlastLine
from console.domain.agent import Agent
from console.domain.calls.approval import Approval, AskedPart
from console.domain.network import Sensitivity
from console.policy.rules.verdicts import RUN_BY_OPTION

_FILES = frozenset({"file", "redirect"})
_REVERSIBLE = frozenset({"write_file", "delete_file"})
_WORST = {"deny": 0, "ask": 1, "allow": 2}
NAMED = 3


def blast_of(approval: Approval, agent: Agent | None) -> list[BlastLine]:
    """Return the lines on files, hosts, programs, data class and undo. An unknown part is shown as unknown, in amber."""
    files = [p for p in approval.parts if p.step in _FILES]
    hosts = [p for p in approval.parts if p.step == "network"]
    programs = [p for p in approval.parts if p.step == "program" or (p.step == "options" and p.rule == RUN_BY_OPTION)]
    unknown = _unknown(approval, files, hosts)
    lines = [
        BlastLine(kind="files", words=unknown, level="warn") if unknown else _line("files", files, "No file found in the command"),
        _line("hosts", hosts, "No host found in the command"),
        _line("programs", programs, "none"),
        _data(approval, agent, bool(hosts)),
        _undo(approval, bool(files or unknown)),
    ]
    if not approval.parts:
        lines[:3] = [BlastLine(kind="files", words="not known: the call was checked by its name alone", level="warn")]
    return lines


def _unknown(approval: Approval, files: list[AskedPart], hosts: list[AskedPart]) -> str:
    """What is said of files when none is named by a part, though not every part was found harmless; empty when it was."""
    others = [p for p in approval.parts if p not in files and p not in hosts and p.verdict != "allow"]
    if files or not others:
        return ""
    if any(p.verdict == "deny" for p in others):
        return "not known: it was denied before they were looked at"
    return "No file named. May touch others"


def _line(kind: Literal["files", "hosts", "programs"], parts: list[AskedPart], none: str) -> BlastLine:
    if not parts:
        return BlastLine(kind=kind, words=none)
    # What matters is never hidden behind harmless parts.
    texts = list(dict.fromkeys(p.text[:120] for p in sorted(parts, key=lambda p: _WORST.get(p.verdict, 0))))
    named = ", ".join(texts[:NAMED])
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    worst = {p.verdict for p in parts}
    return BlastLine(kind=kind, words=named + more, level="danger" if "deny" in worst else "warn" if "ask" in worst else "plain")


def _data(approval: Approval, agent: Agent | None, reaches_out: bool) -> BlastLine:
    if agent is None:
        return BlastLine(kind="data", words="not known: the agent is not there any more", level="warn")
    level = agent.sensitivity
    is_private = level.level > Sensitivity.INTERNAL.level
    head, mode = f"{level.value.capitalize()} data", f"network {agent.effective_mode.value}"
    if agent.effective_mode.is_closed:
        return BlastLine(kind="data", words=f"{head} stays: {mode}")
    if reaches_out:
        return BlastLine(kind="data", words=f"{head} may leave: {mode}", level="danger" if is_private else "plain")
    # A program may connect without saying so on its command line.
    words = f"{head}: no host found in the command, {mode}"
    return BlastLine(kind="data", words=words, level="warn" if is_private else "plain")


def _undo(approval: Approval, may_touch: bool) -> BlastLine:
    if approval.request.tool in _REVERSIBLE:
        return BlastLine(kind="undo", words="a rollback record is written first")
    if may_touch or not approval.parts:
        return BlastLine(kind="undo", words="Cannot be undone", level="warn")
    return BlastLine(kind="undo", words="nothing on disk to put back")
