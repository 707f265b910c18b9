"""A container that only its engine can freeze: asked until the engine says so, and never called frozen before."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from console.killswitch.guard import freeze
from console.killswitch.kernel.engine import Engine, EngineSilent
from console.killswitch.store.registry import Entry, Held
from tests.fakes.engine_stub import EngineStub
from tests.fakes.guard_room import Room
from tests.fakes.guard_world import until


class BoxEngine:
    """Pauses at once when it is let go, unless it ``lies``; ``answer`` is what it says of every order."""

    path = Path("/nowhere")

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()
        self.answer = "204"
        self.lies = self.hides = False
        self.is_on = False

    def pause(self, container_id: str) -> str:
        self.asked.append("pause begun")
        self.go.wait(20)
        return self._ordered("pause", True)

    def unpause(self, container_id: str) -> str:
        return self._ordered("unpause", False)

    def _ordered(self, what: str, on: bool) -> str:
        self.asked.append(what)
        self.is_on = on if self.answer == "204" and not self.lies else self.is_on
        return self.answer

    def is_paused(self, container_id: str) -> bool:
        if self.hides:
            raise EngineSilent("no answer in time")
        return self.is_on


@pytest.fixture
def engine(room: Room, monkeypatch: pytest.MonkeyPatch) -> BoxEngine:
    """Of a room with one container, ``box``, that lives."""
    monkeypatch.setattr(freeze, "FIRST_S", 0.001)
    monkeypatch.setattr(freeze, "LONGEST_S", 0.01)
    engine = BoxEngine()
    room.guard.engine = engine  # type: ignore[assignment]
    held = room.guard.registry.held["box"] = Held(Entry("box", "container", "contained", 0, confirmed=True, container_id="ab" * 32))
    monkeypatch.setattr(Held, "is_populated", lambda self: self is held)
    return engine


def is_over(room: Room) -> None:
    until(lambda: not room.freezing.pausing._wishes, "its thread ended")


def test_freeze_and_thaw_end_as_the_last_wish(room: Room, engine: BoxEngine) -> None:
    room.freezing.freeze(["box"], "operator", "ann")
    until(lambda: engine.asked, "the engine was asked")
    room.freezing.thaw(["box"], "operator", "ann")
    room.freezing.freeze(["box"], "operator", "ann")
    room.freezing.thaw(["box"], "operator", "ann")
    engine.go.set()
    is_over(room)
    assert engine.asked == ["pause begun", "pause", "unpause"] and not engine.is_on


@pytest.mark.parametrize("fault", ["answers no", "lies", "hides"])
def test_it_is_asked_again_until_the_engine_says_so_and_is_not_confirmed_before(room: Room, engine: BoxEngine, fault: str) -> None:
    engine.go.set()
    engine.answer = "no answer in time" if fault == "answers no" else "204"
    engine.lies, engine.hides = fault == "lies", fault == "hides"
    answer = room.ask("freeze", cause="operator", scope=["box"])
    assert (answer["frozen"], list(answer["unconfirmed"])) == (0, ["box"])
    until(lambda: engine.asked.count("pause") > 2, "it is asked again and again")
    assert room.ask("freezing", scope=["box"])["n"] == room.ask("status")["unconfirmed_n"] == 1
    assert "could not be paused" in room.guard.notices["pause-box"]
    engine.answer, engine.lies, engine.hides = "204", False, False
    is_over(room)
    assert room.ask("freezing", scope=["box"])["n"] == room.ask("status")["unconfirmed_n"] == 0
    assert "pause-box" not in room.guard.notices and engine.is_on


def test_an_engine_that_says_no_to_what_is_already_so_is_believed_by_a_look(room: Room, engine: BoxEngine) -> None:
    engine.go.set()
    engine.is_on, engine.answer = True, "HTTP 409"
    room.freezing.freeze(["box"], "operator", "ann")
    is_over(room)
    assert room.freezing.unconfirmed(["box"]) == {} and "pause-box" not in room.guard.notices


def test_nobody_pauses_what_is_being_killed(room: Room, engine: BoxEngine) -> None:
    room.freezing.freeze(["box"], "operator", "ann")
    until(lambda: engine.asked, "the engine was asked")
    room.guard.registry.mark_killed(["box"], "k-1")  # the press, while the engine takes its time
    engine.go.set()
    is_over(room)
    assert engine.asked[-1] == "unpause" and not engine.is_on  # what a freezer holds does not die
    assert room.freezing.unconfirmed(["box"]) == {}


def test_the_asking_ends_with_the_agent(room: Room, engine: BoxEngine) -> None:
    engine.go.set()
    engine.answer = "HTTP 500"
    room.freezing.freeze(["box"], "operator", "ann")
    until(lambda: engine.asked.count("pause") > 1, "it is asked again")
    with room.guard.lock:
        room.guard.registry.retire("box")
    is_over(room)
    assert room.freezing.pausing.unconfirmed == {}


def test_without_a_thread_it_is_said_that_nobody_was_asked(room: Room, engine: BoxEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    answer = room.ask("freeze", cause="operator", scope=["box"])
    assert answer["frozen"] == 0 and "could not be asked" in answer["failed"]["box"]
    assert room.freezing.unconfirmed(["box"])


def test_through_a_socket_without_waiting(room: Room, tmp_path: Path) -> None:
    stub = EngineStub(tmp_path / "e.sock", "lies")
    stub.containers["ab" * 32] = {"instance": "00000000", "agent": "box", "pid": 0, "paused": True}
    room.guard.engine = Engine(tmp_path / "e.sock", "00000000")
    room.guard.registry.held["box"] = Held(Entry("box", "container", "contained", 0, confirmed=True, container_id="ab" * 32))
    try:
        assert room.freezing.freeze(["box"], "operator", "ann") == {"box": "asked the engine"}
        until(lambda: any("/pause" in line for line in stub.asked), "the engine was asked")
        stub.containers["ab" * 32]["paused"] = False
        room.freezing.thaw(["box"], "operator", "ann")
        until(lambda: any("/unpause" in line for line in stub.asked), "the engine was asked")
    finally:
        stub.close()
