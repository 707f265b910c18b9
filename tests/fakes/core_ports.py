"""What the engine's loop asks of the services around it, where a test has none of them."""

from __future__ import annotations

from collections.abc import Callable

from console.domain.agent import LaunchRequest
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ConsoleError


class NoServices:
    """Refuses no launch and changes none, unless told to; ``carry_out`` is given every command."""

    def __init__(self, carry_out: Callable[[c.Command], object] = lambda _command: None) -> None:
        self.carry_out = carry_out
        self.refuses: ConsoleError | None = None

    def run(self, command: c.Command) -> None:
        self.carry_out(command)

    def check(self, request: LaunchRequest) -> None:
        if self.refuses is not None:
            raise self.refuses

    def shape(self, request: LaunchRequest) -> LaunchRequest:
        return request

    async def weigh(self, request: LaunchRequest, by: str) -> None:
        pass

    def heard(self, step: e.Event | c.Command) -> None:
        pass
