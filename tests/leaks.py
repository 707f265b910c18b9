"""What a test may leave behind: nothing. Snapshots of this session's processes, threads, files, mounts, cgroups, networks, containers.

Everything a session makes carries its mark: temporary files lie under its own TMPDIR, and processes inherit ``WATCHFLOOR_TEST_SESSION``.
Cgroups, networks and containers belong to the machine; they count only when no other instance or test session can have made them.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

SESSION_VARIABLE = "WATCHFLOOR_TEST_SESSION"
SHALLOW_VARIABLE = "WATCHFLOOR_TESTS_SHALLOW"
"""Set for a run of unit and gui tests beside the others (packaging/test): it makes no instance, so it does not count as one."""
GRACE_S = 60.0
"""How long what is on its way out may take."""
_LOCK = Path("/tmp/.watchfloor-test-sessions.lock")  # noqa: S108 - the same for every session of the machine
_LABEL = "io.watchfloor.instance"
_AHEAD = (b"/egress/nsbind.py", b"/egress/portal.py")
"""The next helper and relay of whoever has sandboxes: renewed at any time, and over with their parent (egress/envoy/prestart.py)."""
_THREADS_OF_LIBRARIES = ("Dummy-", "pytest_timeout", "asyncio_", "AnyIO worker thread", "pydevd", "QtThread")


@dataclass
class Traces:
    """What exists at a moment, each as a set of words a person can act on."""

    processes: set[str] = field(default_factory=set)
    threads: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    mounts: set[str] = field(default_factory=set)
    machine: set[str] = field(default_factory=set)
    """Cgroups, network namespaces, interfaces and containers: of this session or of anybody else."""

    def beyond(self, before: Traces) -> list[str]:
        """What is here and was not there before."""
        left: list[str] = []
        for name in ("processes", "threads", "files", "mounts", "machine"):
            left += sorted(getattr(self, name) - getattr(before, name))
        return left


class Session:
    """One pytest run: its mark, its temporary folder, its share of the lock that tells whether it is alone."""

    def __init__(self, mark: str, folder: Path) -> None:
        self.mark = mark
        self.folder = folder
        self._lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._makes_instances = SHALLOW_VARIABLE not in os.environ
        if self._makes_instances:
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def look(self, *, deep: bool, engine: Path | None) -> Traces:
        """``deep`` reads every process's environment and the machine's cgroups (some ms); otherwise only what is ours alone is seen."""
        seen = Traces(processes=_children())
        if deep:
            seen.processes |= self._marked()
        seen.threads = {f"thread {t.name}" for t in threading.enumerate() if not t.name.startswith(_THREADS_OF_LIBRARIES)}
        seen.files = {f"file {p}" for p in self.folder.iterdir() if not p.name.startswith("pytest-of-")}
        seen.mounts = self._mounts()
        if deep:
            seen.machine = _cgroups() | _networks() | (_containers(engine) if engine else set())
        return seen

    def left_after(self, before: Traces, *, deep: bool, engine: Path | None) -> list[str]:
        """What stayed beyond the grace; waits only as long as something is left."""
        deadline = time.monotonic() + GRACE_S
        while True:
            now = self.look(deep=deep, engine=engine)
            if now.machine - before.machine and not self._is_alone():
                now.machine = set()
            left = now.beyond(before)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)

    def _marked(self) -> set[str]:
        return {_words(pid) for pid in _pids() if pid != os.getpid() and self._is_ours(pid)} - {""}

    def _is_ours(self, pid: int) -> bool:
        """By the mark it inherited; programs that scrub their environment (the guard) still name a folder of ours."""
        environment, folder = _read(f"/proc/{pid}/environ"), os.fsencode(self.folder) + b"/"
        return f"{SESSION_VARIABLE}={self.mark}".encode() in environment or folder in environment or folder in _read(f"/proc/{pid}/cmdline")

    def _mounts(self) -> set[str]:
        points = [line.split(" ", 6)[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return {f"mount {p}" for p in points if p.startswith(f"{self.folder}/")}

    def _is_alone(self) -> bool:
        """False while another test session, or an instance that is not ours, lives on this machine."""
        if not self._makes_instances:
            return False  # the run beside it makes cgroups and containers, and looks after them
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        for pid in _pids():
            words = _read(f"/proc/{pid}/cmdline")
            if (b"console" in words or b"watchfloor" in words) and pid != os.getpid() and not self._is_ours(pid):
                return False
        return True


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _words(pid: int) -> str:
    """``process PID: command line``; empty for one that is gone, a zombie of somebody else's, or one its parent keeps started ahead."""
    stat = _read(f"/proc/{pid}/stat")
    if not stat or stat.rsplit(b")", 1)[1].split()[0] in (b"Z", b"X"):
        return ""
    if _is_ahead(pid):
        return ""
    return f"process {pid}: {_read(f'/proc/{pid}/cmdline').replace(bytes(1), b' ').decode(errors='replace')[:160]}"


