"""Real processes of ours without the wait for their imports: a process that has imported them forks each one.

``python -m console.supervisor`` takes seconds to import what it needs and a fraction of one to start; the fault suite starts dozens.
What runs in a child is what ``python -m MODULE`` runs, with its own environment, arguments, pid and end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from console.domain.process import failpoints
from console.egress.children import readable
from console.egress.envoy import process

ROOT = Path(__file__).resolve().parents[2]
SUPERVISOR = """
import console.supervisor.compose, console.supervisor.embedded, console.cli.embedded, console.supervisor.home, email.policy
from tests.fakes.nursery import warm_up
warm_up()"""
VERBS = f"{SUPERVISOR}\nfrom console.cli.find import every_verb\nlist(every_verb())"
WINDOW = "import console.panic.__main__, console.gui.window.main, PySide6.QtTest"


WITHOUT_ENVOY = "WATCHFLOOR_TESTS_WITHOUT_ENVOY"
"""In a child's environment: it finds no Envoy, as on a host that has none. Tests that are not marked ``envoy`` need none."""

SHARED: list[Nursery] = []
"""The one of this test session, where a conftest keeps one: supervisors and verbs of the fakes are forked by it."""


class Nursling:
    """One child: its pid, what it printed, and how it ended."""

    def __init__(self, pid: int, out: Path) -> None:
        self.pid, self.out = pid, out
        self._pidfd = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._pidfd)

    def said(self) -> str:
        """Its stdout and stderr so far (stdout alone of a verb, whose stderr lies in a file of its own)."""
        return self.out.read_text(errors="replace")

    def complaints(self) -> str:
        """A verb's stderr."""
        return self.out.with_suffix(".err").read_text(errors="replace")

    def send_signal(self, number: int) -> None:
        """ProcessLookupError when it has ended."""
        signal.pidfd_send_signal(self._pidfd, number)

    def has_ended(self, timeout: float = 0.0) -> bool:
        """Waits that long at most."""
        return readable(self._pidfd, timeout)

    def wait(self, timeout: float = 90.0) -> int:
        """Its exit code, negative for a signal; fails when it goes on."""
        assert self.has_ended(timeout), f"pid {self.pid} goes on: {self.said()[-2000:]}"
        code = self.out.with_suffix(".code")
        while not code.exists() or not code.read_text():
            time.sleep(0.005)
        return int(code.read_text())

    def sits(self) -> bool:
        """Whether it has a terminal of its own (proc(5), field 7)."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[4] != "0"
        except OSError:
            return False

    def end(self) -> None:
        """SIGKILL, and waits."""
        with contextlib.suppress(ProcessLookupError):
            self.send_signal(signal.SIGCONT)
            self.send_signal(signal.SIGKILL)
        self.wait()


class Nursery:
    """The parent of them all. ``close`` when every child has ended."""

    def __init__(self, folder: Path, preload: str = SUPERVISOR) -> None:
        self._folder, self._number, self._lock = folder, 0, threading.Lock()
        folder.mkdir()
        command = [sys.executable, "-c", f"{preload}\nfrom tests.fakes.nursery import serve\nserve()"]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, module: str, *argv: str, **env: str) -> Nursling:
        """``python -m MODULE ARGV`` with these variables besides ours."""
        with self._lock:
            self._number += 1
            out = self._folder / f"{self._number}.out"
            out.touch()
            request: dict[str, object] = {
                "module": module,
                "argv": argv,
                "env": {**os.environ, "QT_QPA_PLATFORM": "offscreen", **env},
                "out": str(out),
            }
            return self._ask(request, out)

    def verb(
        self, *argv: str, cwd: Path, env: dict[str, str], given: str | None = None, lines: Sequence[str] = (), terminal: str = ""
    ) -> Nursling:
        """``python -m console ARGV`` with exactly this environment, in this folder; ``given`` is its stdin.

        ``lines`` are read from descriptors 3, 4, ...; ``terminal`` is a pseudo-terminal that becomes its own, as a person's.
        """
        with self._lock:
            self._number += 1
            out = self._folder / f"{self._number}.out"
            for file in (out, out.with_suffix(".err")):
                file.touch()
            out.with_suffix(".in").write_text(given or "")
            request: dict[str, object] = {"module": "console", "argv": argv, "env": env, "out": str(out), "cwd": str(cwd)}
            request |= {"lines": list(lines), "terminal": terminal}
            return self._ask(request, out)

    def _ask(self, request: dict[str, object], out: Path) -> Nursling:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        try:
            return Nursling(int(self._process.stdout.readline()), out)
        finally:
            self._process.stdin.write(b"{}\n")  # it is held: however short it lives, its number was its own until now
            self._process.stdin.flush()

    def close(self) -> None:
        """Ends the parent."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(90)
        self._process.stdout.close()


