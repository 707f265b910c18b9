"""Dead containers: which one is taken away, and that none is before what it wrote is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, ConsoleError
from console.sandbox.containers import engine as engine_module
from console.sandbox.containers import left_containers
from console.sandbox.containers.config import AGENT_LABEL, INSTANCE_LABEL
from console.sandbox.containers.left_containers import Left, LeftContainers

ME = Left("ab" * 32, "a-1")


class Engine:
    """One that knows one container."""

    def __init__(self) -> None:
        self.labels = {INSTANCE_LABEL: "00c0ffee", AGENT_LABEL: "a-1"}
        self.state: dict[str, Any] = {"Running": False, "Status": "exited"}
        self.removed: list[str] = []

    def inspect_container(self, container_id: str) -> dict[str, Any]:
        return {"Config": {"Labels": self.labels}, "State": self.state}

    def remove_container(self, container_id: str, v: bool) -> None:
        self.removed.append(container_id)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()

    @contextlib.contextmanager
    def reach(self: engine_module.Engine, what: str, remedy: str) -> Iterator[Engine]:
        yield made

    monkeypatch.setattr(engine_module.Engine, "calls", reach)
    monkeypatch.setattr(left_containers, "gate_of", lambda found, folder: None)
    return made


def log(monkeypatch: pytest.MonkeyPatch, *, is_whole: bool) -> None:
    class Log:
        def __init__(self, *_: object) -> None:
            pass

        def finish(self, timeout: float) -> bool:
            return is_whole

        def stop(self) -> None:
            pass

    monkeypatch.setattr(engine_module, "Follower", Log)


def test_it_goes_once_what_it_wrote_is_kept(engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log(monkeypatch, is_whole=True)
    LeftContainers(None, "00c0ffee").remove(ME, tmp_path / "a-1.log")
    assert engine.removed == [ME.container_id]


def test_it_stays_while_what_it_wrote_cannot_be_had(engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log(monkeypatch, is_whole=False)
    with pytest.raises(ConsoleError, match="could not be kept"):
        LeftContainers(None, "00c0ffee").remove(ME, tmp_path / "a-1.log")
    assert engine.removed == []


@pytest.mark.parametrize(
    ("labels", "state"),
    [
        ({INSTANCE_LABEL: "0badcafe"}, {}),
        ({AGENT_LABEL: "a-2"}, {}),
        ({}, {"Running": True, "Status": "running"}),
        ({}, {"Status": "created"}),
        ({}, {"Paused": True}),
        ({}, {"Restarting": True}),
    ],
)
def test_what_is_another_ones_or_not_over_is_left_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, labels: dict[str, str], state: dict[str, Any]
) -> None:
    log(monkeypatch, is_whole=True)
    engine.labels |= labels
    engine.state |= state
    with pytest.raises(Conflict):
        LeftContainers(None, "00c0ffee").remove(ME, tmp_path / "a-1.log")
    assert engine.removed == []
