"""One order is carried out once: by the guard that hears it, by the process that asked when the guard is slow, or by the guard's successor.

An order has one id, made by the process that asks. A guard that takes it in time needs no claim: nothing is written before SIGKILL. Once an
order is older than ``ANSWER_S`` the guard and the process that gives up on the guard both claim it first, and the second one leaves it.
What a guard began and did not finish, its successor finishes under the same id.

This is apart from ``request``: a panic waits for it, and must not wait for what a kill is made of.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.domain.guard import ANSWER_S
from console.domain.kill import KILL_ID
from console.killswitch.kernel import processes
from console.killswitch.kill.receipt import read_receipt

if TYPE_CHECKING:
    from console.killswitch.store.registry import Held

PREFIX = "order-"
KEPT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A kill of some agents that a former guard began."""

    agent_ids: list[str]
    kill_id: str
    """Empty: a kill of its own is made, since that one has its complete receipt."""
    reason: str = "Finished after a restart of the guard"
    by: str = "guard"
    remote_order: str = ""


def order_id(message: dict[str, Any]) -> str:
    """The id that the process that asks gave its order; empty for none, and for what is no id: that kills as well."""
    found = message.get("kill_id", "")
    return found if isinstance(found, str) and KILL_ID.match(found) else ""


def is_claimed(message: dict[str, Any], run_dir: Path, guard_dir: Path) -> bool:
    """Whether an order waited here for so long that another process carries it out."""
    asked_at = message.get("asked_at")
    is_late = isinstance(asked_at, int | float) and time.monotonic() - asked_at > ANSWER_S
    return is_late and not claim(run_dir, guard_dir, order_id(message))


def unfinished(held: Iterable[Held], guard_dir: Path) -> list[Unfinished]:
    """Kills of which something lives, or whose receipt is not complete; each goes on under its id, with its own words."""
    found: list[Unfinished] = []
    scopes: dict[str, list[Held]] = {}
    for one in held:
        if one.entry.killed:
            scopes.setdefault(one.entry.killed, []).append(one)
    for kill_id, agents in scopes.items():
        ids, receipt = [one.entry.agent_id for one in agents], read_receipt(guard_dir, kill_id)
        if receipt is not None and not receipt.complete:
            found.append(Unfinished(ids, kill_id, receipt.reason, receipt.by, receipt.order))
        elif any(one.is_populated() for one in agents):
            found.append(Unfinished(ids, "" if receipt is not None else kill_id))
        elif receipt is None and not all(agent_id.startswith("canary-") for agent_id in ids):
            found.append(Unfinished(ids, kill_id))  # the supervisor removes a canary's receipt once it has read it
    return found


def claim(run_dir: Path, guard_dir: Path, kill_id: str) -> bool:
    """Return whether this process must carry the order out: it is unclaimed, or its claimant died and left no complete receipt.

    True as well where nothing can be claimed (no room, no right): twice is better than never.
    """
    mark, own = run_dir / f"{PREFIX}{kill_id}", f"{os.getpid()}-{processes.start_ticks(os.getpid()) or 0}"
    for _ in range(3):
        try:
            mark.symlink_to(own)  # symlink(2) is atomic: no claim is ever seen without its claimant
            return True
        except FileExistsError:
            claimant = _claimant(mark)
            if claimant is not None and (processes.is_the_same(*claimant) or _is_done(guard_dir, kill_id)):
                return claimant[0] == os.getpid()
            with contextlib.suppress(OSError):
                mark.unlink()
        except OSError:
            return True
    return True


def sweep_claims(run_dir: Path) -> None:
    """Takes claims away that no order needs any more. Never raises."""
    with contextlib.suppress(OSError):
        for mark in list(run_dir.iterdir()):
            if mark.name.startswith(PREFIX) and KILL_ID.match(mark.name[len(PREFIX) :]):
                with contextlib.suppress(OSError):
                    if time.time() - mark.lstat().st_mtime > KEPT_S:
                        mark.unlink()


def _claimant(mark: Path) -> tuple[int, int] | None:
    try:
        pid, _, ticks = str(mark.readlink()).partition("-")
        return int(pid), int(ticks)
    except (OSError, ValueError):
        return None


def _is_done(guard_dir: Path, kill_id: str) -> bool:
    receipt = read_receipt(guard_dir, kill_id)
    return receipt is not None and receipt.complete
