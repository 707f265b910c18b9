"""Who gets nothing executed, and what is said of an end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.agents.execute import ExecuteBody
from console.credentials.redaction import Redactor
from console.domain.agent import AgentId, SandboxKind
from console.domain.calls.permission import Decision, Verdict
from console.domain.errors import ConsoleError, Denied, Killed, NotRecorded, TooMany, Unavailable
from console.policy.rules.verdicts import Part
from console.sandbox.calls import execution
from console.sandbox.calls.execution import Ended
from console.services.execute import service

A = AgentId("a-1")
WRITES = Part("write /w/s/x", Verdict.ALLOW, "rule", "file", "why", "write", "write", ("/w/s/x",))
BODY = ExecuteBody(tool="argv", argument='["true"]')


async def stays() -> bool:
    return False


class Room:
    """A desk whose guard, records and sandboxes are this test's; a sandbox is built once ``built`` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.built, self.began, self.done = threading.Event(), threading.Event(), list[str]()
        self.refuses: dict[str, ConsoleError] = {}
        self.rollback: Any = SimpleNamespace(snapshot=self._snapshot)
        agent = SimpleNamespace(agent_id=A, sandbox=SandboxKind.NONE, context_id="s", state=SimpleNamespace(is_live=True), causes=())
        self.state: Any = SimpleNamespace(agents={A: agent}, killed=False, killing=set(), halting=set())
        options = SimpleNamespace(timeout_s=5.0, timeout_max_s=5.0, output_max_kib=1, at_once=2)
        self.parts: Any = SimpleNamespace(
            keyring=SimpleNamespace(redactor=Redactor()), notice=lambda *_: None,
            core=SimpleNamespace(state=self.state), options=SimpleNamespace(execute=options), guard=self, rollback=self.rollback,
            scribe=SimpleNamespace(record_first=self._record, record=self._record), places=SimpleNamespace(workspaces_dir=Path("/w")),
        )  # fmt: skip
        decided = (Decision(Verdict.ALLOW, "rule", "why"), SimpleNamespace(steps=()))
        judging: Any = SimpleNamespace(
            decided=self._gives(decided),
            again=self._gives(SimpleNamespace(parts=(WRITES,))),
            now=self._gives(SimpleNamespace(verdict=Verdict.ALLOW, steps=())),
        )
        p = self.parts
        self.desk = service.ExecuteDesk(p.core, p.scribe, p.guard, p.rollback, p.keyring, p.places, p.options, p.notice, judging)
        spec = SimpleNamespace(pids_max=8, memory_max_bytes=1 << 20)
        monkeypatch.setattr(service, "plan_of", lambda *a: SimpleNamespace(programs=[], warnings=(), code=None))
        monkeypatch.setattr(service, "spec_of", lambda *a: spec)
        monkeypatch.setattr(execution, "why_not", lambda: "")
        monkeypatch.setattr(execution, "start", self._start)

    def _gives(self, answer: Any) -> Any:
        async def given(*_: Any) -> Any:
            return answer

        return given

    def _record(self, record: Any) -> None:
        self.done.append(record.kind)
        self.data = record.data

    def _snapshot(self, *_: Any) -> Any:
        if "snapshot" in self.refuses:
            raise self.refuses["snapshot"]
        return SimpleNamespace(record_id="r-1", facts_sha256="")

    def _start(self, *_: Any) -> Any:
        self.began.set()
        assert self.built.wait(60)
        made = {name: partial(self.done.append, name) for name in ("go", "finish", "close")}
        return SimpleNamespace(process=(1, 2), **made)

    def call(self, op: str, **_: Any) -> dict[str, Any]:
        self.done.append(op)
        if op in self.refuses:
            raise self.refuses[op]
        return {"leaf": "/leaf", "limit_leaves": [], "generation": 1}

    def begins(self) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(self.desk.begin(A, BODY, stays))

    async def is_building(self) -> None:
        while not self.began.is_set():
            await asyncio.sleep(0.01)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    made = Room(monkeypatch)
    yield made
    made.built.set()
    made.desk._threads.shutdown()


async def test_whoever_asks_may_go_while_the_sandbox_is_built_and_nothing_of_it_is_left(room: Room) -> None:
    asks = room.begins()
    await room.is_building()
    asks.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asks
    room.built.set()
    while room.desk.running:
        await asyncio.sleep(0.01)
    assert room.done == ["execute", "call", "call_go", "finish", "close", "call_over", "execute.broke"], "ended, and never started"


