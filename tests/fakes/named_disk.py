"""A world of names as the file system that ``console.policy`` asks."""

from __future__ import annotations

import posixpath

from console.policy.files.paths import TEXT_MAX, Facts
from console.policy.files.walk import Listing
from tests.fakes.policy_names import World

KINDS = {"d": "folder", "f": "file", "h": "file", "p": "fifo"}


class NamedDisk:
    """As ``console.policy.files.disk.Disk``, of what is written in a ``World``."""

    def __init__(self, world: World) -> None:
        self._world = world

    def look(self, path: str) -> Facts:
        try:
            *links, real = self._world.walk(path)
        except ValueError:
            return Facts("", "loop")
        kind = self._world.tree.get(real, "d" if real == "/" else "")
        if kind:
            return Facts(real, KINDS[kind], 2 if kind == "h" else 1, (1, hash(real)))
        above = posixpath.dirname(real)
        if (
            ".." in path.split("/")
            or self._world.tree.get(above) == "f"
            or (links and (links[-1] == path or above not in self._world.tree))
        ):
            return Facts("", "unknown")
        return Facts(real, "missing")

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        """It does not say."""
        return None

    def listing(self, folder: str) -> Listing:
        inside = folder.rstrip("/") + "/"
        here = {name[len(inside) :]: what[:1] for name, what in self._world.tree.items() if name.startswith(inside) and name != "/"}

        def of(kinds: str) -> tuple[str, ...]:
            return tuple(sorted(name for name, what in here.items() if "/" not in name and what in kinds))

        return Listing(of("d"), of(">"), of("fhp"))

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        return None
