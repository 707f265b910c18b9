"""The panic window as people meet it: on a real display, with real events, with a thread that hangs and a console that is stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
from pytestqt.qtbot import QtBot

from console.gui.window.panic_process import PanicProcess
from console.killswitch.client import moved_instance
from console.killswitch.kernel.processes import is_the_same, start_ticks
from console.panic import raising
from console.settings.places import Places, make_run_dir
from tests.fakes.display import Display
from tests.fakes.instance import Instance, until
from tests.fakes.operator_server import FakeHouse

ROOT = Path(__file__).resolve().parents[2]
TITLE = "Watchfloor panic"
BUTTON = (346, 357)
"""Of the window at 300, 300: the middle of its button."""


@pytest.fixture(scope="module")
def screen() -> Iterator[Display]:
    with Display() as made:
        yield made


class Program:
    """A child whose lines are read as they come."""

    def __init__(self, *argv: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *argv], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._queue: Queue[str] = Queue()
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._queue.put(line.strip())

    def said(self, words: str) -> bool:
        while not self._queue.empty():
            self.lines.append(self._queue.get())
        return any(words in line for line in self.lines)

    def tell(self, words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=90)
        self._reader.join()
        self._process.stdout.close()


Blocked = Callable[[float], tuple[Program, FakeHouse]]


@pytest.fixture
def blocked(screen: Display, places: Places, make_house: Callable[..., FakeHouse]) -> Iterator[Blocked]:
    """The window, armed, on a guard that answers; its hold lasts as long as asked."""
    programs: list[Program] = []

    def make(hold_s: float) -> tuple[Program, FakeHouse]:
        house = make_house()
        program = Program("tests.fakes.blocked_window", str(places.state_dir), str(hold_s), environment=screen.environment)
        programs.append(program)
        until(lambda: program.said("guard"), words="the guard answers")
        screen.hand("mousemove", *BUTTON, "click", 1)
        until(lambda: program.said("armed"), words="the guard is lifted")
        return program, house

    yield make
    for program in programs:
        program.end()


def hold(screen: Display, how: str, seconds: float) -> None:
    """A finger that presses, stays, and lets go."""
    down, up = {"mouse": (("mousedown", 1), ("mouseup", 1)), "key": (("keydown", "space"), ("keyup", "space"))}[how]
    if how == "key":
        screen.hand("windowfocus", screen.windows(TITLE)[0])
    screen.hand(*down, "sleep", seconds, *up)


def ops(house: FakeHouse) -> list[str]:
    return [str(op["op"]) for op in house.guard.ops if op["op"] != "status"]


@pytest.mark.parametrize("how", ["mouse", "key"])
def test_a_hold_that_waits_behind_a_blocked_thread_kills(how: str, screen: Display, blocked: Blocked) -> None:
    program, house = blocked(0.8)
    program.tell("block")
    until(lambda: program.said("blocked"), words="the thread is blocked")
    hold(screen, how, 1.2)
    program.tell("go on")  # press and release wait together
    until(lambda: program.said("killed"), words="it kills")
    assert ops(house) == ["hold"] and house.guard.latched and not program.said("Released at")


@pytest.mark.parametrize("how", ["mouse", "key"])
def test_a_short_press_that_waits_behind_a_blocked_thread_thaws(
    how: str, screen: Display, blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fakes.guard_socket.HOLD_S", 200.0)
    program, house = blocked(120.0)
    program.tell("block")
    until(lambda: program.said("blocked"), words="the thread is blocked")
    hold(screen, how, 0.4)
    program.tell("go on")
    until(lambda: program.said("resumed"), words="it thaws")
    assert ops(house) == ["hold", "let_go"] and not house.guard.latched
    [said] = {line for line in program.lines if "resumed" in line and line.startswith("again")}
    assert 0.3 < float(said.split()[3]) < 100 and "Released at 0.0" not in said, "as long as the finger was down, not as the handling took"


# --- the hidden process -------------------------------------------------------------------------------------------------


def peer_of(path: Path) -> int:
    """The pid that listens there, or 0."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(path))
        except OSError:
            return 0
        return int(struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def has_ended(pid: int) -> bool:
    """Gone, or waiting to be read by process 1."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


ATTEND = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'attend\\n'); time.sleep(600)"


def test_it_is_raised_while_the_console_is_stopped_and_ends_with_the_console_once_its_window_is_closed(
    screen: Display, places: Places, make_house: Callable[..., FakeHouse]
) -> None:
    make_run_dir(places)
    make_house()
    path = places.run_dir / raising.SOCKET
    where = ("--state-dir", str(places.state_dir), "--run-dir", str(places.run_dir))
    hidden = subprocess.Popen([sys.executable, "-m", "console.panic", *where, "--hidden"], cwd=ROOT, env=screen.environment)
    until(lambda: peer_of(path) == hidden.pid, words="it listens")
    console = subprocess.Popen([sys.executable, "-c", ATTEND, str(path)])
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        second = subprocess.run([sys.executable, "-m", "console.panic", *where, "--hidden"], cwd=ROOT, env=screen.environment, timeout=60)
        assert second.returncode == 0 and peer_of(path) == hidden.pid, "there is one"
        assert screen.windows(TITLE) == []
        console.send_signal(signal.SIGSTOP)
        asked = [sys.executable, "-m", "console", "panic-button", "--state-dir", str(places.state_dir)]
        assert subprocess.run(asked, cwd=ROOT, env=screen.environment, timeout=60).returncode == 0
        until(lambda: len(screen.windows(TITLE)) == 1, words="it is shown")
        console.send_signal(signal.SIGCONT)
        console.kill()
        console.wait()
        assert hidden.poll() is None and screen.windows(TITLE), "what is in use stays"
        screen.hand("windowfocus", screen.windows(TITLE)[0], "key", "Escape")
        assert hidden.wait(timeout=60) == 0 and not path.exists()
    finally:
        for process in (console, hidden):
            process.kill()
            process.wait()


def test_a_hidden_process_without_a_run_folder_ends_at_once(screen: Display, tmp_path: Path) -> None:
    """The window of the demo opens before its instance exists; what could never be raised outlived the demo."""
    where = ("--state-dir", str(tmp_path), "--run-dir", str(tmp_path / "run"))
    early = subprocess.run([sys.executable, "-m", "console.panic", *where, "--hidden"], cwd=ROOT, env=screen.environment, timeout=20)
    assert early.returncode == 0


def test_a_hidden_process_that_was_killed_is_started_again_and_leaves_with_the_console(places: Places, qtbot: QtBot) -> None:
    make_run_dir(places)
    path = places.run_dir / raising.SOCKET
    keeper = PanicProcess()
    keeper.start(places)
    qtbot.waitUntil(lambda: keeper._line is not None)
    first = peer_of(path)
    os.kill(first, signal.SIGKILL)
    qtbot.waitUntil(lambda: keeper._line is None)
    qtbot.waitUntil(lambda: keeper._line is not None)
    second = peer_of(path)
    assert second not in (0, first)
    keeper.stop()
    qtbot.waitUntil(lambda: has_ended(second))
    assert not path.exists()


@pytest.mark.usefixtures("forked")
def test_raised_after_the_state_directory_was_moved_it_kills_the_agents_that_ran_in_it(state_dir: Path, screen: Display) -> None:
    home = state_dir / "st"
    home.mkdir(mode=0o711)
    with Instance(home) as it:
        pid, moved = it.agent_pid(it.launch("sleep", "600")), home.with_name("moved")
        ticks = start_ticks(pid)
        assert ticks is not None
        home.rename(moved)
        asked = [sys.executable, "-m", "console", "panic-button", "--state-dir", str(home)]
        until(lambda: list(moved_instance.found_for(home)), words="the guard records elsewhere")
        opened = subprocess.Popen(asked, cwd=ROOT, env=screen.environment)
        try:
            until(lambda: len(screen.windows(TITLE)) == 1, words="the window is shown")
            screen.hand("windowmove", "--sync", screen.windows(TITLE)[0], 300, 300)
            screen.hand("mousemove", *BUTTON, "click", 1, "sleep", 0.5)
            hold(screen, "mouse", 1.2)
            until(lambda: not is_the_same(pid, ticks), words="the agent is dead")
        finally:
            opened.kill()
            opened.wait()
            for left in (home,) if home.exists() else ():
                shutil.rmtree(left)  # what the supervisor made anew there
            moved.rename(home)
        until(lambda: not list(moved_instance.found_for(home)), words="the guard records at home again")


def test_one_that_is_stopped_is_done_without(places: Places, screen: Display) -> None:
    make_run_dir(places)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(places.run_dir / raising.SOCKET))
        silent.listen(8)
        assert not raising.raise_window(str(places.run_dir / raising.SOCKET))
        asked = [sys.executable, "-m", "console", "panic-button", "--state-dir", str(places.state_dir)]
        opened = subprocess.Popen(asked, cwd=ROOT, env=screen.environment)
        try:
            until(lambda: len(screen.windows(TITLE)) == 1, words="a window of its own is shown")
        finally:
            opened.kill()
            opened.wait()


def test_an_agent_neither_raises_it_nor_is_taken_for_it(tmp_path: Path) -> None:
    """A process of another PID namespace, as agents without a cgroup live in one."""
    path = tmp_path / "panic.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        code = f"import socket, time; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); time.sleep(600)"
        agent = subprocess.Popen(["unshare", "-Urpf", "--kill-child", sys.executable, "-c", code])
        try:
            listener.settimeout(60)
            try:
                line, _ = listener.accept()
            except TimeoutError:
                pytest.skip("no PID namespace can be made here")
            with line:
                assert not raising.is_ours(line)
        finally:
            agent.kill()
            agent.wait()
    assert raising._is_agents("0::/watchfloor-0a1b2c3d/agents/a-1") and raising._is_agents("1:name=x:/u/watchfloor-0a1b2c3d/agents/a-1/x")
    assert not raising._is_agents("0::/user.slice/agents") and not raising._is_agents("0::/watchfloor-0a1b2c3d/guard")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert raising.is_ours(ours)


@pytest.mark.parametrize(
    ("asked", "own", "seen"),
    [(":0|", ":0|", True), (":0|", ":0|wayland-0", True), ("|wayland-0", ":1|wayland-0", True), ("|", ":0|", True), (":1|", ":0|", False)],
)
def test_a_window_is_raised_only_where_it_is_seen(asked: str, own: str, seen: bool) -> None:
    assert raising.shares_display(asked, own) is seen


LOADED = """
import json, sys
from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from console.panic import __main__ as program
def tell():
    print(json.dumps(sorted(sys.modules)))
    QGuiApplication.quit()
make = program.make_application
def made():
    app = make()
    QTimer.singleShot(1000, app, tell)
    return app
program.make_application = made
sys.exit(program.main(sys.argv[1:]))
"""


def test_a_living_panic_window_has_loaded_little(places: Places) -> None:
    make_run_dir(places)
    where = ("--state-dir", str(places.state_dir), "--run-dir", str(places.run_dir))
    done = subprocess.run([sys.executable, "-c", LOADED, *where], cwd=ROOT, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout)
    ours = [name for name in modules if name.split(".")[0] == "console"]
    assert len(ours) <= 30 and not [name for name in ours if name.startswith(("console.gui", "console.settings", "console.api"))], ours
    assert {m for m in modules if m.startswith("PySide6.Qt")} == {"PySide6.QtCore", "PySide6.QtGui", "PySide6.QtWidgets"}


def test_raising_it_imports_no_command_line(places: Places) -> None:
    code = "import sys; from console.panic.raising import raise_quickly; print(raise_quickly(sys.argv[1:])); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "--state-dir", str(places.state_dir)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    said, loaded = done.stdout.splitlines()
    assert said == "False" and not {"typer", "json", "dataclasses", "PySide6"} & set(loaded.split())
