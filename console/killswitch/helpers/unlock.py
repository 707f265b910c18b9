"""The helper for a rearm: checks, sets and resets the passphrase, and looks for what may still run.

It decides nothing of the latch. The guard keeps what binds an answer to one kill (nonces, proofs, the generation) and writes the release.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError, UsageProblem
from console.domain.guard import number, text, whole, whole_list
from console.killswitch.helpers.one_request import serve
from console.killswitch.helpers.passphrase import Passphrase, note_from
from console.killswitch.kernel import processes
from console.killswitch.kernel.engine import Engine, EngineSilent
from console.killswitch.kill.receipt import read_receipt

MOST_NAMED = 5
LONGEST_PATH = 4096


def main() -> None:
    """Answer the guard's one request."""
    serve(answer)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the state of the passphrase after what was asked of it, or what may still run. UsageProblem for anything else."""
    if request.get("op") == "doubts":
        return {"doubts": [*in_engine(request), *in_environments(request)]}
    return _passphrase(request)


def _passphrase(request: dict[str, Any]) -> dict[str, Any]:
    file = text(request, "file", limit=LONGEST_PATH)
    it = Passphrase(Path(file) if file else None, Path(text(request, "folder", limit=LONGEST_PATH)))
    it.note = note_from(request["note"])
    it.not_before = number(request, "not_before")
    refused: list[str] = []
    try:
        match text(request, "op"):
            case "load":
                it.load()
            case "look":
                pass
            case "check":
                it.check(text(request, "given"))
            case "change":
                it.change(text(request, "new"), text(request, "old"))
            case "reset":
                it.reset(whole(request, "generation"))
            case op:
                raise UsageProblem(f"There is no operation {op!r}.", "")
    except ConsoleError as error:
        refused = [type(error).__name__, error.what, error.remedy]
    it.look()
    state = {"state": it.state, "why": it.why, "path": str(it.path or ""), "not_before": float(it.not_before)}
    return state | {"note": asdict(it.note), "refused": refused}


def in_engine(request: dict[str, Any]) -> list[str]:
    """What the engine's own list speaks against; a silent engine does, where there ever were containers."""
    path, recorded, ever = text(request, "engine", limit=LONGEST_PATH), text(request, "recorded", limit=LONGEST_PATH), request["ever"]
    if not path:
        return (
            [f"Containers were started through {recorded}, which is not asked here: start the guard with it."] if recorded and ever else []
        )
    try:
        running = Engine(Path(path), text(request, "instance")).running()
    except EngineSilent as error:
        return [f"The engine does not say which containers run ({error}). Start it, then rearm."] if ever else []
    if not running:
        return []
    names = ", ".join(f"{c.container_id[:12]} of {c.agent_id or 'no known agent'}" for c in running[:MOST_NAMED])
    return [f"{len(running)} containers of this instance run: {names}. Kill again, or remove them."]


def in_environments(request: dict[str, Any]) -> list[str]:
    """Processes that carry an agent's marks; asked only where no receipt says that a second look has looked for them."""
    newest = text(request, "newest")
    if not request["incomplete"] and newest and _was_looked_over(Path(text(request, "folder", limit=LONGEST_PATH)), newest):
        return []
    spared = processes.own_line(*whole_list(request, "spared"))
    try:
        run_dir = Path(text(request, "run_dir", limit=LONGEST_PATH))
        marked = [m for m in processes.find_marked(text(request, "instance"), run_dir) if m.pid not in spared]
    except OSError as error:
        return [f"Not every process could be checked ({error.strerror or error}): an agent's may be among them. Rearm again."]
    alive = [m for m in marked if processes.is_alive(m.pid)]
    if not alive:
        return []
    return [f"{len(alive)} processes carry an agent's marks{named([m.pid for m in alive])}. Kill again, or end them if they are yours."]


def _was_looked_over(folder: Path, kill_id: str) -> bool:
    """Return whether that kill's second look was completed, or its receipt names what it left alone. Without a receipt: no."""
    receipt = read_receipt(folder, kill_id)
    return receipt is not None and receipt.complete and (bool(receipt.survivors) or receipt.second_look.is_ok)


def named(pids: list[int]) -> str:
    """The first of these processes with their commands, in brackets."""
    words = [f"{pid} {processes.command_line(pid)[:60]!r}" for pid in pids[:MOST_NAMED]]
    return f" (pid {', '.join(words)})" if words else ""
