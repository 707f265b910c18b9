"""What narrows an agent holds for its whole life, whatever becomes of its type's file meanwhile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId, LaunchRequest
from console.domain.conversation import Program, command_line
from console.domain.errors import ConsoleError, Unavailable
from console.domain.network import Narrowing
from console.ledger.store import Ledger
from console.services.launch import type_sources
from console.services.launch.environments import Given, _key, _text
from console.services.launch.type_sources import TypeSources
from console.settings.options import AgentOptions, Options
from tests.fakes.playbook import Playbook

ID, CHILD = AgentId("a-00000001"), AgentId("a-00000002")
NARROW = Narrowing(("inner.example",), ("*.evil.example",), (("inner.example", "/x.*"),), 5)
FILE = '{"agent_type": "coder", "web_access": {"enabled": true, "allowed_domains": ["file.example"]}}'


class Room:
    """A ledger and a folder of types."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger(folder / "ledger.db")
        (folder / "sources").mkdir()
        self.file = folder / "sources" / "coder.json"
        places: Any = SimpleNamespace(state_dir=folder)
        self.sources = TypeSources(self.ledger, places, Options(agents=AgentOptions()))

    def typed(self, agent_id: AgentId, kind: str = "coder") -> None:
        self.ledger.kv_set(_key(agent_id), _text(Given(kind, (), ())))


@pytest.fixture
def room(tmp_path: Path) -> Any:
    made = Room(tmp_path)
    yield made
    made.ledger.close()


def test_only_an_operator_starts_what_may_create_user_namespaces(room: Room) -> None:
    may = room.sources.builds_own_sandbox
    assert may(LaunchRequest(("/usr/bin/chromium", "--headless"))) and may(LaunchRequest(("./agent",), agent_type="codex"))
    assert may(LaunchRequest(command_line(Program.CLAUDE_CODE, "hi", "/opt/claude", (), talks=True), agent_type="my-reviewers"))
    assert not may(LaunchRequest(("python3", "chromium"))) and not may(LaunchRequest(("./agent",), agent_type="coder"))
    room.typed(ID)
    assert not may(LaunchRequest(("/tmp/chromium",), parent_id=ID)), "an agent names its children's programs as it likes"
    room.typed(CHILD, "codex")
    assert may(LaunchRequest(("/bin/sh",), parent_id=CHILD))


def test_it_keeps_what_it_was_started_with_when_the_file_is_gone_or_looser(room: Room) -> None:
    room.typed(ID)
    room.sources.keep(ID, NARROW)
    assert room.sources.narrowing_of(ID) == NARROW
    assert room.sources.doubts(ID) == f"sources/coder.json is gone; {ID} keeps the destinations it was started with"
    room.file.write_text(FILE)
    assert room.sources.narrowing_of(ID) == NARROW and room.sources.doubts(ID) == ""
    room.file.write_text("{")
    assert room.sources.narrowing_of(ID) == NARROW and "keeps the destinations it was started with" in room.sources.doubts(ID)


def test_nobody_without_a_narrowing_gets_one_and_none_that_was_lost_reads_as_none(room: Room) -> None:
    assert room.sources.narrowing_of(ID) is None and room.sources.doubts(ID) == ""  # it has no type
    room.typed(ID)
    room.sources.keep(ID, None)  # its type had no file
    assert room.sources.narrowing_of(ID) is None and room.sources.doubts(ID) == ""
    room.ledger.kv_set(f"narrowing.{ID}", '{"only": 1')
    assert room.sources.narrowing_of(ID) == Narrowing()


def test_of_an_agent_of_before_only_its_file_can_say_and_without_it_nothing_is_reached(room: Room) -> None:
    room.typed(ID)
    assert room.sources.narrowing_of(ID) == Narrowing() and "reaches nothing" in room.sources.doubts(ID)
    room.file.write_text(FILE)
    found = room.sources.narrowing_of(ID)
    assert found is not None and found.only == ("file.example",) and room.sources.doubts(ID) == ""
    room.file.write_text("{")
    assert room.sources.narrowing_of(ID) == Narrowing()


def test_a_narrowed_agent_whose_file_is_gone_starts_nothing_that_is_not(room: Room) -> None:
    room.typed(ID)
    room.sources.keep(ID, NARROW)
    child = LaunchRequest(("true",), parent_id=ID)
    with pytest.raises(Unavailable, match=r"coder.json is gone, and a-00000001, of that type, is narrowed by it"):
        room.sources.shape(child)
    room.file.write_text(FILE)
    found = room.sources.of(child)
    assert found is not None and found.narrowing().only == ("file.example",)
    room.file.unlink()
    room.sources.keep(ID, None)
    assert room.sources.of(child) is None


def test_a_program_that_has_a_way_to_its_model_of_its_own_is_not_narrowed_by_a_type(room: Room) -> None:
    room.typed(ID, "claude-code")
    program = LaunchRequest(command_line(Program.CLAUDE_CODE, "hi", "/opt/claude", (), talks=True), agent_type="claude-code")
    found = room.sources.destinations(program)
    assert found is not None and found.own and not found.takes_away
    room.sources.keep(ID, found)
    assert room.sources.narrowing_of(ID) == found and room.sources.doubts(ID) == ""
    child = LaunchRequest(("true",), parent_id=ID)
    assert room.sources.of(child) is None and room.sources.destinations(child) is None, "it may start others, and they have no such way"
    room.file.with_name("claude-code.json").write_text(FILE.replace("coder", "claude-code"))
    found = room.sources.destinations(program)
    assert found is not None and found.takes_away and found.only == ("file.example",) and found.own


def test_what_a_type_declares_is_read_anew_when_its_file_changed_and_only_then(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Playbook().run(ID).agent(ID)
    assert room.sources.declared_of(agent) is None and room.sources.type_of(agent) == ""
    room.typed(ID)
    monkeypatch.setattr(type_sources, "SETTLED_NS", 3_600_000_000_000)  # however long this process is kept waiting
    room.file.write_text(FILE)
    fresh = room.sources.declared_of(agent)
    assert fresh is not None and fresh.web_enabled and room.sources.declared_of(agent) is not fresh, "clocks tick: it changed just now"
    monkeypatch.setattr(type_sources, "SETTLED_NS", 0)
    first = room.sources.declared_of(agent)
    assert first == fresh and room.sources.declared_of(agent) is first, "the same object: nothing is compared"
    room.file.write_text(FILE.replace("true", "false"))
    assert (again := room.sources.declared_of(agent)) is not None and again.web_enabled is False
    room.file.write_text("{")
    with pytest.raises(ConsoleError):
        room.sources.declared_of(agent)
    room.file.unlink()
    assert room.sources.declared_of(agent) is None
