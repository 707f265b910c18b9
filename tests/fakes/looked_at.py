"""Agents that are processes of the test's own, as the looks at their connections see them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import Handle
from console.killswitch.kill.connections import Connections
from console.killswitch.kill.records import Looks
from console.killswitch.kill.snapshot import Process
from console.killswitch.store.registry import Entry, Held

TALKER = """import socket, sys, time
kept = []
for line in sys.stdin:
    verb, _, where = line.strip().partition(" ")
    if verb == "tcp":
        kept.append(socket.create_connection(("127.0.0.1", int(where))))
    elif verb == "unix":
        kept.append(socket.socket(socket.AF_UNIX))
        kept[-1].connect(where)
    elif verb == "listen":
        kept.append(socket.create_server(("127.0.0.1", int(where))))
    elif verb == "accept":
        kept.append(kept[-1].accept()[0])
    elif verb == "pair":
        kept.extend(socket.socketpair())
    elif verb == "close":
        kept.clear()
    print("done", flush=True)
"""


class Talker:
    """An agent that does what the test says."""

    def __init__(self, agent_id: str, *words: str) -> None:
        command = [sys.executable, "-S", "-c", TALKER, *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ticks = processes.start_ticks(self.process.pid)
        assert ticks is not None
        self.entry = Entry(agent_id, "process", "managed", 0, confirmed=True, pid=self.process.pid, start_ticks=ticks)
        self.held = Held(self.entry, init=Handle(self.process.pid, ticks))
        self.agent_id = agent_id
        self.pid = self.process.pid

    def do(self, what: str) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.held.close()


class LookedAt:
    """Some of them, and looks that the test makes by hand. Its own process is no part of Watchfloor here unless ``own`` says so."""

    def __init__(self) -> None:
        self.talkers: dict[str, Talker] = {}
        self.own: set[int] = set()
        self.connections = self.looking(Looks(Path("/proc/self/nowhere")))  # where nothing can be kept

    def looking(self, looks: Looks) -> Connections:
        """As one guard looks; the next one goes on from ``looks``."""
        return Connections(lambda: [one.held for one in self.talkers.values()], self._is_own, looks)

    def _is_own(self, one: Process) -> bool:
        return one.pid in self.own

    def agent(self, agent_id: str, *words: str) -> Talker:
        self.talkers[agent_id] = Talker(agent_id, *words)
        return self.talkers[agent_id]

    def remotes(self, agent_id: str) -> list[tuple[str, str, int]]:
        """(kind, remote, pid) of what is known of one."""
        kept = self.connections.records[agent_id].kept.values()
        return [(one.kind, one.remote, one.peer.pid if one.peer else 0) for one in kept]

    def close(self) -> None:
        self.connections.end()
        for one in self.talkers.values():
            with contextlib.suppress(ProcessLookupError):
                one.end()


@contextlib.contextmanager
def looked_at() -> Iterator[LookedAt]:
    made = LookedAt()
    try:
        yield made
    finally:
        made.close()
