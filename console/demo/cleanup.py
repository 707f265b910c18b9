"""The demo's own eyes and broom: what the kernel and the engine still hold of an instance, without asking Watchfloor; its removal."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from console.cli.terminal.plain import plain

PROC = Path("/proc")
LABEL = "io.watchfloor.instance"


def agent_processes(instance_id: str) -> list[int]:
    """List every process that belongs to an agent of the instance: by its cgroup, by its environment, or by its PID namespace."""
    # A child inherits its parent's cgroup, whatever the child does: cgroups(7). A process in the PID namespace of an agent belongs to it.
    own = _pid_namespace("self")
    everybody = [int(folder.name) for folder in PROC.iterdir() if folder.name.isdecimal()]
    known = [pid for pid in everybody if is_agents(pid, instance_id)]
    namespaces = {_pid_namespace(pid) for pid in known} - {own, ""}
    return [pid for pid in everybody if pid in known or (_pid_namespace(pid) in namespaces and alive(pid))]


def watched(instance_id: str) -> dict[int, int]:
    """The same now, as pid and start time: to be looked for again after the press, whatever they turn into."""
    return {pid: start for pid in agent_processes(instance_id) if (start := _start(pid))}


def still_alive(before: dict[int, int]) -> list[str]:
    """Which of those watched still run, as words."""
    return [f"process {pid} ({_name(pid)})" for pid, start in before.items() if _start(pid) == start and alive(pid)]


def _start(pid: int) -> int:
    """Field 22 of /proc/PID/stat, or 0."""
    try:
        return int((PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def _pid_namespace(pid: int | str) -> str:
    try:
        return str((PROC / str(pid) / "ns" / "pid").readlink())
    except OSError:
        return ""


def is_agents(pid: int, instance_id: str) -> bool:
    """Whether a living process has the cgroup or the environment of one of the instance's agents."""
    mark = f"/watchfloor-{instance_id}/"
    folder = PROC / str(pid)
    lines, variables = [], []
    with contextlib.suppress(OSError):
        lines = (folder / "cgroup").read_text().splitlines()
    with contextlib.suppress(OSError):
        variables = (folder / "environ").read_bytes().split(b"\0")
    # v2 "0::/watchfloor-ID/agents/LEAF", v1 "4:pids:/watchfloor-ID/LEAF"; control and relays are not agents.
    in_leaf = any(mark in line and f"{mark}control" not in line and f"{mark}relays" not in line for line in lines)
    return alive(pid) and (in_leaf or f"WATCHFLOOR_INSTANCE={instance_id}".encode() in variables)


def alive(pid: int) -> bool:
    """Whether there is such a process and it is no zombie."""
    try:
        return (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def is_guard(pid: int, instance_id: str) -> bool:
    """Whether the process is the instance's guard."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"console.killswitch" in words and f"--instance={instance_id}".encode() in words


def guards(instance_id: str) -> list[int]:
    """The instance's guard, if it runs: the kernel's lock lets there be one."""
    return [int(f.name) for f in PROC.iterdir() if f.name.isdecimal() and is_guard(int(f.name), instance_id)]


def containers(instance_id: str, engine_socket: str, *, every: bool = False) -> list[str]:
    """Ids of the instance's containers: those that run, or every one. Without an engine there are none."""
    filters = quote(json.dumps({"label": [f"{LABEL}={instance_id}"]}))
    try:
        rows = json.loads(_engine("GET", f"/containers/json?all={int(every)}&filters={filters}", engine_socket))
        return [str(row["Id"]) for row in rows]
    except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError):
        return []


def _engine(method: str, path: str, engine_socket: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(engine_socket)
        connection = http.client.HTTPConnection("localhost")
        connection.sock = sock
        connection.request(method, path)
        with connection.getresponse() as answer:
            return answer.read()


def still_running(instance_id: str, engine_socket: str) -> list[str]:
    """Both, as words."""
    left = [f"process {pid} ({_name(pid)})" for pid in agent_processes(instance_id)]
    return left + [f"container {container[:12]}" for container in containers(instance_id, engine_socket)]


def settled(instance_id: str, engine_socket: str, wait_s: float) -> list[str]:
    """``still_running`` once nothing is, or when the time is over."""
    deadline = time.monotonic() + wait_s
    while (left := still_running(instance_id, engine_socket)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _name(pid: int) -> str:
    try:
        return plain((PROC / str(pid) / "comm").read_text().strip(), 20)
    except OSError:
        return "gone"


def end_process(pid: int, is_it: Callable[[int], bool], wait_s: float = 10.0) -> str:
    """End a process with SIGTERM, then SIGKILL, through a pidfd. Returns an empty text, or what still runs.

    ``is_it`` is asked when the pidfd is open: from then on the pidfd can mean no other process.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return ""
    try:
        if not is_it(pid):
            return ""
        over = select.poll()
        over.register(handle, select.POLLIN)
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(handle, number)
            if over.poll(int(wait_s * 1000)):
                return ""
    except OSError:
        return ""
    finally:
        os.close(handle)
    return f"process {pid}"


def remove_containers(instance_id: str, engine_socket: str) -> list[str]:
    """Removes what the instance left in the engine; what stayed."""
    for container in containers(instance_id, engine_socket, every=True):
        with contextlib.suppress(OSError, http.client.HTTPException):
            _engine("DELETE", f"/containers/{container}?force=1", engine_socket)
    return [f"container {c[:12]}" for c in containers(instance_id, engine_socket, every=True)]


def remove_cgroups(instance_id: str, wait_s: float = 5.0) -> list[str]:
    """Removes the instance's empty cgroups in every hierarchy; what stayed."""
    deadline = time.monotonic() + wait_s
    tops = [top for mount in cgroup_mounts() for top in _tops(mount, f"watchfloor-{instance_id}")]
    while True:
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):  # EBUSY while a process in it is still being reaped
                    Path(folder).rmdir()
        left = [str(top) for top in tops if top.exists()]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def cgroup_mounts() -> list[Path]:
    """Every cgroup hierarchy (proc(5), mountinfo: the type follows the separator)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] in ("cgroup", "cgroup2"):
            found.append(Path(before.split(" ")[4]))
    return found


def _tops(mount: Path, name: str) -> list[Path]:
    """At the mount's root, and below the cgroups we are in ourselves (delegation)."""
    places = {mount / name}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        own = Path(line.split(":", 2)[2].lstrip("/"))
        places |= {mount / parent / name for parent in (own, *own.parents)}
    return [place for place in places if place.is_dir()]
