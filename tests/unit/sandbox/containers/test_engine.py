"""An engine that is away, hangs, talks nonsense or leaves out what was asked is an error in words, never anything else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ConsoleError, Unavailable
from console.sandbox.containers.engine import DEFAULT_SOCKET, Engine, find_socket
from tests.fakes.engine_stub import EngineStub

API = "1.41"


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[EngineStub]:
    made = EngineStub(tmp_path / "engine.sock", "")
    yield made
    made.close()


class Says(Engine):
    """Answers what it is told, one answer after the other, the last one again and again."""

    def __init__(self, *states: dict[str, Any] | None) -> None:
        super().__init__("/nowhere")
        self._states = list(states)

    @contextlib.contextmanager
    def calls(self, what: str, timeout_s: int = 0, remedy: str = "", version: str = "") -> Iterator[Any]:
        yield self

    def inspect_container(self, container_id: str) -> dict[str, Any]:
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if state is None:
            raise ConsoleError("No such container.", "")
        return {"State": state}


def test_the_socket_is_the_one_named_or_of_the_environment_or_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert find_socket(None) == find_socket("") == DEFAULT_SOCKET and find_socket("/a.sock") == "/a.sock"
    monkeypatch.setenv("DOCKER_HOST", "unix:///b.sock")
    assert find_socket(None) == "/b.sock" and find_socket("unix:///a.sock") == "/a.sock"
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    with pytest.raises(Unavailable, match="not a local engine"):
        find_socket(None)


def test_one_that_is_away_or_talks_nonsense_is_not_available_and_says_why(stub: EngineStub, tmp_path: Path) -> None:
    away = Engine(str(tmp_path / "no.sock")).available()
    assert not away.ok and away.reason.startswith("no Docker engine listens on /") and "DOCKER_HOST" in away.remedy
    stub.mood = "nonsense"
    assert not Engine(str(tmp_path / "engine.sock")).available().ok


def test_one_that_hangs_is_waited_for_no_longer_than_said(stub: EngineStub, tmp_path: Path) -> None:
    stub.mood = "hangs"
    engine = Engine(str(tmp_path / "engine.sock"))
    with pytest.raises(ConsoleError, match="did not list"), engine.calls("list", 1, "Try again.", API) as client:
        client.containers()


def test_an_answer_that_lacks_what_was_asked_is_an_error_with_the_remedy_of_the_call(stub: EngineStub, tmp_path: Path) -> None:
    engine = Engine(str(tmp_path / "engine.sock"))
    with engine.calls("look", version=API) as client:
        assert client.inspect_container("ab")["State"]["Pid"] == 0
    with pytest.raises(ConsoleError) as caught, engine.calls("look", remedy="Do this.", version=API) as client:
        client.inspect_container("ab")["State"]["Running"]
    assert caught.value.what == "The Docker engine did not look: 'Running'" and caught.value.remedy == "Do this."


def test_an_exit_code_is_waited_for_and_never_guessed() -> None:
    running, over = {"Running": True, "ExitCode": 0}, {"Running": False, "ExitCode": 137}
    assert Says(running, over).exit_code("ab", 60) == 137
    assert Says(running).exit_code("ab", 0) is None
    assert Says(None).exit_code("ab", 60) is None
