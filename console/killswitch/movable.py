"""Whether a process may be moved into a cgroup of ours, and the move. The kernel takes a bare pid: it is looked at before and after."""

from __future__ import annotations

import os
import re
from pathlib import Path

from console.killswitch import processes
from console.killswitch.cgroups import Leaf, Tree, kind_of
from console.killswitch.processes import Handle

MOVED, ENDED = "moved", "ended"
_INSTANCE = re.compile(r"/watchfloor-([0-9a-f]{8})(?:/|\Z)")


def in_an_instance(pid: int, own: str) -> str:
    """Return to which instance a process belongs, by its cgroup, or, unless it is ``own``, by its environment. Empty: to none that is
    visible."""
    line = processes.cgroup_line(pid)
    if line is None:
        return "its cgroup cannot be told"
    if found := _INSTANCE.search(line):
        return f"it belongs to the Watchfloor instance {found[1]} already"
    if own:
        try:
            marked = processes.instance_mark(pid)
        except OSError as error:
            return f"its environment cannot be looked at: {error.strerror}"
        if marked not in ("", own):
            return f"its environment says that it is an agent of the Watchfloor instance {marked[:20]}"
    return ""


def why_not_movable(pid: int, tree: Tree) -> str:
    """Return why the process cannot be moved; empty when it can be tried."""
    # cgroups(7): a move needs write access to cgroup.procs of the two groups' common ancestor. A process in a threaded group cannot leave
    # it.
    uids, own = processes.uids(pid), os.geteuid()
    if not uids:
        return "its account cannot be read"
    if own != 0 and uids != {own}:
        return "it runs under another account, and only root moves that"
    if processes.pid_namespace(pid) != processes.pid_namespace("self"):
        return "it lives in a PID namespace of its own (a container's, or a sandbox's): what made that holds it"
    where = tree.mount.locate(processes.cgroup_line(pid) or "")
    if where is None:
        return "its cgroup lies outside of what is mounted here"
    if kind_of(where) not in ("", "domain"):
        return "its cgroup cannot be left: it is threaded"
    shared = Path(os.path.commonpath((where, tree.agents.path)))
    if not os.access(shared / "cgroup.procs", os.W_OK, effective_ids=True):
        return f"not available, because {shared}/cgroup.procs cannot be written by this account"
    return ""


def move(pid: int, ticks: int, tree: Tree, leaf: Leaf) -> str:
    """Moves one process: ``MOVED``, ``ENDED``, or why not. A number that became another process's in between is given back."""
    try:
        handle = Handle(pid, ticks)
    except OSError as error:
        return f"it could not be opened: {error.strerror or error}" if processes.start_ticks(pid) == ticks else ENDED
    try:
        if why := in_an_instance(pid, ""):  # by its cgroup's name alone: left there, and counted as left
            return why if processes.start_ticks(pid) == ticks else ENDED
        said = leaf.take(pid)
        if said == "sent" and processes.start_ticks(pid) not in (ticks, None):
            return _give_back(pid, tree)
        return {"sent": MOVED, "gone": ENDED}.get(said, said)
    finally:
        handle.close()


def _give_back(pid: int, tree: Tree) -> str:
    """To the cgroup of its parent, where it was born."""
    home = tree.mount.locate(processes.cgroup_line(processes.parent(pid)) or "")
    try:
        if home is None:
            raise OSError(None, "its parent's cgroup is not known")
        (home / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        return f"its number is another process's by now, which could not be given back: {error.strerror}"
    return ENDED
