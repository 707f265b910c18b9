"""What stood in git's files when a session began does not ask again; a supervisor's whole judgement of it."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.policy import policy_data
from console.api.policy.policy_data import default_rules
from console.domain.agent import Agent, ProcessIdentity
from console.domain.calls.permission import PermissionRequest
from console.domain.ids import ControlLevel
from console.ledger.store import Ledger
from console.policy.git.calls import Trigger
from console.services.policy import git_memory
from console.services.policy.git_memory import GitMemory
from console.services.policy.service import PolicyDesk
from console.services.policy.session_start import SessionStart
from console.settings.places import Places, find_places
from tests.fakes.playbook import Playbook

ONE = Trigger("/w/.git/config", "core.pager = x", "core.pager=x")
TWO = replace(ONE, mark="core.pager=y")


def agent(context_id: str = "c") -> Agent:
    return Playbook().run("a", context_id=context_id).agent("a")


def test_what_is_older_than_the_session_was_there_and_is_remembered() -> None:
    memory = GitMemory(lambda _agent: 100.0)
    known = memory.of(agent())
    assert known.was_there(ONE, int(99e9)) and known.was_there(ONE, int(200e9)), "seen before its file changed"
    assert not known.was_there(TWO, int(200e9)) and not known.was_there(TWO, 0)
    assert memory.of(agent()) is known and not memory.of(agent("other")).was_there(ONE, int(200e9)), "each session for itself"


def test_a_session_that_nobody_knows_the_beginning_of() -> None:
    known = GitMemory(lambda _agent: 0.0).of(agent())
    assert not known.was_there(ONE, 1)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_memory, "SESSIONS_MAX", 2)
    monkeypatch.setattr(git_memory, "TRIGGERS_MAX", 1)
    memory = GitMemory(lambda _agent: 100.0)
    first = memory.of(agent("0"))
    for at in range(3):
        memory.of(agent(str(at)))
    assert memory.of(agent("0")) is not first
    known = memory.of(agent("0"))
    assert known.was_there(ONE, 1) and known.was_there(TWO, 1) and not known.was_there(TWO, int(200e9))


def test_when_a_session_began(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.use_context("c", "a", 50.0)
    began = SessionStart(ledger, lambda _id: None)
    assert began(agent()) == 50.0 and began(agent("none")) == 0.0
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    seen = replace(agent(), control_level=ControlLevel.OBSERVED, process=ProcessIdentity(1, 200))
    assert abs(began(seen) - booted - 2.0) < 1.0
    child = replace(seen, parent_id=seen.agent_id, process=None)
    assert SessionStart(ledger, lambda _id: seen)(child) == pytest.approx(began(seen), abs=1.0)
    assert began(replace(seen, process=None)) == 0.0
    broken: Any = SimpleNamespace(contexts=ledger.contexts)
    ledger.close()
    assert SessionStart(broken, lambda _id: None)(agent("x")) == 0.0


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = find_places(str(tmp_path / "state"), create=True)
    made.policy_file.write_bytes(default_rules())
    workspace = made.workspaces_dir / "c"
    workspace.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=workspace, check=True, timeout=60)
    with (workspace / ".git/config").open("a") as file:
        file.write('[filter "lfs"]\n\tclean = git-lfs clean\n')
    return made


def test_a_supervisor_asks_for_what_is_new_in_its_session_alone(places: Places) -> None:
    time.sleep(0.05)
    desk = PolicyDesk(places, print, policy_data.dangers, lambda _agent_id: None, known_of=GitMemory(lambda _agent, at=time.time(): at).of)  # type: ignore[misc]
    one, config = agent(), places.workspaces_dir / "c/.git/config"

    def verdict(text: str) -> str:
        return desk.judge(one, PermissionRequest("shell", text)).decision.verdict.value

    assert verdict("pwd") == "allow", "with its first call, whatever it is, the repository is looked at"
    time.sleep(0.05)
    subprocess.run(["git", "config", "user.name", "x"], cwd=config.parent, check=True, timeout=60)
    assert verdict("git status") == "allow", "git wrote its file anew"
    with config.open("a") as file:
        file.write("[core]\n\tfsmonitor = evil\n")
    found = desk.judge(one, PermissionRequest("shell", "git status"))
    assert found.decision.verdict == "ask" and "core.fsmonitor = evil" in json.dumps([part.reason for part in found.parts])
    assert verdict("git -C . log") == "ask" and verdict("ls") == "allow"
    unknown = PolicyDesk(places, print, policy_data.dangers, lambda _agent_id: None)
    assert unknown.judge(one, PermissionRequest("shell", "git log")).decision.verdict == "ask"
