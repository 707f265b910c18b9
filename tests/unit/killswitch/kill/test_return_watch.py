"""The return watch ends what starts a killed session again, and touches nothing else."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.guard import AGENT_VARIABLE, INSTANCE_VARIABLE
from console.domain.kill import Return, Unwatched
from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import ticks_now
from console.killswitch.kill.daemons import KnownSession
from console.killswitch.kill.return_watch import SETTLED_S, WATCH_FILE, ReturnWatch, Watched, carries, unwatched
from console.killswitch.kill.scan import Registered
from tests.fakes.claude_stage import Stage
from tests.fakes.instance import until

ONE, TWO = str(uuid.uuid4()), str(uuid.uuid4())
INSTANCE = secrets.token_hex(4)
"""Another run of these tests on this host must not be taken for what returns here."""
MARKS = {AGENT_VARIABLE: "agent-1", INSTANCE_VARIABLE: INSTANCE}


class Room:
    """A watch of one kill of one session."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.folder, self.stage = folder, stage
        self.rows: list[Return] = []
        self.gaps: list[Unwatched] = []
        self.registered = [Registered(0, 0)]
        self.spared: set[int] = set()
        words = ("--resume", "-r", "--session-id")
        exe, cwd = str(stage.program), str(stage.home)
        self.session = KnownSession("agent-1", "claude", ONE, stage.uid, exe, cwd, words, ("CLAUDE_CODE_SESSION_ID",))
        self.watch = self.make()

    def make(self) -> ReturnWatch:
        def told(_kill_id: str, row: Return | Unwatched) -> None:
            self.gaps.append(row) if isinstance(row, Unwatched) else self.rows.append(row)

        return ReturnWatch(INSTANCE, self.folder, told, lambda: frozenset(self.spared), lambda: self.registered)

    def watched(self, seconds: float = 30.0) -> Watched:
        now = time.time()
        return Watched("kill-1", now + seconds, now, ticks_now(), ("agent-1",), (self.session,))

    def start(self) -> None:
        self.watch.follow(self.watched())

    def runs(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        """A process of the program that sleeps."""
        (self.stage.home / "sleep").write_text("import time\ntime.sleep(600)\n")
        return self.stage.spawn(str(self.stage.home / "sleep"), *words, env=env, cwd=cwd)

    def lives(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether it still does after the watch has looked at what began behind it."""
        last = self.runs("--resume", ONE)
        until(lambda: any(row.pid == last.pid for row in self.rows))
        time.sleep(0.5)
        return process.poll() is None


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with Stage(idle=False) as stage:
        it = Room(tmp_path, stage)
        yield it
        with it.watch._lock:
            it.watch._watched = []
        until(lambda: not it.watch._is_running)


@pytest.mark.parametrize("words", [("--resume", ONE), (f"--resume={ONE}",), ("-r", f"/home/x/.claude/projects/p/{ONE}.jsonl")])
def test_what_goes_on_with_the_killed_session_is_killed(room: Room, words: tuple[str, ...]) -> None:
    room.start()
    again = room.runs(*words)
    assert again.wait(20) == -9
    (row,) = until(lambda: room.rows)
    assert (row.agent_id, row.session, row.pid, row.parent) == ("agent-1", ONE, again.pid, os.getpid())
    assert (row.by, row.certain, row.killed, row.proven) == ("session id", True, True, True) and 0 <= row.seconds < 20


def test_what_it_started_dies_with_it(room: Room) -> None:
    room.start()
    (room.stage.home / "parent").write_text("import subprocess, sys\nsubprocess.run(['/usr/bin/setsid', '/usr/bin/sleep', sys.argv[1]])\n")
    mark = f"600.{os.getpid()}1"
    parent = room.stage.spawn("parent", mark, "--resume", ONE)
    parent.wait(20)
    until(lambda: room.rows and room.rows[0].proven)
    assert not any(processes.arguments(pid).endswith(mark.encode() + b"\0") for pid in processes.every_pid())


@pytest.mark.parametrize("env", [MARKS, {"CLAUDE_CODE_SESSION_ID": ONE}])
def test_what_carries_the_marker_or_the_id_is_killed(room: Room, env: dict[str, str]) -> None:
    room.start()
    again = room.runs("work", env=env, cwd=Path("/"))
    assert again.wait(20) == -9
    assert until(lambda: room.rows)[0].by in ("marker", "session id")


@pytest.mark.parametrize("env", [MARKS, {"CLAUDE_CODE_SESSION_ID": ONE}])
def test_what_inherits_it_from_a_process_that_lived_before_is_shown_and_lives(room: Room, env: dict[str, str]) -> None:
    """A server of tmux that the session started hands its environment to everyone's panes."""
    go = room.stage.home / "go"
    room.stage.home.chmod(0o777)
    wait = (
        f"import os, subprocess, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nsubprocess.run(['/usr/bin/sleep', '600'])\n"
    )
    (room.stage.home / "server").write_text(wait)
    server = room.stage.spawn(str(room.stage.home / "server"), env=env)
    time.sleep(0.1)
    room.start()
    go.touch()
    row = until(lambda: next((r for r in room.rows if not r.certain), None))
    assert row is not None and not row.killed and "before the kill" in row.why
    assert server.poll() is None and processes.is_alive(row.pid)
    os.kill(row.pid, 9)


def test_what_is_typed_in_a_terminal_that_inherits_it_lives_too(room: Room) -> None:
    """The shell of a new pane is handed the environment, and hands it on to each command."""
    go = room.stage.home / "go"
    room.stage.home.chmod(0o777)
    (room.stage.home / "server").write_text(
        f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nos.system('/bin/sh -c \"/bin/sleep 600; :\"; :')\n"
    )
    server = room.stage.spawn(str(room.stage.home / "server"), env={"CLAUDE_CODE_SESSION_ID": ONE})
    time.sleep(0.1)
    room.start()
    go.touch()
    rows = until(lambda: len(room.rows) > 2 and room.rows)
    assert rows and not any(row.certain or row.killed for row in rows) and server.poll() is None
    for row in rows:
        with suppress(ProcessLookupError):  # a shell whose command was ended first ends by itself
            os.kill(row.pid, 9)


def test_the_session_s_program_is_killed_though_its_starter_lived_before(room: Room) -> None:
    """A loop that the session left behind starts it again by its folder: the id is in the environment alone."""
    go = room.stage.home / "go"
    room.stage.home.chmod(0o777)
    (room.stage.home / "sleep").write_text("import time\ntime.sleep(600)\n")
    again = f"subprocess.run([{str(room.stage.program)!r}, {str(room.stage.home / 'sleep')!r}, '--continue'], cwd='/')"
    (room.stage.home / "loop").write_text(
        f"import os, subprocess, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n{again}\n"
    )
    loop = room.stage.spawn(str(room.stage.home / "loop"), env={"CLAUDE_CODE_SESSION_ID": ONE})
    time.sleep(0.1)
    room.start()
    go.touch()
    row = until(lambda: room.rows)[0]
    assert (row.by, row.certain, row.killed, row.proven) == ("session id", True, True, True) and row.parent == loop.pid
    assert loop.wait(20) == 0, "what lived before is left alone"


def test_a_session_that_goes_on_by_its_folder_is_known_by_what_it_hands_to_its_tools(room: Room) -> None:
    room.start()
    tool = "subprocess.run(['/bin/sh', '-c', '/usr/bin/sleep 600; :'], env={'CLAUDE_CODE_SESSION_ID': sys.argv[1]})"
    (room.stage.home / "go on").write_text(f"import subprocess, sys, time\ntime.sleep(1)\n{tool}\n")
    session = room.stage.spawn(str(room.stage.home / "go on"), ONE, "--continue", cwd=Path("/"))
    assert session.wait(20) == -9
    row = until(lambda: next((r for r in room.rows if r.certain), None))
    assert row is not None and (row.pid, row.killed, row.proven) == (session.pid, True, True) and "its tools" in row.why


def test_a_session_of_no_known_id_or_account_finds_nobody_by_it(room: Room) -> None:
    room.session = replace(room.session, session="", cwd="/nowhere")
    room.start()
    ours = room.runs("--resume", "", env={"CLAUDE_CODE_SESSION_ID": ""})
    room.watch.follow(replace(room.watched(), kill_id="kill-2", sessions=(replace(room.session, session=ONE, uid=-1),)))
    theirs = room.runs("--resume", ONE, env={"CLAUDE_CODE_SESSION_ID": ONE})
    time.sleep(2.5)
    assert ours.poll() is None and theirs.poll() is None and room.rows == []


def test_the_same_program_in_the_same_folder_is_shown_and_lives(room: Room) -> None:
    room.start()
    other = room.runs("--resume", TWO, cwd=room.stage.home)
    row = until(lambda: next((r for r in room.rows if r.by == "working folder"), None))
    assert row is not None and (row.pid, row.certain, row.killed) == (other.pid, False, False)
    assert room.lives(other)


@pytest.mark.parametrize("words", [("logs", ONE), (f"/home/x/{ONE}.jsonl",), ("-c", f"claude --resume {ONE}")])
def test_a_mention_of_the_id_is_shown_and_lives(room: Room, words: tuple[str, ...]) -> None:
    room.start()
    reader = room.runs(*words, cwd=Path("/"))
    assert room.lives(reader)
    assert until(lambda: [(r.certain, r.killed) for r in room.rows if r.pid == reader.pid]) == [(False, False)]
    assert reader.poll() is None


def test_what_began_before_the_kill_is_no_return(room: Room) -> None:
    before = room.runs("--resume", ONE)
    time.sleep(0.1)
    room.start()
    assert room.lives(before) and all(row.pid != before.pid for row in room.rows)


def here(**more: Any) -> Registered:
    """This process, as the supervisor or as an agent."""
    return Registered(os.getpid(), processes.start_ticks(os.getpid()) or 0, **more)


def test_what_watchfloor_starts_is_never_touched(room: Room) -> None:
    """Below the supervisor, or below an agent that was launched after the kill."""
    room.registered[0] = here()
    room.start()
    ours = room.runs("--resume", ONE)
    time.sleep(1.5)
    room.registered = [Registered(0, 0), here()]
    with room.watch._lock:
        room.watch._watched = [replace(one, since_ticks=here().ticks) for one in room.watch._watched]
    later = room.runs("--resume", ONE)
    time.sleep(1.5)
    assert ours.poll() is None and later.poll() is None and room.rows == []


@pytest.mark.parametrize("is_adopted", [True, False])
def test_another_agent_that_goes_on_with_the_killed_session_is_a_return(room: Room, is_adopted: bool) -> None:
    """An adopted one, or one that lived before the kill. What it does besides is its own, also the same program in that folder."""
    room.registered = [here(), here(is_adopted=is_adopted)]
    room.start()
    own = room.runs("--resume", TWO)
    assert room.runs("--resume", ONE).wait(20) == -9
    time.sleep(SETTLED_S + 1.0)
    assert own.poll() is None and [row.certain for row in room.rows] == [True]


def test_an_adopted_agent_is_told_by_its_cgroup_though_it_left_its_tree(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cgroup_line", lambda pid, controller="": f"/x/watchfloor-{INSTANCE}/agents/a-2-77/sub")
    room.registered += [Registered(1 << 30, 1, "a-2-77", is_adopted=True), Registered(0, 0, "a-2-7")]
    room.start()
    assert room.runs("--resume", ONE).wait(20) == -9
    room.registered = [Registered(0, 0), Registered(0, 0, "a-2-77")]  # it is being launched
    ours = room.runs("--resume", ONE)
    time.sleep(1.5)
    assert ours.poll() is None and len(room.rows) == 1


def test_the_caller_and_what_is_above_it_are_never_killed(room: Room) -> None:
    (room.stage.home / "sleep").write_text("import time\ntime.sleep(600)\n")
    room.start()
    room.watch._spared = lambda: frozenset(processes.every_pid())
    shell = room.runs("--resume", ONE)
    row = until(lambda: room.rows)[0]
    assert (row.certain, row.killed) == (False, False) and "caller" in row.why and shell.poll() is None


def test_another_account_is_not_the_session(room: Room) -> None:
    room.session = replace(room.session, uid=room.stage.uid + 1)
    room.start()
    other = room.runs("--resume", ONE, env={"CLAUDE_CODE_SESSION_ID": ONE})
    time.sleep(1.5)
    assert other.poll() is None and room.rows == []


def test_a_program_that_becomes_the_session_later_is_killed(room: Room) -> None:
    room.start()
    argv = ["claude", str(room.stage.home / "sleep"), "--resume", ONE]
    later = f"import os, time\ntime.sleep(2.5)\nos.execv({str(room.stage.program)!r}, {argv!r})\n"
    (room.stage.home / "later").write_text(later)
    (room.stage.home / "sleep").write_text("import time\ntime.sleep(600)\n")
    assert room.stage.spawn("later", cwd=room.stage.home).wait(30) == -9


def waiting(room: Room, *words: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A process from before the kill that becomes the session's program later, as ``sh -c`` does with its last command."""
    (room.stage.home / "sleep").write_text("import time\ntime.sleep(600)\n")
    argv = ["claude", str(room.stage.home / "sleep"), *words]
    code = f"import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\nos.execv({str(room.stage.program)!r}, {argv!r})\n"
    script = room.stage.home / f"waits-{secrets.token_hex(4)}"
    script.write_text(f"open({str(script)!r} + '-runs', 'w')\n{code}")
    found = room.stage.spawn(script.name, env=env)
    until(lambda: Path(f"{script}-runs").exists())
    return found


def test_a_process_from_before_the_kill_that_becomes_the_session_is_killed(room: Room) -> None:
    """Whatever it was by then; what resumed another session, or this one before the kill, lives."""
    before, other = room.runs("--resume", ONE), waiting(room, "--resume", TWO)
    later = waiting(room, "--resume", ONE)
    room.watch.mark()
    room.start()
    time.sleep(0.5)
    (room.stage.home / "go").touch()
    assert later.wait(20) == -9
    until(lambda: room.rows)
    assert [(row.pid, row.certain, row.proven) for row in room.rows if row.certain] == [(later.pid, True, True)]
    time.sleep(SETTLED_S + 2.5)
    assert before.poll() is None and other.poll() is None
    assert [row.pid for row in room.rows if not row.certain] == [other.pid], "by its folder: shown, as ever"


def test_a_shell_of_before_that_only_inherits_the_id_and_becomes_another_program_lives(room: Room) -> None:
    room.session = replace(room.session, exe="/nowhere")
    shell = waiting(room, env={"CLAUDE_CODE_SESSION_ID": ONE})
    room.watch.mark()
    room.start()
    (room.stage.home / "go").touch()
    row = until(lambda: room.rows)[0]
    assert (row.pid, row.certain, row.killed) == (shell.pid, False, False) and shell.poll() is None


def test_the_session_s_own_socket_below_its_daemon_is_a_return(tmp_path: Path) -> None:
    """A spare gets the session: its arguments tell nothing, and it began before the kill."""
    with Stage() as stage:
        stage.start(ONE)
        assert stage.daemon is not None
        room = Room(tmp_path, stage)
        sign, ticks = str(stage.sockets / "rv" / f"{ONE[:8]}.sock"), processes.start_ticks(stage.daemon.pid) or 0
        pid = stage.pid_of(ONE)
        room.session = replace(room.session, sign=sign, daemon=stage.daemon.pid, daemon_ticks=ticks, exe="", cwd="")
        room.start()
        row = until(lambda: room.rows)[0]
        assert (row.pid, row.by, row.certain, row.proven) == (pid, "daemon", True, True)
        with room.watch._lock:
            room.watch._watched = []
        until(lambda: not room.watch._is_running)


def test_the_next_guard_goes_on_with_it(room: Room) -> None:
    room.watch.follow(replace(room.watched(), killed_at=time.time() - 30), run=False)
    room.watch.follow(replace(room.watched(-1), kill_id="kill-0", killed_at=time.time() - 30), run=False)
    room.watch.save()
    last = time.time() - 20
    os.utime(room.folder / WATCH_FILE, (last, last))
    missed = unwatched(room.folder, "kill-0")
    assert missed is not None and missed.until < time.time() and unwatched(room.folder, "kill-2") is None
    room.watch = room.make()
    assert room.watch.resume() == 1
    gap = room.gaps[0]
    assert last - 0.1 < gap.since <= gap.until <= time.time() + 0.1 and room.rows == [], "what nobody looked at is said"
    assert room.runs("--resume", ONE).wait(20) == -9
    (room.folder / WATCH_FILE).write_text("[{]")
    assert room.make().resume() == 0


def test_the_id_stands_behind_a_word_of_the_program_s_own(room: Room) -> None:
    assert carries(("claude", "--resume", ONE), room.session) and carries(("claude", "x", f"--session-id={ONE}"), room.session)
    for argv in (
        ("claude", ONE),
        ("claude", "--resume", f"{ONE}x"),
        ("claude", "--resume", f"/x/{ONE}.txt"),
        ("--resume",),
        ("", "--resume"),
    ):
        assert not carries(argv, room.session)


def test_the_marker_of_an_agent_that_was_launched_again_is_no_return(room: Room) -> None:
    room.start()
    assert room.watch.launched_again("agent-1") and not room.watch.launched_again("agent-1")
    assert room.lives(room.runs(env=MARKS))


def test_an_agent_that_is_launched_again_in_the_middle_of_a_look_is_no_return(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    every_pid = processes.every_pid

    def looks() -> list[int]:
        if not started:
            assert room.watch.launched_again("agent-1")
            started.append(room.runs(env=MARKS))
        return list(every_pid())

    monkeypatch.setattr(processes, "every_pid", looks)
    room.start()
    assert room.lives(until(lambda: started)[0])
