"""Before an un-kill everything that may know of something alive is asked; silence of any of them keeps it killed, in words."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.kill import Receipt, Step, StepName, StepStatus
from console.killswitch.guard.unlatch import LOOKED, find_doubts
from console.killswitch.helpers import passphrase, unlock
from console.killswitch.kernel import processes
from console.killswitch.kernel.engine import EngineSilent, Running
from console.killswitch.kernel.processes import Marked
from console.killswitch.kill.receipt import receipt_bytes
from tests.fakes.guard_room import Room, fill


class ListEngine:
    """Says what runs, or nothing at all."""

    path = Path("/nowhere")

    def __init__(self) -> None:
        self.lists: list[Running] | None = []

    def running(self) -> list[Running]:
        if self.lists is None:
            raise EngineSilent("no answer in time")
        return self.lists


@pytest.fixture
def lost(make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch) -> Room:
    """A guard whose registry was lost, with the leaf of one agent that has ended; it reads as killed."""
    monkeypatch.setattr(passphrase, "N", 2**10)
    room = make_room()
    room.agent("one", populated=0)
    room.guard.registry.save()
    room.guard.registry.path.unlink()
    room.start()
    room.run_threads()
    assert room.guard.latch.state.latched and room.guard.registry.incomplete
    assert room.guard.registry.held["one"].doubt
    return room


def release(room: Room) -> dict[str, Any]:
    state = room.guard.latch.state
    return room.unlatch(state.generation, list(state.kills))


def test_after_a_lost_registry_a_look_that_finds_nobody_is_what_opens_and_it_is_said(lost: Room) -> None:
    assert lost.ask("doubts") == {"ok": True, "doubts": [], "incomplete": lost.guard.registry.incomplete}
    assert lost.guard.registry.held["one"].doubt == ""  # a press can prove it from now on
    answer = release(lost)
    assert answer["ok"] and LOOKED in answer["note"] and not lost.guard.latch.state.latched


def marked(*pids: int) -> Callable[..., Iterator[Marked]]:
    return lambda *_: iter([Marked(pid, processes.start_ticks(pid) or 0, "gone") for pid in pids])


@pytest.mark.parametrize("what", ["a leaf of nobody", "a container", "a silent engine", "a marked process", "a hidden process"])
def test_whatever_may_run_keeps_it_killed_in_words(
    lost: Room, what: str, monkeypatch: pytest.MonkeyPatch, sleeper: tuple[int, int]
) -> None:
    room, engine = lost, ListEngine()
    room.guard.engine = engine  # type: ignore[assignment]
    monkeypatch.setattr(unlock, "Engine", lambda *_: engine)
    assert room.tree is not None
    match what:
        case "a leaf of nobody":
            fill(room.tree.agents.path, populated=1)
        case "a container":
            engine.lists = [Running("ab" * 32, "box")]
        case "a silent engine":
            engine.lists, room.guard.registry.containers_ever = None, True
        case "a marked process":
            monkeypatch.setattr(processes, "find_marked", marked(sleeper[0]))
        case _:

            def closed(*_: object) -> Iterator[Marked]:
                yield from ()
                raise OSError(errno.EMFILE, "Too many open files")

            monkeypatch.setattr(processes, "find_marked", closed)
    words = room.ask("doubts")["doubts"]
    assert len(words) == 1
    named = {
        "a container": "abababababab of box",
        "a marked process": f"pid {sleeper[0]}",
        "a silent engine": "Start it",
        "a hidden process": "Too many",
    }
    assert named.get(what, "none that is registered") in words[0]
    assert room.guard.registry.held["one"].doubt  # nothing is cleared up by half a look
    refused = release(room)
    assert refused["kind"] == "Conflict" and refused["error"] == words[0]
    assert room.guard.latch.state.latched and "unlatch" not in room.journal()


def test_an_engine_that_never_had_a_container_of_ours_may_be_silent(lost: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ListEngine()
    engine.lists = None
    lost.guard.engine = engine  # type: ignore[assignment]
    monkeypatch.setattr(unlock, "Engine", lambda *_: engine)
    lost.guard.registry.containers_ever = False
    assert find_doubts(lost.guard) == []


def test_an_engine_that_nobody_asks_any_more_is_named(lost: Room) -> None:
    lost.guard.registry.containers_ever, lost.guard.registry.engine_socket = True, "/run/engine.sock"
    assert "/run/engine.sock" in find_doubts(lost.guard)[0]


def test_after_a_kill_with_a_receipt_a_shell_with_a_copied_environment_is_no_doubt(
    room: Room, monkeypatch: pytest.MonkeyPatch, sleeper: tuple[int, int]
) -> None:
    monkeypatch.setattr(processes, "find_marked", marked(sleeper[0]))
    room.guard.press("all", "why", "who")
    room.run_threads()
    assert find_doubts(room.guard) == []  # its second look has listed it


def test_the_guard_and_the_supervisor_are_nobodys_agents(lost: Room, monkeypatch: pytest.MonkeyPatch, sleeper: tuple[int, int]) -> None:
    monkeypatch.setattr(processes, "find_marked", marked(sleeper[0]))
    assert find_doubts(lost.guard)
    lost.guard.supervisor_pid = sleeper[0]
    assert find_doubts(lost.guard) == []


def test_a_lost_latch_is_looked_at_as_well(
    make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch, sleeper: tuple[int, int]
) -> None:
    room = make_room()
    room.guard.press("all", "why", "who")
    room.run_threads()
    room.guard.latch.path.write_text("{}")
    room.start()
    room.run_threads()
    assert room.guard.latch.state.kills == ("latch-unreadable",) and not room.guard.registry.incomplete
    monkeypatch.setattr(processes, "find_marked", marked(sleeper[0]))
    assert "marks" in find_doubts(room.guard)[0]


@pytest.mark.parametrize("status", [StepStatus.OK, StepStatus.UNKNOWN, None])
def test_marked_processes_are_looked_for_unless_a_receipt_says_that_a_second_look_did(
    make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch, sleeper: tuple[int, int], status: StepStatus | None
) -> None:
    room = make_room()
    room.start()
    kill_id = "20260101-000000-aaaaaaaa"
    room.guard.latch.press(kill_id, "why")
    if status is not None:
        steps = (Step(StepName.SECOND_LOOK, status, 1.0),)
        folder = room.guard.config.guard_dir / "receipts"
        folder.mkdir(exist_ok=True)
        (folder / f"{kill_id}.json").write_bytes(receipt_bytes(Receipt(kill_id, "i", "all", "r", "b", 1.0, complete=True, steps=steps)))
    monkeypatch.setattr(processes, "find_marked", marked(sleeper[0]))
    assert bool(find_doubts(room.guard)) is (status is not StepStatus.OK)
