"""The guard's own objects in this process: folders that look like cgroups, a clock, a clerk and threads that wait for the test."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Unavailable
from console.killswitch.guard import adoption, freeze, operations, server, state, unlatch
from console.killswitch.guard.freeze import Freezing
from console.killswitch.guard.helper import checked
from console.killswitch.guard.launches import Launches
from console.killswitch.guard.operations import Desk
from console.killswitch.guard.state import Clerk, Config, Guard
from console.killswitch.helpers import adopt, unlock
from console.killswitch.kernel import cgroups, processes
from console.killswitch.kernel.cgroups import Leaf, Mount, Mounts, Tree
from console.killswitch.kernel.peers import Peer
from console.killswitch.kill import outside, request, second_look, session
from console.killswitch.store import registry
from console.killswitch.store.journal import read_journal
from console.killswitch.store.registry import Held

INSTANCE = "00c0ffee"


def fill(path: Path, populated: int = 0) -> Path:
    """A folder with the files of a cgroup."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")
    for name in ("cgroup.kill", "cgroup.freeze", "cgroup.procs"):
        (path / name).write_text("")
    return path


class FolderLeaf(Leaf):
    """Its kill is obeyed, unless there is a file ``stubborn`` in it: then so many kills are needed as that says."""

    def kill(self) -> str:
        answer = super().kill()
        stubborn = self.path / "stubborn"
        left = int(stubborn.read_text()) if stubborn.exists() else 1
        if left > 1:
            stubborn.write_text(str(left - 1))
        else:
            for events in self.path.rglob("cgroup.events"):
                events.write_text("populated 0\nfrozen 0\n")
        return answer

    def is_frozen(self) -> bool:
        return (self.path / "cgroup.freeze").read_text() == "1"


class FolderTree(Tree):
    """A tree of ordinary folders."""

    def __init__(self, root: Path, mounts: Mounts) -> None:
        for name in ("agents", "control", "relays"):
            fill(root / name)
        super().__init__(root, mounts)
        self.agents.close()
        self.relays.close()
        self.agents, self.relays = FolderLeaf(root / "agents"), FolderLeaf(root / "relays")
        self.refuses: OSError | None = None

    def make_leaf(
        self, agent_id: str, pids_max: int | None, memory_max: int | None = None, cpus_milli: int | None = None
    ) -> tuple[Leaf, tuple[str, ...]]:
        if self.refuses is not None:
            raise self.refuses
        return FolderLeaf(fill(self.agents.path / f"{agent_id}-00000000")), ()


class HandClerk(Clerk):
    """Its jobs wait for ``work``, and run on the test's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []

    def start(self) -> None:
        """It is never a thread."""

    def do(self, job: Callable[[], None]) -> None:
        self.waiting.append(job)

    def work(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


def helped(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Asks a helper's program in this process, with all that the guard does to its answer."""

    def ask(name: str, request: dict[str, Any], shape: dict[str, type], limit_s: float = 0.0) -> dict[str, Any]:
        try:
            return checked(json.loads(json.dumps(answer(json.loads(json.dumps(request))))), shape)
        except ValueError as error:
            raise Unavailable(f"The guard's helper for this ({name}) gave no answer that can be used ({error}).") from error

    return ask


