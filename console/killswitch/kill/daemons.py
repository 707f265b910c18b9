"""Daemons at a kill: programs that would start a killed session again are frozen until zero, killed, or named with the reason.

The supervisor finds and proves them in advance (console/sources/daemons) and tells the guard; nothing here opens a file of a session. What
may change is looked at again at the moment of the kill: process, start time, program, account, children. docs/explanation/daemons.md.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from console.domain.errors import UsageProblem
from console.domain.guard import text, whole
from console.domain.ids import AGENT_ID
from console.domain.kill import Daemon
from console.killswitch.kernel import processes
from console.killswitch.kernel.descendants import recent_look
from console.killswitch.store.atomic_file import write_whole

KNOWN_FILE, FROZEN_FILE = "daemons.json", "daemons-frozen.json"
"""In the guard's folder: what the supervisor told, and what is frozen now."""
FREEZE_S = 5.0
"""No daemon stays frozen longer, whatever the kill does."""
MOST = 1000
LARGEST = 4 << 20
_SHARED = "a shared program: named, never frozen or signalled"
_ACCEPTS = 0x10000

Told = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session that an agent runs: by what the return watch would recognise it."""

    agent_id: str
    kind: str
    session: str
    uid: int
    exe: str
    cwd: str
    words: tuple[str, ...]
    """Arguments behind which the session's id stands when its program starts it again."""
    variables: tuple[str, ...]
    """Environment variables in which its program tells its tools the id."""
    sign: str = ""
    """The unix socket that only this session's process listens on; empty: there is none."""
    daemon: int = 0
    """Pid of the daemon that hosts it."""
    daemon_ticks: int = 0


@dataclass(frozen=True, slots=True)
class KnownDaemon:
    """A daemon as the supervisor proved it."""

    kind: str
    name: str
    pid: int
    start_ticks: int
    exe: str
    uid: int
    refused: str
    """Why it is only named; empty: every mark was proven."""
    agents: tuple[str, ...]
    """Whose sessions it hosts."""
    sessions: tuple[str, ...]
    """Of those agents, in the same order."""
    commands: tuple[str, ...]
    """What drops each of these sessions, for people."""
    others: tuple[str, ...]
    """Sessions that it hosts for others than those agents."""
    hosts: tuple[Told, ...] = ()
    """Children with the agent whose session runs below each; empty: the session of an unknown agent."""
    idle: tuple[Told, ...] = ()
    """Children that wait for a session, with the socket that is there as long as they wait."""
    is_process_of: tuple[str, ...] = ()
    """Agents whose own process it is: each of their sessions runs in it."""


@dataclass(frozen=True, slots=True)
class KnownJob:
    """The job of a shared program that an agent runs in."""

    agent_id: str
    program: str
    pid: int
    start_ticks: int
    exe: str
    uid: int
    job: str
    command: str


@dataclass(frozen=True, slots=True)
class Everything:
    """Everything that was told."""

    sessions: tuple[KnownSession, ...] = ()
    daemons: tuple[KnownDaemon, ...] = ()
    jobs: tuple[KnownJob, ...] = ()


