"""Sources look each in their own time: what hangs or breaks is said, and the others go on."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId, Sighting, SourceReport
from console.domain.budget import Usage
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.enforcement.engine import Engine
from console.services.fleet.meters import Meters
from console.services.observe import scheduler
from console.services.observe.scheduler import Lookout
from console.sources import folder_watch
from console.sources.interface import GONE, Source
from console.sources.kinds import VENDORS
from console.sources.otlp import source as otlp
from console.sources.otlp.source import OtlpSource
from console.sources.plain_processes import ProcessSource
from console.sources.programs import Programs
from console.sources.spend.rates import RateBook
from tests.fakes.instance import free_port
from tests.fakes.playbook import Playbook


class Fake:
    """A source that does as it is told."""

    can_see, can_stop = "what it sees", "what it stops"

    def __init__(self, name: str, act: Callable[[], str] = lambda: "", folder: Path | None = None) -> None:
        self.name, self._act, self._folder, self.looks = name, act, folder, 0

    def folders(self) -> list[Path]:
        return [self._folder] if self._folder is not None else []

    def look(self) -> SourceReport:
        self.looks += 1
        words = self._act()
        return SourceReport(self.name, not words, words or "Looks here.")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks ten times as often as in life."""
    monkeypatch.setattr(scheduler, "PERIOD_S", 0.1)
    monkeypatch.setattr(scheduler, "LONGEST_S", 0.5)


class Room:
    """A lookout over fake sources, with what it said."""

    def __init__(self, *sources: Source, spend: Any = None) -> None:
        self.said: list[str] = []
        self.recorded: list[Record] = []
        self.spent: list[float] = []
        self.meters = Meters()
        self.engine = Engine()
        core = SimpleNamespace(state=self.engine.state, meters=self.meters, post=self.engine.step)
        own = SimpleNamespace(update=lambda _state: None)
        parts: Any = SimpleNamespace(
            scribe=SimpleNamespace(record=self.recorded.append, spend=lambda _id, _root, _at, usd, _tokens: self.spent.append(usd)),
            sources=sources,
            core=core,
            spend=spend,
            own_agents=own,
            notice=lambda words, level="amber": self.said.append(words),
        )
        self.lookout = Lookout(parts.core, parts.scribe, parts.sources, parts.spend, parts.own_agents, parts.notice)

    def run(self, *enough: Callable[[], object]) -> None:
        """Until every one of these is so."""

        async def story() -> None:
            task = asyncio.create_task(self.lookout.run())
            end = time.monotonic() + 60
            while not all(one() for one in enough) and not task.done():
                assert time.monotonic() < end
                await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(story())

    def view(self, name: str) -> Any:
        return next((one for one in self.lookout.views() if one.source == name), None)


def test_a_source_that_breaks_says_why_and_the_others_go_on() -> None:
    def broken() -> str:
        raise ValueError("an odd file")

    good, bad = Fake("good"), Fake("bad", broken)
    room = Room(good, bad)
    room.run(lambda: good.looks > 2, lambda: bad.looks > 1)
    view = room.view("bad")
    assert (view.available, view.state) == (False, "broken") and "ValueError: an odd file" in view.reason
    assert room.view("good").available and any("Source bad can see nothing" in words for words in room.said)


def test_a_source_that_hangs_is_said_to_be_silent_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "SILENT_S", 0.2)
    answer = threading.Event()

    def hang() -> str:
        answer.wait(60)
        return ""

    good, slow = Fake("good"), Fake("slow", hang)
    room = Room(good, slow)
    silent: list[str] = []

    def is_silent() -> bool:
        view = room.view("slow")
        if view is not None and view.state == "silent" and good.looks > 2:
            silent.append(view.reason)
            answer.set()
        return bool(silent)

    room.run(is_silent, lambda: slow.looks > 1)
    assert "has not answered for" in silent[0] and "Source slow sees again." in room.said


