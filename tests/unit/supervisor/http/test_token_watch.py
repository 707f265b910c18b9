"""A running answer ends with the token it was opened with (S1)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from console.domain.errors import ConsoleError
from console.supervisor.http import token_watch
from console.supervisor.http.asgi import BrokenOff
from console.supervisor.http.token_watch import watched


async def endless(scope: Any, receive: Any, send: Any) -> None:
    while True:
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await asyncio.sleep(0.01)


async def short(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.body", "body": b"done"})


def run(app: Any, header: bytes | None, accepts: Any) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await asyncio.sleep(60)

    scope = {"type": "http", "headers": [(b"authorization", header)] if header is not None else []}
    asyncio.run(asyncio.wait_for(watched(app, accepts)(scope, receive, send), 20))
    return sent


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_watch, "LOOK_S", 0.05)


def test_a_stream_is_broken_off_when_its_token_dies() -> None:
    looks: list[str] = []

    def accepts(token: str) -> bool:
        looks.append(token)
        return len(looks) < 3

    with pytest.raises(BrokenOff):
        run(endless, b"Bearer tok", accepts)
    assert looks == ["tok"] * 3


def test_what_cannot_be_checked_is_broken_off_too() -> None:
    def accepts(token: str) -> bool:
        raise ConsoleError("The keyring is locked.", "")

    with pytest.raises(BrokenOff):
        run(endless, b"Bearer tok", accepts)
    with pytest.raises(BrokenOff):
        run(endless, b"Basic dTpw", lambda token: token != "")


@pytest.mark.parametrize("header", [None, b"Bearer tok"])
def test_an_answer_that_ends_is_left_alone(header: bytes | None) -> None:
    assert run(short, header, lambda token: True) == [{"type": "http.response.body", "body": b"done"}]


def test_its_own_errors_come_through() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(broken, b"Bearer tok", lambda token: True)
