"""The headline of a receipt: one paragraph for people, in the words of what ``verdict`` decides. The guard itself needs none."""

from __future__ import annotations

from console.domain.kill import Connection, Outcome, Receipt, StepStatus, worst_outcomes
from console.domain.verdict import clock_words, is_compared, is_unrecorded, not_done, not_watched_words, zero_and_doubts
from console.domain.words import counted

NAMED = 3
"""Programs that a headline names."""


def headline_of(receipt: Receipt, at: float | None = None) -> str:
    """Say how the kill stands or ended.

    ``at``: now, for a headline that does not promise a return watch that is over. Without it the headline is the receipt's own.
    """
    zero, doubts = zero_and_doubts(receipt)
    outcomes = worst_outcomes(receipt.targets)  # what came back after the kill is a target of its own, and no agent more
    total, proven = len(outcomes), sum(outcome is Outcome.PROVEN_ZERO for outcome in outcomes.values())
    if doubts:
        parts = [f"NOT PROVEN: {', '.join(doubts)}.", f"{proven} of {counted(total, 'agent')} confirmed dead."]
    elif zero is not StepStatus.OK:
        return f"Killing: {proven} of {counted(total, 'agent')} confirmed dead so far."
    else:
        parts = [_dead(receipt, proven, total)]
    parts += [*_returned(receipt), *_other_programs(receipt)]
    if receipt.only_seen:
        parts.append(f"{counted(receipt.only_seen, 'observed agent was', 'observed agents were')} not stopped.")
    if failed := not_done(receipt):
        parts.append(f"Not done: {', '.join(name.replace('_', ' ') for name in failed)}.")
    if proven and not doubts and receipt.proven_ms is not None:
        parts.append(f"Confirmed after {receipt.proven_ms / 1000:.2f} s.")
    if receipt.watch_until:
        until = "ended at" if at is not None and at > receipt.watch_until else "watching until"
        parts.append(f"Return watch: {until} {clock_words(receipt.watch_until)}.")
    if receipt.not_watched:
        parts.append(f"{not_watched_words(receipt.not_watched)}.")
    return " ".join(parts)


def _dead(receipt: Receipt, proven: int, total: int) -> str:
    best = total - proven
    if not total and not is_compared(receipt):
        return "Nothing on the guard's record was running."
    if not total:
        return "Nothing was running." if receipt.only_seen == 0 else "Nothing that is held here was running."
    if not best:
        return f"All processes of {counted(total, 'agent')} are dead."
    words = f"{counted(best, 'agent')} best effort: no proof is possible."
    return f"All processes of {proven} of {counted(total, 'agent')} are dead. {words}" if proven else f"No agent is confirmed dead. {words}"


def _returned(receipt: Receipt) -> list[str]:
    again = sum(r.certain and r.proven for r in receipt.returns)
    maybe = sum(not r.certain for r in receipt.returns)
    found = [f"{counted(again, 'process', 'processes')} of a killed session ran again and died."] if again else []
    return found + ([f"{counted(maybe, 'process', 'processes')} may belong to a killed session."] if maybe else [])


def _other_programs(receipt: Receipt) -> list[str]:
    """What agents may have left with programs outside, in words."""
    found = []
    if receipt.connections:
        agents = len({c.agent_id for c in receipt.connections})
        names = list(dict.fromkeys(_plain(c.peer_program) or _nameless(c) for c in receipt.connections))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        found.append(f"{counted(agents, 'agent')} had connections to other programs: {', '.join(names[:NAMED])}{more}.")
    if is_unrecorded(receipt):
        found.append("Connections to other programs were not recorded.")
    if receipt.uncovered:
        found.append(f"Work that {counted(len(receipt.uncovered), 'agent')} gave to other programs is not covered.")
    if receipt.suspects:
        found.append(f"{counted(len(receipt.suspects), 'process', 'processes')} outside may be an agent's work.")
    return found


def _nameless(one: Connection) -> str:
    return f"process {one.peer_pid}" if one.peer_pid else f"a program that was not found at {_plain(one.remote)}"


def _plain(words: str) -> str:
    """Printable ASCII, bounded: a program's name is hostile text."""
    return "".join(x if x.isascii() and x.isprintable() else "?" for x in words)[:40]
