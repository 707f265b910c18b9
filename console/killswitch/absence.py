"""Decide what it means that something recorded of an agent is gone: that it ended, or only that it cannot be seen.

A removed cgroup was empty, and a process that is gone has ended. But that holds only for a guard in the same place as the record. In
another PID namespace, or without the same cgroup mount, nothing of the agent is found, whether it runs or not. Only another boot ends
everything for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NO_GROUP = "Its cgroup cannot be seen from here: whether anything of it runs is unknown."
NO_PROCESS = "It was recorded in another PID namespace: whether anything of it runs cannot be seen from here."
UNFOLLOWED = "Its first process had ended when the guard came back: what it may have started outside a cgroup was not followed."


@dataclass(frozen=True, slots=True)
class Place:
    """The place from which a guard looks. Empty and 0: unknown, or never recorded."""

    boot: str = ""
    pid_namespace: int = 0
    cgroup_namespace: int = 0


def here() -> Place:
    """Where this process looks from."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return Place(boot, _namespace("pid"), _namespace("cgroup"))


def _namespace(kind: str) -> int:
    try:
        return Path(f"/proc/self/ns/{kind}").stat().st_ino
    except OSError:
        return 0


def place_from(raw: object) -> Place:
    """As it was recorded; what is missing or odd is not known."""
    told = raw if isinstance(raw, dict) else {}
    boot, pid, cgroup = (told.get(name) for name in ("boot", "pid_namespace", "cgroup_namespace"))
    return Place(boot if isinstance(boot, str) else "", *(n if isinstance(n, int) else 0 for n in (pid, cgroup)))


def why_unknown(recorded: Place, *, folder: str, is_open: bool, pid: int, is_loose: bool, is_held: bool) -> str:
    """Why not finding an agent proves nothing; empty: it does.

    ``folder``: of the cgroup that holds it, if one does; ``is_open``: it was found. ``is_loose``: neither it nor a PID namespace holds all
    of it. ``is_held``: its first process (``pid``) was found.
    """
    now = here()
    if recorded.boot and now.boot and recorded.boot != now.boot:
        return ""
    known = recorded.pid_namespace and recorded.cgroup_namespace
    is_elsewhere = bool(known) and (recorded.pid_namespace, recorded.cgroup_namespace) != (now.pid_namespace, now.cgroup_namespace)
    if folder:
        if not is_open and (is_elsewhere or not is_mounted(Path(folder))):
            return NO_GROUP
    elif pid and is_elsewhere:
        return NO_PROCESS
    return UNFOLLOWED if pid and is_loose and not is_held else ""


def is_mounted(folder: Path) -> bool:
    """Whether the cgroup tree that a folder was in is there: its nearest ancestor that exists is a cgroup."""
    for above in folder.parents:
        if above.is_dir():
            return (above / "cgroup.procs").exists()
    return False
