"""The return watch: for a minute after each kill, what starts a killed session again is ended at once and written into the receipt.

Killed: what carries the killed session's id where its program reads it, an agent's marker, or the socket of that session below its known
daemon. Shown only: the same program in the same folder. Never touched: what Watchfloor starts after the kill (by cgroup, or by parent),
other sessions, the caller, the guard, the supervisor, consoles and their ancestors. Only processes are looked at that began after the kill,
or run another program since.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from console.domain.guard import AGENT_VARIABLE, INSTANCE_VARIABLE
from console.domain.kill import Return, Unwatched
from console.killswitch.kernel import processes
from console.killswitch.kernel.descendants import below, read_table
from console.killswitch.kernel.faults import FAULTS, note_fault
from console.killswitch.kernel.processes import Handle
from console.killswitch.kill.daemons import KnownSession, bound_sockets
from console.killswitch.kill.scan import LOOK_S, Process, Registered, Scan, agent_of, environment, look_at
from console.killswitch.store.atomic_file import write_whole

WATCH_FILE = "return-watch.json"
"""In the guard's folder: the next guard goes on."""
DEAD_S = 2.0
MOST = 50
"""Returns of one kill that its receipt lists."""
BEAT_S = 1.0
"""So often the file's time is set: by it the next guard knows until when this one looked."""
GAP_S = 3.0
"""A look that comes later than this after the one before it was missed, and that is said."""
_OLD_PARENT = "its environment came from a process that lived before the kill"
_TERMINALS = frozenset({"tmux", "screen", "SCREEN", "zellij", "dtach", "abduco"})
SETTLED_S = 1.5
"""What is only likely is shown when it still runs so long after it was seen."""
_Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Watched:
    """One kill, as far as the watch needs it."""

    kill_id: str
    until: float
    """Seconds since the epoch."""
    killed_at: float
    since_ticks: int
    """As field 22 of /proc/PID/stat counts: what began before is no return."""
    agents: tuple[str, ...]
    sessions: tuple[KnownSession, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Why a process is a return."""

    agent_id: str
    session: str
    by: str
    certain: bool
    why: str


def unwatched(folder: Path, kill_id: str) -> Unwatched | None:
    """Of a kill whose time is over: from when on no guard looked, by what is on disk. None: it was watched to its end."""
    path = folder / WATCH_FILE
    try:
        found = [one for one in map(_watched, json.loads(path.read_bytes())) if one.kill_id == kill_id]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    since = max(_looked_until(path), found[0].killed_at) if found else 0.0
    return Unwatched(round(since, 1), round(found[0].until, 1)) if found and found[0].until - since > GAP_S else None


def _looked_until(path: Path) -> float:
    """Seconds since the epoch; 0: not known."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


class ReturnWatch:
    """One thread for all kills that are watched, there only while one is. ``told`` is called on it with each return."""

    def __init__(
        self,
        instance_id: str,
        folder: Path,
        told: Callable[[str, Return | Unwatched], None],
        spared: Callable[[], frozenset[int]],
        registered: Callable[[], list[Registered]],
    ) -> None:
        """``registered``: the supervisor first (pid 0: none), then the agents that are registered and not killed."""
        self._instance_id, self.path, self._told = instance_id, folder / WATCH_FILE, told
        self._spared, self._registered = spared, registered
        self._lock = threading.Lock()
        self._watched: list[Watched] = []
        self._is_running = False
        self._scan = Scan()
        self._looked_at = self._beat_at = 0.0
        """Seconds since the epoch: the last look, and the last time of it that is on disk."""
        self._met: dict[_Key, bool] = {}
        """Returns by kill, pid and start time, and whether each was certain: told once."""
        self._likely: dict[_Key, tuple[float, Process, Match]] = {}
        """Shown when they are still there at that time (CLOCK_MONOTONIC): one that has just begun may yet show what it is."""

    def mark(self) -> None:
        """Notes what runs now. While another kill is watched, what is known there is no older than ``AGAIN_S``."""
        with self._lock:
            if not self._is_running:
                self._scan = Scan()
                self._scan.mark()

    def follow(self, one: Watched, *, run: bool = True) -> None:
        """From now on, until its time is over; ``run`` False: it is only to be saved, for the guard that comes next."""
        with self._lock:
            self._watched = [*(w for w in self._watched if w.kill_id != one.kill_id), one]
            if run and not self._is_running:
                threading.Thread(target=self._run, name="return-watch", daemon=True).start()
                self._is_running = True

    def launched_again(self, agent_id: str) -> bool:
        """Its marker tells nothing of the killed one any more; its session's id still does. Returns whether a kill of it is watched."""
        with self._lock:
            before, self._watched = self._watched, [replace(w, agents=tuple(a for a in w.agents if a != agent_id)) for w in self._watched]
            return before != self._watched

    def save(self) -> None:
        """OSError when it is not on disk."""
        with self._lock:
            write_whole(self.path, json.dumps([asdict(one) for one in self._watched]).encode())

    def resume(self, *, run: bool = True) -> int:
        """Goes on with what a guard before this one watched; how many kills. Never raises."""
        try:
            found = [_watched(one) for one in json.loads(self.path.read_bytes())]
        except (OSError, ValueError, TypeError, KeyError):
            return 0
        left = [one for one in found if one.until > time.time()]
        for one in left:
            self.follow(one, run=run)
        if run:
            for one in found:
                self._missed(one, _looked_until(self.path))
        return len(left)

    def _missed(self, one: Watched, since: float) -> None:
        """Nothing looked from ``since`` until now: in the receipt, as far as it lies within the watch."""
        since, until = max(since, one.killed_at), min(time.time(), one.until)
        if since < until:
            self._told(one.kill_id, Unwatched(round(since, 1), round(until, 1)))

    def _run(self) -> None:
        scan, self._looked_at = self._scan, time.time()
        try:
            while watched := self._now():
                try:
                    self._look(watched, scan)
                    self._has_looked(watched)
                except FAULTS as fault:  # one look may fail; the watch goes on
                    note_fault("return watch", fault)
                time.sleep(LOOK_S)
        finally:
            with self._lock:
                self._is_running = False
            with contextlib.suppress(OSError):
                self.save()

    def _has_looked(self, watched: list[Watched]) -> None:
        """Notes it for the next guard; says it when this process stood still before this look, or its looks failed."""
        now = time.time()
        if now - self._looked_at > GAP_S:
            for one in watched:
                self._missed(one, self._looked_at)
        self._looked_at = now
        # The lower bound counts too: after the clock was set back, the age is negative and the file would never be touched again.
        if not 0 <= now - self._beat_at < BEAT_S:
            self._beat_at = now
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def _now(self) -> list[Watched]:
        with self._lock:
            self._watched = [one for one in self._watched if one.until > time.time()]
            self._is_running = bool(self._watched)
            if not self._watched:
                self._scan = Scan()
                self._met.clear()
                self._likely.clear()
            return list(self._watched)

    def _look(self, watched: list[Watched], scan: Scan) -> None:
        seen = list(scan.look(min(one.since_ticks for one in watched)))
        with self._lock:  # as they are now: an agent that was launched again during the look is no return
            watched = [now for one in watched for now in self._watched if now.kill_id == one.kill_id]
        pairs = [(one, process) for process in seen for one in watched if process.began >= one.since_ticks]
        found = [(*hit, _above(hit[1])) for pair in pairs if (hit := _found(*pair, self._instance_id, scan.began)) is not None]
        spared = self._spared() if found else frozenset()
        dies = {(one.kill_id, p.pid) for one, p, why, _ in found if why.certain and p.pid not in spared and not self._is_ours(one, p, why)}
        for one, process, why, above in found:
            if not any((one.kill_id, pid) in dies for pid in above):  # what is below another one dies with it, in one row
                self._judge(one, process, why)
        self._show(watched)
        if scan.signs_due():
            bound = bound_sockets()
            for one in watched:
                for session in one.sessions:
                    if session.sign and session.sign in bound and (listener := _listener(session)) is not None:
                        why = Match(session.agent_id, session.session, "daemon", True, "it listens on the session's socket")
                        self._judge(one, listener, why)

    def _judge(self, one: Watched, process: Process, found: Match) -> None:
        key = (one.kill_id, process.pid, process.ticks)
        if self._met.get(key) in (True, found.certain) or self._is_ours(one, process, found):
            return
        if not found.certain:
            self._likely.setdefault(key, (time.monotonic() + SETTLED_S, process, found))
            return
        self._met[key] = True
        self._likely.pop(key, None)
        self._tell(one, process, found)

    def _show(self, watched: list[Watched]) -> None:
        """What is only likely, once it had time to show what it is; of one kill no more than ``MOST``."""
        now, by_id = time.monotonic(), {one.kill_id: one for one in watched}
        for key, (due, process, found) in list(self._likely.items()):
            if now < due:
                continue
            del self._likely[key]
            shown = sum(1 for kill_id, _, _ in self._met if kill_id == key[0])
            if shown < MOST and key[0] in by_id and processes.is_the_same(process.pid, process.ticks):
                self._met[key] = False
                self._tell(by_id[key[0]], process, found)

    def _tell(self, one: Watched, process: Process, found: Match) -> None:
        why, spared = found.why, self._spared()
        certain = found.certain and process.pid not in spared
        if found.certain and not certain:
            why = f"{why}; it is the caller, the guard, the supervisor or a console, or an ancestor of theirs"
        killed, proven = _end(process, spared) if certain else (False, False)
        row = Return(
            found.agent_id,
            found.session,
            process.pid,
            process.ticks,
            process.parent,
            processes.command_line(process.parent)[:200],
            " ".join(process.argv)[:200],
            round(time.time() - one.killed_at, 1),
            found.by,
            certain,
            killed,
            proven,
            why,
        )
        self._told(one.kill_id, row)

    def _is_ours(self, one: Watched, process: Process, found: Match) -> bool:
        """Started by Watchfloor after the kill; of another living agent's own processes only a certain return is none of its own."""
        supervisor, *agents = self._registered()
        agent = agent_of(process.pid, agents)
        if agent is not None:
            return agent.is_started_after(one.since_ticks) or not found.certain
        if f"/watchfloor-{self._instance_id}/" in f"{processes.cgroup_line(process.pid) or ''}/":
            return True
        return supervisor.is_above(process.pid)


def _above(process: Process) -> set[int]:
    """Its ancestors."""
    return processes.ancestors(process.pid) - {process.pid}


def _found(one: Watched, process: Process, instance_id: str, began: dict[int, int]) -> tuple[Watched, Process, Match] | None:
    """What is a return, and why: of a tool that was handed the session's id, the session that handed it on."""
    why = match(process, one, instance_id)
    if why is None:
        return None
    session = next((s for s in one.sessions if s.session == why.session and s.agent_id == why.agent_id), None)
    giver = _giver(process, session, one.since_ticks, began) if why.certain and session is not None else None
    return (one, giver, replace(why, why="it hands the killed session's id to its tools")) if giver is not None else (one, process, why)


def _giver(process: Process, session: KnownSession, since_ticks: int, began: dict[int, int]) -> Process | None:
    """The process of the session's program from which a tool has the id: it began since the kill, and its own start does not tell the id.

    So does a session that goes on by its folder alone (``--continue``), or by a choice made on screen.
    """
    if not any(process.variables.get(name) == session.session for name in session.variables):
        return None
    pid, wanted = process.parent, {f"{name}={session.session}".encode() for name in session.variables}
    while pid > 1 and wanted & set(environment(pid).split(b"\0")):
        pid = processes.parent(pid)
    ticks = processes.start_ticks(pid) if pid > 1 else None
    if ticks is None or began.get(pid, ticks) < since_ticks or processes.link(pid, "exe") != session.exe:
        return None
    found = look_at(pid, processes.arguments(pid))
    return found if found is not None and found.uid == session.uid else None


def match(process: Process, one: Watched, instance_id: str) -> Match | None:
    """Why a process that began after the kill is a return; the surest reason first. None: it is none."""
    agent = process.variables.get(AGENT_VARIABLE, "")
    if agent in one.agents and process.variables.get(INSTANCE_VARIABLE, "") == instance_id:
        is_old = _inherited(process, {AGENT_VARIABLE: agent}, one.since_ticks) > 0
        return Match(agent, "", "marker", not is_old, _OLD_PARENT if is_old else "its environment carries the killed agent's marker")
    likely = None
    for session in one.sessions:
        if session.uid != process.uid:  # of a session whose account is not known, nothing but the marker is a proof
            continue
        if carries(process.argv, session):
            return Match(session.agent_id, session.session, "session id", True, "it was started to go on with the killed session")
        found = _likely(process, session, one.since_ticks)
        if found is not None and found.certain:
            return found
        likely = likely or found
    return likely


def _likely(process: Process, session: KnownSession, since_ticks: int) -> Match | None:
    """By its environment, by a mention, or by program and folder alone."""
    named = {name: session.session for name in session.variables if session.session and process.variables.get(name) == session.session}
    if named:
        holder = _inherited(process, named, since_ticks)
        is_again = process.exe == session.exe != "" and not _hands_on(holder)
        is_old = holder > 0 and not is_again
        why = _OLD_PARENT if is_old else "its environment carries the killed session's id"
        return Match(session.agent_id, session.session, "session id", not is_old, why)
    if session.session and any(session.session in word for word in process.argv):
        return Match(session.agent_id, session.session, "session id", False, "its arguments name the killed session")
    if session.cwd and (process.exe, process.cwd) == (session.exe, session.cwd):
        return Match(session.agent_id, session.session, "working folder", False, "the same program in the same folder")
    return None


def carries(argv: tuple[str, ...], session: KnownSession) -> bool:
    """Whether the arguments tell the program to go on with that session: its id, or its transcript's name, behind a word of its own."""
    if not session.session:
        return False
    for n, word in enumerate(argv[1:], 1):
        option, _, value = word.partition("=")
        if value and option in session.words and _names(value, session.session):
            return True
        if word in session.words and any(_names(after, session.session) for after in argv[n + 1 : n + 2]):
            return True
    return False


def _names(word: str, session: str) -> bool:
    return word == session or word.rpartition("/")[2] in (f"{session}.jsonl", session)


def _inherited(process: Process, named: dict[str, str], since_ticks: int) -> int:
    """The process that lived before the kill and from which these variables came, from parent to child; 0: they came from none.

    A program that a killed session left behind (a server of tmux) hands its environment to everything that anyone starts in it.
    """
    wanted = {f"{name}={value}".encode() for name, value in named.items()}
    pid = process.parent if process.ticks >= since_ticks else process.pid
    while pid > 1:
        ticks = processes.start_ticks(pid)
        if ticks is None or not wanted <= set(environment(pid).split(b"\0")):
            return 0
        if ticks < since_ticks:
            return pid
        pid = processes.parent(pid)
    return 0


def _hands_on(pid: int) -> bool:
    """Whether a process is a terminal that people share, or runs in one: what is started there is theirs, whatever it was handed."""
    programs = (processes.link(above, "exe").removesuffix(" (deleted)") for above in processes.ancestors(pid))
    return any(program.rpartition("/")[2] in _TERMINALS for program in programs)


def _listener(session: KnownSession) -> Process | None:
    """The process below the known daemon that listens on the session's own socket."""
    if processes.start_ticks(session.daemon) != session.daemon_ticks:
        return None
    try:
        rows = read_table()
    except OSError:
        return None
    inodes = bound_sockets(session.daemon).get(session.sign, set())
    for pid in below(session.daemon, rows):
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{name}") in inodes and (found := look_at(pid, processes.arguments(pid))) is not None:  # noqa: PTH115
                        return found
    return None


def _end(process: Process, spared: frozenset[int]) -> tuple[bool, bool]:
    """SIGKILL to the process and what descends from it: (whether it was sent, whether all of them are dead)."""
    try:
        first = Handle(process.pid, process.ticks)
    except OSError:
        gone = processes.start_ticks(process.pid) != process.ticks
        return False, gone
    handles = [first]
    try:
        first.send(signal.SIGSTOP)  # it starts nothing more while its children are looked for
        for pid, ticks in _descendants(process.pid):
            if pid not in spared:
                with contextlib.suppress(OSError):
                    handles.append(Handle(pid, ticks))
        sent = [handle.send(signal.SIGKILL) for handle in handles]
        deadline = time.monotonic() + DEAD_S
        while any(handle.is_alive() for handle in handles) and time.monotonic() < deadline:
            time.sleep(0.01)
        return sent[0] == "sent", not any(handle.is_alive() for handle in handles)
    finally:
        for handle in handles:
            handle.close()


def _descendants(pid: int) -> list[tuple[int, int]]:
    try:
        rows = read_table()
    except OSError:
        return []
    return [(one, rows[one].ticks) for one in below(pid, rows)]


def _watched(one: dict[str, object]) -> Watched:
    """As ``save`` wrote it. TypeError, KeyError or ValueError for anything else."""
    sessions = one["sessions"]
    if not isinstance(sessions, list):
        raise TypeError("sessions")
    known = tuple(KnownSession(**(s | {"words": tuple(s["words"]), "variables": tuple(s["variables"])})) for s in sessions)
    agents = one["agents"]
    if not isinstance(agents, list):
        raise TypeError("agents")
    return Watched(
        str(one["kill_id"]),
        float(str(one["until"])),
        float(str(one["killed_at"])),
        int(str(one["since_ticks"])),
        tuple(map(str, agents)),
        known,
    )
