"""The operator's half of the ratchet: on record and in the ledger before it is answered, tightened even where a disk refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api import network as s
from console.domain.agent import AgentId, ContextId
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import Conflict, Denied, Killed, NotFound, NotRecorded, UsageProblem
from console.domain.message import Malformed
from console.domain.network import NetworkMode, Sensitivity
from console.ledger.network_history import NetworkChange
from console.ledger.sessions import Tightening
from console.ledger.store import Ledger
from console.services.network import ratchet
from console.services.network.ratchet import TightenDesk
from tests.fakes.playbook import Playbook


class StubbornLedger(Ledger):
    refuses = False
    in_between: Any = None

    def tighten_sessions(self, context_ids: Iterable[str], tightening: Tightening) -> None:
        if self.refuses:
            raise NotRecorded("The ledger could not be written: no space left.", "")
        super().tighten_sessions(context_ids, tightening)
        if self.in_between is not None:
            self.in_between()


class World:
    """A real engine and ledger; a switch is verified at once unless told otherwise."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.book, self.done = StubbornLedger(folder / "l.db"), Playbook(), list[str]()
        self.enforceable, self.hangs, self.audit_refuses = True, False, False
        self.switching: dict[AgentId, asyncio.Task[None]] = {}
        scribe = SimpleNamespace(ledger=self.ledger, record_first=self.recorded, settle=lambda _s: None)
        core = SimpleNamespace(state=self.book.state, post=self.post, switching=self.switching)
        parts: Any = SimpleNamespace(core=core, scribe=scribe)
        self.desk = TightenDesk(parts.core, parts.scribe)
        self.book.run("a1", context_id=ContextId("s1"), network_mode=NetworkMode.PROXIED)
        self.book.run("a2", parent_id=AgentId("a1"), context_id=ContextId("s2"))

    def recorded(self, record: Record) -> None:
        if self.audit_refuses:
            raise NotRecorded("The audit log could not be written: no space left.", "")
        self.done.append(f"{record.kind} {record.what}")

    def post(self, event: e.Event) -> None:
        self.done.append(f"{type(event).__name__} with {self.ledger.mode('s1')} on disk")
        self.book >> event
        for command in self.book.all(c.SwitchNetwork):
            self.switching[command.agent_id] = asyncio.get_running_loop().create_task(self.switch(command))

    async def switch(self, command: c.SwitchNetwork) -> None:
        if self.hangs:
            await asyncio.sleep(60)
        note = "" if self.enforceable else "it shares the host's network"
        self.book >> e.NetworkSwitched(9.0, 9.0, command.agent_id, command.mode, self.enforceable, note, 2.0)
        for line in self.book.all(c.KeepNetworkChange):
            change = NetworkChange(line.at, line.what, line.by, line.words, line.agent_id, line.mode, enforced=line.enforced, ms=line.ms)
            self.ledger.keep_network_changes([(line.context_id, change)])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.ledger.close()


def ask(mode: Any = "NONE", target: str = "a1", reach: Any = "agent", **more: Any) -> s.StricterBody:
    return s.StricterBody(scope=s.MeantBody(reach=reach, target=target), mode=mode, reason="odd <b>traffic</b>", **more)


def data(level: Any = "SECRET", **more: Any) -> s.RegisterDataBody:
    scope = s.MeantBody(reach="session", target="s1")
    return s.RegisterDataBody(scope=scope, dataset="salaries", sensitivity=level, source="hr", reason="review", **more)


async def test_on_record_then_on_disk_then_switched_then_answered(world: World) -> None:
    view = await world.desk.stricter(ask(), "operator:0")
    assert world.done == ["network.stricter agent a1: network NONE: odd <b>traffic</b>", "Tightened with NONE on disk"]
    assert world.ledger.mode("s2") is NetworkMode.NONE
    assert (view.mode, view.session, view.sessions, view.verified, view.agents_total) == ("NONE", "s1", ["s1", "s2"], 2, 2)
    assert [(a.id, a.before, a.mode, a.verified, a.switched) for a in view.agents] == [
        ("a1", "PROXIED", "NONE", True, True),
        ("a2", "PROXIED", "NONE", True, True),
    ]
    assert "2 of 2 agents verified, in " in view.words and view.ms >= 0


async def test_data_of_an_operator_holds_as_an_agents_does(world: World) -> None:
    view = await world.desk.register(data(), "operator:0")
    assert (view.sensitivity, view.mode, world.ledger.level("s1")) == ("SECRET", "NONE", Sensitivity.SECRET)
    [first] = [x for x in world.desk.history("s1", "").changes if x.sensitivity]
    assert (first.cause, first.by, first.mode, first.words) == ("data", "operator:0", "NONE", "salaries from hr")


async def test_data_that_asks_for_no_stricter_mode_narrows_what_is_reached_and_leaves_the_mode(world: World) -> None:
    view = await world.desk.register(data("INTERNAL"), "operator:0")
    assert (view.sensitivity, view.mode, view.switched) == ("INTERNAL", "PROXIED", 0)
    assert world.ledger.level("s1") is Sensitivity.INTERNAL
    assert len(world.switching) == 2  # their destinations are those that may receive it, from now on
    world.switching.clear()
    await world.desk.register(data("INTERNAL"), "operator:0")
    assert not world.switching


