"""The helper for an adoption: looks at a process that Watchfloor did not start, and moves it with all its descendants into a leaf.

It keeps no record and frees nothing. The guard makes the leaf, freezes it and writes it down before this runs, and decides afterwards what
can be promised. What is moved stands frozen until two looks in a row find no process outside. A tree that forks is moved whole only into a
frozen cgroup (docs/decisions/0001-kill-by-kernel-objects.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

from console.domain.guard import CONSOLE, text, whole, whole_list
from console.domain.kill import Suspect
from console.killswitch.helpers.one_request import serve
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Leaf, Tree, find_mounts, in_an_instance, kind_of
from console.killswitch.kernel.descendants import APART_S, Closure, look_at_all, recent_look
from console.killswitch.kernel.peers import is_among
from console.killswitch.kernel.processes import Handle
from console.killswitch.kill.snapshot import find_process
from console.killswitch.kill.suspects import Origin, beside, is_likely, origin_from

MOVE_S = 5.0
"""A tree that is not whole in its leaf after so long, or after ``LOOKS`` looks at all processes, stays adopted, and best effort."""
LOOKS, LONGEST_S = 6, 40.0
"""On a busy host one look at all processes takes seconds: time alone would end every try before two quiet looks."""
# Measured: one scan that races with forks can look empty, so a single quiet look proves nothing.
QUIET_LOOKS = 2
# A tree that forks deeper while it is moved must not keep the helper; what is below is found by the looks.
DEEPEST = 200
LISTED = 24
MOST_SPARED = 4096
LONGEST_PATH = 4096
_EVERYBODYS = 1 << 1 | 1 << 5
"""CAP_DAC_OVERRIDE and CAP_KILL of capabilities(7): the guard of the host's instance is not root, and moves and kills all the same."""
MOVED, ENDED = "moved", "ended"


def main() -> None:
    """Answer the guard's requests for one adoption."""
    serve(Adoption().answer)


def examine(request: dict[str, Any]) -> dict[str, Any]:
    """One process as a candidate. With ``around`` also what would come along, and what would be left outside and may be the agent's."""
    pid, ticks, around = whole(request, "pid"), whole(request, "start_ticks"), text(request, "around")
    why = why_not(request, pid, ticks)
    seen, uids = processes.describe(pid), sorted(processes.uids(pid))
    found: dict[str, Any] = {"pid": pid, "start_ticks": ticks, "uid": uids[0] if uids else None, "why_not": why}
    found |= {"exe": seen["exe"], "cmdline": seen["cmdline"], "cgroup": processes.cgroup_line(pid) or ""}
    found |= {"descendants": [], "orphans": [], "orphans_by": []}
    if around and not why:
        with_it, maybe = _around(around, pid, ticks)
        found |= {"descendants": with_it[:LISTED], "descendants_n": len(with_it), "orphans_n": len(maybe)}
        found |= {"orphans": [(s.pid, s.start_ticks) for s in maybe[:LISTED]], "orphans_by": [s.by for s in maybe[:LISTED]]}
    return found


