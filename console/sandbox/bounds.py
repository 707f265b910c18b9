"""What bounds an agent through its cgroups, read and lowered: processes, memory, processor time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from console.sandbox.interface import Ticket

MEMORY_FILES = ("memory.max", "memory.limit_in_bytes")


def lower(ticket: Ticket, name: str, value: int) -> bool:
    """Lowers a cgroup limit in the first leaf that has it; whether one of them bounds the agent now."""
    for leaf in (ticket.leaf, *ticket.limit_leaves):
        path = Path(leaf, name)
        try:
            if not leaf or not path.exists():
                continue
            now = path.read_text().strip()
            # v2 writes "max" for no limit, v1 "-1". A limit that an operator set lower stays: bounds here only become tighter.
            if now in ("max", "-1") or int(now) > value:
                path.write_text(str(value))
            return True
        except (OSError, ValueError):
            continue
    return False


def out_of_memory(leaves: Iterable[str]) -> str:
    """``memory limit 256 MiB`` when the kernel ended a process of this agent for it (memory.events, v1 memory.oom_control)."""
    for folder in map(Path, leaves):
        for events, limit in (("memory.events", "memory.max"), ("memory.oom_control", "memory.limit_in_bytes")):
            with contextlib.suppress(OSError, ValueError):
                words = dict(line.split() for line in (folder / events).read_text().splitlines())
                if int(words.get("oom_kill", 0)):
                    return f"memory limit {int((folder / limit).read_text()) >> 20} MiB"
    return ""


def limits_of(pid: int) -> dict[str, Any]:
    """``pids_max``, ``memory_max`` (bytes) and ``cpus`` that bound a process now, as its cgroups say; 0: not bounded. Never raises."""
    found: dict[str, Any] = {"pids_max": 0, "memory_max": 0, "cpus": 0.0}
    for folder in _folders(pid):
        found["pids_max"] = _smaller(found["pids_max"], _number(folder / "pids.max"))
        for name in ("memory.max", "memory.limit_in_bytes"):
            found["memory_max"] = _smaller(found["memory_max"], _number(folder / name))
        found["cpus"] = _smaller(found["cpus"], _quota(folder))
    return found


def processor_file(pid: int) -> str:
    """Where the kernel counts the processor time of the cgroup v2 group that a process is in; empty: nowhere."""
    return next((str(file) for folder in _folders(pid, every=False) if (file := folder / "cpu.stat").is_file()), "")


def processor_seconds_in(file: str) -> float | None:
    """What such a file says; None: nothing, for the group is gone."""
    try:
        with open(file, "rb", buffering=0) as stat:  # noqa: PTH123 - of every agent, again and again
            head = stat.read(64).split(None, 2)
        return int(head[1]) / 1e6 if head[0] == b"usage_usec" else None
    except (OSError, ValueError, IndexError):
        return None


def _folders(pid: int, *, every: bool = True) -> list[Path]:
    """The cgroup folders of a process in every hierarchy, and those above it; or only its own in v2."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not every and (controllers or path == "/"):
            continue
        for fields, rest in mounts:
            kind, _, options = rest.split(" ", 2)
            same = kind == "cgroup2" if not controllers else kind == "cgroup" and set(controllers.split(",")) <= set(options.split(","))
            if same:
                point, root = Path(fields.split()[4]), fields.split()[3]
                here = point / (path[len(root) :] if root != "/" and path.startswith(root) else path).lstrip("/")
                # A limit of any group above holds as well, so the tightest of the whole line is what bounds the process.
                found += [here, *(parent for parent in here.parents if every and point in parent.parents)]
    return found


def _number(path: Path) -> int:
    try:
        text = path.read_text().strip()
        return int(text) if text != "max" and int(text) < 1 << 60 else 0
    except (OSError, ValueError):
        return 0


def _quota(folder: Path) -> float:
    try:
        text = (folder / "cpu.max").read_text() if (folder / "cpu.max").exists() else ""
        if not text:
            text = f"{(folder / 'cpu.cfs_quota_us').read_text().strip()} {(folder / 'cpu.cfs_period_us').read_text().strip()}"
        quota, period = text.split()
        return int(quota) / int(period) if quota not in ("max", "-1") else 0.0
    except (OSError, ValueError, ZeroDivisionError):
        return 0.0


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if a and b else a or b
