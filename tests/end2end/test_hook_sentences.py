"""Somebody's own Claude Code with our hook in its settings: every tool call of the real program is judged, and blocks when nobody can."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.policy.approvals import ApprovalRow, DecideBody, Decided
from console.settings.options import save_options
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene
from tests.fakes.real_programs import end_all_of, start_claude

held = {name: threading.Event() for name in ("killed", "away", "end")}


def bash(command: str, **more: Any) -> Reply:
    return Reply("", (Call("Bash", {"command": command, "description": "work"}),), **more)


SCENES = (
    Scene(
        "HOOKTASK",
        bash("ls"),
        bash("cat /etc/shadow"),
        bash("touch approved.txt"),
        bash("touch denied.txt"),
        Reply("", (Call("Write", {"file_path": "/etc/cron.d/watchfloor-test", "content": "x"}),)),
        Reply("", (Call("Agent", {"description": "look", "prompt": "SUBTASK", "subagent_type": "general-purpose"}),)),
        bash("touch broken-off.txt"),
        bash("echo in-the-dark", after=held["away"]),
        Reply("All done.", after=held["end"]),
        Reply("Really done."),
    ),
    Scene("SUBTASK", bash("touch from-below.txt"), Reply("Looked.", after=held["end"])),
)


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    (folder / ".claude").mkdir()
    yield folder
    end_all_of(folder)
    shutil.rmtree(folder)


def install(state_dir: Path, home: Path, *more: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "console", "install-hook", "claude-code", "--yes", "--state-dir", str(state_dir), *more]
    return subprocess.run(argv, cwd=ROOT, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=False, timeout=150)


def results(model: ModelServer, word: str = "HOOKTASK") -> list[str]:
    """What the program told the model of its calls, in order: the last request holds them all."""
    asked = [one for one in model.asked if one.word == word]
    found = []
    for message in asked[-1].body["messages"] if asked else []:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block.get("type") == "tool_result":
                found.append(json.dumps(block.get("content")))
    return found


def waiting(it: Instance, words: str) -> ApprovalRow:
    found = until(lambda: [row for row in it.api.approvals().waiting if words in row.argument], words=f"{words} waits in the inbox")
    return found[0]


def decide(it: Instance, row: ApprovalRow, verdict: str, reason: str = "") -> None:
    body = DecideBody.read({"requests": [Decided(id=row.id, digest=row.digest)], "verdict": verdict, "reason": reason})
    (result,) = it.api.decide(body).results
    assert result.done, result.words


def is_below(pid: int, session: int) -> bool:
    """Whether ``session`` is an ancestor of it."""
    while pid > 1 and pid != session:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == session


def hook_of(session: int) -> int:
    """The hook that runs below the session now, whatever shells lie between; never one of somebody else's session. 0 for none, and while
    one that has its answer has not ended yet."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # As bytes: any process of this machine is looked at, whatever its words are.
                is_hook = b"watchfloor-hook.py" in (folder / "cmdline").read_bytes() and (folder / "comm").read_bytes().startswith(
                    b"python"
                )
                if is_hook and is_below(int(folder.name), session):
                    found.append(int(folder.name))
            except OSError:
                continue
    return found[0] if len(found) == 1 else 0


