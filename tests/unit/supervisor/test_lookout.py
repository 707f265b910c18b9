"""Sources look each in their own time: what hangs or breaks is said, and the others go on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import SourceReport
from console.enforcement.engine import Engine
from console.supervisor import lookout
from console.supervisor.lookout import Lookout
from console.supervisor.meters import Meters


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


class Room:
    """A lookout over fake sources, with what it said."""

    def __init__(self, *sources: Fake, spend: Any = None) -> None:
        self.said: list[str] = []
        self.engine = Engine()
        core = SimpleNamespace(state=self.engine.state, meters=Meters(), post=self.engine.step)
        own = SimpleNamespace(update=lambda _state: None)
        parts: Any = SimpleNamespace(
            sources=sources, core=core, spend=spend, own_agents=own, notice=lambda words, level="amber": self.said.append(words)
        )
        self.lookout = Lookout(parts)

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
    monkeypatch.setattr(lookout, "SILENT_S", 0.2)
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
    monkeypatch.setattr(lookout, "PERIOD_S", 3600.0)
    monkeypatch.setattr(lookout, "LONGEST_S", 3600.0)
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
    assert "seen at once" in room.view("one").watching and room.view("one").looks_in == [str(tmp_path)]


def test_transcripts_that_change_go_to_whoever_sums_them_and_secrets_wake_nobody() -> None:
    changed: list[str] = []
    spend: Any = SimpleNamespace(changed=changed.extend)
    room = Room(spend=spend)

    async def woken_by(*paths: str) -> bool:
        one = lookout._Watched(Fake("claude_code"))
        room.lookout._changed(asyncio.get_running_loop(), one, frozenset(paths))
        await asyncio.sleep(0)
        return one.woken.is_set()

    assert not asyncio.run(woken_by("/h/sessions/1.aa.key"))
    assert not asyncio.run(woken_by("/h/p/s.jsonl")) and changed == ["/h/p/s.jsonl"]
    assert asyncio.run(woken_by("/h/sessions/1.json")) and asyncio.run(woken_by()) and asyncio.run(woken_by("/h/p/session"))


def test_what_is_not_there_is_named_with_why() -> None:
    view = Room().view("otlp")
    assert view.state == "absent" and not view.available and view.reason.startswith("Not available, because")
