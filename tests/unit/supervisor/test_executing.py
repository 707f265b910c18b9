"""Who gets nothing executed, and what is said of an end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import SandboxKind
from console.domain.errors import Unavailable
from console.sandbox import execution
from console.sandbox.execution import Ended
from console.supervisor import executing


@pytest.mark.parametrize("kind", [SandboxKind.DOCKER, SandboxKind.GVISOR])
def test_an_agent_in_a_container_is_told_why_not(kind: SandboxKind) -> None:
    agent: Any = SimpleNamespace(sandbox=kind)
    with pytest.raises(Unavailable, match="not available, because its files are an image's"):
        executing._refuse_unless_possible(agent)


def test_a_host_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "why_not", lambda: "bubblewrap is not installed.")
    agent: Any = SimpleNamespace(sandbox=SandboxKind.NONE)
    with pytest.raises(Unavailable, match="not available, because bubblewrap"):
        executing._refuse_unless_possible(agent)


def test_an_end_says_what_was_cut_and_whether_it_was_proven() -> None:
    streams = [SimpleNamespace(seen=10, cut=4), SimpleNamespace(seen=2, cut=0)]
    output: Any = SimpleNamespace(out=streams[0], err=streams[1])
    line = executing._ended(Ended(137, 9), "time limit 5 s", 5001, output, False)
    assert (line.code, line.signal, line.limit, line.stdout_bytes, line.stdout_cut, line.proven) == (137, 9, "time limit 5 s", 10, 4, False)
    call: Any = SimpleNamespace(call_id="c", agent_id="a-1", plan=SimpleNamespace(programs=["/usr/bin/cat"]))
    record = executing._record_of_end(call, line)
    assert record.verdict == "not_proven" and "time limit 5 s" in record.what and record.data["programs"] == ["/usr/bin/cat"]


def test_time_in_which_its_agent_is_frozen_is_not_counted() -> None:
    clock = executing.Clock(100.0)
    for at, is_frozen in ((101.0, False), (500.0, True), (501.5, False)):
        clock.tick(at, is_frozen)
    assert clock.used == 2.5
