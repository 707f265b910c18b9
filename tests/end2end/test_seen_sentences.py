"""A session appears by itself, its sub-agents below it, its cost rises; what breaks is said; a secret beside it is never opened."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.budgets import BudgetBody
from console.api.messages import AgentView, SourceView
from tests.fakes.in_time import code_in_time
from tests.fakes.instance import Instance, until

DATA = Path(__file__).parents[1] / "data" / "claude-code" / "projects-tree"
SESSION = "ca2200bd-a045-4b6c-a82c-3a0d8505a41a"


def start_ticks(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


class Home:
    """The home of somebody who uses Claude Code, and their programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = folder / ".claude" / "sessions"
        self.project = folder / ".claude" / "projects" / "-home-dev-proj"
        self.program = folder / "claude"
        shutil.copy("/bin/sleep", self.program)
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, session: str = SESSION, **changes: object) -> int:
        """A session that runs, as its program writes it down."""
        process = subprocess.Popen([str(self.program), "600"])
        self.running.append(process)
        self.sessions.mkdir(parents=True, exist_ok=True)
        body = {"pid": process.pid, "sessionId": session, "cwd": "/home/dev/proj", "procStart": start_ticks(process.pid), "status": "busy"}
        (self.sessions / f"{process.pid}.json").write_text(json.dumps(body | {"name": "my session"} | changes))
        return process.pid

    def write(self) -> Path:
        """What the real program wrote: a session and one sub-agent, still at work."""
        self.project.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(DATA / "-home-dev-proj", self.project)
        for file in self.project.rglob("*"):
            file.chmod(0o755 if file.is_dir() else 0o644)
        (note,) = self.project.rglob("*.meta.json")
        note.write_text(json.dumps(json.loads(note.read_text()) | {"finished": False}))
        return note

    def say(self, answer_id: str) -> None:
        """One more answer of the session's."""
        real = self.project / f"{SESSION}.jsonl"
        line = next(line for line in real.read_text().splitlines() if "msg_fake0007" in line)
        with real.open("a") as file:
            file.write(line.replace("msg_fake0007", answer_id) + "\n")

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder)


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home(Path(tempfile.mkdtemp()))
    yield made
    made.end()


def seen(it: Instance) -> list[AgentView]:
    return [a for a in it.api.fleet().agents if a.ended_at is None and a.seen_by]


def source(it: Instance, name: str) -> SourceView:
    return next(one for one in it.api.status().sources if one.source == name)


def test_a_session_appears_without_set_up_its_sub_agent_below_it_and_its_cost_rises(state_dir: Path, home: Home) -> None:
    with Instance(state_dir, "--discover-root", str(home.folder)) as it:
        until(lambda: source(it, "claude_code").looked_at)
        assert seen(it) == []
        (home.folder / ".claude" / "sessions").mkdir(parents=True)
        until(lambda: source(it, "claude_code").state == "watching")
        pid = home.start()
        (one,) = until(lambda: seen(it))
        assert (one.pid, one.name, one.seen_session, one.parent_id) == (pid, "my session", SESSION, None)
        note = home.write()
        root, sub = until(lambda: (found := sorted(seen(it), key=lambda a: a.depth))[1:] and found)
        until(lambda: it.agent(root.id).cost_usd == 0.050499 and it.agent(sub.id).cost_usd == 0.0202)
        assert (sub.parent_id, sub.name, sub.pid) == (root.id, "count files", None)
        assert it.agent(root.id).model == "claude-sonnet-4-5"
        home.say("msg_new")
        until(lambda: it.agent(root.id).cost_usd == round(0.050499 + 0.0100998, 6))
        note.write_text(json.dumps(json.loads(note.read_text()) | {"finished": True}))
        assert it.state_becomes(sub.id, "ended").state_reason == "finished"
        # It is seen as a process too, and stays one row.
        until(lambda: it.agent(root.id).seen_by == ["claude_code", "processes"])
        assert len(seen(it)) == 1


def test_a_limit_that_an_observed_session_reaches_stands_on_its_row_with_what_can_be_done(state_dir: Path, home: Home) -> None:
    with Instance(state_dir, "--discover-root", str(home.folder)) as it:
        (home.folder / ".claude" / "sessions").mkdir(parents=True)
        until(lambda: source(it, "claude_code").state == "watching")
        home.start()
        until(lambda: seen(it))
        home.write()
        until(lambda: any(one.cost_usd for one in seen(it)))
        root = min(seen(it), key=lambda one: one.depth)
        it.api.change_budget(BudgetBody(scope="session", key=root.session, limits={"cost_usd": 0.001}, reason="the test"))
        words = f"adopt or kill it (watchfloor adopt {root.id}, or watchfloor kill {root.id})"
        until(lambda: words in it.agent(root.id).state_reason, words="its row tells it")
        assert it.agent(root.id).budget_share >= 1.0 and it.agent(root.id).ended_at is None
        assert any(words in one.what for one in it.api.audit().rows), "on record"
        it.api.change_budget(BudgetBody(scope="session", key=root.session, limits={"cost_usd": 100.0}, reason="the test"))
        until(lambda: words not in it.agent(root.id).state_reason, words="a higher limit takes it back")