class Known:
    """The supervisor's last word on them. ``path``: where the next guard, or a kill without one, finds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._now, self._next = Everything(), Everything()

    @property
    def told(self) -> Everything:
        return self._now

    def hear(self, message: dict[str, Any], record: Callable[[str, Callable[[], object]], object]) -> dict[str, Any]:
        """A line of it; the ``last`` one makes it hold, and is kept by ``record``. UsageProblem for what cannot be read."""
        more = _told(message)
        before = self._next if message.get("more") is True else Everything()
        self._next = Everything(
            (*before.sessions, *more.sessions)[:MOST], (*before.daemons, *more.daemons)[:MOST], (*before.jobs, *more.jobs)[:MOST]
        )
        if message.get("last") is True:
            changed, self._now = self._next != self._now, self._next
            if changed:
                record("daemons", self.save)
        return {"sessions": len(self._now.sessions), "daemons": len(self._now.daemons), "jobs": len(self._now.jobs)}

    def save(self) -> None:
        """OSError when it is not on disk."""
        write_whole(self.path, json.dumps(asdict(self._now)).encode())

    def load(self) -> None:
        """What was told before this process; nothing when it cannot be read. Never raises."""
        try:
            with self.path.open("rb") as file:
                self._now = _told(json.loads(file.read(LARGEST)))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError, UsageProblem):
            self._now = Everything()

    def sessions_of(self, agents: Collection[str]) -> list[KnownSession]:
        """Of the agents named."""
        return [one for one in self._now.sessions if one.agent_id in agents]


def _told(message: dict[str, Any]) -> Everything:
    try:
        return Everything(
            tuple(_session(one) for one in message.get("sessions", [])),
            tuple(_daemon(one) for one in message.get("daemons", [])),
            tuple(_job(one) for one in message.get("jobs", [])),
        )
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise UsageProblem("A daemon that was told cannot be read.", "See the guard's operations.") from error


def _agent(one: dict[str, Any], key: str = "agent_id") -> str:
    agent = text(one, key, "", 63)
    if agent and not AGENT_ID.match(agent):
        raise UsageProblem("A daemon's agent has an id.", "See the guard's operations.")
    return agent


def _texts(one: dict[str, Any], key: str, limit: int = 500) -> tuple[str, ...]:
    return tuple(text({"one": word}, "one", limit=limit) for word in one.get(key, ()))


def _children(one: dict[str, Any], key: str) -> tuple[Told, ...]:
    return tuple((int(pid), int(ticks), text({"one": what}, "one", limit=200)) for pid, ticks, what in one.get(key, ()))


def _session(one: dict[str, Any]) -> KnownSession:
    return KnownSession(
        _agent(one),
        text(one, "kind", limit=20),
        text(one, "session", limit=80),
        whole(one, "uid"),
        text(one, "exe", ""),
        text(one, "cwd", "", 1000),
        _texts(one, "words", 40),
        _texts(one, "variables", 80),
        text(one, "sign", "", 200),
        whole(one, "daemon", 0),
        whole(one, "daemon_ticks", 0),
    )


def _daemon(one: dict[str, Any]) -> KnownDaemon:
    if whole(one, "pid") <= 1:
        raise UsageProblem("Process 1 cannot be an agent's daemon.", "See the guard's operations.")
    lists = (_texts(one, "agents", 63), _texts(one, "sessions", 80), _texts(one, "commands"), _texts(one, "others", 80))
    first = (text(one, "kind", limit=20), text(one, "name", limit=80), whole(one, "pid"), whole(one, "start_ticks"))
    second = (text(one, "exe", ""), whole(one, "uid"), text(one, "refused", ""))
    return KnownDaemon(*first, *second, *lists, _children(one, "hosts"), _children(one, "idle"), _texts(one, "is_process_of", 63))


def _job(one: dict[str, Any]) -> KnownJob:
    first = (_agent(one), text(one, "program", limit=40), whole(one, "pid", 0), whole(one, "start_ticks", 0))
    return KnownJob(*first, text(one, "exe", ""), whole(one, "uid", 0), text(one, "job", "", 200), text(one, "command", "", 500))


class Holds:
    """Daemons that are frozen now, on disk before they are: the next guard thaws what this one leaves."""

    def __init__(self, folder: Path, journal: Callable[..., object]) -> None:
        self.path, self._journal = folder / FROZEN_FILE, journal
        self._lock = threading.Lock()
        self._by: dict[tuple[int, int], set[str]] = {}

    def freeze(self, pid: int, ticks: int, kill_id: str) -> str:
        """Stops one for a kill: empty, or why not. 1. on disk, 2. in the journal, 3. SIGSTOP."""
        with self._lock:
            held = self._by.setdefault((pid, ticks), set())
            held.add(kill_id)
            try:
                if len(held) == 1 and processes.state(pid) in ("T", "t"):
                    held.clear()
                    return "another process has stopped it already"
                if len(held) == 1:
                    self._save()
                    self._journal("daemon_freeze", pid=pid, start_ticks=ticks, kill_id=kill_id)
                return processes.send_once(pid, ticks, signal.SIGSTOP)
            except OSError as error:
                held.discard(kill_id)
                return f"a freeze is recorded first, and that failed: {error.strerror or error}"
            finally:
                self._by = {key: kills for key, kills in self._by.items() if kills}

    def thaw(self, pid: int, ticks: int, kill_id: str) -> None:
        """Lets one go on, unless another kill still holds it. Never raises: a disk that fails keeps no daemon frozen."""
        with self._lock:
            held = self._by.get((pid, ticks), set())
            held.discard(kill_id)
            if not held:
                self._by.pop((pid, ticks), None)
                self._let_go([(pid, ticks)], kill_id)

    def recover(self) -> int:
        """Thaws what a guard before this one froze and did not thaw; how many were on its record. Never raises."""
        try:
            left = [(int(pid), int(ticks)) for pid, ticks in json.loads(self.path.read_bytes())]
        except (OSError, ValueError, TypeError):
            return 0
        with self._lock:
            self._let_go(left, "")
        return len(left)

    def _let_go(self, several: Iterable[tuple[int, int]], kill_id: str) -> None:
        for pid, ticks in several:
            said = processes.send_once(pid, ticks, signal.SIGCONT)
            try:
                self._journal("daemon_thaw", pid=pid, start_ticks=ticks, kill_id=kill_id, said=said or "sent")
                self._save()
            except OSError:
                pass  # it runs; what stays on disk is thawed once more by the next guard

    def _save(self) -> None:
        write_whole(self.path, json.dumps(sorted(self._by)).encode())


class Struck:
    """What one kill does about daemons, in a thread of its own: nothing of the kill waits for it but its receipt."""

    def __init__(self, kill_id: str, agents: Collection[str], told: Everything, holds: Holds, spared: Callable[[], frozenset[int]]) -> None:
        self._kill_id, self._agents, self._holds, self._spared = kill_id, frozenset(agents), holds, spared
        self._daemons = [d for d in told.daemons if self._agents.intersection(d.agents) or self._agents.intersection(d.is_process_of)]
        self._jobs = [job for job in told.jobs if job.agent_id in self._agents]
        self.rows: list[Daemon] = []
        self._frozen: list[KnownDaemon] = []
        self._struck, self._zero = threading.Event(), threading.Event()

    def start(self) -> None:
        """Nothing to do, no thread."""
        if not (self._daemons or self._jobs):
            self._struck.set()
            return
        try:
            threading.Thread(target=self._run, name="daemons", daemon=True).start()
        except RuntimeError:  # no thread to be had: named, and nothing else
            self.rows = [_row(d, self._agents, "named", "the guard had no thread left") for d in self._daemons]
            self._struck.set()

    def zero(self, wait_s: float = 1.0) -> list[Daemon]:
        """Zero is decided: what was frozen goes on. Gives the rows for the receipt."""
        self._zero.set()
        self._struck.wait(wait_s)
        self._thaw()
        return list(self.rows)

    def _run(self) -> None:
        try:
            for daemon in self._daemons:
                self.rows.append(_row(daemon, self._agents, *self._strike(daemon)))
            self.rows += [_row_of_job(job) for job in self._jobs]
        finally:
            self._struck.set()
        if self._frozen:
            self._zero.wait(FREEZE_S)
            self._thaw()

    def _thaw(self) -> None:
        while self._frozen:
            try:
                one = self._frozen.pop()
            except IndexError:
                return
            self._holds.thaw(one.pid, one.start_ticks, self._kill_id)

    def _strike(self, daemon: KnownDaemon) -> tuple[str, str]:
        """(what was done, why)."""
        if self._agents.intersection(daemon.is_process_of):
            return "killed", "it is the agent's own process, and hosts its session itself"
        if why := daemon.refused or why_not(daemon, self._spared()):
            return "named", why
        left = _left(daemon, self._agents)
        if not left and not (why := processes.send_once(daemon.pid, daemon.start_ticks, signal.SIGKILL)):
            return "killed", "every session that it hosts was a target"
        why = self._holds.freeze(daemon.pid, daemon.start_ticks, self._kill_id)
        if why:
            return "named", why
        self._frozen.append(daemon)
        return "frozen", f"until zero; it lives on: {left}"


def why_not(daemon: KnownDaemon, spared: frozenset[int]) -> str:
    """Why it is only named, as it stands now; empty: nothing speaks against it."""
    if daemon.pid in spared:
        return "it is the caller, the guard, the supervisor or a console, or an ancestor of theirs"
    if processes.start_ticks(daemon.pid) != daemon.start_ticks or not processes.is_alive(daemon.pid):
        return "it has ended"
    if (processes.describe(daemon.pid)["exe"], processes.uids(daemon.pid)) != (daemon.exe[:200], {daemon.uid}):
        return "it runs another program, or under another account, than was proven"
    if os.geteuid() not in (0, daemon.uid):
        return "it runs under another account than the guard"
    return ""


def _left(daemon: KnownDaemon, agents: frozenset[str]) -> str:
    """Why a daemon must live on; empty: each child that it has now is a target's, or waits for a session and still does."""
    if daemon.others or not agents.issuperset(daemon.agents):
        return "it hosts other sessions"
    if not daemon.hosts:
        return "which sessions it hosts is unknown" if not daemon.agents else ""
    try:
        rows = recent_look().rows
    except OSError as error:
        return f"its children could not be looked at: {error.strerror}"
    known = {(pid, ticks): agent for pid, ticks, agent in daemon.hosts}
    waiting = {(pid, ticks): sign for pid, ticks, sign in daemon.idle}
    bound = bound_sockets(daemon.pid) if waiting else {}
    for pid, row in rows.items():
        if row.parent != daemon.pid or not row.is_alive:
            continue
        is_waiting = waiting.get((pid, row.ticks), "") in bound
        if known.get((pid, row.ticks), "") not in agents and not is_waiting:
            return "it has a child that is no target's"
    return ""


