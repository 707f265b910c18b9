"""Sentences about a killed session that a daemon would start again: on a real supervisor and guard, with a stand-in of Claude Code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.agents.adopt import AdoptBody
from console.api.alerts import WebhookBody
from console.api.budgets import BudgetBody
from console.killswitch.kernel import processes
from console.settings.options import save_options
from tests.fakes.claude_stage import Stage
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.webhook_receiver import receiving

ONE, TWO, THREE, FOUR = (str(uuid.uuid4()) for _ in range(4))
FORGES = """
import os, pathlib, signal, socket, sys
here = pathlib.Path(sys.argv[3])
door = socket.socket(socket.AF_UNIX); door.bind(str(here / "rv" / "forged.sock")); door.listen(8)
(here.parent / ".claude").mkdir(exist_ok=True)
(here.parent / ".claude" / "roster.json").write_text("{}")
signal.pause()
"""


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


def instance(state_dir: Path, stage: Stage, watch_s: float) -> Instance:
    save_options(state_dir / "settings.json", {"kill.return_watch_s": watch_s})
    return Instance(state_dir, "--discover-root", str(stage.home))


def started(stage: Stage, session: str) -> int:
    """Pid of a session that the stage's daemon hosts, with the record by which it is seen."""
    pid = stage.start(session)
    body = {"pid": pid, "sessionId": session, "cwd": str(stage.home), "procStart": str(processes.start_ticks(pid))}
    record = stage.home / ".claude" / "sessions" / f"{pid}.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(body | {"status": "busy", "name": "x", "version": "2.1.330"}))
    os.chown(record, stage.uid, stage.uid)
    return pid


def adopted(it: Instance, pid: int) -> str:
    """The agent of a process that was only seen, now held."""
    (agent, *_) = until(lambda: [a.id for a in it.api.fleet().agents if a.pid == pid and a.control_level == "observed"])
    first = it.api.adopt_candidates(agent).candidates[0]
    fields = {"pid": first.pid, "start_ticks": first.start_ticks, "exe": first.exe, "uid": first.uid, "reason": "mine"}
    it.api.adopt(AdoptBody.read({"agent": agent, **fields}))
    return agent


def killing(it: Instance, agent: str) -> subprocess.Popen[str]:
    """``kill AGENT --wait-watch``, under way."""
    words = ("kill", agent, "--state-dir", str(it.state_dir), "--reason", "test", "--wait-watch", "--json")
    return subprocess.Popen([sys.executable, "-m", "console", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def answer(command: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    """Its exit code and receipt."""
    said, _ = command.communicate(timeout=120)
    return command.returncode, json.loads(said)


def runs_on(*identities: tuple[int, int]) -> bool:
    """Whether each of these runs, and is not stopped."""
    return all(processes.is_the_same(pid, ticks) and processes.state(pid) not in ("T", "t") for pid, ticks in identities)


def test_a_killed_session_is_dropped_and_what_only_looks_like_it_or_its_daemon_lives(state_dir: Path, stage: Stage) -> None:
    with instance(state_dir, stage, 4.0) as it, Stage() as victim:
        one, two, three = started(stage, ONE), started(stage, TWO), victim.start(THREE)
        agent = adopted(it, one)
        until(lambda: {one, two} <= {a.pid for a in it.api.fleet().agents}, words="both sessions are seen")
        it.api.change_budget(BudgetBody(scope="agent", key=agent, limits={"cost": 2.0}, reason="a cap first"))
        # An agent of the account forges the marks of a daemon: folder, words, sockets and records that name another one's.
        forged = victim.spawn("-c", FORGES, "daemon", "run", str(victim.sockets), env={"CLAUDE_CONFIG_DIR": str(victim.home)})
        ours = it.launch("python3", "-c", "import time; time.sleep(600)", "--resume", ONE)  # Watchfloor's own doing
        alike = stage.spawn("-c", "import time; time.sleep(600)", "--resume", FOUR)  # another session of the same folder and program
        assert stage.daemon is not None and victim.daemon is not None
        lives = [stage.daemon.pid, two, victim.daemon.pid, three, forged.pid, alike.pid, it.agent_pid(ours)]
        known = [(pid, processes.start_ticks(pid) or 0) for pid in lives]
        code, receipt = answer(killing(it, agent))
        assert code != 9 and not [r for r in receipt["returns"] if r["certain"]], receipt
        (daemon,) = receipt["daemons"]
        assert (daemon["pid"], daemon["action"], daemon["other_sessions"]) == (stage.daemon.pid, "frozen", [TWO])
        assert "Return watch: ended at" in receipt["headline"] and receipt["not_watched"] == []
        assert stage.stopped() == [ONE[:8]] and victim.stopped() == [], "its own daemon was asked, as its account"
        assert not stage.pid_of(ONE) and runs_on(*known)


def test_a_session_that_is_resumed_is_killed_again_and_on_record_once_and_a_time_without_a_guard_is_said(
    state_dir: Path, stage: Stage
) -> None:
    with instance(state_dir, stage, 8.0) as it, receiving() as receiver:
        secret = it.api.set_webhook(WebhookBody(url=receiver.url)).secret
        one, two = started(stage, ONE), started(stage, TWO)
        assert stage.daemon is not None
        ticks, daemon = processes.start_ticks(two) or 0, (stage.daemon.pid, processes.start_ticks(stage.daemon.pid) or 0)
        agent = adopted(it, one)
        stage.stop.unlink()  # the program's own command fails: its daemon starts the session again
        command = killing(it, agent)
        until(lambda: [r for r in it.api.audit(q="ran again").rows if r.kind == "guard.receipt_amended"], words="it ran again")
        guard = os.pidfd_open(it.living_guard())
        signal.pidfd_send_signal(guard, signal.SIGKILL)
        os.close(guard)
        code, receipt = answer(command)
        assert code == 9 and receipt["not_watched"], receipt
        assert "not watched from" in receipt["headline"] and "ran again" in receipt["headline"]
        again = [row for row in receipt["returns"] if row["certain"]]
        assert len({row["pid"] for row in again}) == len(again) and all(row["killed"] and row["proven"] for row in again), again
        assert {row["session"] for row in again} == {ONE} and {row["parent"] for row in again} == {daemon[0]}
        assert runs_on((two, ticks), daemon)
        for row in again:
            words = f"process {row['pid']} (parent {row['parent']})"
            until(lambda: it.api.audit(q=words).rows, words=f"{words} is on record")  # noqa: B023 - it is waited for here
            assert len(it.api.audit(q=words).rows) == 1 and [n for n in it.api.status().notices if words in n], "a row and a red notice"
        until(lambda: it.api.webhook().waiting == 0, words="all alerts are delivered")
        alerts = receiver.alerts(secret)
        came = [one["facts"] for one in alerts if one["event"] == "agent_came_back" and one["facts"]["certain"]]
        assert sorted(one["pid"] for one in came) == sorted(row["pid"] for row in again) and {one["agent_id"] for one in came} == {agent}
        assert len([one for one in alerts if one["event"] == "kill_not_confirmed"]) == 1
