"""The check before an un-kill: find all that shows, or does not exclude, that something of ours still runs. Each doubt tells what to do.

A receipt covers only the agents that the guard knew. Where the registry or the latch was lost there is no receipt. So everything that can
know of an agent is checked: the registry, the agents' cgroup, the engine's own list, the marks in processes' environments.
"""

from __future__ import annotations

import os

from console.domain.kill import KILL_ID
from console.killswitch import processes
from console.killswitch.engine_socket import EngineSilent
from console.killswitch.guard import Guard
from console.killswitch.kill.receipt import read_receipt

MOST_NAMED = 5
LOOKED = "The record of agents was lost. A look found none in any cgroup, container or marked process; what is in none of these is unknown."


def has_receipt(kill_id: str) -> bool:
    """Whether it is a kill's id, and no mark such as ``latch-unreadable``."""
    return bool(KILL_ID.match(kill_id)) and kill_id[0].isdigit()


def find_doubts(guard: Guard) -> list[str]:
    """Empty when everything was looked at and nothing of ours was found. Waits for the engine (seconds), not under the guard's lock."""
    found = [*_in_cgroups(guard), *_in_engine(guard)]
    if guard.registry.incomplete or not _was_looked_over(guard):
        found += _in_environments(guard)
    if not found:
        with guard.lock:
            for held in guard.registry.held.values():
                held.doubt = ""  # it was found empty, and now nothing knows of it elsewhere either
    return found


def _was_looked_over(guard: Guard) -> bool:
    """Return whether the newest kill's second look was completed, or its receipt names what it left alone. Without a receipt: no."""
    newest = next((k for k in reversed(guard.latch.state.kills) if has_receipt(k)), "")
    receipt = read_receipt(guard.folder, newest) if newest else None
    if receipt is None or not receipt.complete:
        return False
    return bool(receipt.survivors) or receipt.second_look.is_ok


def _in_cgroups(guard: Guard) -> list[str]:
    with guard.lock:
        alive = [i for i, held in guard.registry.held.items() if held.is_populated()]
        tree = guard.tree
    if alive:
        return [f"{len(alive)} agents still have processes, for example {alive[0]}. Kill again, and rearm once all are confirmed dead."]
    if tree is not None and tree.agents.is_populated():
        pids = tree.agents.pids(MOST_NAMED)
        return [f"Among the agents' cgroups, in none that is registered, processes run{_named(pids)}. Kill again, or end them."]
    return []


def _in_engine(guard: Guard) -> list[str]:
    ever, engine = guard.registry.containers_ever, guard.engine
    if engine is None:
        if ever and guard.registry.incomplete and guard.registry.engine_socket:
            return [f"Containers were started through {guard.registry.engine_socket}, which is not asked here: start the guard with it."]
        return []
    try:
        running = engine.running()
    except EngineSilent as error:
        return [f"The engine does not say which containers run ({error}). Start it, then rearm."] if ever else []
    if not running:
        return []
    names = ", ".join(f"{c.container_id[:12]} of {c.agent_id or 'no known agent'}" for c in running[:MOST_NAMED])
    return [f"{len(running)} containers of this instance run: {names}. Kill again, or remove them."]


def _in_environments(guard: Guard) -> list[str]:
    spared = processes.ancestors(os.getpid()) | (processes.ancestors(guard.supervisor_pid) if guard.supervisor_pid > 1 else frozenset())
    try:
        marked = [m for m in processes.find_marked(guard.config.instance_id, guard.config.run_dir) if m.pid not in spared]
    except OSError as error:
        return [f"Not every process could be checked ({error.strerror or error}): an agent's may be among them. Rearm again."]
    alive = [m for m in marked if processes.is_alive(m.pid)]
    if not alive:
        return []
    return [f"{len(alive)} processes carry an agent's marks{_named([m.pid for m in alive])}. Kill again, or end them if they are yours."]


def _named(pids: list[int]) -> str:
    words = [f"{pid} {processes.command_line(pid)[:60]!r}" for pid in pids[:MOST_NAMED]]
    return f" (pid {', '.join(words)})" if words else ""
