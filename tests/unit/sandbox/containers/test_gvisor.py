"""gVisor says that it is not there, and why; FULL is refused where its runtime has no network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.domain.errors import Unavailable
from console.domain.network import NetworkMode
from console.sandbox.containers.gvisor import Gvisor
from console.sandbox.interface import LaunchSpec, Ticket

SPEC = LaunchSpec(AgentId("a1"), ("/bin/agent",), {}, Path("/w"), Path("/a1.sock"), Path("/out"), NetworkMode.FULL)


class Engine:
    """Answers as an engine with these runtimes."""

    def __init__(self, runtimes: dict[str, Any]) -> None:
        self.runtimes = runtimes

    def info(self) -> dict[str, Any]:
        return {"Runtimes": self.runtimes, "MemoryLimit": True, "SwapLimit": True, "PidsLimit": True, "SecurityOptions": []}

    def version(self) -> dict[str, str]:
        return {"Version": "20.10"}


def gvisor(monkeypatch: pytest.MonkeyPatch, runtimes: dict[str, Any]) -> Gvisor:
    made = Gvisor("/no/engine.sock")

    @contextlib.contextmanager
    def calls(what: str, _timeout_s: int = 0) -> Iterator[Any]:
        yield Engine(runtimes)

    monkeypatch.setattr(made._engine, "calls", calls)
    return made


def test_without_an_engine_it_is_not_available_and_says_why() -> None:
    found = Gvisor("/no/engine.sock").available()
    assert not found.ok and found.reason and found.remedy


@pytest.mark.parametrize(
    ("runtimes", "why"),
    [
        ({"runc": {"path": "runc"}}, "no runtime named runsc"),
        ({"runsc": {"path": "/usr/bin/runsc"}}, "--host-uds=open"),
        ({"runsc": {"path": "/usr/bin/runsc", "runtimeArgs": ["--network=none"]}}, "--host-uds=open"),
    ],
)
def test_a_runtime_that_is_not_there_or_cannot_reach_sockets_is_said(
    monkeypatch: pytest.MonkeyPatch, runtimes: dict[str, Any], why: str
) -> None:
    found = gvisor(monkeypatch, runtimes).available()
    assert not found.ok and why in found.reason and "daemon.json" in found.remedy


def test_full_is_refused_where_the_runtime_has_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gvisor(monkeypatch, {"runsc": {"runtimeArgs": ["--network=none", "--host-uds=open"]}})
    found = made.available()
    assert found.ok and "FULL: not available" in found.reason and "seccomp profile" in found.reason and "cpu quota" in found.reason
    with pytest.raises(Unavailable, match="FULL is not available"):
        made.prepare(SPEC, Ticket(""))
