"""Programs as their users install them, not started by Watchfloor: each is seen, priced, judged by its hook and stopped for certain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.api.agents.adopt import AdoptBody
from console.api.messages import AgentView
from console.api.policy.approvals import ApprovalRow, DecideBody, Decided
from console.sources.codex.trust import key_of, trusted_hash
from console.sources.kind import Lacks
from console.sources.kinds import HOOKS, KINDS
from console.sources.opencode.kind import OWED
from tests.fakes.installed_programs import ALL, OPENCODE, PROGRAMS, Installed, Session
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene, Used

SEEN_S = 2.0
"""From the program's start to its row, on a machine that does nothing else: with twice as many that want to run as it has cores, twice."""
STARTS = 3
"""So often a program is started until one was seen in time."""
WRITES_WHAT_IT_DID = frozenset(kind.name for kind in KINDS if not isinstance(kind.activity, Lacks))
UNANSWERED_S = 70.0
"""Longer than any program is known to wait for a hook in spite of the hook's own time-out."""
ACCOUNT = 61_237
"""Nothing else runs under it here: what is left of a program of an account that others use too can only be looked for."""
USED = Used(1000, 100, 0, 0)
COMMANDS = ("ls", "cat /etc/shadow", "touch approved.txt", "touch denied.txt")


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=ALL, ids=lambda one: one.kind)
def program(request: pytest.FixtureRequest) -> Installed:
    """One that was installed; else the test fails with what its package manager said."""
    one: Installed = request.param
    if not Path(one.argv[0]).exists():
        log = PROGRAMS / ("aider.log" if one.kind == "aider" else "npm.log")
        said = log.read_text()[-2000:] if log.exists() else "packaging/test --programs installs it"
        pytest.fail(f"{one.title} is not installed: {said}", pytrace=False)
    return one


def scene(program: Installed, end: threading.Event) -> Scene:
    """What its model says: a command for each verdict, and then nothing for as long as it is looked at."""
    if program.shell is None:
        return Scene("THETASK", Reply("All done.", used=USED), forever=True, bare=True)
    calls = [Reply("", (program.shell(command),), USED) for command in COMMANDS]
    return Scene("THETASK", *calls, Reply("All done.", used=USED, after=end))


def install_hook(state_dir: Path, home: Path, kind: str) -> None:
    argv = [sys.executable, "-m", "console", "install-hook", kind, "--yes", "--state-dir", str(state_dir)]
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=False, timeout=150)
    assert (done.returncode == 0) == (kind in HOOKS), done.stdout + done.stderr
    if kind == "codex":  # as Codex writes it when its user approves the hook that it shows
        file = home / ".codex" / "hooks.json"
        group = json.loads(file.read_text())["hooks"]["PreToolUse"][0]
        state = f'\n[hooks.state.{json.dumps(key_of(file, 0, 0))}]\ntrusted_hash = "{trusted_hash(group, group["hooks"][0])}"\n'
        (home / ".codex" / "config.toml").write_text(state)


def is_told(it: Instance, agent_id: str) -> bool:
    """Whether each command is in its activity, as the call of a tool."""
    calls = [one.text for one in it.api.activity(agent_id).rows if one.kind == "tool_call"]
    return all(any(command in text for text in calls) for command in COMMANDS)


def rows(it: Instance) -> list[AgentView]:
    return [one for one in it.api.fleet().agents if one.control_level == "observed" and one.ended_at is None]


@contextmanager
def seen(it: Instance, program: Installed, home: Path, url: str, uid: int) -> Iterator[tuple[Session, AgentView]]:
    """A session with its row, which came in time."""
    took = []
    for _ in range(STARTS):
        began = time.monotonic()
        session = program.start(home, url, "THETASK please", uid)
        try:
            until(lambda: rows(it), words=lambda: f"a row: {(home / 'said').read_text(errors='replace')[-2000:]}")
            took.append(time.monotonic() - began)
            if took[-1] <= SEEN_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)):
                print(f"{program.title}: seen after {took[-1]:.2f} s")
                yield session, rows(it)[0]
                return
        finally:
            session.close()
        until(lambda: not rows(it), words="the row of a program that was stopped goes")
    pytest.fail(f"{program.title} was seen after {took} s, never within {SEEN_S}")


def waiting(it: Instance, words: str) -> ApprovalRow:
    return until(lambda: [row for row in it.api.approvals().waiting if words in row.argument], words=f"{words} waits in the inbox")[0]


def decide(it: Instance, row: ApprovalRow, verdict: str, reason: str = "") -> None:
    body = DecideBody.read({"requests": [Decided(id=row.id, digest=row.digest)], "verdict": verdict, "reason": reason})
    (result,) = it.api.decide(body).results
    assert result.done, result.words


def judged(it: Instance, model: ModelServer, project: Path, row: AgentView) -> None:
    """Allow, deny, and ask with both answers: what was let through happened, and the model was told of the rest."""
    asked = waiting(it, "touch approved.txt")
    told = json.dumps(model.asked[-1].body)
    assert "file(read:/etc/shadow)" in told and "root:" not in told
    assert asked.agent_id == row.id and not (project / "approved.txt").exists()
    decide(it, asked, "approve")
    denied = waiting(it, "touch denied.txt")
    assert (project / "approved.txt").exists()
    assert it.api.agent(row.id).hook.startswith("enforced: ")
    decide(it, denied, "deny", "leave this one")
    until(lambda: "leave this one" in json.dumps(model.asked[-1].body), words="the model is told of the last")
    assert not (project / "denied.txt").exists()