ANSWER = {
    "type": "assistant",
    "message": {"id": "m1", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 0, "output_tokens": 100_000}},
}
OWN = f"""
import json, pathlib, shutil, subprocess
home = pathlib.Path(os.environ["HOME"])
shutil.copy("/bin/sleep", home / "claude")
session = subprocess.Popen([str(home / "claude"), "600"])
ticks = open(f"/proc/{{session.pid}}/stat").read().rsplit(")", 1)[1].split()[19]
(home / ".claude" / "sessions").mkdir(parents=True)
project = home / ".claude" / "projects" / "-home-dev-proj"
below = project / "s-own" / "subagents"
below.mkdir(parents=True)
def write(file, identity):
    answer = json.loads({json.dumps(json.dumps(ANSWER))})
    answer["message"]["id"] = identity
    file.write_text(json.dumps(answer) + chr(10))
write(project / "s-own.jsonl", "m1")
write(below / "agent-a1.jsonl", "m2")
(below / "agent-a1.meta.json").write_text(json.dumps(dict(description="a part of it", spawnDepth=1, finished=False)))
body = dict(pid=session.pid, sessionId="s-own", cwd="/home/dev/proj", procStart=ticks, status="busy", name="claims another name")
(home / ".claude" / "sessions" / f"{{session.pid}}.json").write_text(json.dumps(body))
print("number", session.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_a_program_we_started_and_the_session_seen_in_it_are_one_row_with_its_sub_agents_below(state_dir: Path, sandbox: str) -> None:
    """Its session file names it by the number it has for itself, which is another process's here."""
    with Instance(state_dir) as it:
        agent = it.python(OWN, sandbox=sandbox)
        it.says(agent, "number")
        (sub,) = until(lambda: [a for a in it.api.fleet().agents if a.parent_id == agent])
        until(lambda: (it.agent(agent).cost_usd, it.agent(sub.id).cost_usd) == (3.0, 1.5))
        own = it.agent(agent)
        assert own.seen_session == "s-own" and own.seen_by[0] == "claude_code" and own.name != "claims another name"
        assert (own.model, own.tree_usage["cost_usd"]) == ("claude-sonnet-4-5", 3.0)
        assert len(it.api.fleet().agents) == 2
        receipt = it.api.kill(agent, tree=True)
        assert code_in_time(receipt) == 0 and receipt.verified_zero  # a part of a program is no target of its own
        assert "inside" in it.state_becomes(sub.id, "ended").state_reason or it.agent(sub.id).state_reason == "no longer seen"


def test_a_broken_source_says_so_and_why_and_the_others_go_on(state_dir: Path, home: Home) -> None:
    home.write()
    home.sessions.write_text("no folder")
    with Instance(state_dir, "--discover-root", str(home.folder)) as it:
        until(lambda: source(it, "claude_code").looked_at)
        broken = source(it, "claude_code")
        assert not broken.available and "Not a directory" in broken.reason
        assert source(it, "processes").available and source(it, "codex").state == "polling"
        home.sessions.unlink()
        home.start()
        until(lambda: [a for a in seen(it) if a.cost_usd])
        until(lambda: source(it, "claude_code").available and any("claude_code sees again" in words for words in it.api.status().notices))


def test_each_source_says_what_it_sees_and_stops_and_what_is_not_there_is_said(state_dir: Path, home: Home) -> None:
    with Instance(state_dir, "--discover-root", str(home.folder)) as it:
        until(lambda: all(one.looked_at for one in it.api.status().sources))
        for one in it.api.status().sources:
            assert one.can_see and one.can_stop and one.reason, one
        assert source(it, "otlp").state == "absent" and "switched off" in source(it, "otlp").reason


def test_the_last_answer_of_a_session_is_in_its_row_though_it_was_written_at_its_very_end(state_dir: Path, home: Home) -> None:
    home.start()
    home.write()
    with Instance(state_dir, "--discover-root", str(home.folder)) as it:
        (one,) = until(lambda: [a for a in seen(it) if a.cost_usd and a.parent_id is None])
        home.running[0].kill()
        home.running[0].wait()
        ended = it.state_becomes(one.id, "ended")
        home.say("msg_last")  # as late as a price may be
        until(lambda: (it.agent(one.id).cost_usd or 0.0) > (ended.cost_usd or 0.0))
        last = it.agent(one.id)
        assert (last.state, last.state_reason) == ("ended", "no longer seen") and last.tree_usage["cost_usd"] >= (last.cost_usd or 0.0)


def test_a_key_beside_the_sessions_is_never_opened(state_dir: Path, home: Home) -> None:
    pid = home.start()
    secret = home.sessions / f"{pid}.0a1b.key"
    os.mkfifo(secret)
    with Instance(state_dir, "--discover-root", str(home.folder)) as it:
        until(lambda: seen(it))
        home.start(session="another")  # another look, because the folder changed
        until(lambda: len(seen(it)) == 2)
        # Whoever had it open to read would make this one succeed.
        with pytest.raises(OSError):
            os.open(secret, os.O_WRONLY | os.O_NONBLOCK)
        before = secret.stat().st_atime_ns
        time.sleep(1.0)
        assert secret.stat().st_atime_ns == before


def test_a_session_whose_process_is_gone_is_stale_and_a_reused_number_is_not_it(state_dir: Path, home: Home) -> None:
    pid = home.start()
    with Instance(state_dir, "--discover-root", str(home.folder)) as it:
        (one,) = until(lambda: seen(it))
        home.running[0].kill()
        home.running[0].wait()
        assert it.state_becomes(one.id, "ended").state_reason == "no longer seen"
        until(lambda: f"process {pid} is gone" in source(it, "claude_code").reason)
        home.start(procStart="1")
        until(lambda: "started at another time" in source(it, "claude_code").reason)
        assert seen(it) == []
