"""Adoption, on a real supervisor and guard: who was only seen is shown with reasons, confirmed, taken over, and held for certain."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api import budgets as b
from console.api.agents.adopt import AdoptBody, CandidatesView
from console.domain.errors import AlreadyEnded, Conflict, ExitCode
from console.killswitch.kernel import processes
from console.killswitch.kernel.descendants import Closure, strike
from console.killswitch.kernel.processes import Handle
from tests.fakes.guard_world import ticks
from tests.fakes.instance import Instance, until
from tests.fakes.terminal import Terminal, open_terminal

UID = 61_236
"""An account that nothing else runs under here."""
TREE = (
    "import os, time\nfor n in range(3):\n  if os.fork() == 0:\n    os.setsid() if n else None\n    time.sleep(600); os._exit(0)\n"
    "print('grown', flush=True)\nwhile True: time.sleep(1)"
)


class Session:
    """A program called ``claude`` that runs under an account of its own, with the record that makes it a live session."""

    def __init__(self, home: Path, name: str = "x") -> None:
        self.home = home
        (home / ".claude" / "sessions").mkdir(parents=True, exist_ok=True)
        program = home / "claude"
        if not program.exists():
            shutil.copy(os.path.realpath("/usr/bin/python3"), program)
        command = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", str(program), "-S", "-c", TREE]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"grown\n"
        self.handle = Handle(self.pid, ticks(self.pid))
        self.closure = Closure(self.handle)
        self.below = [pid for pid, _ in self.closure.look()]
        body = {"pid": self.pid, "sessionId": "11111111-1111-4111-8111-111111111111", "cwd": "/work/x", "procStart": str(ticks(self.pid))}
        record = home / ".claude" / "sessions" / f"{self.pid}.json"
        record.write_text(json.dumps(body | {"status": "busy", "name": name, "version": "2.1.330"}))
        os.chown(record, UID, UID)

    @property
    def pid(self) -> int:
        return self.process.pid

    def places(self) -> set[str]:
        return {processes.cgroup_line(pid) or "" for pid in (self.pid, *self.below)}

    def close(self) -> None:
        self.handle.send(signal.SIGKILL)
        until(lambda: not strike([self.closure])[0] or not self.closure.look(), words="nothing of the session is left")
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.handle.close()


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def session(home: Path) -> Iterator[Session]:
    with contextlib.closing(Session(home)) as made:
        yield made


def seen(it: Instance, session: Session) -> str:
    found = until(lambda: [a.id for a in it.api.fleet().agents if a.pid == session.pid and a.control_level == "observed"])
    return found[0]


def confirmed(shown: CandidatesView, **changed: object) -> AdoptBody:
    first = shown.candidates[0]
    fields = {"pid": first.pid, "start_ticks": first.start_ticks, "exe": first.exe, "uid": first.uid, "reason": "it is mine"} | changed
    return AdoptBody.read({"agent": shown.agent, **fields})


def test_a_seen_agent_is_shown_confirmed_moved_whole_frozen_and_killed_with_proof(state_dir: Path, home: Path, session: Session) -> None:
    with Instance(state_dir, "--discover-root", str(home)) as it:
        agent = seen(it, session)
        with pytest.raises(Conflict, match="only observed"):
            it.api.kill(agent)
        shown = it.api.adopt_candidates(agent)
        assert [c.kind for c in shown.candidates] == ["itself", *["descendant"] * 3] and not shown.why_not and shown.lacks
        assert (shown.candidates[0].uid, shown.candidates[0].exe) == (UID, str(home / "claude"))
        for changed in ({"start_ticks": ticks(session.pid) - 1}, {"exe": "/bin/sh"}, {"uid": 0}, {"pid": os.getpid()}):
            with pytest.raises(Conflict):
                it.api.adopt(confirmed(shown, **changed))
        assert session.places() == {processes.cgroup_line("self")}, "nothing was moved by any of these"
        done = it.api.adopt(confirmed(shown))
        assert (done.moved, done.left, done.best_effort, done.frozen, done.control_level) == (4, {}, "", "", "adopted")
        assert len(session.places()) == 1 and f"watchfloor-{it.places.instance_id}/agents/{agent}-" in session.places().pop()
        view = it.agent(agent)
        assert (view.control_level, view.state, view.network_enforced, "adopted" in view.network_note) == (
            "adopted",
            "running",
            False,
            True,
        )
        with pytest.raises(Conflict, match="adopted already"):
            it.api.adopt(confirmed(shown))
        assert it.api.freeze(agent).agents == [agent] and it.agent(agent).state == "frozen"
        assert it.api.thaw(agent).agents == [agent]
        receipt = it.api.kill(agent, reason="enough")
        assert receipt.verified_zero and [(t.control_level, t.outcome) for t in receipt.targets] == [("adopted", "proven_zero")]
        assert it.state_becomes(agent, "killed") and not any(processes.is_alive(pid) for pid in (session.pid, *session.below))
        kinds = [r.kind for r in it.api.audit(limit=100).rows if r.kind.startswith("adopt")]
        # An adoption is on record before it begins; what was refused is written when there is time, and may follow it.
        assert kinds.count("adopt.done") == 1 and kinds.index("adopt.done") < kinds.index("adopt")
        assert kinds.count("adopt.refused") == kinds.count("adopt") - 1


def test_of_an_observed_agent_that_has_ended_no_kill_says_that_nothing_of_it_runs(state_dir: Path, home: Path, session: Session) -> None:
    with Instance(state_dir, "--discover-root", str(home)) as it:
        agent = seen(it, session)
        session.handle.send(signal.SIGKILL)  # what it started lives on
        until(lambda: it.agent(agent).ended_at, words="it is no longer seen")
        assert any(processes.is_alive(pid) for pid in session.below)
        with pytest.raises(AlreadyEnded, match="is not known: it was only observed") as refusal:
            it.api.kill(agent)
        assert refusal.value.exit_code is ExitCode.BEST_EFFORT and "nothing of it runs" not in str(refusal.value)


def test_it_stays_adopted_when_supervisor_and_guard_are_started_again_and_its_end_is_seen(
    state_dir: Path, home: Path, session: Session
) -> None:
    with Instance(state_dir, "--discover-root", str(home)) as it:
        agent = seen(it, session)
        it.api.adopt(confirmed(it.api.adopt_candidates(agent)))
        it.stop(signal.SIGKILL)
        guard = os.pidfd_open(it.living_guard())
        signal.pidfd_send_signal(guard, signal.SIGKILL)  # our own guard, named by its own answer
        os.close(guard)
        it.start()
        until(lambda: it.agent(agent).control_level == "adopted" and it.agent(agent).state == "running")
        assert f"/agents/{agent}-" in session.places().pop()
        assert not [a for a in it.api.fleet().agents if a.control_level == "observed"], "one row, not two"
        for pid in (session.pid, *session.below):
            with contextlib.suppress(ProcessLookupError):  # one whose parent was ended first may end by itself
                os.kill(pid, signal.SIGKILL)
        session.process.wait(60)
        it.state_becomes(agent, "ended")


def test_its_owner_who_is_not_the_operator_reads_why_a_budget_stopped_it_and_can_forge_nothing(
    state_dir: Path, home: Path, session: Session
) -> None:
    with Instance(state_dir, "--discover-root", str(home)) as it:
        agent = seen(it, session)
        done = it.api.adopt(confirmed(it.api.adopt_candidates(agent)))
        said = as_owner(f"ls {done.owner_folder}; cat {done.owner_folder}/*; echo forged > {done.owner_folder}/HALTED-{agent}.txt")
        assert f"ADOPTED-{agent}.txt" in said.stdout and "took over" in said.stdout and "denied" in said.stderr
        it.api.change_budget(b.BudgetBody(scope="agent", key=agent, limits={"wall": 0.5}, reason="a test"))
        it.state_becomes(agent, "halted")
        note = until(lambda: as_owner(f"cat {done.owner_folder}/HALTED-{agent}.txt").stdout, words="its owner can read why")
        assert "agent limit wall_s" in note and agent in note
        assert not any("could not be left" in words for words in it.api.status().notices)


def as_owner(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", command], user=UID, group=UID, extra_groups=[], capture_output=True, text=True)


@pytest.fixture
def terminal(state_dir: Path, home: Path) -> Iterator[Terminal]:
    state_dir.mkdir(exist_ok=True, mode=0o711)
    (state_dir / "settings.json").write_text(json.dumps({"discover_root": str(home)}))
    with open_terminal(state_dir) as made:
        yield made


def test_the_terminal_takes_what_was_listed_and_nothing_else_and_a_panic_takes_the_adopted_with_it(
    terminal: Terminal, session: Session, home: Path
) -> None:
    terminal.serve_forked()
    with contextlib.closing(Session(home, "other")) as other:

        def rows() -> dict[int, str]:
            return {a["pid"]: a["id"] for a in terminal("fleet", "--json").json["agents"]}

        until(lambda: {session.pid, other.pid} <= rows().keys())
        agent, late = rows()[session.pid], rows()[other.pid]
        named = f"{session.pid}:{ticks(session.pid)}"
        listed = terminal("adopt", agent)
        assert listed.code == 0 and named in listed.out and "comes along" in listed.out and "network" in listed.out
        assert terminal("adopt", agent, "--pid", f"{session.pid}:1").code == 1
        done = terminal("adopt", agent, "--pid", named, "--reason", "mine", "--json")
        assert (done.code, done.json["moved"], done.json["best_effort"]) == (0, 4, "")
        receipt = terminal("panic", "--reason", "enough", "--json").json
        looked = next(step["detail"] for step in receipt["steps"] if step["name"] == "second_look")
        assert receipt["verified_zero"] and [t["agent_id"] for t in receipt["targets"]] == [agent]
        assert "unknown" in looked or "not known" in looked, "dead for certain; what it had left before is not known"
        assert not processes.is_alive(session.pid) and other.process.poll() is None
        refused = terminal("adopt", late, "--pid", f"{other.pid}:{ticks(other.pid)}", "--reason", "late")
        assert refused.code == 1 and "stopped" in refused.err and other.process.poll() is None
