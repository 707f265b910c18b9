"""The ladder's desk: what loosens is recorded first or not done, what tightens acts first; and what a preview may promise."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId, ContextId, ProcessIdentity
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import Conflict, Killed, NotRecorded
from console.domain.ids import ControlLevel
from console.domain.ladder import Reach, Rung, Scope, count_age
from console.domain.network import NetworkMode
from console.killswitch.store.registry import Entry
from console.services.network.isolation import SHARED
from console.services.stop import ladder
from console.services.stop.ladder import LadderDesk, Outside, doubt_of, preview_view
from tests.fakes.daemons import no_daemons
from tests.fakes.playbook import Playbook

ONE = Scope(Reach.AGENT, "a1")


class World:
    """An engine, and everything around it as a list of what was done."""

    def __init__(self, tmp_path: Path, refuses: bool = False) -> None:
        self.book, self.done, self.refuses = Playbook(), list[str](), refuses
        self.records: list[Record] = []
        self.doubts: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.why_not = ""
        self.book.run("a1", context_id=ContextId("s1"), network_mode=NetworkMode.PROXIED)
        scribe: Any = SimpleNamespace(record_first=self.first, record=self.record, job=lambda job: None, ledger=None)
        core: Any = SimpleNamespace(state=self.book.state, post=self.post, switching={}, saved=self.saved)
        guard: Any = SimpleNamespace(call=self.call)
        egress: Any = SimpleNamespace(attached=list)
        places: Any = SimpleNamespace(guard_dir=tmp_path)
        counting: Any = SimpleNamespace(anew=self.counted)
        stop: Any = SimpleNamespace(kill=self.kill)
        more: Any = {"daemons": no_daemons(), "counting": counting, "look_at_guard": self.look}
        self.desk = LadderDesk(core, scribe, guard, places, egress, stop, **more)

    def first(self, record: Record) -> None:
        if self.refuses:
            raise NotRecorded("The audit log could not be written.", "")
        self.done.append(f"recorded {record.kind}")

    async def kill(self, _agents: object, reason: str, _by: str, _scope: Scope) -> None:
        self.done.append(f"kill: {reason}")

    def record(self, record: Record) -> None:
        self.done.append(f"record {record.kind}")
        self.records.append(record)

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        self.done.append(f"guard {op}")
        if op == "adoptable":
            return {"why_not": self.why_not}
        if op == "connections":
            return {"agents": {"a1": {"reach": "", "n": 0}}, "next": None}
        if op == "freezing":
            return {"unconfirmed": self.doubts, "n": len(self.doubts)}
        causes: dict[AgentId, tuple[str, ...]] = {AgentId(i): ("operator",) for i in fields["scope"]} if op == "freeze" else {}
        self.book >> e.FrozenSetChanged(1.0, 1.0, causes, {AgentId(i): why for i, why in self.doubts.items()})
        return {"frozen": len(fields["scope"]) - len(self.asked), "unconfirmed": self.asked}

    def post(self, event: e.Event) -> None:
        self.done.append(type(event).__name__)
        self.book >> event

    async def saved(self) -> None:
        self.done.append("saved")

    async def counted(self, within_s: float) -> float:
        self.book.state.pids[AgentId("a1")] = 41
        assert within_s <= 1.0, "a preview keeps nobody waiting longer"
        return 0.25

    async def look(self) -> None:
        """The causes are fed by ``call``."""


def test_a_preview_of_a_kill_says_what_it_does_not_cover_and_which_sandbox_leaves_nothing_out(tmp_path: Path) -> None:
    from console.enforcement.ladder import plan

    world = World(tmp_path)
    outside = {"a1": Outside("it shares this host's network", ("tmux\x1b[31m", "python3")), "strange": Outside("")}
    seen = preview_view(plan(world.book.state, Rung.KILL, ONE), "", {}, None, outside)
    assert seen.outside.startswith("1 agent is connected to other programs (tmux")
    assert [a.outside for a in (*seen.acts, *seen.best_effort)] == [outside["a1"].words]
    could = preview_view(plan(world.book.state, Rung.KILL, ONE), "", {}, None, {"a1": Outside("it shares this host's network")})
    assert could.outside == "1 agent could give work to other programs of this host: that is not covered."
    apart = preview_view(plan(world.book.state, Rung.KILL, ONE), "", {}, None, {"a1": Outside("")})
    assert apart.outside == "The sandbox of 1 agent allows no connection to other programs: a kill covers all that they do."
    assert preview_view(plan(world.book.state, Rung.KILL, ONE), "", {}).outside == ""


@pytest.mark.parametrize(("given", "kept"), [("", "no reason given"), ("  ", "no reason given"), ("it burns", "it burns")])
async def test_a_kill_without_a_reason_says_that_none_was_given(tmp_path: Path, given: str, kept: str) -> None:
    world = World(tmp_path)
    await world.desk.kill(ONE, given, "operator:0")
    assert world.done == [f"kill: {kept}"]


async def test_a_refusal_recommends_only_what_the_guard_would_not_refuse(tmp_path: Path) -> None:
    world = World(tmp_path)
    agent = world.book.agent("a1")
    world.book.state.put(replace(agent, control_level=ControlLevel.OBSERVED, process=ProcessIdentity(77, 5)))

    async def remedies() -> set[str]:
        found = set()
        for asked in (world.desk.act(Rung.FREEZE, ONE, "", "operator:0"), world.desk.kill(ONE, "", "operator:0")):
            with pytest.raises(Conflict) as refused:
                await asked
            found.add(refused.value.remedy)
        return found

    assert await remedies() == {"watchfloor adopt a1 takes it over first."}
    world.why_not = "not available, because /x/cgroup.procs cannot be written by this account"
    assert await remedies() == {f"End it where it was started; it cannot be adopted: {world.why_not}."}
    world.book.state.kill_observed = {AgentId("a1")}
    with pytest.raises(Conflict) as refused:
        await world.desk.act(Rung.FREEZE, ONE, "", "operator:0")
    assert refused.value.remedy == f"Kill it (watchfloor kill a1); it cannot be adopted: {world.why_not}."
    assert not [words for words in world.done if words.startswith("kill")]


async def test_a_freeze_acts_first_and_is_recorded_after(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert (await world.desk.act(Rung.FREEZE, ONE, "look", "operator:0")).agents == ["a1"]
    assert world.done.index("guard freeze") < world.done.index("record freeze")


async def test_a_freeze_that_nobody_confirms_is_not_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "CONFIRM_S", 0.1)
    world = World(tmp_path)
    world.asked = {"a1": "asked the engine"}
    world.doubts = {"a1": "the engine says 500"}
    answer = await world.desk.act(Rung.FREEZE, ONE, "look", "operator:0")
    assert (answer.agents, answer.failed) == ([], {"a1": "not confirmed: the engine says 500"})
    assert world.done.count("guard freezing") > 1  # it is looked at again
    world.doubts = {}
    assert (await world.desk.act(Rung.FREEZE, ONE, "look", "operator:0")).agents == ["a1"]


async def test_an_isolation_is_believed_before_the_relays_are_killed_so_that_none_is_opened_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.desk.act(Rung.ISOLATE, ONE, "leaks", "operator:0")
    assert world.done == ["Isolated", "guard isolate", "saved", "record isolate.outcome"]
    (outcome,) = world.records
    assert (outcome.verdict, outcome.what) == ("ok", "isolate agent a1: 1 agent cut (leaks)")


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (SHARED, f"1 agent asked, enforced by nothing: a1: {SHARED}"),
        ("a way out is left: eth0", "1 agent asked, not confirmed to be cut: a1: a way out is left: eth0"),
    ],
)
async def test_an_isolation_that_nothing_enforces_is_not_on_record_as_done(tmp_path: Path, why: str, words: str) -> None:
    world = World(tmp_path)
    world.book.run("b1", context_id=ContextId("s1"), network_mode=NetworkMode.PROXIED)

    async def looked() -> None:
        world.book >> e.EgressChanged(1.0, 1.0, AgentId("a1"), False, why)

    world.desk._core.saved = looked  # type: ignore[method-assign]
    answer = await world.desk.act(Rung.ISOLATE, ONE, "leaks", "operator:0")
    assert (answer.agents, answer.failed) == ([], {"a1": why})
    await world.desk.act(Rung.ISOLATE, Scope(Reach.HOST), "", "operator:0")
    alone, host = world.records
    assert (alone.verdict, alone.agent_id, alone.what) == ("failed", "a1", f"isolate agent a1: {words} (leaks)")
    assert (host.verdict, host.what) == ("failed", f"isolate everything on this host: 1 agent cut, {words}")
    assert host.data["agents"] == ["b1"] and host.data["not_cut"] == {"a1": why} and host.must


async def test_a_disk_that_hangs_keeps_an_isolation_waiting_for_seconds_only_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    monkeypatch.setattr("console.services.stop.ladder.SAVED_S", 0.05)
    world.desk._core.saved = lambda: asyncio.sleep(60)  # type: ignore[method-assign]
    answer = await world.desk.act(Rung.ISOLATE, ONE, "leaks", "operator:0")
    assert answer.agents == ["a1"]
    assert "not on disk yet" in answer.notes[0]


@pytest.mark.parametrize(("rung", "before"), [(Rung.THAW, Rung.FREEZE), (Rung.RECONNECT, Rung.ISOLATE)])
async def test_a_way_back_is_recorded_first_and_refused_when_it_cannot_be(tmp_path: Path, rung: Rung, before: Rung) -> None:
    world = World(tmp_path)
    await world.desk.act(before, ONE, "", "operator:0")
    world.refuses, world.done[:] = True, []
    with pytest.raises(NotRecorded):
        await world.desk.act(rung, ONE, "", "operator:0")
    assert world.done == []
    assert world.book.agent("a1").isolated or world.book.agent("a1").causes
    world.refuses = False
    assert (await world.desk.act(rung, ONE, "", "operator:0")).agents == ["a1"]
    assert world.done[0] == f"recorded {rung}"
    assert not world.book.agent("a1").isolated and not world.book.agent("a1").causes


async def test_a_press_that_comes_while_a_reconnection_is_recorded_wins(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.desk.act(Rung.ISOLATE, ONE, "", "operator:0")

    def pressed(record: Record) -> None:
        world.book.state.killed = True

    world.desk._scribe.record_first = pressed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await world.desk.act(Rung.RECONNECT, ONE, "", "operator:0")
    assert world.book.agent("a1").isolated


@pytest.mark.parametrize("rung", [r for r in Rung if r is not Rung.KILL])
async def test_while_killed_no_rung_but_the_kill_is_carried_out(tmp_path: Path, rung: Rung) -> None:
    world = World(tmp_path)
    world.book.state.killed = True
    with pytest.raises(Killed):
        await world.desk.act(rung, ONE, "", "operator:0")
    assert world.done == []


async def test_a_soft_stop_refuses_a_reconnection_and_nothing_that_tightens(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.desk.act(Rung.ISOLATE, ONE, "", "operator:0")
    world.book.state.soft_stop = "the kill file cannot be read"
    with pytest.raises(Killed):
        await world.desk.act(Rung.RECONNECT, ONE, "", "operator:0")
    await world.desk.act(Rung.FREEZE, ONE, "", "operator:0")


async def test_a_registry_that_cannot_be_read_leaves_nothing_certain(tmp_path: Path) -> None:
    (tmp_path / "registry.json").write_text("{")
    world = World(tmp_path)
    seen = await world.desk.preview(Rung.KILL, ONE)
    assert seen.counts == {"managed": {"best_effort": 1}}
    assert seen.best_effort[0].why


async def test_a_preview_does_nothing_and_says_what_would_be_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert "no operator froze it" in (await world.desk.preview(Rung.THAW, ONE)).why_not
    with pytest.raises(Conflict):
        await world.desk.act(Rung.THAW, ONE, "", "operator:0")
    assert world.done == []


def test_a_doubt_names_what_no_kernel_proves() -> None:
    leaf = Entry("a1", "process", "managed", 1, "/sys/fs/cgroup/x/agents/a1-00000000", 7, confirmed=True, pid=9, pid_namespace=5)
    assert doubt_of(leaf, Rung.KILL) == doubt_of(leaf, Rung.FREEZE) == ""
    bare = Entry("a1", "process", "managed", 1, confirmed=True, pid=9)
    assert doubt_of(bare, Rung.KILL) and doubt_of(bare, Rung.FREEZE)
    boxed = Entry("b", "container", "contained", 1, confirmed=True, container_id="ab" * 32, container_leaf="/nowhere", pid=5)
    assert "its engine" in doubt_of(boxed, Rung.FREEZE)
    assert doubt_of(None, Rung.KILL) == "the guard does not hold it"


def test_many_agents_are_counted_whole_and_named_in_part() -> None:
    from console.enforcement.ladder import plan

    book = Playbook()
    for number in range(250):
        book.run(f"a{number}")
    seen = preview_view(plan(book.state, Rung.KILL, Scope(Reach.ALL)), "", {})
    assert (len(seen.acts), seen.unnamed, seen.counts) == (100, 150, {"managed": {"certain": 250}})
    assert seen.words == "kill of everything: 250 agents; cannot be undone; nothing can start until you rearm."


async def test_a_preview_counts_anew_and_says_how_old_its_count_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    seen = await world.desk.preview(Rung.FREEZE, ONE)
    assert (seen.processes, seen.counted_s, count_age(0.25)) == (41, 0.25, "")
    assert "12 s ago" in count_age(12.3)
    assert "not counted" in count_age(None)
