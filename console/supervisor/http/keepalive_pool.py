"""Keep connections of agents open between two requests: some of each agent, so many of all. The one idle for longest is closed first."""

from __future__ import annotations

import resource
from collections.abc import Callable

EACH = 4
"""Of one door."""
ALL = 4096
"""Of all doors that share one ``Resting``."""


class Resting:
    """On one loop's thread. An idle connection is any object. ``end`` closes it; a closed one is not reported again."""

    def __init__(self, most: int | None = None) -> None:
        """At most so many; None: ALL, or a quarter of the files that this process may open."""
        self._most = most if most is not None else min(ALL, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        self._all: dict[object, tuple[object, Callable[[], None]]] = {}
        """In the order in which they came to rest."""
        self._doors: dict[object, dict[object, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, door: object, one: object, end: Callable[[], None]) -> None:
        """``one`` rests from now on."""
        self.over(one)
        self._all[one] = (door, end)
        of_door = self._doors.setdefault(door, {})
        of_door[one] = None
        if len(of_door) > EACH:
            self.make_room(door)
        if len(self._all) > self._most:
            self._end(next(iter(self._all)))

    def over(self, one: object) -> None:
        """It asks again, or has ended."""
        door, _ = self._all.pop(one, (None, None))
        of_door = self._doors.get(door)
        if of_door is not None:
            of_door.pop(one, None)
            if not of_door:
                del self._doors[door]

    def make_room(self, door: object) -> bool:
        """Ends the connection of this door that rested longest; whether there was one."""
        of_door = self._doors.get(door)
        if not of_door:
            return False
        self._end(next(iter(of_door)))
        return True

    def _end(self, one: object) -> None:
        _, end = self._all[one]
        self.over(one)
        end()
