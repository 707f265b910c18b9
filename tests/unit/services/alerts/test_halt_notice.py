"""The owner's file: nothing in a session's folder is followed or overwritten, whatever its agent put there."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

from console.domain.agent import Agent, AgentId, ContextId, ProcessIdentity, SandboxKind
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.sandbox.processes import start_ticks
from console.services.alerts.halt_notice import leave_notes
from console.services.alerts.owner_notes import open_for_owner

AGENT = Agent(
    agent_id=AgentId("a-1"),
    name="\x1b]0;owned\x07\u202e../../etc",
    parent_id=None,
    root_id=AgentId("a-1"),
    depth=1,
    context_id=ContextId("c-1"),
    control_level=ControlLevel.MANAGED,
    sandbox=SandboxKind.NONE,
    started_at=0.0,
)
WHY = "session limit cost_usd: 2 of 1 (\x1b[2J)"


def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "ws" / "c-1").mkdir(parents=True)
    return tmp_path / "out", tmp_path / "ws"


def test_both_files_say_why_in_characters_that_can_be_seen(tmp_path: Path) -> None:
    out, ws = places(tmp_path)
    assert leave_notes(out, ws, [AGENT], 1000.0, WHY) == ""
    for file in (out / "HALTED-a-1.txt", ws / "c-1" / "output" / "HALTED-a-1.txt"):
        text = file.read_text()
        assert "session limit cost_usd: 2 of 1" in text and "budget set" in text
        assert all(x.isascii() and (x.isprintable() or x == "\n") for x in text)
    assert (out / "HALTED-a-1.txt").stat().st_mode & 0o777 == 0o600


def test_who_was_adopted_is_not_sent_to_a_verb_that_would_refuse(tmp_path: Path) -> None:
    out, ws = places(tmp_path)
    leave_notes(out, ws, [AGENT, replace(AGENT, agent_id=AgentId("a-2"), argv=("sleep", "9"))], 1000.0, WHY)
    assert "run --again" not in (out / "HALTED-a-1.txt").read_text() and "adopted" in (out / "HALTED-a-1.txt").read_text()
    assert "watchfloor run --again a-2" in (out / "HALTED-a-2.txt").read_text()


def test_a_second_halt_overwrites_nothing(tmp_path: Path) -> None:
    out, ws = places(tmp_path)
    leave_notes(out, ws, [AGENT], 1000.0, "first")
    leave_notes(out, ws, [AGENT], 1001.0, "second")
    assert "first" in (out / "HALTED-a-1.txt").read_text() and "second" in (out / "HALTED-a-1-1.txt").read_text()


def test_links_and_pipes_of_the_agents_lead_nowhere(tmp_path: Path) -> None:
    out, ws = places(tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (ws / "c-1" / "output").mkdir()
    (ws / "c-1" / "output" / "HALTED-a-1.txt").symlink_to(precious)
    os.mkfifo(ws / "c-1" / "output" / "HALTED-a-1-1.txt")
    assert leave_notes(out, ws, [AGENT], 1000.0, WHY) == ""
    assert precious.read_text() == "kept" and (ws / "c-1" / "output" / "HALTED-a-1-2.txt").is_file()


def test_a_folder_that_is_a_link_is_not_entered_and_that_is_said(tmp_path: Path) -> None:
    out, ws = places(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (ws / "c-1" / "output").symlink_to(tmp_path / "elsewhere")
    assert "a-1" in leave_notes(out, ws, [AGENT], 1000.0, WHY)
    assert list((tmp_path / "elsewhere").iterdir()) == [] and (out / "HALTED-a-1.txt").is_file()
    (ws / "c-2").symlink_to(tmp_path / "elsewhere")
    assert leave_notes(out, ws, [replace(AGENT, context_id=ContextId("c-2"))], 1000.0, WHY)
    assert leave_notes(out, ws, [replace(AGENT, context_id=ContextId("../elsewhere"))], 1000.0, WHY)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_names_without_end_are_given_up(tmp_path: Path) -> None:
    out, ws = places(tmp_path)
    (ws / "c-1" / "output").mkdir()
    for name in ("", *(f"-{n}" for n in range(1, 20))):
        (ws / "c-1" / "output" / f"HALTED-a-1{name}.txt").mkdir()
    assert "many times" in leave_notes(out, ws, [AGENT], 1000.0, WHY)


def test_of_an_adopted_one_it_lies_in_the_folder_of_its_account_and_nowhere_is_said(tmp_path: Path) -> None:
    out, ws = places(tmp_path)
    adopted = replace(AGENT, control_level=ControlLevel.ADOPTED)
    assert "no folder that its owner could read" in leave_notes(out, ws, [adopted], 1000.0, WHY)
    me = ProcessIdentity(os.getpid(), start_ticks(os.getpid()))
    with contextlib.suppress(ConsoleError):  # pytest's own folders are closed to others
        open_for_owner(tmp_path, adopted.agent_id, me, os.geteuid(), "operator:0")
    leave_notes(out, ws, [adopted], 1000.0, WHY)
    assert "cost_usd: 2 of 1" in (tmp_path / "halts" / str(os.geteuid()) / "HALTED-a-1.txt").read_text()
    assert list((ws / "c-1").iterdir()) == [] and len(list(out.iterdir())) == 2, "nothing is written into folders of its own"
