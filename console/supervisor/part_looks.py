"""Whether each part is available, asked aside: one that hangs is said to hang, and holds one thread, not one of everybody who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

BOUND_S = 0.8
"""Nobody who asks waits longer: a press asks for the status too, and gives a supervisor 2 s."""


class Answer(Protocol):
    """What a part says of itself."""

    @property
    def ok(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class PartLooks:
    """One look at a time at each part; on the loop's thread."""

    def __init__(self, probes: Mapping[str, Callable[[], Answer]], bound_s: float = BOUND_S) -> None:
        self._probes, self._bound_s = dict(probes), bound_s
        self._under_way: dict[str, asyncio.Task[Answer]] = {}

    async def words(self) -> dict[str, str]:
        """Of each part nothing, or why it is not available; after ``bound_s`` whatever the parts do."""
        looks = {name: self._look(name, probe) for name, probe in self._probes.items()}
        await asyncio.wait(looks.values(), timeout=self._bound_s)
        return {name: self._told(look) for name, look in looks.items()}

    def _look(self, name: str, probe: Callable[[], Answer]) -> asyncio.Task[Answer]:
        """The one that is under way, or a new one."""
        before = self._under_way.get(name)
        if before is None or before.done():
            self._under_way[name] = asyncio.create_task(asyncio.to_thread(probe))
        return self._under_way[name]

    def _told(self, look: asyncio.Task[Answer]) -> str:
        if not look.done():
            return f"not available, because it did not answer within {self._bound_s:g} s"
        answer = look.result()
        return "" if answer.ok else f"not available, because {answer.reason}"
