"""Receipts as files; the observed agents that a receipt of everything names; and what is amended after a receipt was given."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.domain.errors import UsageProblem
from console.domain.guard import text, whole
from console.domain.ids import AGENT_ID
from console.domain.kill import KILL_ID, Receipt, receipt_from_json
from console.killswitch.kernel import processes
from console.killswitch.store.atomic_file import sync_folder, write_whole

if TYPE_CHECKING:  # what only asks for a kill reads receipts too, and need not wait for what carries one out
    from console.killswitch.kill.session import KillSession
    from console.killswitch.kill.targets import Aim
    from console.killswitch.store.registry import Held

UNHELD_FILE = "unheld.json"
"""In the guard's folder."""
NAMED = 30
"""Of the rest a receipt says how many there are."""
FRESH_S = 60.0
"""What was said longer ago is said to be old: who appeared since is not known."""
LARGEST = 64 * 1024
NOT_KNOWN = "Who was only seen is not known: no supervisor has said it here."
LOOK_S = 1.0
"""A change of a cgroup or the end of a process wakes it at once; what has neither is looked at this often."""
PAUSE_S = 0.05


def new_kill_id() -> str:
    """Sorts by time: 20250131-142233-a1b2c3d4."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


def receipt_path(guard_dir: Path, kill_id: str) -> Path:
    """ValueError for an id that no kill has."""
    if not KILL_ID.match(kill_id):
        raise ValueError("kill id")
    return guard_dir / "receipts" / f"{kill_id}.json"


def receipt_bytes(receipt: Receipt) -> bytes:
    # Without indentation: Python's encoder in C takes a tenth of the time for a kill of hundreds, and its caller waits for it.
    return json.dumps(receipt.as_json(), ensure_ascii=True).encode() + b"\n"


def write_receipt(guard_dir: Path, receipt: Receipt) -> None:
    """OSError when it is not durable."""
    path = receipt_path(guard_dir, receipt.kill_id)
    is_first = not path.parent.is_dir()
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(path, receipt_bytes(receipt))
    if is_first:
        sync_folder(guard_dir)


def read_receipt(guard_dir: Path, kill_id: str) -> Receipt | None:
    """None when there is none, or none that can be read."""
    try:
        return receipt_from_json(json.loads(receipt_path(guard_dir, kill_id).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class UnheldAgent:
    """One of them, as the supervisor saw it."""

    agent_id: str
    name: str
    """What it calls itself: bounded, letters that print."""
    why: str
    """Why no press signals it."""
    pid: int = 0
    """0: which process it is is not known for certain."""
    start_ticks: int = 0


class Unheld:
    """The last word of a supervisor on them. ``path``: where the next guard, or a press without one, finds it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock = path, clock
        self._agents: tuple[UnheldAgent, ...] = ()
        self._n, self._parts, self._told_at = 0, 0, 0.0
        self._is_kept = False

    def tell(self, message: dict[str, Any]) -> None:
        """A line of the supervisor's; ``more``: besides those of the line before. UsageProblem for what is no agent."""
        told = message.get("agents")
        if not isinstance(told, list) or not all(isinstance(one, dict) for one in told):
            raise UsageProblem("Field 'agents' must be a list.", "See the guard's operations.")
        agents = tuple(_agent(one) for one in told)
        counted = (max(whole(message, "n"), len(agents)), max(0, whole(message, "parts", 0)))
        before = (self._agents, self._n, self._parts)
        self._agents = (*(self._agents if message.get("more") is True else ()), *agents)[:NAMED]
        self._n, self._parts = counted
        self._told_at = self._clock()
        self._is_kept = self._is_kept and before == (self._agents, self._n, self._parts)

    def hear(self, message: dict[str, Any], record: Callable[[str, Callable[[], object]], object]) -> dict[str, Any]:
        """A line as an operation of the guard: the ``last`` one of a list is kept, by ``record``, when anything changed."""
        self.tell(message)
        if message.get("last") is True and not self._is_kept:
            record("unheld", self.save)
        return {}

    def save(self) -> None:
        """OSError when it is not on disk."""
        body = {"told_at": self._told_at, "n": self._n, "parts": self._parts, "agents": [asdict(one) for one in self._agents]}
        write_whole(self.path, json.dumps(body).encode())
        self._is_kept = True

    def load(self) -> None:
        """What was said before this process; nothing when there is none, or none that can be read. Never raises."""
        try:
            with self.path.open("rb") as file:
                body = json.loads(file.read(LARGEST))
            self.tell({"agents": [one | {"id": one.pop("agent_id")} for one in body["agents"]], "n": body["n"], "parts": body["parts"]})
            self._told_at = float(whole(body, "told_at"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageProblem):
            self._agents, self._n, self._parts, self._told_at = (), 0, 0, 0.0

    def name_in(self, kill: KillSession) -> None:
        """Into the receipt of a press of everything."""
        kill.only_seen, words = self.left({aim.agent_id for aim in kill.aims}, kill.pressed_at)
        kill.excluded += words

    def left(self, targets: Collection[str], pressed_at: float) -> tuple[int | None, list[str]]:
        """(how many were not stopped, None: not known; that in words, each named with why and whether it runs). Looks at /proc.

        ``targets``: agents that the press held all the same, adopted ones for example.
        """
        if not self._told_at:
            return None, [NOT_KNOWN]
        named = [one for one in self._agents if one.agent_id not in targets]
        n = max(0, self._n - (len(self._agents) - len(named)))
        age = pressed_at - self._told_at
        old = "" if -1.0 <= age <= FRESH_S else f"; that is old ({max(0.0, age):.0f} s): who appeared since is not known"
        if not n:
            return (0, []) if not old else (None, [f"As the supervisor last reported, no agent was only observed{old}."])
        parts = f", and {self._parts} sub-agents of theirs" if self._parts else ""
        rest = f", the first {len(named)} by name" if n > len(named) else ""
        head = f"{n} {'agent was' if n == 1 else 'agents were'} only seen and not stopped{parts}, as the supervisor last said{rest}{old}"
        return n, [head, *(_words(one) for one in named)]


def _agent(told: dict[str, Any]) -> UnheldAgent:
    agent_id, pid, ticks = text(told, "id", limit=63), whole(told, "pid", 0), whole(told, "start_ticks", 0)
    if not AGENT_ID.match(agent_id) or pid < 0 or pid == 1:
        raise UsageProblem("An agent that was only seen has an id, and a process or none.", "See the guard's operations.")
    return UnheldAgent(agent_id, _plain(text(told, "name", "", 200))[:60], _plain(text(told, "why", "", 300))[:200], pid, ticks)


def _plain(words: str) -> str:
    """Letters that print, and no quotation mark: what an agent calls itself ends where we end it."""
    return "".join(x if x.isascii() and x.isprintable() and x != '"' else "?" for x in words)


def _words(one: UnheldAgent) -> str:
    name = f' "{one.name}"' if one.name else ""
    if not one.pid:
        runs = "which process it is is not known"
    else:
        runs = f"process {one.pid} {'runs' if processes.is_the_same(one.pid, one.start_ticks) else 'has ended'}"
    return f"{one.agent_id}{name}, only seen: {one.why or 'not said why'}; {runs}"


class Afterwards:
    """One thread, there only while something is open. ``amended`` is called on it with the kill and the words of each change."""

    def __init__(self, amended: Callable[[KillSession, list[str]], None]) -> None:
        self._amended = amended
        self._lock = threading.Lock()
        self._kills: list[KillSession] = []
        self._back: list[tuple[KillSession, Aim]] = []
        self._is_running = False

    def follow(self, kill: KillSession) -> None:
        """A kill that is over, if its receipt leaves anything open."""
        if kill.open_aims():
            with self._lock:
                self._kills.append(kill)
                self._start()

    def came_back(self, kill: KillSession, aim: Aim) -> None:
        """A container that started after this kill, struck already."""
        with self._lock:
            self._back.append((kill, aim))
            self._start()

    def forget(self) -> None:
        """Forget the receipts after an un-kill: no caller waits for them any more."""
        with self._lock:
            self._kills.clear()
            self._back.clear()

    def holds(self, held: Held) -> bool:
        """Whether its files are still looked at: they must not be closed."""
        with self._lock:
            aims = [a for kill in self._kills for a in kill.aims] + [a for _, a in self._back]
        return any(aim.held is held for aim in aims)

    def _start(self) -> None:
        if not self._is_running:
            threading.Thread(target=self._run, name="afterwards", daemon=True).start()
            self._is_running = True

    def _run(self) -> None:
        try:
            while (work := self._next()) is not None:
                self._look(*work)
                time.sleep(PAUSE_S)
        finally:  # after a fault the next one to be followed starts it again
            with self._lock:
                self._is_running = False

    def _look(self, kills: list[KillSession], back: list[tuple[KillSession, Aim]]) -> None:
        for kill, aim in back:
            self._tell(kill, kill.take_back(aim))
            self.follow(kill)
        from console.killswitch.kill.targets import watch

        watch([aim for kill in kills for aim in kill.open_aims()])[0].poll(0 if back else LOOK_S * 1000)
        for kill in kills:
            self._tell(kill, kill.look_later())

    def _next(self) -> tuple[list[KillSession], list[tuple[KillSession, Aim]]] | None:
        """What is open, and what came back to kills that are over; None ends the thread."""
        with self._lock:
            self._kills = list({id(kill): kill for kill in self._kills if kill.open_aims()}.values())
            ready = [(kill, aim) for kill, aim in self._back if kill.finished.is_set()]
            self._back = [(kill, aim) for kill, aim in self._back if not kill.finished.is_set()]
            self._is_running = bool(self._kills or self._back or ready)
            return (self._kills, ready) if self._is_running else None

    def _tell(self, kill: KillSession, words: list[str]) -> None:
        if words:
            self._amended(kill, words)