class Adoption:
    """One adoption: what is known of the tree at the check still counts when it is moved, whatever a press has killed since."""

    def __init__(self) -> None:
        self._closures: dict[tuple[int, int], Closure] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what was asked for: one process as a candidate, why processes may not be adopted, or what came of moving them."""
        match text(request, "op"):
            case "examine":
                return {"found": examine(request)}
            case "check":
                return self._check(request)
            case "bring":
                return self._bring(request)
            case op:
                raise ValueError(op)

    def _check(self, request: dict[str, Any]) -> dict[str, Any]:
        """``changed``: why the first process is not the one that was confirmed. ``refused``: which may not be adopted, and why."""
        roots = _roots(request)
        found: dict[str, Any] = {"changed": _changed(request, *roots[0]), "refused": [], "origin": []}
        if not found["changed"]:
            found["refused"] = next(([pid, why] for pid, ticks in roots if (why := why_not(request, pid, ticks))), [])
            origin = origin_of(roots[0][0])
            found["origin"] = [str(word) for word in astuple(origin)] if origin is not None else []
        if not found["changed"] and not found["refused"]:
            # What cannot be seen here is no answer, and nothing is adopted: a parent may end before the next look.
            self._closures = {root: Closure(Handle(*root)) for root in roots}
            _look(self._closures)
        return found

    def _bring(self, request: dict[str, Any]) -> dict[str, Any]:
        """Move what is outside until ``QUIET_LOOKS`` looks in a row find none: how many, what was left and why, whether it is whole."""
        roots, agent_id = _roots(request), text(request, "agent_id", limit=63)
        for root in roots:  # one that ended before any look is not known, and its tree is not whole
            with suppress(OSError):
                self._closures[root] = self._closures.get(root) or Closure(Handle(*root))
        with _opened(request) as tree:
            leaf = Leaf(Path(text(request, "leaf", limit=LONGEST_PATH)), whole(request, "inode"))
            answer, maybe = self._move_all(tree, leaf, request), tuple[Suspect, ...]()
            if (origin := origin_from(tuple(request["origin"]))) is not None:
                with suppress(OSError):
                    maybe = beside(agent_id, roots[0], origin, {roots[0][0], *leaf.pids()})
        answer["left"] = {str(pid): why for pid, why in answer["left"].items() if processes.is_alive(pid)}
        return answer | {"orphans": [(s.pid, s.start_ticks) for s in maybe[:LISTED]], "likely": sum(is_likely(s) for s in maybe)}

    def _move_all(self, tree: Tree, leaf: Leaf, request: dict[str, Any]) -> dict[str, Any]:
        spared = _above(request) | set(whole_list(request, "connected", MOST_SPARED))
        left, quiet, looks, began = dict[int, str](), 0, 0, time.monotonic()

        def take(pid: int, ticks: int) -> bool:
            what = CONSOLE if pid in spared else move(pid, ticks, tree, leaf)
            if what not in (MOVED, ENDED):
                left[pid] = what
            return what == MOVED

        # From the top, because a parent that is moved is frozen and starts no more children outside.
        moved = _from_the_top(list(self._closures), take, lambda pid: pid in left or _is_held(pid, tree))
        while quiet < QUIET_LOOKS and not _is_over(began, looks) and whole(request, "pid") not in left:
            try:
                outside = [one for one in _look(self._closures) if one[0] not in left and not _is_held(one[0], tree)]
            except OSError:  # what there is cannot be seen: no quiet look
                outside, quiet = [], -1
            looks += 1
            moved += sum(take(pid, ticks) for pid, ticks in outside)
            quiet = 0 if outside else quiet + 1
            time.sleep(APART_S)
        return {"moved": moved, "left": left, "whole": quiet >= QUIET_LOOKS and set(_roots(request)) <= self._closures.keys()}


def why_not(request: dict[str, Any], pid: int, ticks: int) -> str:
    """Why this process is not adopted; the most lasting reason first."""
    if pid <= 1:
        return "process 1 is never adopted"
    if processes.start_ticks(pid) != ticks or not processes.is_alive(pid):
        return "it is not there any more (its number may be another process's)"
    if pid in _above(request):
        return "it is the guard, the supervisor or the caller, or an ancestor of one of them"
    if pid in whole_list(request, "connected", MOST_SPARED):
        return CONSOLE
    if pid in whole_list(request, "held", MOST_SPARED):
        return "it is held already"
    if not processes.describe(pid)["exe"]:
        return "its program cannot be read: it is the kernel's, or hidden from this account"
    if not request["tree"]:
        return f"not available, because there is no writable cgroup here: {text(request, 'tree_why', limit=LONGEST_PATH)}"
    with _opened(request) as tree:
        return in_an_instance(pid, text(request, "instance")) or why_not_movable(pid, tree)


@contextmanager
def _opened(request: dict[str, Any]) -> Iterator[Tree]:
    tree = Tree(Path(text(request, "tree", limit=LONGEST_PATH)), find_mounts())
    try:
        yield tree
    finally:
        tree.close()


def _above(request: dict[str, Any]) -> frozenset[int]:
    """The guard, the supervisor and the caller, with their ancestors."""
    return frozenset().union(*(processes.ancestors(pid) for pid in whole_list(request, "spared", MOST_SPARED) if pid > 1))


def _roots(request: dict[str, Any]) -> list[tuple[int, int]]:
    """The first process, then the orphans that the operator takes for its."""
    also = whole_list(request, "also")
    return [(whole(request, "pid"), whole(request, "start_ticks")), *zip(also[::2], also[1::2], strict=True)]


def _changed(request: dict[str, Any], pid: int, ticks: int) -> str:
    """Why the process is not the one that was shown; empty: it is."""
    # The number may have been given to another process since it was shown; the start time has not.
    if processes.start_ticks(pid) != ticks:
        return "The process that was shown has ended; its number may be another's by now."
    if (processes.describe(pid)["exe"], processes.uids(pid)) != (text(request, "exe"), {whole(request, "uid")}):
        return "It runs another program, or under another account, than was shown."
    return ""


def origin_of(pid: int) -> Origin | None:
    """Of a process as it is now; None when it cannot be seen."""
    # A look of a moment ago does not know a process that has just begun.
    there, table = find_process(pid), recent_look().rows
    table = table if pid in table else recent_look(time.monotonic()).rows
    if there is None or pid not in table:
        return None
    reaper, above = 1, pid
    while (above := table[above].parent if above in table else 0) > 1:
        reaper = above
    return Origin(there.uid, table[pid].session, there.program, processes.link(pid, "cwd"), reaper, processes.cgroup_line(pid) or "")


def _around(agent_id: str, pid: int, ticks: int) -> tuple[list[tuple[int, int]], tuple[Suspect, ...]]:
    """(what descends from it by parent or session, what would be left outside and may be its)."""
    try:
        handle = Handle(pid, ticks)
    except OSError:
        return [], ()
    try:
        below, origin = Closure(handle).look(recent_look()), origin_of(pid)
        known = (pid, *(p for p, _ in below))
        return below, beside(agent_id, (pid, ticks), origin, known) if origin is not None else ()
    except OSError:
        return [], ()
    finally:
        handle.close()


def _look(closures: dict[tuple[int, int], Closure]) -> list[tuple[int, int]]:
    """Those that were named first, and all that is found below them. OSError when it cannot be seen who there is."""
    found, table = dict.fromkeys(root for root in closures if processes.is_the_same(*root)), look_at_all()
    for closure in closures.values():
        found |= dict.fromkeys(closure.look(table))
    return list(found)


def _is_over(began: float, looks: int) -> bool:
    """Whether a tree has had its time: both seconds and looks, since one look may take longer than all the seconds."""
    now = time.monotonic() - began
    return (now > MOVE_S and looks >= LOOKS) or now > LONGEST_S


def _from_the_top(roots: list[tuple[int, int]], bring: Callable[[int, int], bool], is_done: Callable[[int], bool]) -> int:
    """Moves each root and its children, level by level, without a look at all processes: what is moved is frozen and forks no more."""
    moved, level = 0, roots
    for _ in range(DEEPEST):
        moved += sum(bring(pid, ticks) for pid, ticks in level if not is_done(pid))
        below = [child for pid, ticks in level if processes.is_the_same(pid, ticks) for child in processes.children(pid)]
        level = [(pid, ticks) for pid in below if (ticks := processes.start_ticks(pid)) is not None]
        if not level:
            break
    return moved


def _is_held(pid: int, tree: Tree) -> bool:
    """In this leaf by now, or in another agent's of ours. An instance's name alone says nothing: every account can make such a cgroup."""
    return is_among(tree.mount.locate(processes.cgroup_line(pid) or ""), (tree.agents.path,))


def why_not_movable(pid: int, tree: Tree) -> str:
    """Return why the process cannot be moved; empty when it can be tried."""
    # cgroups(7): a move needs write access to cgroup.procs of the two groups' common ancestor. A process in a threaded group cannot leave
    # it.
    uids, own = processes.uids(pid), os.geteuid()
    if not uids:
        return "its account cannot be read"
    if own != 0 and uids != {own} and capabilities() & _EVERYBODYS != _EVERYBODYS:
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


def capabilities() -> int:
    """What this process may do beyond its account, as the bits of capabilities(7)."""
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return int(found.split()[1], 16)


def move(pid: int, ticks: int, tree: Tree, leaf: Leaf) -> str:
    """Moves one process: ``MOVED``, ``ENDED``, or why not. A number that became another process's in between is given back.

    The kernel takes a bare pid for a move: it is looked at before and after.
    """
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
