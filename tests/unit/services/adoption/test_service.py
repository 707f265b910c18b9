"""The end of an adopted agent: only the guard says that nothing of it is left."""

from __future__ import annotations

import asyncio
import errno
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import ProcessIdentity
from console.domain.errors import ConsoleError, NotFound, TimedOut
from console.domain.ids import ControlLevel
from console.services.adoption import service

SILENT = TimedOut("The guard did not answer in time.", "")
GONE = NotFound("Agent a-1 is not registered.", "")
OVER = ProcessIdentity(2**22 + 9, 1)


class Ended(Exception):
    """The guard has no more to say."""


class World:
    """One adopted agent whose first process has ended, and a guard that answers what it was given."""

    def __init__(self, *says: dict[str, Any] | ConsoleError) -> None:
        self.says, self.posted = list(says), list[Any]()
        agent = SimpleNamespace(agent_id="a-1", control_level=ControlLevel.ADOPTED, process=OVER)
        self.state = SimpleNamespace(held={"a-1"}, agents={"a-1": agent})
        self.core, self.guard, self.post = self, self, self.posted.append

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        if not self.says:
            raise Ended
        answer = self.says.pop(0)
        if isinstance(answer, ConsoleError):
            raise answer
        return answer

    def keep(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        monkeypatch.setattr(service, "LOOK_S", 0.0)
        parts: Any = self
        with pytest.raises(Ended):
            asyncio.run(service.keep_adopted(parts.core, parts.guard))
        return self.posted


def test_two_looks_in_a_row_that_find_nobody_are_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    end = {"count": 0, "alive": False}
    assert World(end).keep(monkeypatch) == []
    [exited] = World({"count": 1, "alive": True}, end, end).keep(monkeypatch)
    assert (exited.agent_id, exited.exit_code) == ("a-1", None)


@pytest.mark.parametrize("doubt", [SILENT, GONE, {"count": 0, "alive": True}, {}])
def test_what_the_guard_does_not_say_is_not_its_end(monkeypatch: pytest.MonkeyPatch, doubt: dict[str, Any] | ConsoleError) -> None:
    assert World(doubt, doubt, doubt, doubt).keep(monkeypatch) == []


def test_at_start_up_a_silent_guard_leaves_it_to_the_first_process() -> None:
    for says, lives in ((SILENT, False), (GONE, False), ({"alive": True}, True), ({"alive": False}, False)):
        world: Any = World(says)
        assert service.lives(world.guard, world.state.agents["a-1"]) is lives


@pytest.mark.parametrize(("error", "lives"), [(ProcessLookupError(), False), (OSError(errno.EMFILE, "Too many open files"), True)])
def test_a_first_process_that_cannot_be_looked_at_may_be_there(monkeypatch: pytest.MonkeyPatch, error: OSError, lives: bool) -> None:
    def unreadable(pid: int) -> int:
        raise error

    monkeypatch.setattr(service, "start_ticks", unreadable)
    world: Any = World(GONE)
    assert service.lives(world.guard, world.state.agents["a-1"]) is lives