def _is_ahead(pid: int) -> bool:
    """One of AHEAD whose parent lives."""
    stat = _read(f"/proc/{pid}/stat")
    has_parent = bool(stat) and stat.rsplit(b")", 1)[1].split()[1] != b"1"
    return has_parent and any(program in _read(f"/proc/{pid}/cmdline") for program in _AHEAD)


def _children() -> set[str]:
    """Children of every thread of ours, zombies too: they were never waited for."""
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        for pid in _read(f"/proc/self/task/{task}/children").split():
            if not _is_ahead(int(pid)):
                found.add(_words(int(pid)) or f"zombie {int(pid)}")
    return found


def cgroup_places() -> list[Path]:
    """Where an instance of ours makes its trees: the top of each hierarchy, and the folder that this process itself is in."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, inside = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(",") if controllers else ["cgroup2"], inside))
    found: dict[Path, None] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, kind = line.split(" "), line.rpartition(" - ")[2].split(" ")
        if kind[0] not in ("cgroup", "cgroup2"):
            continue
        point = Path(fields[4])
        found[point] = None
        for name in ("cgroup2",) if kind[0] == "cgroup2" else kind[2].split(","):
            inside = own.get(name, "/")
            if inside != "/" and (inside + "/").startswith(fields[3].rstrip("/") + "/"):
                found[point / inside[len(fields[3].rstrip("/")) :].lstrip("/")] = None
    return list(found)


def _cgroups() -> set[str]:
    """Trees of instances in every hierarchy, but not those of another PID namespace (a test run in a chroot sees its host's)."""
    trees: dict[str, list[str]] = {}
    for place in cgroup_places():
        with contextlib.suppress(OSError):
            for entry in os.scandir(place):
                if entry.name.startswith("watchfloor-"):
                    trees.setdefault(entry.name, []).append(entry.path)
    return {f"cgroup {path}" for paths in trees.values() if not any(map(_is_foreign, paths)) for path in paths}


def _is_foreign(tree: str) -> bool:
    """Whether a process of another PID namespace lives in it: those show as 0 (cgroups(7)); nothing of ours can do that from in here."""
    return any(b"0" in _read(f"{folder}/cgroup.procs").split() for folder, _, _ in os.walk(tree))


def _networks() -> set[str]:
    found: set[str] = set()
    for folder, prefixes in (("/run/netns", ("watchfloor", "wf")), ("/sys/class/net", ("wf", "watchfloor"))):
        with contextlib.suppress(OSError):
            found |= {f"network {folder}/{n}" for n in os.listdir(folder) if n.startswith(prefixes)}
    return found


def _containers(engine: Path) -> set[str]:
    filters = quote(json.dumps({"label": [_LABEL]}))
    found = ask_engine(engine, f"/containers/json?all=1&filters={filters}")
    return {f"container {c['Id'][:12]} {c['Names']}" for c in json.loads(found)} if found else set()


def ask_engine(engine: Path, path: str) -> bytes:
    """One GET on the engine's socket; empty when it does not answer."""
    connection = http.client.HTTPConnection("engine", timeout=5)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(5)
    try:
        connection.sock.connect(str(engine))
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == 200 else b""
    except (OSError, http.client.HTTPException):
        return b""
    finally:
        connection.close()
