"""Somebody's own Claude Code, which Watchfloor did not start: it appears with its sub-agents, its cost rises, and what it left is stale."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.messages import AgentView
from tests.fakes.instance import Instance, until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene
from tests.fakes.real_programs import peers_of, start_claude

ANSWER_USD = 0.0100998
later, last = threading.Event(), threading.Event()
SCENES = (
    Scene(
        "MAINTASK",
        Reply("", (Call("Agent", {"description": "count files", "prompt": "SUBTASK", "subagent_type": "general-purpose"}),)),
        Reply("", (Call("Bash", {"command": "echo working", "description": "work"}),), after=later),
        Reply("All done.", after=last),
        Reply("Still done."),
    ),
    Scene("SUBTASK", Reply("", (Call("Bash", {"command": "ls | wc -l", "description": "count"}),)), Reply("None.", after=last)),
)


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


def seen(it: Instance) -> list[AgentView]:
    return sorted((a for a in it.api.fleet().agents if a.control_level == "observed"), key=lambda a: a.depth)


def test_a_real_session_appears_with_its_sub_agent_costs_more_and_more_and_leaves_a_stale_record(state_dir: Path, home: Path) -> None:
    session: subprocess.Popen[bytes] | None = None
    with ModelServer(*SCENES) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        try:
            session = start_claude(home, model.url, "MAINTASK please", "--permission-mode", "bypassPermissions")
            until(lambda: len(seen(it)) == 2, words=lambda: f"the session and its sub-agent: {(home / 'said').read_text()[-2000:]}")
            root, sub = seen(it)
            assert (root.pid, sub.pid, sub.parent_id, sub.name) == (session.pid, None, root.id, "count files")
            until(lambda: [round((a.cost_usd or 0.0) / ANSWER_USD) for a in seen(it)] == [1, 1], words="an answer of each has its price")
            later.set()
            until(lambda: it.agent(root.id).cost_usd == pytest.approx(2 * ANSWER_USD, abs=1e-6), words="its cost rises while it runs")
            assert peers_of(session.pid) <= {("127.0.0.1", model.port)}
            records = home / ".claude" / "sessions"
            assert [p.name for p in records.glob("*.json")] == [f"{session.pid}.json"]
            session.send_signal(signal.SIGKILL)  # our own: it cannot tidy up
            session.wait()
            until(lambda: any(f"process {session.pid} is gone" in s.reason for s in it.api.status().sources), words="its record is stale")
            until(lambda: not [a for a in seen(it) if a.ended_at is None], words="nobody of it is shown as living")
            assert (records / f"{session.pid}.json").exists()
        finally:
            last.set()
            if session is not None and session.poll() is None:
                os.killpg(session.pid, signal.SIGKILL)  # a session and group of its own
                session.wait()
    model.check()
