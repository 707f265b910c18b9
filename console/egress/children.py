"""Our child processes: started with nothing they do not need, kept running with a back-off, ended for certain."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

PROGRAMS = Path(__file__).resolve().parent
_BACKOFF_FIRST_S, _BACKOFF_MAX_S, _STEADY_S = 0.2, 5.0, 10.0


@dataclass(frozen=True, slots=True)
class Identity:
    """The uid and gid a child runs as. Only root can choose; otherwise everything is ours."""

    uid: int
    gid: int


def identities() -> tuple[Identity, Identity]:
    """(Envoy's, a relay's). One group, which passes the folder of the sockets; agents run under other ids."""
    if os.geteuid() != 0:
        ours = Identity(os.geteuid(), os.getegid())
        return ours, ours
    # Far above the system's accounts: measured, the number 101 of Envoy's own image is another account on Debian.
    return Identity(65532, 65532), Identity(65531, 65532)


def python(program: str, *arguments: object, pass_fds: Iterable[int] = ()) -> subprocess.Popen[bytes]:
    """Runs one of this room's programs as it is, isolated from site packages and environment."""
    command = [sys.executable, "-I", "-S", str(PROGRAMS / program), *map(str, arguments)]
    return subprocess.Popen(command, env={}, cwd="/", stdin=subprocess.DEVNULL, pass_fds=tuple(pass_fds))


def launch(
    who: Identity,
    cwd: Path,
    args: list[Any],
    *,
    program: str = "",
    executable: Path | None = None,
    netns: Path | None = None,
    umask: int = 0o077,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Runs ``program`` (a file of this room) or ``executable`` through launch.py: without privilege, without environment."""
    spec = {
        "uid": who.uid,
        "gid": who.gid,
        "cwd": str(cwd),
        "bind": executable is not None and os.geteuid() == 0 and not passable(cwd),
        "args": args,
        "umask": umask,
        "parent": os.getpid(),
        "netns": str(netns) if netns else "",
        "program": str(PROGRAMS / program) if program else "",
        "exec": str(executable) if executable else "",
    }
    command = [sys.executable, "-I", "-S", str(PROGRAMS / "launch.py"), json.dumps(spec)]
    return subprocess.Popen(command, env={}, cwd="/", stdin=stdin, stdout=stdout, stderr=stderr)


def readable(descriptor: int, timeout_s: float | None) -> bool:
    """Whether it can be read, is closed at its other end, or (of a pidfd) is over within that time; None waits for ever."""
    poll = select.poll()  # select() fails on descriptors above 1023
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else max(0, int(timeout_s * 1000))))


def passable(folder: Path) -> bool:
    """Whether every user may pass through all parents of a folder."""
    return all(parent.stat().st_mode & 0o001 for parent in folder.absolute().parents)


class Child(Protocol):
    """What is used of a child: ``subprocess.Popen``, or a container that stands for one (``envoy_container.Child``)."""

    @property
    def pid(self) -> int: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


def end(process: Child) -> None:
    """SIGKILL, reaped, pipes closed. ``Popen`` never signals a pid it has reaped."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


class KeptProcess:
    """A child that is started again when it dies, a little later each time; its thread lives as long as it is wanted."""

    def __init__(self, name: str, spawn: Callable[[], Child]) -> None:
        self._name, self._spawn = name, spawn
        self._wanted = threading.Event()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._process: Child | None = None
        self._thread: threading.Thread | None = None
        self.failure = ""
        """Why it last ended, or empty."""
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """Its pid while it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def process(self) -> Child | None:
        return self._process

    def start(self) -> None:
        """Starts it and keeps it started, until ``stop``."""
        self._wanted.set()
        self._ended.clear()
        self._thread = threading.Thread(target=self._keep, name=f"egress-{self._name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it for good."""
        self._wanted.clear()
        self._ended.set()
        with self._lock:
            if self._process is not None:
                self._process.kill()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _keep(self) -> None:
        delay = _BACKOFF_FIRST_S
        while True:
            began = time.monotonic()
            with self._lock:
                if not self._wanted.is_set():
                    return
                try:
                    self._process = self._spawn()
                    self.starts += 1
                except OSError as error:
                    self._process, self.failure = None, f"{self._name} does not start: {error}"
            if self._process is not None:
                code = self._process.wait()
                end(self._process)
                self.failure = f"{self._name} ended with {code}"
            if time.monotonic() - began > _STEADY_S:
                delay = _BACKOFF_FIRST_S
            if self._ended.wait(delay):
                return
            # A program that fails at once must not be started hundreds of times a second.
            delay = min(delay * 2, _BACKOFF_MAX_S)