class InProcess:
    """A helper for several requests, in this process."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._ask = helped(answer)
        self.is_over = False

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self.is_over = True

    def ask(self, request: dict[str, Any], shape: dict[str, type]) -> dict[str, Any]:
        return self._ask("adopt", request, shape)

    def end(self) -> None:
        """It has said no more."""


class Room:
    """One guard with everything around it; ``close`` closes what it opened."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **config: Any) -> None:
        self.folder = folder
        self.now = 1000.0
        self.lines: dict[int | str, str] = {}
        """What /proc/PID/cgroup says of a pid."""
        self.threads: list[tuple[str, Callable[[], None]]] = []
        self.mounts = Mounts(Mount(folder / "cg", "/"))
        self.tree: FolderTree | None = FolderTree(folder / "cg" / f"watchfloor-{INSTANCE}", self.mounts)
        self.config = Config(folder / "state", folder / "run", INSTANCE, **{"return_watch_s": 0.0, **config})
        self._past: list[Guard] = []
        for module in (freeze, server, operations):
            monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(freeze, "boottime", lambda: self.now)
        monkeypatch.setattr(state, "find_mounts", lambda: self.mounts)
        monkeypatch.setattr(state, "make_tree", self._make_tree)
        monkeypatch.setattr(request, "in_thread", lambda job, name: self.threads.append((name, job)))
        monkeypatch.setattr(registry, "Leaf", FolderLeaf)
        for module in (processes, cgroups):
            monkeypatch.setattr(module, "cgroup_line", lambda pid, controller="": self.lines.get(pid, "/elsewhere"))
        monkeypatch.setattr(processes, "find_marked", lambda *_: iter(()))
        monkeypatch.setattr("os.fsync", lambda fd: None)  # a busy disk takes half a second for one; test_durable.py sees to it
        monkeypatch.setattr(session, "SECOND_LOOK_S", 0.0)
        monkeypatch.setattr(session, "LAST_LOOK_S", 0.1)
        monkeypatch.setattr(outside, "FIND_S", 0.0)  # no thread reads the sockets here: nothing to wait for
        monkeypatch.setattr(second_look, "BACK_S", 0.1)
        monkeypatch.setattr(unlatch, "ask", helped(unlock.answer))
        monkeypatch.setattr(adoption, "Helper", lambda *_: InProcess(adopt.Adoption().answer))
        monkeypatch.setattr(adopt, "_opened", lambda request: contextlib.nullcontext(self.tree))
        self.start()

    def _make_tree(self, *_: object) -> FolderTree:
        if self.tree is None:
            raise Unavailable("No cgroup v2 is mounted here.")
        return self.tree

    def start(self, **config: Any) -> None:
        """A guard that takes over what is on disk, as after a crash of the one before."""
        if config:
            self.config = Config(self.folder / "state", self.folder / "run", INSTANCE, **{"return_watch_s": 0.0, **config})
        self.guard = Guard(self.config)
        self.clerk = self.guard.clerk = HandClerk()
        self._past.append(self.guard)
        self.guard.take_over()
        self.freezing = Freezing(self.guard)
        self.freezing.restore()
        self.launches = Launches(self.guard, self.freezing)
        self.desk = Desk(self.guard, self.freezing, self.launches)
        self.desk.unlatching.look()

    def ask(self, op: str, door: str = "supervisor", **fields: Any) -> dict[str, Any]:
        """As the doors ask the desk, without a socket."""
        return self.desk.answer(self.desk.find(op, door), {"op": op, **fields}, Peer(4242, 0, 1))

    def unlatch(self, generation: int, kills: list[str], by: str = "owner", **proof: Any) -> dict[str, Any]:
        """As the supervisor does for a person: the proof (without one: the typed id of the kill), then the release."""
        given = proof or {"kind": "typed", "kill_id": self.ask("challenge")["to_type"]}
        proven = self.ask("prove", generation=generation, by=by, **given)
        return self.ask("unlatch", generation=generation, kills=kills, by=by, proof=proven["proof"]) if proven["ok"] else proven

    def agent(self, agent_id: str, populated: int = 1) -> Held:
        """An agent with a ticket, whose leaf says what the test wants."""
        ticket = self.launches.ticket(agent_id, "process", "managed")
        fill(Path(ticket["leaf"]), populated)
        return self.guard.registry.held[agent_id]

    def is_frozen(self, agent_id: str) -> bool:
        leaf = self.guard.registry.held[agent_id].leaf
        assert isinstance(leaf, FolderLeaf)
        return leaf.is_frozen()

    def run_threads(self) -> None:
        """Whatever the guard gave to threads of its own (records of a press, the rest of a kill)."""
        while self.threads:
            self.threads.pop(0)[1]()

    def journal(self) -> list[str]:
        return [line["kind"] for line in read_journal(self.guard.journal.path)]

    def close(self) -> None:
        for past in self._past:
            for held in (*past.registry.held.values(), *past.registry.retired):
                held.close()
        if self.tree is not None:
            self.tree.close()