async def test_a_kill_while_the_sandbox_is_built_wins(room: Room) -> None:
    asks = room.begins()
    await room.is_building()
    room.state.killing.add(A)
    room.built.set()
    with pytest.raises(Killed):
        await asks
    assert "go" not in room.done and room.done[-1] == "execute.broke" and not room.desk.running


async def test_a_call_that_the_guard_gives_no_group_is_on_record_as_broken(room: Room) -> None:
    room.refuses["call"] = Killed("The agent was killed: nothing of it starts.", "")
    with pytest.raises(Killed):
        await room.begins()
    assert room.done == ["execute", "call", "call_over", "execute.broke"] and not room.desk.running


async def test_what_it_names_is_kept_first_or_nothing_is_recorded_and_nothing_runs(room: Room) -> None:
    room.refuses["snapshot"] = NotRecorded("No space left.", "")
    with pytest.raises(NotRecorded):
        await room.begins()
    assert room.done == [] and not room.desk.running
    del room.refuses["snapshot"]
    room.refuses["call"] = Killed("The agent was killed: nothing of it starts.", "")
    records: list[Any] = []
    room.parts.scribe.record_first = records.append
    with pytest.raises(Killed):
        await room.begins()
    assert records[0].kind == "execute" and records[0].data["rollback"] == ["r-1"] and records[0].data["not_kept"]


async def test_calls_that_start_slowly_keep_no_thread_of_the_others_busy(room: Room) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    asks = room.begins()
    await room.is_building()
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "a kill"), 60) == "a kill"
    room.state.killed = True
    room.built.set()
    with pytest.raises(Killed):
        await asks


async def test_there_are_not_too_many_of_one_nor_of_all_those_that_start_included(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.state.killed = True
    asks = [room.begins(), room.begins()]
    await room.is_building()
    with pytest.raises(TooMany, match="2 calls of this agent"):
        await room.begins()
    monkeypatch.setattr(service, "MOST", 2)
    monkeypatch.setattr(room.parts.options.execute, "at_once", 9)
    with pytest.raises(TooMany, match="2 calls of all agents"):
        await room.begins()
    room.built.set()
    for one in asks:
        with pytest.raises(Killed):
            await one
    assert not room.desk.running and not room.desk._asking


@pytest.mark.parametrize("kind", [SandboxKind.DOCKER, SandboxKind.GVISOR])
def test_an_agent_in_a_container_is_told_why_not(kind: SandboxKind) -> None:
    agent: Any = SimpleNamespace(sandbox=kind)
    with pytest.raises(Unavailable, match="not available, because its files are an image's"):
        service._refuse_unless_possible(agent)


def test_a_host_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "why_not", lambda: "bubblewrap is not installed.")
    agent: Any = SimpleNamespace(sandbox=SandboxKind.NONE)
    with pytest.raises(Unavailable, match="not available, because bubblewrap"):
        service._refuse_unless_possible(agent)


def test_an_end_says_what_was_cut_and_whether_it_was_proven() -> None:
    streams = [SimpleNamespace(seen=10, cut=4), SimpleNamespace(seen=2, cut=0)]
    output: Any = SimpleNamespace(out=streams[0], err=streams[1])
    line = service._ended(Ended(137, 9), "time limit 5 s", 5001, output, False)
    assert (line.code, line.signal, line.limit, line.stdout_bytes, line.stdout_cut, line.proven) == (137, 9, "time limit 5 s", 10, 4, False)
    call: Any = SimpleNamespace(call_id="c", agent_id="a-1", plan=SimpleNamespace(programs=["/usr/bin/cat"]))
    record = service._record_of_end(call, line)
    assert record.verdict == "not_proven" and "time limit 5 s" in record.what and record.data["programs"] == ["/usr/bin/cat"]


def test_time_in_which_its_agent_is_frozen_is_not_counted() -> None:
    clock = service.Clock(100.0)
    for at, is_frozen in ((101.0, False), (500.0, True), (501.5, False)):
        clock.tick(at, is_frozen)
    assert clock.used == 2.5


async def test_what_can_never_run_is_refused_before_a_human_is_asked(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> Any:
        raise AssertionError("a human was asked")

    def refuses(*_: Any) -> Any:
        raise Denied("The call is not executed: a command in the background (&).", "Write it more plainly.")

    judging: Any = room.desk._judging
    judging.now, judging.decided = room._gives(SimpleNamespace(verdict=Verdict.ASK, steps=())), never
    monkeypatch.setattr(service, "plan_of", refuses)
    with pytest.raises(Denied, match="background"):
        await room.desk.begin(A, BODY, stays)
    assert room.done == ["execute.refused"], "it is on record"
