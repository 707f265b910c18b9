"""The folder of an agent that is only seen, by its process alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import Agent, AgentId, ProcessIdentity
from console.domain.ids import ControlLevel
from console.killswitch.kernel import processes
from console.services.policy.service import NOWHERE, working_folder
from tests.fakes.playbook import Playbook


def nobody(_agent_id: AgentId) -> Agent | None:
    return None


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[Agent]:
    """It works in ``project``, whatever its transcript says."""
    (tmp_path / "project").mkdir()
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path / "project") as child:
        me = ProcessIdentity(child.pid, processes.start_ticks(child.pid) or 0)
        yield replace(Playbook().run("seen").agent("seen"), process=me, control_level=ControlLevel.OBSERVED, cwd="/home")
        child.kill()


def test_it_is_the_processes_own_and_not_what_a_transcript_says(seen: Agent, tmp_path: Path) -> None:
    assert working_folder(seen, nobody) == tmp_path / "project"
    assert seen.process is not None
    assert working_folder(replace(seen, process=ProcessIdentity(seen.process.pid, 1)), nobody) == NOWHERE  # the pid is another's by now
    assert working_folder(replace(seen, process=None), nobody) == NOWHERE


def test_a_sub_agent_works_where_its_program_does(seen: Agent, tmp_path: Path) -> None:
    part = replace(seen, agent_id=AgentId("part"), parent_id=seen.agent_id, process=None)
    assert working_folder(part, {seen.agent_id: seen}.get) == tmp_path / "project"
    loop = replace(part, parent_id=part.agent_id)
    assert working_folder(loop, {part.agent_id: loop}.get) == NOWHERE


def test_a_folder_that_is_gone_or_holds_everything_is_none(seen: Agent, tmp_path: Path) -> None:
    (tmp_path / "project").rmdir()
    assert working_folder(seen, nobody) == NOWHERE
    with subprocess.Popen(["sleep", "60"], cwd="/") as child:
        at_the_root = replace(seen, process=ProcessIdentity(child.pid, processes.start_ticks(child.pid) or 0))
        assert working_folder(at_the_root, nobody) == NOWHERE
        child.kill()


def test_a_folder_of_another_mount_namespace_is_none_of_ours(seen: Agent, tmp_path: Path) -> None:
    with subprocess.Popen(
        ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount", "sh", "-c", "echo in; exec sleep 60"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"in\n"
        elsewhere = replace(seen, process=ProcessIdentity(child.pid, processes.start_ticks(child.pid) or 0))
        assert working_folder(elsewhere, nobody) == NOWHERE
        child.kill()