def test_an_installed_program_is_seen_priced_and_judged(state_dir: Path, home: Path, program: Installed) -> None:
    end = threading.Event()
    install_hook(state_dir, home, program.kind)
    with ModelServer(scene(program, end)) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        try:
            it.choose_profile("strict", program.kind)
            with seen(it, program, home, model.url, os.geteuid()) as (session, row):
                assert row.pid == session.process.pid
                assert program.title.lower() in row.name.lower() or program.names_sessions
                if program.kind in HOOKS:
                    judged(it, model, home / "proj", row)
                answers = len(COMMANDS) if program.shell else 1
                until(
                    lambda: it.agent(row.id).cost_usd == pytest.approx(answers * program.answer_usd, abs=1e-6),
                    words=f"each of {answers} answers has its price: {it.agent(row.id)}",
                )
                if program.kind in WRITES_WHAT_IT_DID:
                    until(lambda: is_told(it, row.id), words="each call is in its activity")
                (last,) = rows(it)  # a program that starts itself again is one row
                assert (last.id, last.source) == (row.id, program.source)
        finally:
            end.set()
    model.check()


@pytest.mark.parametrize("program", [one for one in ALL if one.kind in HOOKS], ids=lambda one: one.kind, indirect=True)
def test_a_question_that_nobody_answers_for_a_minute_lets_no_call_through(state_dir: Path, home: Path, program: Installed) -> None:
    install_hook(state_dir, home, program.kind)
    assert program.shell is not None
    asks = Scene("THETASK", Reply("", (program.shell("touch unanswered.txt"),), USED), Reply("All done.", used=USED), forever=True)
    with ModelServer(asks) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        it.choose_profile("strict", program.kind)
        session = program.start(home, model.url, "THETASK please", os.geteuid())
        try:
            asked = waiting(it, "touch unanswered.txt")
            until(lambda: time.time() > asked.asked_at + UNANSWERED_S or len(model.asked) > 1, UNANSWERED_S + 30)
            assert not (home / "proj" / "unanswered.txt").exists()
            if len(model.asked) == 1:
                decide(it, waiting(it, "touch unanswered.txt"), "deny", "leave this one")
            until(lambda: "no answer within" in (told := json.dumps(model.asked[-1].body)) or "leave this one" in told, words="it is told")
            assert not (home / "proj" / "unanswered.txt").exists()
        finally:
            session.close()
    model.check()


def test_while_a_sub_agent_of_opencode_works_its_spend_is_shown_and_what_is_not_written_yet_is_unknown(state_dir: Path, home: Path) -> None:
    end = threading.Event()
    task = Call("task", {"description": "look", "prompt": "THESUB look", "subagent_type": "general"})
    sub = Scene("THESUB", Reply("", (Call("bash", {"command": "ls", "description": "work"}),), USED), Reply("Found.", used=USED, after=end))
    main = Scene("THETASK", Reply("", (task,), USED), Reply("All done.", used=USED))
    with ModelServer(sub, main) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        try:
            with seen(it, OPENCODE, home, model.url, os.geteuid()) as (_, row):
                below = until(lambda: [one for one in rows(it) if one.parent_id == row.id], words="its sub-agent has a row")
                assert below[0].cost_usd == pytest.approx(OPENCODE.answer_usd, abs=1e-6)
                own = it.agent(row.id)
                assert (own.cost_usd, own.cost_unknown) == (None, OWED)
                end.set()
                until(lambda: it.agent(row.id).cost_usd, words="its own answer has its price once its call is over")
        finally:
            end.set()
    model.check()


def test_an_installed_program_of_an_ordinary_account_is_taken_over_and_confirmed_dead(
    state_dir: Path, home: Path, program: Installed
) -> None:
    end = threading.Event()
    held = Scene("THETASK", Reply("All done.", used=USED, after=end), forever=True, bare=program.shell is None)
    with ModelServer(held) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        try:
            with seen(it, program, home, model.url, ACCOUNT) as (session, row):
                until(lambda: model.asked, words="it is in the middle of its work")
                shown = it.api.adopt_candidates(row.id)
                first = shown.candidates[0]
                fields = {"pid": first.pid, "start_ticks": first.start_ticks, "exe": first.exe, "uid": first.uid, "reason": "the test"}
                done = it.api.adopt(AdoptBody.read({"agent": shown.agent, **fields}))
                assert not done.left and done.control_level == "adopted", done
                receipt = it.api.kill(row.id, tree=True, reason="the test")
                assert receipt.verified_zero, receipt
                session.process.wait(60)
                # Its source may say that it is gone before the guard's word comes; the receipt has the proof.
                assert it.state_becomes(row.id, "killed", "ended") and not (left := rows(it)), f"{left!r:.3000}"
        finally:
            end.set()
    model.check()
