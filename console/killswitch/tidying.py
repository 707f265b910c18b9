"""An orderly end: remove the guard's own cgroups that are empty and that it made or took over.

Groups with processes and foreign groups stay. The record stays unchanged: to the next guard a removed leaf is an empty one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

from console.killswitch.below import remove
from console.killswitch.cgroups import Tree
from console.killswitch.guard import Guard
from console.killswitch.registry import Entry

BUSY_S = 1.0
"""A group that holds a process which is dead and not collected yet (v1) is tried again for so long."""
APART_S = 0.05


def is_over(guard: Guard) -> bool:
    """Return whether no kill is under way and no process of ours lives."""
    alive = any(held.is_populated() for held in list(guard.registry.held.values()))
    return not (alive or guard.is_killing() or (guard.tree is not None and guard.tree.agents.is_populated()))


def take_away(guard: Guard) -> None:
    """After ``is_over``, as the last thing a guard does. Never raises."""
    tree = guard.tree
    if tree is None:
        return
    registry, latched = guard.registry, guard.latch.state.latched
    # A launch that has its ticket and did not enter yet goes on with the next guard, unless nothing may start.
    entries = [h.entry for h in (*registry.held.values(), *registry.retired) if h.entry.confirmed or latched]
    leaves = _leaves(tree, entries)
    agents = tree.agents.path
    # The agents' folder goes before the others: as long as it is there, a press without a guard finds the tree whole.
    others = sorted((one for one in tree.made if one != agents), key=lambda folder: -len(folder.parts))
    tree.close()
    with contextlib.suppress(OSError):
        (tree.root.parent / "cgroup.procs").write_text("0")
    if _gone(leaves) and _gone([(agents, tree.made[agents], False)]):
        _gone([(folder, tree.made[folder], folder.name == "relays") for folder in others])  # what a dead supervisor left in there, too


def _leaves(tree: Tree, entries: Iterable[Entry]) -> list[tuple[Path, int, bool]]:
    """(folder, inode, whether what is below it is its own too) of these agents, in every hierarchy, as far as they lie in our folders."""
    found: list[tuple[Path, int, bool]] = []
    for entry in entries:
        if entry.leaf and Path(entry.leaf).parent in tree.made:
            found.append((Path(entry.leaf), entry.inode, True))
        for folder in map(Path, entry.limit_leaves):
            with contextlib.suppress(OSError):
                found += [(folder, folder.lstat().st_ino, True)] if folder.parent in tree.made else []
    return found


def _gone(folders: list[tuple[Path, int, bool]]) -> bool:
    """Removes them; whether all are gone, ``BUSY_S`` at most from now."""
    deadline = time.monotonic() + BUSY_S
    while (folders := [one for one in folders if not _remove(*one)]) and time.monotonic() < deadline:
        time.sleep(APART_S)
    return not folders


def _remove(folder: Path, inode: int, whole: bool) -> bool:
    """Return whether the folder is gone, is not ours any more, or stays because another process put something into it."""
    try:
        if folder.lstat().st_ino != inode:
            return True
        if whole:
            return remove(folder)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