def imposter_of(it: Instance, session: str) -> subprocess.Popen[str]:
    """The same hook, run by another process of the same user, with a call that the rules allow."""
    argv = [sys.executable, "-I", "-S", str(it.places.hooks_dir / "watchfloor-hook.py"), "claude-code", str(it.places.hooks_sock), "300"]
    made = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert made.stdin is not None
    made.stdin.write(
        json.dumps({"session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}})
    )
    made.stdin.close()
    made.stdin = None
    return made


def test_the_real_claude_code_under_the_rules(state_dir: Path, home: Path) -> None:
    session: subprocess.Popen[bytes] | None = None
    installed = install(state_dir, home)
    assert installed.returncode == 0, installed.stderr
    with ModelServer(*SCENES) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        it.choose_profile("strict", "claude-code")
        assert it.api.hooks().programs == []  # nothing has asked yet: nothing is called enforced
        try:
            # The program itself would let everything through.
            session = start_claude(home, model.url, "HOOKTASK please", "--permission-mode", "bypassPermissions")
            project = home / "proj"

            # allow: a rule says so; deny: a rule says so, and the model is told which.
            approved = waiting(it, "touch approved.txt")
            said = results(model)
            assert "Watchfloor" not in said[0] and "Watchfloor: file(read:/etc/shadow)" in said[1]
            assert it.api.hooks().programs[0].calls >= 3

            # whoever names this session and is not in it gets nothing.
            imposter = imposter_of(it, next(iter(it.api.hooks().sessions)))

            # ask: it waits, nothing happens, then it happens once.
            assert not (project / "approved.txt").exists() and it.agent(approved.agent_id).pid == session.pid
            decide(it, approved, "approve")
            denied = waiting(it, "touch denied.txt")
            assert (project / "approved.txt").exists()
            decide(it, denied, "deny", "leave it")

            # what a sub-agent asks is the sub-agent's.
            below = waiting(it, "from-below.txt")
            said = results(model)
            assert "leave it" in said[3] and not (project / "denied.txt").exists()
            assert "file(write:/etc/**)" in said[4] and not Path("/etc/cron.d/watchfloor-test").exists()
            assert below.agent_id != approved.agent_id and it.agent(below.agent_id).parent_id == approved.agent_id
            decide(it, below, "deny", "not you")

            words = imposter.communicate(timeout=120)[1]
            assert imposter.returncode == 2 and "no running session" in words

            # a hook that is killed in the middle blocks.
            row, own = waiting(it, "touch broken-off.txt"), session.pid
            os.kill(until(lambda: hook_of(own)), signal.SIGKILL)
            until(lambda: len(results(model)) >= 7, words="the program was told")
            assert not (project / "broken-off.txt").exists()
            decide(it, row, "approve")  # too late: the program that asked is gone, and an approval lets nothing through by itself
            assert not (project / "broken-off.txt").exists()

            # nobody there: blocked.
            it.stop(signal.SIGKILL)
            held["away"].set()
            until(lambda: len(results(model)) >= 8, words="the program was told")
            assert "no supervisor answers" in results(model)[7] and "in-the-dark" not in results(model)[7]
            held["end"].set()
            assert session.wait(120) == 0
            it.start()
        finally:
            for event in held.values():
                event.set()
            if session is not None and session.poll() is None:
                os.killpg(session.pid, signal.SIGKILL)
                session.wait()
    model.check()
    assert install(state_dir, home, "--undo").returncode == 0
    assert not (home / ".claude" / "settings.json").exists(), "there was none before"


def test_a_program_that_was_only_seen_edits_its_own_project_under_the_default_rules(state_dir: Path, home: Path) -> None:
    assert install(state_dir, home).returncode == 0
    note = home / "proj" / "note.txt"
    scene = Scene("EDITTASK", Reply("", (Call("Write", {"file_path": str(note), "content": "written"}),)), bash("ls"), Reply("Done."))
    with ModelServer(scene) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        session = start_claude(home, model.url, "EDITTASK please", "--permission-mode", "bypassPermissions")
        try:
            assert session.wait(120) == 0
        finally:
            if session.poll() is None:
                os.killpg(session.pid, signal.SIGKILL)
                session.wait()
        assert note.read_text() == "written" and not [said for said in results(model, "EDITTASK") if "Watchfloor" in said]
        rows = it.api.audit(q="note.txt").rows
        assert [row for row in rows if "note.txt" in row.what and "no copy of it is kept" in row.what], "it is on record"


def late_row(it: Instance) -> ApprovalRow | None:
    seen = it.api.approvals()
    return next((row for row in (*seen.waiting, *seen.decided) if "touch late.txt" in row.argument), None)


def test_nobody_decides_and_the_programs_own_questions_are_ours(state_dir: Path, home: Path) -> None:
    """A request that nobody looks at is denied by itself; the program's own prompt (PermissionRequest) is answered by the same rules."""
    state_dir.mkdir(exist_ok=True)
    save_options(state_dir / "settings.json", {"approvals.ttl_s": 8})
    installed = install(state_dir, home)
    assert installed.returncode == 0, installed.stderr
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    settings["hooks"]["PermissionRequest"] = settings["hooks"].pop("PreToolUse")
    prompts = json.dumps(settings)
    late = Scene("LATETASK", bash("touch late.txt"), bash("ls"), Reply("Done."))
    prompted = Scene("PROMPTTASK", bash("touch prompted.txt"), bash("cat /etc/shadow"), Reply("Done."))
    with ModelServer(late, prompted) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        it.choose_profile("strict", "claude-code")
        sessions = [
            start_claude(home, model.url, "LATETASK please", "--permission-mode", "bypassPermissions"),
            # Only its own questions come to us: it asks before what its own rules do not allow.
            start_claude(home, model.url, "PROMPTTASK please", "--settings", prompts, "--setting-sources", ""),
        ]
        try:
            decide(it, waiting(it, "touch prompted.txt"), "approve")
            row = until(lambda: late_row(it), words="the other one asked; its time may be over by now")
            assert [session.wait(120) for session in sessions] == [0, 0]
        finally:
            for session in sessions:
                if session.poll() is None:
                    os.killpg(session.pid, signal.SIGKILL)
                    session.wait()
        said = results(model, "LATETASK")
        assert "Watchfloor" in said[0] and "not answered" in said[0]
        assert not (home / "proj" / "late.txt").exists() and "Watchfloor" not in said[1]
        assert row is not None and row.id not in [one.id for one in it.api.approvals().waiting]
        assert (home / "proj" / "prompted.txt").exists() and "file(read:/etc/shadow)" in results(model, "PROMPTTASK")[1]
    model.check()
