"""The client against a stand-in guard: refusals keep their kind, silence has a name, a restart goes unnoticed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, ConsoleError, Killed, TimedOut, TooLarge, Unreachable
from console.domain.guard import decode, encode
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.client.start import guard_pid

Answer = Callable[[dict[str, Any]], bytes | None]


class StandIn:
    def __init__(self, path: Path, answer: Answer) -> None:
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.converse, args=(self.listener.accept()[0],), daemon=True).start()

    def converse(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as lines, contextlib.suppress(OSError):
            for line in lines:
                answer = self.answer(decode(line))
                if answer is None:
                    break
                sock.sendall(answer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(60)


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Callable[[Answer], GuardClient]]:
    made: list[Any] = []

    def start(answer: Answer, timeout_s: float = 60.0) -> GuardClient:
        client = GuardClient(tmp_path / "g.sock", timeout_s=timeout_s)
        made.extend([client, StandIn(tmp_path / "g.sock", answer)])
        return client

    yield start
    for part in made:
        part.close()


@pytest.mark.parametrize(
    ("kind", "expected"), [("Killed", Killed), ("Conflict", Conflict), ("Nonsense", ConsoleError), (None, ConsoleError)]
)
def test_refusals_keep_their_kind(ask: Any, kind: str | None, expected: type[ConsoleError]) -> None:
    client = ask(lambda m: encode({"ok": False, "error": "no", "remedy": "wait", "kind": kind}))
    with pytest.raises(expected, match="no wait"):
        client.status()


def test_fields_arrive(ask: Any) -> None:
    client = ask(lambda m: encode({"ok": True, "kill_id": f"{m['op']} {m['scope']} {m['reason']} {m['by']}"}))
    assert client.press(["a"], "r", "me", timeout_s=90) == "press ['a'] r me"


def test_a_connection_that_ends_is_made_anew(ask: Any) -> None:
    state = {"n": 0}

    def once(message: dict[str, Any]) -> bytes | None:
        state["n"] += 1
        return None if state["n"] == 2 else encode({"ok": True, "n": state["n"]})

    client = ask(once)
    assert [client.status()["n"], client.status()["n"]] == [1, 3]


def test_silence_and_nonsense_have_names(ask: Any, tmp_path: Path) -> None:
    with pytest.raises(Unreachable):
        GuardClient(tmp_path / "none.sock").status()
    assert guard_pid(tmp_path) is None
    client = ask(lambda m: b"" if m["op"] == "status" else b"nonsense\n", 0.5)
    with pytest.raises(TimedOut):
        client.status()
    client.close()
    with pytest.raises(Unreachable):
        client.call("other")
    client.close()
    with pytest.raises(TooLarge):
        client.call("x", text="y" * 5000)


def test_no_reason_keeps_a_press_or_a_halt_from_going_out(ask: Callable[[Answer], GuardClient]) -> None:
    heard: list[dict[str, Any]] = []

    def answer(message: dict[str, Any]) -> bytes:
        heard.append(message)
        return encode({"ok": True, "kill_id": "k"})

    client, reason = ask(answer), "why " + "\U0001f525" * 500
    assert client.press("all", reason, "operator:0", timeout_s=60.0) == "k"
    assert client.halt([f"o-{n:016x}" for n in range(128)], reason) == "k"
    assert all(message["reason"].startswith("why \U0001f525") for message in heard) and len(heard) == 2


@pytest.mark.parametrize("slow", ["adopt", "ticket", "quit", "soft_stop", "challenge"])
def test_what_stops_does_not_wait_behind_what_takes_long(ask: Callable[[Answer], GuardClient], slow: str) -> None:
    may_end, asked = threading.Event(), threading.Event()

    def answer(message: dict[str, Any]) -> bytes:
        if message["op"] == slow:
            asked.set()
            assert may_end.wait(60)
        return encode({"ok": True, "of": message["op"]})

    client, done = ask(answer), list[str]()
    waiting = threading.Thread(target=lambda: done.append(str(client.call(slow)["of"])))
    waiting.start()
    assert asked.wait(60)
    assert [client.call(op)["of"] for op in ("freeze", "heartbeat", "lease")] == ["freeze", "heartbeat", "lease"] and not done
    may_end.set()
    waiting.join(60)
    assert done == [slow] and client.call("status")["of"] == "status"
