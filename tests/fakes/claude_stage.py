"""A stand-in for Claude Code's background service: its processes, sockets and folders as 2.1.330 lays them out, without a model.

The programs are copies of this Python in a folder that reads as the npm package, so that executable, arguments and sockets are real to the
kernel. ``with Stage() as stage: stage.start(SESSION)``; what it started it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.fakes.going_on import PYTHON
from tests.fakes.instance import listens, until

AGAIN_S = 1.0
"""The real one resumes a session 10 s after its process died."""

DAEMON = f"""
import os, pathlib, socket, subprocess, sys, time
here, exe = pathlib.Path(sys.argv[2]), "/proc/self/exe"
program = os.readlink(exe)
for name in ("rv", "spare"): (here / name).mkdir(mode=0o700, exist_ok=True)
door = socket.socket(socket.AF_UNIX); door.bind(str(here / "control.sock")); door.listen(8); door.settimeout(0.05)
hosts, died = {{}}, {{}}
def start(session, *words): hosts[session] = subprocess.Popen([program, "host", str(here), session, *words], start_new_session=True)
if "--idle" in sys.argv: subprocess.Popen([program, "host", str(here), "idle"], start_new_session=True)
while True:
    try:
        one = door.accept()[0]; one.settimeout(0.5); words = one.recv(200).decode().split()
    except (TimeoutError, OSError): words = []
    if words[:1] == ["start"]: start(words[1], "--session-id", words[1])
    if words[:1] == ["stop"]:
        for session in [s for s in hosts if s.startswith(words[1])]: hosts.pop(session).kill(); died.pop(session, None)
    for session, host in list(hosts.items()):
        if host.poll() is not None:
            died.setdefault(session, time.monotonic())
            if time.monotonic() - died[session] > {AGAIN_S}: del died[session]; start(session, "--resume", f"/x/{{session}}.jsonl")
"""
HOST = """
import os, subprocess, sys
program = os.readlink("/proc/self/exe")
sys.exit(subprocess.run([program, "session", *sys.argv[1:]]).returncode)
"""
SESSION = """
import pathlib, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
here, session = pathlib.Path(sys.argv[1]), sys.argv[2]
path = here / "spare" / "0badcafe.claim.sock" if session == "idle" else here / "rv" / f"{session[:8]}.sock"
path.unlink(missing_ok=True)
door = socket.socket(socket.AF_UNIX); door.bind(str(path)); door.listen(8)
signal.pause()
"""
STOP = """
import os, pathlib, socket, sys
if sys.orig_argv[1:2] == ["stop"]:
    home = pathlib.Path(os.environ["HOME"])
    one = socket.socket(socket.AF_UNIX); one.connect(str(home / "sockets" / "control.sock"))
    one.send(("stop " + sys.orig_argv[2]).encode())
    (home / "stopped").open("a").write(sys.orig_argv[2] + "\\n")
    os._exit(0)
"""
"""What the program does as ``claude stop SHORT``, wherever it is started: Python reads it from below HOME."""


class Stage:
    """One daemon below one throw-away folder, under ``uid``."""

    def __init__(self, uid: int | None = None, package: str = "@anthropic-ai/claude-code", idle: bool = True) -> None:
        self.uid = uid if uid is not None else (65534 if os.geteuid() == 0 else os.geteuid())
        self.root = Path(tempfile.mkdtemp(prefix="claude-stage-"))
        self.root.chmod(0o755)
        program = self.root / "package" / "bin" / "claude.exe"
        program.parent.mkdir(parents=True)
        shutil.copy2(Path(PYTHON).resolve(), program)
        program.chmod(0o755)
        (self.root / "package" / "package.json").write_text(json.dumps({"name": package, "version": "2.1.330"}))
        self.program, self.home, self.sockets = program, self.root / "home", self.root / "home" / "sockets"
        self.home.mkdir()
        for name, text in (("daemon", DAEMON), ("host", HOST), ("session", SESSION)):
            (self.home / name).write_text(text)
        self.stop = self.home / ".local" / "lib" / Path(PYTHON).resolve().name / "site-packages" / "usercustomize.py"
        self.stop.parent.mkdir(parents=True)
        self.stop.write_text(STOP)
        self.sockets.mkdir(mode=0o700)
        if os.geteuid() == 0:
            for path in (self.home, self.sockets):
                os.chown(path, self.uid, self.uid)
        self.idle = idle
        self.daemon: subprocess.Popen[bytes] | None = None
        self.spawned: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Stage:
        more = ["--idle"] if self.idle else []
        with ExitStack() as stack:
            stack.push(self)
            self.daemon = self.spawn("daemon", "run", str(self.sockets), *more)
            until(lambda: listens(self.sockets / "control.sock"), words="the daemon listens")
            if self.idle:
                until(lambda: listens(self.sockets / "spare" / "0badcafe.claim.sock"), words="its spare child waits")
            stack.pop_all()
        return self

    def spawn(self, *words: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A process of the program, its own session leader."""
        own = os.geteuid() != 0
        process = subprocess.Popen(
            [str(self.program), *words],
            cwd=cwd or self.home,
            env={"PYTHONHOME": "/usr", "HOME": str(self.home), "PATH": "/usr/bin:/bin", **(env or {})},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            user=None if own else self.uid,
            group=None if own else self.uid,
            extra_groups=None if own else [],
        )
        self.spawned.append(process)
        return process

    def start(self, session: str) -> int:
        """Pid of a new session's process."""
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(self.sockets / "control.sock"))
            one.send(f"start {session}".encode())
        until(lambda: listens(self.sockets / "rv" / f"{session[:8]}.sock"), words=f"session {session} listens")
        return until(lambda: self.pid_of(session))

    def pid_of(self, session: str) -> int:
        """Of the process that runs a session now; 0: none does."""
        for name in os.listdir("/proc"):
            with suppress(OSError):
                if name.isdecimal() and os.readlink(f"/proc/{name}/exe") == str(self.program):
                    words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                    if words[1:2] == [b"session"] and session.encode() in words:  # one that has just begun has no words yet
                        return int(name)
        return 0

    def processes(self) -> list[int]:
        """Everything that runs the program."""
        found = []
        for name in os.listdir("/proc"):
            with suppress(OSError):
                if name.isdecimal() and os.readlink(f"/proc/{name}/exe").removesuffix(" (deleted)") == str(self.program):
                    found.append(int(name))
        return found

    def stopped(self) -> list[str]:
        """Sessions that were dropped by the program's own command."""
        with suppress(OSError):
            return (self.home / "stopped").read_text().split()
        return []

    def __exit__(self, *_: object) -> None:
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        for process in self.spawned:
            process.kill()
            process.wait(10)
        shutil.rmtree(self.root, ignore_errors=True)