def warm_up() -> None:
    """What each supervisor computes alike before it is ready: what is built in about policies, and the patterns of it and of routes."""
    from starlette.routing import compile_path

    from console.api.policy import policy_data
    from console.policy.rules.loading import read_settings

    for read in (policy_data.catalogue, policy_data.tools, policy_data.dangers, policy_data.sequences):
        read()
    read_settings(policy_data.default_rules())
    for file in (*(ROOT / "console" / "supervisor").rglob("*.py"), *(ROOT / "console" / "services").rglob("*.py")):
        for path in re.findall(r'"(/(?:api|v1)/[^"]*)"', file.read_text()):
            compile_path(path)  # kept by re


def serve() -> None:
    """The parent's loop: one JSON line asks for a child and is answered by its pid; how each ended is left in a file.

    None is reaped before whoever asked for it holds it, which an empty request says.
    """
    running: dict[int, Path] = {}
    told: tuple[int, Path] | None = None
    asked = b""
    gc.collect()
    gc.freeze()  # what was imported is looked through for garbage in no child
    while True:
        ready = readable(0, 0.01)
        for pid in list(running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                running.pop(pid).write_text(str(os.waitstatus_to_exitcode(status)))
        if not ready:
            continue
        data = os.read(0, 1 << 20)
        if not data:
            return
        asked += data
        while b"\n" in asked:
            line, _, asked = asked.partition(b"\n")
            request = json.loads(line)
            if not request:
                assert told is not None
                running[told[0]] = told[1]
                continue
            pid = os.fork()
            if pid == 0:
                _become(request)
            told = (pid, Path(request["out"]).with_suffix(".code"))
            os.write(1, f"{pid}\n".encode())


def _sit_down_at(terminal: str) -> None:
    """As ``setsid --ctty``: the first terminal that a leader of a session opens is its own (tty(4))."""
    os.setsid()
    own = os.open(terminal, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(own, number)
    os.close(own)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - for the rest of its life
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _give(line: str, number: int) -> None:
    """A pipe that holds one line, to be read as this descriptor."""
    read, write = os.pipe()
    os.write(write, line.encode() + b"\n")
    os.close(write)
    if read != number:
        os.dup2(read, number)
        os.close(read)
    os.set_inheritable(number, True)


def _become(request: dict[str, object]) -> None:
    """The child: never returns."""
    env, argv = request["env"], request["argv"]
    assert isinstance(env, dict) and isinstance(argv, list)
    out = errors = os.open(str(request["out"]), os.O_WRONLY | os.O_APPEND)
    given = "/dev/null"
    if "cwd" in request:
        os.chdir(str(request["cwd"]))
        given = str(Path(str(request["out"])).with_suffix(".in"))
        errors = os.open(str(Path(str(request["out"])).with_suffix(".err")), os.O_WRONLY | os.O_APPEND)
    for number, source in ((0, os.open(given, os.O_RDONLY)), (1, out), (2, errors)):
        os.dup2(source, number)
    os.closerange(3, 64)
    if request.get("terminal"):
        _sit_down_at(str(request["terminal"]))
    lines = request.get("lines") or []
    assert isinstance(lines, list)
    for number, line in enumerate(lines, 3):
        _give(str(line), number)
    os.environ.clear()
    os.environ.update(env)
    failpoints._armed = env.get(failpoints.VARIABLE, "")
    if os.environ.pop(WITHOUT_ENVOY, ""):
        process.find_envoy = lambda: (None, "this test needs none")
    sys.argv = [str(request["module"]), *argv]
    code: object = 1
    try:
        runpy.run_module(str(request["module"]), run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = error.code
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)