def test_a_change_makes_it_look_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "PERIOD_S", 3600.0)
    monkeypatch.setattr(scheduler, "LONGEST_S", 3600.0)
    one = Fake("one", folder=tmp_path)
    room = Room(one)
    at: list[int] = []

    def watched() -> bool:
        view = room.view("one")
        if view is not None and view.state == "watching" and not at and one.looks:
            at.append(one.looks)
            (tmp_path / "1.json").write_text("{}")
        return bool(at) and one.looks > at[0]

    room.run(watched)
    assert "seen immediately" in room.view("one").watching and room.view("one").looks_in == [str(tmp_path)]


def test_transcripts_that_change_go_to_whoever_sums_them_and_secrets_wake_nobody() -> None:
    changed: list[str] = []
    looks: list[str] = []
    spend: Any = SimpleNamespace(changed=changed.extend, look_soon=lambda: looks.append("soon"))
    room = Room(spend=spend)

    async def woken_by(*paths: str) -> bool:
        one = scheduler._Watched(Fake("claude_code"))
        room.lookout._changed(asyncio.get_running_loop(), one, frozenset(paths))
        await asyncio.sleep(0)
        return one.woken.is_set()

    assert not asyncio.run(woken_by("/h/sessions/1.aa.key"))
    assert not asyncio.run(woken_by("/h/p/s.jsonl")) and changed == ["/h/p/s.jsonl"] and not looks
    assert asyncio.run(woken_by("/h/sessions/1.json")) and asyncio.run(woken_by()) and asyncio.run(woken_by("/h/p/session"))
    assert looks == ["soon"], "a watch that begins anew has not told of what happened before"


def test_what_is_switched_off_is_named_with_how_to_switch_it_on() -> None:
    room = Room(OtlpSource(RateBook(VENDORS)))
    room.run(lambda: room.view("otlp") is not None and room.view("otlp").looked_at)
    view = room.view("otlp")
    assert view.state == "absent" and not view.available and view.reason.startswith("Not available, because")


def test_a_port_that_is_taken_is_said_and_tried_again_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "AGAIN_S", 0.05)
    port = free_port()
    taken = socket.create_server(("127.0.0.1", port))
    good, told = Fake("good"), OtlpSource(RateBook(VENDORS), port)
    room = Room(good, told)
    broken: list[str] = []

    def is_broken() -> bool:
        view = room.view("otlp")
        if view is not None and view.state == "broken" and good.looks > 1 and not broken:
            broken.append(view.reason)
            assert not view.available and room.view("good").available
            taken.close()
        return bool(broken)

    room.run(is_broken, lambda: room.view("otlp").available)
    assert f"127.0.0.1:{port} could not be listened on: Address already in use" in broken[0]
    assert any("Source otlp can see nothing" in words for words in room.said)
    assert "Source otlp sees again." in room.said and room.view("otlp").state == "listening"
    assert "Listens on http://127.0.0.1" in room.view("otlp").reason
    with pytest.raises(OSError):  # it listens as long as the lookout runs, and no longer
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_what_telemetry_sent_that_was_not_taken_is_recorded_each_kind_once_a_minute() -> None:
    source = OtlpSource(RateBook(VENDORS))
    room = Room(source)
    for n in range(3):
        source.book.refuse("a negative figure", f"session {n}")
    room.lookout._record_refusals(source)
    source.book.refuse("a negative figure", "session 9")
    room.lookout._record_refusals(source)
    (record,) = room.recorded
    assert record.kind == "telemetry.refused" and record.what == "refused 3 times: a negative figure (session 2)"


def test_what_telemetry_alone_tells_burns_in_no_sum() -> None:
    room = Room()
    for cost in (1.0, 3.0):
        one = Sighting("otlp", "s", "n", None, "s", "", 1.0, usage=Usage(cost_usd=cost), status="unverified")
        room.lookout.take((SourceReport("otlp", True, "", (one,)),))
    (agent,) = room.engine.state.agents.values()
    assert agent.usage.cost_usd == 3.0 and room.meters.by_agent == {}


