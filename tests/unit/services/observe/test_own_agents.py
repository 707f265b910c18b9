"""Whose process it is: by cgroup, container and parent, never by what a process says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentState, ProcessIdentity, SandboxKind
from console.services.observe.own_agents import OwnAgents, workspaces_with_transcripts
from console.sources.processes import ProcessTable
from tests.fakes.playbook import Playbook
from tests.fakes.proc import FakeProc

BOX = "ab" * 32


@pytest.fixture
def book() -> Playbook:
    return Playbook().run("a-1", context_id="ctx-1")


def own(book: Playbook, tmp_path: Path) -> OwnAgents:
    places: Any = SimpleNamespace(instance_id="0a0a0a0a", workspaces_dir=tmp_path / "workspaces")
    made = OwnAgents(places, ProcessTable(tmp_path / "proc"))
    made.update(book.state)
    return made


@pytest.mark.parametrize(
    ("cgroup", "whose"),
    [
        ("0::/watchfloor-0a0a0a0a/agents/a-1-12345678\n", "a-1"),
        ("0::/user.slice/watchfloor-0a0a0a0a/agents/a-1-12345678/deeper\n", "a-1"),
        ("4:memory:/x\n0::/watchfloor-0a0a0a0a/agents/b-2-12345678/watchfloor-0a0a0a0a/agents/a-1-12345678\n", "b-2"),
        ("0::/watchfloor-0b0b0b0b/agents/a-1-12345678\n", ""),
        ("0::/watchfloor-0a0a0a0a/control/a-1-12345678\n", ""),
        ("0::/watchfloor-0a0a0a0a/agents/a-1\n", ""),
    ],
)
def test_the_outermost_leaf_says_whose(book: Playbook, tmp_path: Path, cgroup: str, whose: str) -> None:
    FakeProc(tmp_path / "proc")
    assert own(book, tmp_path).of(50, cgroup) == whose


def test_a_container_of_ours_and_a_parent_of_ours_say_it_too_and_a_reused_number_does_not(book: Playbook, tmp_path: Path) -> None:
    proc = FakeProc(tmp_path / "proc")
    for pid, parent in ((40, 1), (41, 40), (42, 41)):
        with (proc.add(pid, start=7) / "status").open("a") as status:
            status.write(f"PPid:\t{parent}\n")
    book.state.put(replace(book.agent("a-1"), process=ProcessIdentity(40, 7), container_id=BOX))
    found = own(book, tmp_path)
    assert found.of(99, f"0::/docker/{BOX}\n") == "a-1" and found.of(99, f"0::/docker/{'cd' * 32}\n") == ""
    assert found.of(42, "0::/\n") == "a-1"
    book.state.put(replace(book.agent("a-1"), process=ProcessIdentity(40, 8)))
    assert own(book, tmp_path).of(42, "0::/\n") == ""


def test_homes_are_the_workspaces_of_those_who_live(book: Playbook, tmp_path: Path) -> None:
    FakeProc(tmp_path / "proc")
    book.run("a-2", context_id="ctx-1")
    book.state.put(replace(book.agent("a-2"), sandbox=SandboxKind.GVISOR))
    (home,) = own(book, tmp_path).homes()
    assert (home.path.name, home.agents, home.hidden) == ("ctx-1", ("a-1", "a-2"), True)
    for agent_id in ("a-1", "a-2"):
        book.state.put(replace(book.agent(agent_id), state=AgentState.ENDED))
    assert own(book, tmp_path).homes() == []


def test_only_workspaces_with_transcripts_are_read_and_no_link_leads_out_of_one(tmp_path: Path) -> None:
    (tmp_path / "outside" / ".claude").mkdir(parents=True)
    for name in ("one", "two", "three"):
        (tmp_path / "ws" / name).mkdir(parents=True)
    (tmp_path / "ws" / "one" / ".claude").mkdir()
    (tmp_path / "ws" / "two" / ".claude").symlink_to(tmp_path / "outside" / ".claude")
    (tmp_path / "ws" / "three" / ".watchfloor" / "codex").mkdir(parents=True)
    assert workspaces_with_transcripts(tmp_path / "ws") == [tmp_path / "ws" / "one", tmp_path / "ws" / "three"]
    assert workspaces_with_transcripts(tmp_path / "nothing") == []
