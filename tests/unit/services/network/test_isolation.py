"""A switch says what it saw from outside: closed and looked at, a way out that is left, a container cut and given its portal."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.domain.agent import AgentId
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, ConsoleError
from console.domain.network import NetworkMode, Sensitivity
from console.sandbox.interface import Prepared
from console.services.network import isolation
from console.services.network.isolation import SHARED, Cutter, Running
from tests.fakes.playbook import Playbook

A1 = AgentId("a1")
PROXIED, NONE = NetworkMode.PROXIED, NetworkMode.NONE


def box(**fields: Any) -> Prepared:
    return Prepared(A1, 7, 7, **fields)


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, prepared: Prepared | None) -> None:
        self.done: list[str] = []
        self.kept: list[tuple[object, ...]] = []
        self.classified: list[Sensitivity] = []
        self.readied: list[tuple[object, ...]] = []
        self.interfaces: list[str] | OSError = ["lo"]
        self.stuck, self.attach_fails, self.cut_fails, self.freeze_fails = False, False, False, False
        self.attached_ids = {"a1"} if prepared is not None and prepared.netns else set[str]()
        self.book = Playbook().run("a1", network_mode=PROXIED)
        self.posted: list[e.NetworkSwitched] = []
        egress = SimpleNamespace(
            attached=lambda: list(self.attached_ids), attach=self.attach, detach=self.detach,
            relay_pids=lambda: {"a1": 9} if "a1" in self.attached_ids else {}, available=lambda: SimpleNamespace(ok=True),
            ready=self.ready, classify=lambda agent_id, level: self.classified.append(level),
        )  # fmt: skip
        guard = SimpleNamespace(freeze=self.freeze, thaw=lambda ids, cause, by: self.done.append(f"thaw {cause}"))
        ledger = SimpleNamespace(restrict_mode=lambda *args, **more: self.kept.append((*args[:2], more["cause"])))
        parts: Any = SimpleNamespace(
            notice=lambda *_: None, core=SimpleNamespace(state=self.book.state, post=self.post), egress=egress, guard=guard,
            scribe=SimpleNamespace(ledger=ledger, job=lambda job: job()),
        )  # fmt: skip
        monkeypatch.setattr(isolation, "interfaces", self.look)
        monkeypatch.setattr(isolation, "cut_container", self.cut)
        running = {A1: Running(cast(Any, None), prepared)} if prepared is not None else {}
        self.cutter = Cutter(parts.core, parts.scribe, parts.guard, parts.egress, "", parts.notice, running)

    def post(self, event: e.Event) -> None:
        assert isinstance(event, e.NetworkSwitched)
        self.posted.append(event)

    def ready(self, *args: object) -> None:
        self.readied.append(args)
        if self.attach_fails:
            raise Conflict("Envoy did not take it.", "")

    def freeze(self, _ids: list[str], cause: str, _by: str) -> None:
        if self.freeze_fails:
            raise ConsoleError("the guard hangs", "")
        self.done.append(f"freeze {cause}")

    def attach(self, *_args: object) -> None:
        if self.attach_fails:
            raise Conflict("Port 3128 is taken.", "")
        self.attached_ids.add("a1")
        self.done.append("attach")

    def detach(self, _agent_id: str) -> None:
        self.done.append("detach")
        if not self.stuck:
            self.attached_ids.clear()

    def look(self, _pid: int) -> list[str]:
        if isinstance(self.interfaces, OSError):
            raise self.interfaces
        return self.interfaces

    def cut(self, *_args: object) -> None:
        if self.cut_fails:
            raise ConsoleError("The engine did not disconnect it.", "")
        self.done.append("cut")

    def switch(self, mode: NetworkMode) -> e.NetworkSwitched:
        asyncio.run(self.cutter.switch(c.SwitchNetwork(A1, mode, "odd")))
        [event] = self.posted
        assert event.mode is mode and event.ms is not None and event.ms >= 0
        assert self.kept == [(self.book.agent("a1").context_id, mode, "switch")]
        return event


def test_none_closes_the_portal_and_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(netns=True))
    event = world.switch(NONE)
    assert world.done == ["detach"] and (event.enforced, event.note) == (True, "")


@pytest.mark.parametrize(("what", "words"), [("relay", "its relay"), ("eth0", "eth0, lo"), ("gone", "not known")])
def test_a_way_out_that_is_left_is_never_enforced(monkeypatch: pytest.MonkeyPatch, what: str, words: str) -> None:
    world = World(monkeypatch, box(netns=True))
    world.stuck = what == "relay"
    if what != "relay":
        world.interfaces = ["eth0", "lo"] if what == "eth0" else FileNotFoundError("no such process")
    event = world.switch(NONE)
    assert not event.enforced and words in event.note


def test_proxied_keeps_its_relay_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(netns=True))
    assert world.switch(PROXIED).enforced and world.done == [] and world.classified == [Sensitivity.PUBLIC]
    other = World(monkeypatch, box(netns=True))
    other.interfaces = ["eth0", "lo"]
    assert not other.switch(PROXIED).enforced


def test_a_container_is_frozen_cut_gets_its_portal_and_is_thawed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(container_id="c1"))
    event = world.switch(PROXIED)
    assert world.done == ["freeze switch", "cut", "attach", "thaw switch"] and world.readied == [("a1", None, Sensitivity.PUBLIC)]
    assert event.enforced and event.note == "its way out is http://127.0.0.1:3128 now, as HTTP proxy"


def test_isolated_meanwhile_it_has_no_portal_and_none_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(container_id="c1"))
    world.book >> e.Isolated(world.book.at, world.book.boot, (A1,), (), "ann", "odd")
    event = world.switch(PROXIED)
    assert (event.enforced, event.note) == (True, "") and world.attached_ids == set()


def test_what_cannot_be_frozen_leaves_nothing_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(container_id="c1"))
    world.freeze_fails = True
    event = world.switch(PROXIED)
    assert not event.enforced and "the guard hangs" in event.note and world.done == ["detach"]


def test_a_port_that_the_agent_took_leaves_it_cut_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(container_id="c1"))
    world.attach_fails = True
    event = world.switch(PROXIED)
    assert event.enforced and event.note == "it is cut, and got no portal: Port 3128 is taken."
    assert world.done == ["freeze switch", "cut", "thaw switch"]


def test_with_its_portal_open_it_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(container_id="c1"))
    world.interfaces = ["eth0", "lo"]
    event = world.switch(PROXIED)
    assert not event.enforced and event.note == "a way out is left: eth0, lo"


def test_a_container_that_cannot_be_cut_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, box(container_id="c1"))
    world.cut_fails = True
    event = world.switch(NONE)
    assert not event.enforced and world.done == ["freeze switch"]
    other = World(monkeypatch, box(container_id="c1"))
    other.cut_fails = True
    assert not other.switch(PROXIED).enforced
    assert other.done == ["freeze switch", "detach"]  # what was made ready for a portal is taken back


@pytest.mark.parametrize("prepared", [None, box()])
def test_what_shares_the_hosts_network_is_said_so(monkeypatch: pytest.MonkeyPatch, prepared: Prepared | None) -> None:
    event = World(monkeypatch, prepared).switch(NONE)
    assert (event.enforced, event.note) == (False, SHARED)