def test_what_an_agent_of_ours_used_last_counts_today_though_it_has_ended() -> None:
    room = Room()
    book = Playbook().run("a")
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    room.engine.state.put(book.agent("a"))
    room.engine.state.ended_parts[AgentId("a")] = ()
    for cost in (1.0, 3.0):
        one = Sighting("gemini", "k", "n", None, "s", "", 1.0, usage=Usage(cost_usd=cost), status=GONE, agent_id="a")
        room.lookout.take((SourceReport("gemini", True, "", (one,)),))
    assert room.meters.spent_today(time.time()) == pytest.approx(3.0) and room.spent == [1.0, 2.0]


def test_what_a_sub_agent_used_counts_once_with_the_agent_that_it_runs_in() -> None:
    room, book = Room(), Playbook().run("a")
    room.engine.state.put(book.agent("a"))
    room.engine.state.live.add(AgentId("a"))
    for part in (0.0, 1.0, 2.0):
        own = Sighting("claude_code", "k", "n", None, "s", "", 1.0, usage=Usage(cost_usd=2.0), agent_id="a")
        sub = Sighting("claude_code", "k2", "n", None, "s", "", 1.0, usage=Usage(cost_usd=part), agent_id="a", parent_key="k", part="p")
        room.lookout.take((SourceReport("claude_code", True, "", (own, sub)),))
    assert sorted(agent.usage.cost_usd for agent in room.engine.state.agents.values()) == [2.0, 4.0]
    assert room.spent == [1.0, 1.0] and room.meters.spent_today(time.time()) == 2.0 and AgentId("a") in room.meters.by_agent


def test_while_nobody_looks_nothing_that_was_said_is_said_on() -> None:
    """A lookout that broke is begun again a second later: until then its port is closed."""
    room = Room(Fake("a"), OtlpSource(RateBook(VENDORS), free_port()))

    def breaks() -> bool:
        if is_there := [view.available for view in room.lookout.views()] == [True, True]:
            room.lookout._own_agents.update = lambda _state: [][1]  # type: ignore[method-assign, assignment]
        return is_there

    room.run(breaks, lambda: False)
    views = room.lookout.views()
    assert [(view.available, view.state) for view in views] == [(False, "broken"), (False, "broken")]
    assert all("starts again" in view.reason for view in views)


class Walk(ProcessSource):
    """The look at processes, which says whether a known program runs."""

    def __init__(self) -> None:
        super().__init__(Programs(()), ())
        self.runs = False

    def look(self) -> SourceReport:
        return SourceReport(self.name, True, "Looks here.")


def test_while_no_known_program_runs_who_shows_nothing_rests_and_the_first_one_wakes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "LONGEST_S", 3600.0)
    walk, one = Walk(), Fake("one")
    room = Room(walk, one)
    at: list[int] = []

    async def story() -> None:
        task = asyncio.create_task(room.lookout.run())
        while one.looks < 1 or not room.lookout._all[1].watch or not room.lookout._all[1].watch.tells:
            await asyncio.sleep(0.02)
        await asyncio.sleep(2.0)
        at.append(one.looks)
        await asyncio.sleep(1.0)
        assert one.looks == at[0], "it rests"
        walk.runs = True
        end = time.monotonic() + 60
        while one.looks < at[0] + 3:
            assert time.monotonic() < end
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())


def test_where_nobody_tells_of_changes_it_looks_on_though_no_known_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "LONGEST_S", 3600.0)

    def refuse(*_: object) -> None:
        raise OSError(28, "OS file watch limit reached")

    monkeypatch.setattr(folder_watch, "RustNotify", refuse)
    walk, one = Walk(), Fake("one", folder=Path("/"))
    Room(walk, one).run(lambda: one.looks > 20)
