"""An operator ends suspects of a kill: the receipt says which there are, and what became of each."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any

from console.domain.errors import NotFound
from console.domain.kill import KILL_ID, Receipt
from console.domain.verdict import judged
from console.killswitch import processes
from console.killswitch.fields import text, whole_list
from console.killswitch.guard import Guard
from console.killswitch.kill.connections import is_own_part
from console.killswitch.kill.receipt import read_receipt, write_receipt
from console.killswitch.kill.session import KillSession
from console.killswitch.kill.snapshot import find_process
from console.killswitch.kill.suspects import chosen, end

MOST_SUSPECTS = 500
"""That one request may name; the line that holds it is bounded too."""
MOST_NAMED = 20
"""Of one answer, which is a line of 4 KiB."""


def end_suspects(guard: Guard, message: dict[str, Any], peer: int) -> dict[str, Any]:
    """Kills the suspects that are named, or the preselected ones. Raises NotFound or UsageProblem before anything is killed."""
    kill_id, by = text(message, "kill_id", limit=60), text(message, "by", "", 100)
    kill, receipt = _receipt(guard, kill_id)
    suspects = chosen(receipt, whole_list(message, "pids", MOST_SUSPECTS))
    done = end(receipt, suspects, _spared(guard, peer) | {one.pid for one in suspects if _is_own(guard, one.pid)})
    words = [f"suspect process {one.pid}: {one.words}" + (f", as {by} asked" if by else "") for one in done]
    if kill is not None:
        kill.amended = [*kill.amended, *words][-50:]
    paper = kill.receipt() if kill is not None else judged(replace(receipt, amended=(*receipt.amended, *words)[-50:]))
    if words:
        guard.record("receipt", lambda: write_receipt(guard.folder, paper))
        guard.record_line("receipt_amended", kill_id=kill_id, verified_zero=paper.verified_zero, reason="; ".join(words)[:1000])
    return {"kill_id": kill_id, "ended": [asdict(one) for one in done][:MOST_NAMED], "n": len(done), "n_done": sum(d.done for d in done)}


def _receipt(guard: Guard, kill_id: str) -> tuple[KillSession | None, Receipt]:
    """From memory, or from the disk for a kill of a former guard. NotFound when there is none."""
    kill = guard.kills.get(kill_id)
    if kill is not None:
        return kill, kill.receipt()
    receipt = read_receipt(guard.folder, kill_id) if KILL_ID.match(kill_id) else None
    if receipt is None:
        raise NotFound(f"There is no kill {kill_id[:60]!r}: nothing was killed.", "watchfloor receipt list shows the kills.")
    return None, receipt


def _spared(guard: Guard, peer: int) -> frozenset[int]:
    """The guard, the supervisor, the caller and every console that is connected, with their ancestors."""
    pids = {os.getpid(), guard.supervisor_pid, peer, *guard.connected()}
    return frozenset().union(*(processes.ancestors(pid) for pid in pids if pid > 1))


def _is_own(guard: Guard, pid: int) -> bool:
    one = find_process(pid)
    return one is not None and is_own_part(one, guard.supervisor_pid, guard.tree, list(guard.connections.records.values()))
