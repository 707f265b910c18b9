"""What a receipt said at first and what was found out later, agent by agent. Pure; evidence is read as hostile data."""

from __future__ import annotations

from typing import Any

from console.domain.kill import Outcome, Receipt, Target
from console.gui.widgets.facts import Fact
from console.gui.widgets.words import took

_SHOWN = 20
STATES = {
    "D": "D, uninterruptible sleep",
    "Z": "Z, zombie",
    "T": "T, stopped",
    "t": "t, traced",
    "R": "R, running",
    "S": "S, sleeping",
    "X": "X, dead",
}


def first_words(target: Target) -> list[dict[str, Any]]:
    """What was said of it before, oldest first; empty when it was never amended."""
    kept = target.evidence.get("amended")
    return [said for said in kept if isinstance(said, dict)] if isinstance(kept, list) else []


def is_late(target: Target) -> bool:
    """Proven only after the receipt had said something else."""
    return target.outcome is Outcome.PROVEN_ZERO and bool(first_words(target))


def late(receipt: Receipt) -> int:
    """How many targets were proven only later."""
    return sum(1 for target in receipt.targets if is_late(target))


def said_words(said: dict[str, Any]) -> str:
    """``NOT PROVEN at +5.00 s``."""
    ms = said.get("ms")
    at = f" at +{took(float(ms))}" if isinstance(ms, int | float) and not isinstance(ms, bool) else ""
    return f"{str(said.get('outcome', 'unknown')).replace('_', ' ').upper()}{at}"


def left_words(said: dict[str, Any]) -> list[str]:
    """What was left of it then: pid, state, where it waited."""
    left = said.get("left")
    lines = []
    for one in (left if isinstance(left, list) else [])[:3]:
        if isinstance(one, dict):
            state = STATES.get(str(one.get("state")), str(one.get("state")))
            lines.append(f"pid {one.get('pid')} · state {state}" + (f" · {one['wchan']}" if one.get("wchan") else ""))
    return lines


def amended_lines(receipt: Receipt) -> list[Fact]:
    """For each amended target: what the receipt said then, why, what was left, and when it was proven."""
    lines: list[Fact] = []
    told = [target for target in receipt.targets if first_words(target)]
    for target in told[:_SHOWN]:
        lines.append(Fact(target.agent_id, "", "check" if is_late(target) else "triangle", "text2" if is_late(target) else "warn"))
        for said in first_words(target)[-3:]:
            lines.append(Fact(f"said then: {said_words(said)}", "", left_role="warn", indent=True))
            lines += [Fact(words, "", left_role="text2", indent=True) for words in left_words(said)]
            if said.get("why"):
                lines.append(Fact(str(said["why"]), "", left_role="text2", indent=True))
        now = f"confirmed dead at +{took(target.ms)}" if is_late(target) else target.outcome.value.replace("_", " ")
        lines.append(Fact(f"since then: {now}", "", left_role="text" if is_late(target) else "warn", indent=True))
    if len(told) > _SHOWN:
        lines.append(Fact(f"and {len(told) - _SHOWN} more agents", "", left_role="text2", indent=True))
    named = {target.agent_id for target in told[:_SHOWN]}
    others = [words for words in receipt.amended if words.split(":", 1)[0].split(" (", 1)[0] not in named]
    return lines + [Fact(words, "", "alert", "warn") for words in others[-_SHOWN:]]
