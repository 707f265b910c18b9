"""Workspaces over their life, on a ledger and folders of the test's own and with a clock of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, SandboxKind
from console.domain.engine.command import Record
from console.domain.errors import Conflict, Denied, NotFound, NotRecorded, TooMany
from console.domain.ids import ControlLevel
from console.enforcement.state import EngineState, SpawnLimits
from console.ledger.store import Ledger
from console.sandbox.workspace.disposal import QUARANTINE
from console.sandbox.workspace.session_files import alone, use
from console.services.sessions import workspaces as contexts_module
from console.services.sessions.workspaces import Contexts, is_stateless
from console.settings.options import WorkspaceOptions

DAY = 86400.0
MIB = 1 / 1024


def agent(agent_id: str, context_id: str = "c1", **more: object) -> Agent:
    made = Agent(
        AgentId(agent_id),
        "coder",
        None,
        AgentId(agent_id),
        1,
        ContextId(context_id),
        ControlLevel.MANAGED,
        SandboxKind.NONE,
        started_at=0.0,
    )
    return replace(made, state=AgentState.RUNNING, **more)  # type: ignore[arg-type]


@dataclass
class World:
    root: Path
    ledger: Ledger
    now: float = 1000.0
    records: list[Record] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    audit_works: bool = True

    def contexts(self, **options: object) -> Contexts:
        state = EngineState(spawn=SpawnLimits())
        state.agents = self.agents
        given = WorkspaceOptions.read(options)
        return Contexts(self.root, given, self.ledger, lambda: state, self._record, self.notices.append, lambda: self.now)

    def _record(self, record: Record) -> None:
        if not self.audit_works:
            raise NotRecorded("the disk is full", "make room")
        self.records.append(record)

    def start(self, contexts: Contexts, agent_id: str, context_id: str = "c1", size: int = 0) -> None:
        one = agent(agent_id, context_id)
        contexts.begin(one)
        self.agents[one.agent_id] = one
        (self.root / context_id / "data").mkdir(parents=True, exist_ok=True)
        (self.root / context_id / "data" / agent_id).write_bytes(b"x" * size)

    def end(self, contexts: Contexts, agent_id: str, state: AgentState = AgentState.ENDED) -> None:
        self.agents[AgentId(agent_id)] = replace(self.agents[AgentId(agent_id)], state=state, state_reason="why")
        contexts.end(agent_id)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    ledger = Ledger(tmp_path / "l.db")
    yield World(tmp_path / "ws", ledger)
    ledger.close()


def idle_for(world: World, days: float) -> None:
    """Time passes, for the ledger and for the locks alike."""
    world.now += days * DAY
    for lock in (world.root / ".locks").iterdir():
        os.utime(lock, (1000.0, 1000.0))


def test_a_session_that_nobody_used_for_its_time_goes_and_it_is_on_record_first(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1", size=10)
    world.start(it, "a2", "c2")
    world.end(it, "a1")
    idle_for(world, 6.9)
    assert it.tidy() == []
    idle_for(world, 0.2)
    assert it.tidy() == ["c1"]  # c2 has an agent
    assert not (world.root / "c1").exists() and list((world.root / QUARANTINE).iterdir()) == [] and (world.root / "c2").exists()
    assert [(r.actor, r.kind) for r in world.records] == [("supervisor", "workspace.deleted")] and "unused for 7 days" in world.records[
        0
    ].what
    assert [r.context_id for r, _, _ in it.rows()] == ["c2"]
    it.close()


def test_no_record_no_deletion(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.end(it, "a1")
    idle_for(world, 8)
    world.audit_works = False
    assert it.tidy() == [] and (world.root / "c1").exists()
    it.close()


def test_what_was_killed_is_held_as_evidence_until_it_is_released(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.end(it, "a1", AgentState.KILLED)
    idle_for(world, 100)
    assert it.tidy() == [] and it.rows()[0][0].hold == "evidence of a kill: why" and it.rows()[0][2] is None
    with pytest.raises(Denied, match="held as evidence"):
        it.delete("c1", "x", "ann")
    it.release("c1", "looked at", "ann")
    with pytest.raises(Conflict):
        it.release("c1", "again", "ann")
    assert it.tidy() == []  # the time of the hold does not count
    idle_for(world, 8)
    assert it.tidy() == ["c1"]
    it.close()


def test_a_stateless_run_goes_with_its_last_agent(world: World) -> None:
    it = world.contexts()
    assert is_stateless(agent("r1", "ctx-r1")) and not is_stateless(agent("r1", "ctx-other"))
    world.start(it, "r1", "ctx-r1")
    assert it.tidy() == []
    world.end(it, "r1")
    assert it.tidy() == ["ctx-r1"] and "stateless" in world.records[0].what
    it.close()


def test_what_another_supervisor_uses_stays(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.end(it, "a1")
    others = use(world.root, "c1")
    idle_for(world, 8)
    assert it.tidy() == []
    with pytest.raises(Denied, match="in use"):
        it.delete("c1", "x", "ann")
    others.close()
    use(world.root, "c1").close()  # it was used just now, by another: that counts here too
    world.now = (world.root / ".locks" / "c1").stat().st_mtime + 6 * DAY
    assert it.tidy() == []
    world.now += 2 * DAY
    assert it.tidy() == ["c1"]
    it.close()


def test_deleting_at_ones_word(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    with pytest.raises(Denied, match="in use"):
        it.delete("c1", "x", "ann")
    world.end(it, "a1")
    it.delete("c1", "no longer needed", "ann")
    assert not (world.root / "c1").exists() and world.records[-1].actor == "ann"
    for bad in ("c1", "../etc", ""):
        with pytest.raises(NotFound):
            it.delete(bad, "x", "ann")
        with pytest.raises(NotFound):
            it.hold(bad, "x", "ann")
    it.close()


def test_capacity_grows_is_said_kept_and_at_its_end_nothing_starts(world: World) -> None:
    it = world.contexts(capacity_gib=1 * MIB, capacity_max_gib=4 * MIB)
    world.start(it, "a1", size=900_000)
    it.look()
    assert it.room.capacity == 2 * 1024 * 1024 and "capacity is" in world.notices[0]
    row = it.rows()[0][0]
    assert 900_000 < row.bytes < 1_000_000 and row.complete and row.measured_at == world.now
    note = (world.root / "c1" / ".context.json").read_text()
    assert '"context_id": "c1"' in note and "1970-01-01T00:16:40Z" in note
    assert world.contexts(capacity_gib=1 * MIB, capacity_max_gib=4 * MIB).room.capacity == 2 * 1024 * 1024
    (world.root / "c1" / "more").write_bytes(b"x" * 3_500_000)
    it.look()
    assert it.room.is_full and "nothing is started" in world.notices[-1]
    with pytest.raises(TooMany):
        it.begin(agent("a2"))
    (world.root / "c1" / "more").unlink()
    it.look()
    it.begin(agent("a2"))
    it.close()


def test_a_session_beyond_its_own_bound_takes_no_more_agents(world: World) -> None:
    it = world.contexts(session_max_gib=1 * MIB)
    world.start(it, "a1", size=2_000_000)
    world.start(it, "a2", "c2", size=10)
    it.look()
    assert list(it.over) == ["c1"]
    with pytest.raises(TooMany, match="holds"):
        it.begin(agent("a3"))
    it.begin(agent("a4", "c2"))
    it.close()


async def test_it_keeps_looking_and_freezes_what_is_beyond_its_bound(world: World) -> None:
    it = world.contexts(session_max_gib=1 * MIB, measure_s=0.2, sweep_s=0.2)
    world.start(it, "a1", size=2_000_000)
    frozen: list[str] = []

    async def freeze(context_id: str, why: str) -> None:
        frozen.append(f"{context_id}: {why}")

    task = asyncio.create_task(it.keep(freeze))
    while not frozen:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.7)  # three more looks, in none of which it is frozen anew
    task.cancel()
    assert len(frozen) == 1 and "c1: its workspace holds" in frozen[0]  # once, not at every look
    it.close()


def test_after_a_restart_living_agents_still_protect_their_session(world: World) -> None:
    first = world.contexts()
    world.start(first, "a1")
    first.close()
    again = world.contexts()
    again.rejoin()
    other = World(world.root, world.ledger, now=world.now + 100 * DAY)  # another supervisor: it knows no such agent
    assert other.contexts().tidy() == [] and (world.root / "c1").exists()
    again.close()


def test_who_died_by_a_kill_while_no_supervisor_ran_leaves_evidence_that_is_held(world: World) -> None:
    first = world.contexts()
    world.start(first, "a1")
    world.start(first, "r1", "ctx-r1")
    world.start(first, "a3", "c3")
    first.close()  # it died; the guard killed two of the agents alone, the third ended
    for one, state in (("a1", AgentState.KILLED), ("r1", AgentState.HALTED), ("a3", AgentState.ENDED)):
        world.agents[AgentId(one)] = replace(world.agents[AgentId(one)], state=state, state_reason="why")
    again = world.contexts()
    again.rejoin()
    idle_for(world, 100)
    assert again.tidy() == ["c3"]
    assert {row.context_id: row.hold for row, _, _ in again.rows()} == dict.fromkeys(("c1", "ctx-r1"), "evidence of a kill: why")
    again.close()


def test_a_hold_that_comes_while_it_is_deleted_still_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.end(it, "a1")
    idle_for(world, 8)
    real = alone

    @contextmanager
    def held_meanwhile(root: Path, context_id: str) -> Iterator[bool]:
        it.hold("c1", "wait", "ann")
        with real(root, context_id) as is_alone:
            yield is_alone

    monkeypatch.setattr(contexts_module, "alone", held_meanwhile)
    assert it.tidy() == [] and (world.root / "c1").exists() and [r.kind for r in world.records] == ["workspace.held"]
    it.close()


def test_a_hold_of_one_supervisor_binds_another_that_shares_the_root(world: World, tmp_path: Path) -> None:
    first = world.contexts()
    world.start(first, "a1")
    world.end(first, "a1", AgentState.KILLED)
    ledger = Ledger(tmp_path / "other.db")
    other = World(world.root, ledger)
    second = other.contexts()
    second.look()  # its ledger never heard of the session
    other.now += 100 * DAY
    idle_for(world, 0)
    assert second.tidy() == [] and second.rows()[0][0].hold == "evidence of a kill: why"
    with pytest.raises(Denied, match="held as evidence"):
        second.delete("c1", "x", "bob")
    first.release("c1", "looked at", "ann")
    first.close()
    second.close()
    ledger.close()


def test_an_end_that_cannot_be_written_is_owed_and_nothing_is_deleted_before(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    it = world.contexts()
    world.start(it, "a1")

    def full(*_: object) -> None:
        raise NotRecorded("the disk is full", "make room")

    with monkeypatch.context() as patched:
        patched.setattr(world.ledger, "context_ended", full)
        world.end(it, "a1")  # does not raise
        assert "could not be written yet" in world.notices[0]
        idle_for(world, 8)
        assert it.tidy() == []  # its lock is still held
    it.look()
    idle_for(world, 8)
    assert it.tidy() == ["c1"]
    it.close()


def test_nothing_is_deleted_while_killed(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.end(it, "a1")
    idle_for(world, 8)
    it._state().killed = True
    assert it.tidy() == [] and (world.root / "c1").exists()
    it._state().killed = False
    assert it.tidy() == ["c1"]
    it.close()


def test_a_living_session_is_in_use_at_every_look(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.now += 30 * DAY
    it.look()
    assert it.rows()[0][0].last_used == world.now
    it.close()


def test_a_hold_in_the_middle_of_a_deletion_is_refused_and_never_answered_as_held(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.end(it, "a1")
    idle_for(world, 8)
    said: list[str] = []

    def deleting(record: Record) -> None:
        if record.kind == "workspace.deleted":
            with pytest.raises(Conflict, match="being deleted"):
                it.hold("c1", "wait", "ann")
            said.append("refused")

    it._record_first = deleting
    assert it.tidy() == ["c1"] and said == ["refused"]
    it.close()


def test_a_hold_is_no_use_of_the_session(world: World) -> None:
    it = world.contexts()
    world.start(it, "a1")
    world.end(it, "a1")
    idle_for(world, 3)
    before = (world.root / ".locks" / "c1").stat().st_mtime
    it.hold("c1", "wait", "ann")
    assert (world.root / ".locks" / "c1").stat().st_mtime == before
    it.close()