def bound_sockets(pid: int | str = "self") -> dict[str, set[str]]:
    """Unix sockets that are listened on, by path as it was bound: what /proc/PID/fd calls each. None when they cannot be read."""
    try:
        lines = Path(f"/proc/{pid}/net/unix").read_text(errors="replace").splitlines()[1:]
    except OSError:
        return {}
    found = dict[str, set[str]]()
    for words in (line.split(None, 7) for line in lines):
        if len(words) == 8 and int(words[3], 16) & _ACCEPTS:
            found.setdefault(words[7], set()).add(f"socket:[{words[6]}]")
    return found


def _row(daemon: KnownDaemon, agents: frozenset[str], action: str, reason: str) -> Daemon:
    mine = [n for n, agent in enumerate(daemon.agents) if agent in agents]
    others = [daemon.sessions[n] for n in range(len(daemon.agents)) if n not in mine]
    return Daemon(
        daemon.kind,
        daemon.name,
        daemon.pid,
        daemon.start_ticks,
        daemon.exe,
        daemon.uid,
        tuple(daemon.sessions[n] for n in mine),
        (*others, *daemon.others),
        action,
        reason,
        "; ".join(daemon.commands[n] for n in mine if n < len(daemon.commands) and daemon.commands[n]),
    )


def _row_of_job(job: KnownJob) -> Daemon:
    name = f"{job.program}: {job.job}" if job.job else job.program
    return Daemon(job.program, name, job.pid, job.start_ticks, job.exe, job.uid, (), (), "named", _SHARED, job.command)
