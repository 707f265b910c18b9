"""Agents that Watchfloor did not start appear as observed, are never signalled here, and cannot be forged into a target."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.ladder import LadderBody
from tests.fakes.instance import Instance, until


def start_ticks(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


def record(home: Path, pid: int, session: str, ticks: str, cwd: str = "/work/x") -> None:
    body = {
        "pid": pid,
        "sessionId": session,
        "cwd": cwd,
        "procStart": ticks,
        "status": "busy",
        "name": "<b>x</b>",
        "version": "2.1.330",
    }
    (home / ".claude" / "sessions" / f"{pid}.json").write_text(json.dumps(body))


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    (folder / ".claude" / "sessions").mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)


def test_a_live_session_is_shown_a_forged_one_leads_nowhere_and_a_panic_signals_neither(state_dir: Path, home: Path) -> None:
    program = home / "claude"
    shutil.copy("/bin/sleep", program)
    session = subprocess.Popen([str(program), "300"])
    victim = subprocess.Popen(["/bin/sleep", "300"])
    try:
        record(home, session.pid, "11111111-1111-4111-8111-111111111111", start_ticks(session.pid))
        record(home, victim.pid, "22222222-2222-4222-8222-222222222222", start_ticks(victim.pid))
        (home / ".claude" / "sessions" / f"{session.pid}.aa.key").write_text("secret")
        with Instance(state_dir, "--discover-root", str(home)) as it:
            seen = until(lambda: [a for a in it.api.fleet().agents if a.control_level == "observed"])
            assert [a.pid for a in seen] == [session.pid]
            assert seen[0].name == "<b>x</b>"
            assert seen[0].network_mode == "FULL"
            assert not seen[0].network_enforced
            receipt = it.api.activate("the test")
            assert session.pid not in [t.evidence.get("pid") for t in receipt.targets]
            assert session.poll() is None
            assert victim.poll() is None
            assert os.path.exists(f"/proc/{victim.pid}")
    finally:
        for process in (session, victim):
            process.kill()
            process.wait()


def test_a_live_session_shows_its_sub_agents_and_what_each_has_cost_by_now(state_dir: Path, home: Path) -> None:
    data = Path(__file__).parents[1] / "data" / "claude-code" / "projects-tree"
    real = next(data.rglob("ca*.jsonl"))
    projects = home / ".claude" / "projects" / "-home-dev-proj"
    shutil.copytree(real.parent, projects)
    (note,) = projects.rglob("*.meta.json")
    note.write_text(json.dumps(json.loads(note.read_text()) | {"finished": False}))
    program = home / "claude"
    shutil.copy("/bin/sleep", program)
    session = subprocess.Popen([str(program), "300"])
    try:
        record(home, session.pid, real.stem, start_ticks(session.pid), cwd="/home/dev/proj")
        with Instance(state_dir, "--discover-root", str(home)) as it:
            until(lambda: len([a for a in it.api.fleet().agents if a.cost_usd]) == 2, 60)
            root, sub = sorted(it.api.fleet().agents, key=lambda a: a.depth)
            assert (root.cost_usd, sub.cost_usd) == (0.050499, 0.0202)  # shown to the micro-dollar; the program says 0.0201996
            assert (sub.parent_id, sub.name, sub.pid) == (root.id, "count files", None)
            assert round(root.tree_usage["cost_usd"], 7) == 0.0706986 and "after the fact" in root.network_note
            with (projects / f"{real.stem}.jsonl").open("a") as file:
                line = next(line for line in real.read_text().splitlines() if "msg_fake0007" in line)
                file.write(line.replace("msg_fake0007", "msg_new") + "\n")
            until(lambda: it.agent(root.id).cost_usd == round(0.050499 + 0.0100998, 6), 60)
            note.write_text(json.dumps(json.loads(note.read_text()) | {"finished": True}))
            it.state_becomes(sub.id, "ended")
    finally:
        session.kill()
        session.wait()


def test_with_a_state_directory_a_panic_signals_nobody_who_was_only_seen_whatever_the_settings_say(state_dir: Path, home: Path) -> None:
    program = home / "claude"
    shutil.copy("/bin/sleep", program)
    session = subprocess.Popen([str(program), "300"])
    try:
        record(home, session.pid, "11111111-1111-4111-8111-111111111111", start_ticks(session.pid))
        state_dir.mkdir(exist_ok=True, mode=0o711)
        (state_dir / "settings.json").write_text(json.dumps({"panic": {"include_observed": True}}))
        with Instance(state_dir, "--discover-root", str(home)) as it:
            [agent] = until(lambda: [a for a in it.api.fleet().agents if a.control_level == "observed"])
            body = LadderBody.read({"action": "kill", "scope": {"reach": "all"}, "reason": "test"})
            assert [a.id for a in it.api.preview(body).excluded] == [agent.id], "listed before the press as left alone"
            told = state_dir / "guard" / "unheld.json"
            until(lambda: told.exists() and agent.id in told.read_text(), words="the guard was told")
            receipt = it.api.activate("the test")
            assert receipt.targets == () and session.poll() is None
            assert receipt.only_seen == 1, "the receipt says by itself who goes on, and why"
            assert "1 agent was only seen and not stopped" in receipt.excluded[0]
            assert all(words in receipt.excluded[1] for words in (agent.id, f"process {session.pid} runs", "state directory of its own"))
    finally:
        session.kill()
        session.wait()
