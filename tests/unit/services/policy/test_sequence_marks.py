"""The step of a sequence is on record and on disk, and the network cut, before its call goes on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId, ContextId
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import NotRecorded
from console.domain.network import NetworkMode, Sensitivity
from console.services.policy import sequence_marks
from console.services.policy.sequence_marks import Tainting, kept_lineages
from tests.fakes.playbook import Playbook

MARK = Mark("p", "s", "", "a", "c1", "a", 1.0, "read_file .env", "NONE if PROXIED")


class Desk:
    """Parts of a supervisor that write down in which order they were called."""

    def __init__(self, fails: str = "", enforced: bool | None = True) -> None:
        self.said: list[str] = []
        self.fails, self.enforced = fails, enforced
        self.events: list[e.Event] = []
        self.book = Playbook().run("a", context_id=ContextId("c1"), network_mode=NetworkMode.PROXIED)
        self.core = SimpleNamespace(state=self.book.state, post=self.post, switching={})
        ledger = SimpleNamespace(add_marks=lambda marks: self.say(f"marks {len(marks)}"), tighten_sessions=self.tighten)
        self.scribe = SimpleNamespace(record_first=lambda record: self.say(record.kind), ledger=ledger)

    def say(self, word: str) -> None:
        self.said.append(word)
        if self.fails and word.startswith(self.fails):
            raise NotRecorded("full", "")

    def tighten(self, contexts: Any, tightening: Any) -> None:
        self.say(f"tighten {contexts} {tightening.mode}")

    def post(self, event: e.Event) -> None:
        self.events.append(event)
        self.said.append(type(event).__name__)
        if isinstance(event, e.Tightened):
            self.book >> event
            if self.enforced is None:
                return  # nobody knows yet
            agent = self.book.agent("a")
            event = e.NetworkSwitched(1.0, 1.0, AgentId("a"), agent.network_mode, self.enforced, "")
            self.book >> event


async def kept(desk: Desk, *contexts: str) -> e.MarksKept:
    parts: Any = desk
    request, allow = PermissionRequest("read_file", ".env"), Decision(Verdict.ALLOW, "r", "w")
    await Tainting(parts.core, parts.scribe).keep(c.KeepMarks(AgentId("a"), "r1", request, allow, (MARK,), contexts))
    last = desk.events[-1]
    assert isinstance(last, e.MarksKept)
    return last


async def test_record_ledger_ratchet_and_only_then_the_call() -> None:
    desk = Desk()
    assert (await kept(desk, "c1")).why_not == ""
    assert desk.said == ["sequence.step", "marks 1", "tighten ('c1',) NONE", "Tightened", "MarksKept"]
    assert desk.book.agent("a").network_mode is NetworkMode.NONE


@pytest.mark.parametrize("fails", ["sequence.step", "marks", "tighten"])
async def test_a_disk_that_refuses_denies_and_the_network_is_tightened_all_the_same(fails: str) -> None:
    desk = Desk(fails)
    assert "full" in (await kept(desk, "c1")).why_not
    assert desk.book.agent("a").network_mode is NetworkMode.NONE


@pytest.mark.parametrize("before", [True, False])
async def test_a_cut_that_takes_too_long_denies(monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    """``before``: what its network was is known; else an earlier switch of it is under way too."""
    monkeypatch.setattr(sequence_marks, "SWITCH_S", 0.01)
    desk, hangs = Desk(enforced=None), asyncio.Event()
    task = asyncio.create_task(hangs.wait())
    desk.core.switching["a"] = task
    if not before:
        desk.book >> e.Tightened(1.0, 1.0, None, ("c1",), Sensitivity.CONFIDENTIAL, NetworkMode.PROXIED, "odd")
    assert desk.book.agent("a").network_enforced is before
    assert "could not be cut" in (await kept(desk, "c1")).why_not
    hangs.set()
    await task


async def test_a_network_that_could_not_be_cut_denies() -> None:
    assert "could not be cut" in (await kept(Desk(enforced=False), "c1")).why_not


def test_what_was_kept_is_read_with_its_links() -> None:
    ledger: Any = SimpleNamespace(marks=lambda: [MARK], lineage_links=lambda: [("a", "c1", ""), ("a", "c1", ""), ("o", "s", "/w")])
    assert kept_lineages(ledger) == ((MARK,), (("tree:a", "session:c1"), ("tree:o", "session:s", "folder:/w")))
