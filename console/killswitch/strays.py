"""Whether a process that carries an agent's variables is an agent's, or only somebody's shell with a copied environment."""

from __future__ import annotations

from collections.abc import Iterable

from console.killswitch import processes
from console.killswitch.aims import Aim


def has_lineage(marked: processes.Marked, aims: Iterable[Aim], agent_uids: frozenset[int]) -> bool:
    """More than its environment says so: it runs under an account that agents were launched under (never ours, nor root's), it was
    seen in a leaf, or its PID namespace is an agent's."""
    uids = processes.uids(marked.pid)
    if uids and uids <= agent_uids:
        return True
    namespace = processes.pid_namespace(marked.pid)
    for held in (aim.held for aim in aims if aim.held is not None):
        if namespace is not None and namespace == held.entry.pid_namespace:
            return True
        seen = {(p["pid"], p["start"]) for p in held.before} | {(held.entry.pid, held.entry.start_ticks)}
        if (marked.pid, marked.start_ticks) in seen:
            return True
    return False