async def test_what_is_not_enforceable_here_is_said(world: World) -> None:
    world.enforceable = False
    view = await world.desk.stricter(ask(), "operator:0")
    assert (view.verified, view.not_enforceable) == (0, 2)
    assert view.agents[0].note == "it shares the host's network" and "0 of 2 agents verified, 2 not enforceable here" in view.words


async def test_what_hangs_is_not_known_never_verified(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratchet, "SWITCH_S", 0.05)
    world.hangs = True
    view = await world.desk.stricter(ask(), "operator:0")
    assert view.verified == 0 and "not known" in view.agents[0].note
    for task in world.switching.values():
        task.cancel()


@pytest.mark.parametrize("what", ["ledger", "audit"])
async def test_a_disk_that_refuses_keeps_nothing_open_and_is_no_success(world: World, what: str) -> None:
    world.ledger.refuses, world.audit_refuses = what == "ledger", what == "audit"
    with pytest.raises(NotRecorded, match="is in NONE: 2 of 2 agents verified.* But it is not on disk: .*no space left"):
        await world.desk.stricter(ask(), "operator:0")
    assert world.book.agent("a2").network_mode is NetworkMode.NONE


async def test_a_session_that_came_meanwhile_is_on_disk_too(world: World) -> None:
    def born() -> None:
        world.ledger.in_between = None
        world.book.run("a3", parent_id=AgentId("a1"), context_id=ContextId("s4"))

    world.ledger.in_between = born
    view = await world.desk.stricter(ask(), "operator:0")
    assert world.ledger.mode("s4") is NetworkMode.NONE and view.sessions == ["s1", "s2", "s4"]
    assert world.book.agent("a3").network_mode is NetworkMode.NONE


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (ask("FULL"), Denied),
        (ask("PROXIED"), Conflict),
        (ask(target="a9"), NotFound),
        (ask(target="s9", reach="session"), NotFound),
        (ask(target="../etc"), UsageProblem),
    ],
)
async def test_refusals_change_nothing_and_a_dry_run_words_them(world: World, body: s.StricterBody, error: type[Exception]) -> None:
    with pytest.raises(error):
        await world.desk.stricter(body, "operator:0")
    assert world.done == [] and world.ledger.modes() == {}
    if error in (Denied, Conflict):
        view = await world.desk.stricter(body.replaced(dry_run=True), "operator:0")
        assert view.dry_run and "s1 is in PROXIED" in view.why_not


async def test_while_killed_nothing_changes(world: World) -> None:
    world.book.state.killed = True
    with pytest.raises(Killed):
        await world.desk.stricter(ask(), "operator:0")
    with pytest.raises(Killed):
        await world.desk.register(data(), "operator:0")


async def test_a_dry_run_does_nothing_and_says_who_and_whom_nothing_would_hold(world: World) -> None:
    world.book.run("b1", enforced=False, context_id=ContextId("s1"))
    view = await world.desk.stricter(ask(dry_run=True), "operator:0")
    assert world.done == [] and view.dry_run and view.switched == 3
    assert {a.id: (a.before, a.verified) for a in view.agents} == {"b1": ("FULL", False), "a1": ("PROXIED", True), "a2": ("PROXIED", True)}
    assert view.agents[0].note.startswith("not enforceable here: it shares the host's network")


async def test_an_isolated_agent_is_never_told_as_given_back(world: World) -> None:
    world.book >> e.Isolated(1.0, 1.0, (AgentId("a2"),), (), "ann", "odd")
    assert [(a.before, a.mode) for a in (await world.desk.register(data("INTERNAL"), "operator:0")).agents] == [
        ("PROXIED", "PROXIED"),
        ("NONE", "NONE"),
    ]


async def test_answers_are_bounded_and_counts_whole(world: World) -> None:
    for number in range(150):
        world.book.run(f"n{number}", context_id=ContextId("s1"))
    view = await world.desk.stricter(ask(), "operator:0")
    assert (len(view.agents), view.agents_total, view.verified) == (100, 152, 152)


async def test_history_of_a_session_and_of_one_agent(world: World) -> None:
    await world.desk.stricter(ask(), "operator:0")
    seen = world.desk.history("s1", "")
    assert [(x.cause, x.agent_id, x.mode, x.enforced) for x in seen.changes if x.cause != "operator"] == [("enforced", "a1", "NONE", True)]
    assert [x.by for x in seen.changes if x.cause == "operator"] == ["operator:0"]
    assert not [x for x in world.desk.history("s1", "b9").changes if x.cause == "enforced"]
    with pytest.raises(NotFound):
        world.desk.history("nobody's", "")


@pytest.mark.parametrize("more", [{"mode": "FREE"}, {"reason": ""}, {"reason": "x" * 501}, {"extra": 1}])
def test_bodies_are_strict(more: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        s.StricterBody.read(ask().as_data() | more)
