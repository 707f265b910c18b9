"""The engine's socket: time-outs, nonsense, lies; what it says is only passed on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.kernel.engine import Engine, EngineSilent, Follower, Running
from tests.fakes.engine_stub import EngineStub
from tests.fakes.guard_world import until

ID = "ab" * 32


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[EngineStub]:
    made = EngineStub(tmp_path / "e.sock", "lies")
    yield made
    made.close()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path / "e.sock", "0123abcd", call_s=30.0)


def test_what_it_says_is_passed_on(stub: EngineStub, engine: Engine) -> None:
    stub.containers[ID] = {"pid": 7, "agent": "a", "instance": "0123abcd"}
    assert engine.kill(ID) == engine.pause(ID) == engine.unpause(ID) == "204"
    assert engine.running() == [Running(ID, "a")] and engine.init_pid(ID) == 7
    assert any("label" in line and "0123abcd" in line for line in stub.asked)


def test_a_container_of_another_instance_has_no_pid_for_us(stub: EngineStub, engine: Engine) -> None:
    stub.containers[ID] = {"pid": 7, "agent": "a", "instance": "ffffffff"}
    assert engine.init_pid(ID) == 0


@pytest.mark.parametrize("mood", ["hangs", "nonsense"])
def test_a_broken_one_is_silent_in_time(stub: EngineStub, tmp_path: Path, mood: str) -> None:
    engine = Engine(tmp_path / "e.sock", "0123abcd", call_s=0.3)
    stub.mood = mood
    begun = time.monotonic()
    assert engine.kill(ID) != "204"
    with pytest.raises(EngineSilent):
        engine.running()
    with pytest.raises(EngineSilent):
        engine.init_pid(ID)
    with pytest.raises(EngineSilent):
        list(engine.starts(0)) if mood == "nonsense" else engine.running()
    assert time.monotonic() - begun < 30


def test_one_that_is_away_is_silent(engine: Engine) -> None:
    assert "FileNotFoundError" in engine.kill(ID)
    with pytest.raises(EngineSilent):
        engine.running()


def test_a_strange_list_is_silent(stub: EngineStub, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in ({"a": 1}, [1], [{"Id": 1}], None, "x"):
        monkeypatch.setattr(engine, "_ask", lambda *a, answer=answer: answer)
        with pytest.raises(EngineSilent):
            engine.running()
        with pytest.raises(EngineSilent):
            engine.init_pid(ID)


def test_the_follower_lists_what_runs_and_says_how_the_engine_is(stub: EngineStub, engine: Engine) -> None:
    stub.containers[ID] = {"pid": 7, "agent": "a", "instance": "0123abcd"}
    seen: list[Running] = []
    follower = Follower(engine, seen.append)
    assert follower.daemon
    follower.start()
    deadline = time.monotonic() + 60
    while not seen and time.monotonic() < deadline:
        time.sleep(0.01)
    follower.stop()
    stub.mood = "nonsense"
    stub.close()
    follower.join(60)
    assert seen[0] == Running(ID, "a")


def test_a_follower_survives_a_fault_and_says_so(tmp_path: Path) -> None:
    stub = EngineStub(tmp_path / "engine.sock", "lies")
    stub.containers["ab" * 32] = {"pid": 0, "agent": "a", "instance": "i"}
    calls: list[str] = []

    def broken(container: Running) -> None:
        calls.append(container.agent_id)
        raise RuntimeError("changed size during iteration")

    follower = Follower(Engine(tmp_path / "engine.sock", "i"), broken)
    follower.start()
    try:
        until(lambda: len(calls) >= 2, "it tried again")
        assert follower.is_alive() and follower.state == "down" and "RuntimeError" in follower.detail
    finally:
        follower.stop()
        follower.join(60)
        stub.close()
