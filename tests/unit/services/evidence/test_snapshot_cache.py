"""The witness: whom it looks at when, what it keeps of the dead, and that it never holds anything up."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.domain.agent import Agent, AgentId, ContextId, ProcessIdentity, SandboxKind
from console.domain.ids import ControlLevel
from console.enforcement.state import EngineState
from console.killswitch.kernel import processes
from console.services.evidence import snapshot_cache as witness_module
from console.services.evidence.process_snapshot import AgentSeen, ProcessSeen, Root
from console.services.evidence.snapshot_cache import Witness, folded, keep_watch, roots_of
from console.services.fleet.core import Core
from tests.fakes.patched import patch


def process(pid: int, at: float) -> ProcessSeen:
    return ProcessSeen(pid, 1, 7, at, "S", 0, "/x", ("x",), "/")


def agent(name: str, **more: Any) -> Agent:
    fields: dict[str, Any] = {"control_level": ControlLevel.MANAGED, "process": ProcessIdentity(5, 6)} | more
    made = AgentId(name)
    return Agent(made, name, None, made, 1, ContextId("c"), sandbox=SandboxKind.NONE, started_at=1.0, **fields)


def test_what_died_in_the_middle_of_a_look_stays_for_one_more() -> None:
    first = AgentSeen(1.0, (process(1, 1.0), process(2, 1.0)))
    second = folded(first, AgentSeen(2.0, (process(1, 2.0),)))
    assert {(p.pid, p.seen_at) for p in second.processes} == {(1, 2.0), (2, 1.0)}
    third = folded(second, AgentSeen(3.0, (process(1, 3.0),)))
    assert {p.pid for p in third.processes} == {1}


def test_an_agent_of_which_nothing_is_left_keeps_what_was_last_seen() -> None:
    first = AgentSeen(1.0, (process(1, 1.0),))
    assert folded(first, AgentSeen(2.0, ())) is first
    assert folded(None, first) is first


def test_what_has_died_but_is_not_reaped_keeps_its_words() -> None:
    alive = AgentSeen(1.0, (process(1, 1.0), process(2, 1.0)))
    dead = ProcessSeen(2, 1, 7, 2.0, "Z", 0, "", (), "")
    seen = folded(alive, AgentSeen(2.0, (process(1, 2.0), dead)))
    assert [(p.pid, p.state, p.cmdline) for p in seen.processes] == [(1, "S", ("x",)), (2, "S", ("x",))]
    other = replace(dead, start_ticks=8)  # another process under the same number
    assert folded(alive, AgentSeen(2.0, (other,))).processes[0] is other


def test_roots_are_the_live_agents_we_can_stop() -> None:
    state = EngineState()
    for one in (agent("a-1"), agent("a-2", control_level=ControlLevel.OBSERVED), agent("a-3", process=None)):
        state.put(one)
    state.killing.add(AgentId("gone"))
    assert roots_of(state) == [Root("a-1", 5, 6)]


def test_a_new_agent_is_looked_at_at_once_a_young_one_often_an_old_one_now_and_then() -> None:
    witness = Witness(5.0, 10)
    root = Root("a-1", os.getpid(), 1)
    witness._roots = (root,)
    start = 1000.0
    witness._looked_at = start
    assert witness._due(start + 0.1) == (root,)
    witness._seen = {"a-1": AgentSeen(1.0, ())}
    witness._rest_until = start + 0.2
    assert witness._due(start + 0.1) == ()  # resting
    assert witness._due(start + 0.5) == ()
    assert witness._due(start + 1.3) == (root,)
    witness._rest_until = start + 10
    witness._looked_at = start + 10
    assert witness._due(start + 14.9) == ()
    assert witness._due(start + 15.1) == (root,)


def test_what_was_seen_outlives_the_agent_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Witness(5.0, 1000)
    ticks = processes.start_ticks(os.getpid())
    assert ticks is not None
    root = Root("a-1", os.getpid(), ticks)
    witness._roots = (root,)
    witness.look((root,))
    before = witness.seen()
    witness._roots = ()
    witness.look(())
    assert "a-1" in witness.seen() and witness.seen() is not before
    monkeypatch.setattr(witness_module, "KEPT_S", 0.0)
    witness.look(())
    assert witness.seen() == {}
    assert "a-1" in before  # what was handed out does not change


async def test_it_is_aimed_from_the_loop_looks_in_its_thread_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = processes.start_ticks(os.getpid())
    assert ticks is not None
    state = EngineState()
    state.put(agent("a-1", process=ProcessIdentity(os.getpid(), ticks)))
    witness = Witness(0.2, 1000)
    said: list[str] = []
    monkeypatch.setattr(witness_module, "AIM_S", 0.05)
    watch = asyncio.create_task(keep_watch(witness, cast(Core, SimpleNamespace(state=state)), said.append))
    for _ in range(1200):
        await asyncio.sleep(0.05)
        if witness.seen():
            break
    assert os.getpid() in {p.pid for p in witness.seen()["a-1"].processes}
    assert witness._thread is not None and witness._thread.daemon and witness._thread is not threading.current_thread()
    assert not said
    witness._busy_since = time.monotonic() - 100
    patch(witness, look=lambda roots: time.sleep(0.01))
    assert witness.hangs()
    watch.cancel()
    await asyncio.wait([watch])
    await asyncio.to_thread(witness._thread.join, 60)
    assert not witness._thread.is_alive()


def test_a_look_that_fails_is_told_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Witness(0.2, 10)
    calls: list[int] = []

    def look(_roots: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise OSError(5, "no /proc")

    patch(witness, look=look)
    witness.aim([Root("a-1", os.getpid(), 1)])
    until = time.monotonic() + 60
    while len(calls) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    witness.end()
    assert witness._thread is not None
    witness._thread.join(60)
    assert len(calls) >= 2 and witness.problem == ""
