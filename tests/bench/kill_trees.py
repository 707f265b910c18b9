"""Trees of processes to kill, and how others kill them: parts of ``kill.py``."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from tests.fakes.guard_world import ENTER, until

TREE = r"""
import os, select, signal, sys, time
total, hostile = int(sys.argv[1]), sys.argv[2] == "hostile"
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def rest():
    while True: time.sleep(600)
def orphan():
    if os.fork(): os._exit(0)
    os.setsid()
def rabbit():                                   # a new process and a new session all the time
    while True:
        try:
            if os.fork(): os._exit(0)
        except OSError: continue
        os.setsid(); time.sleep(0.002)
def watchdogs(other):                           # each starts the other again when it dies
    while True:
        try:
            fd = os.pidfd_open(other)
            poll = select.poll(); poll.register(fd, select.POLLIN); poll.poll(); os.close(fd)
        except ProcessLookupError: pass
        me = os.getpid(); child = os.fork()
        other = child or me
odd = max(1, total // 50) if hostile else 0
plain = total - 1 - 3 * odd
for i in range(plain):
    if os.fork() == 0:
        share = i * 10 // max(plain, 1)
        if hostile and share >= 4:
            if share < 6: os.setsid()
            else: orphan()
            if share >= 8: os.execve("/bin/sleep", ["[kworker/u9:3]", "600"], {})
        rest()
for _ in range(odd):
    if os.fork() == 0: orphan(); rabbit()
    if os.fork() == 0:
        orphan(); me = os.getpid(); child = os.fork()
        watchdogs(child or me)
rest()
"""
PYTHON = (sys.executable, "-S", "-c")


def psutil_recipe(pid: int) -> None:
    """psutil's documentation, "Kill process tree"."""
    try:
        parent = psutil.Process(pid)
        everyone = [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return
    for process in everyone:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(everyone, timeout=1)


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def expire(pid: int) -> None:
    """GNU timeout's own alarm, now: what it does then is what it does at its time."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGALRM)


@contextlib.contextmanager
def supervised(folder: Path, places: list[str], argv: list[str]) -> Iterator[Callable[[], object]]:
    """The tree as a program of supervisord; what is given is ``supervisorctl stop``. FileNotFoundError without supervisor (PyPI)."""
    program = Path(sys.executable).with_name("supervisord")
    if not program.exists():
        raise FileNotFoundError("supervisord")
    script, settings, socket = folder / "tree.sh", folder / "supervisord.conf", folder / "sv.sock"
    quoted = " ".join("'" + a.replace("'", "'\\''") + "'" for a in ["/bin/sh", "-c", ENTER, "sh", *places, "--", *argv])
    script.write_text(f"#!/bin/sh\nexec {quoted}\n")
    script.chmod(0o755)
    settings.write_text(
        f"[unix_http_server]\nfile={socket}\n[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\npidfile={folder}/sv.pid\n"
        "[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n"
        f"[supervisorctl]\nserverurl=unix://{socket}\n[program:tree]\ncommand={script}\nstopasgroup=true\nkillasgroup=true\nstopwaitsecs=1\n"
        "autorestart=false\nstdout_logfile=/dev/null\nstderr_logfile=/dev/null\n"
    )
    daemon = subprocess.Popen(
        [str(program), "-c", str(settings)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(socket.exists, "supervisord answers")
        control = [str(program.with_name("supervisorctl")), "-c", str(settings), "stop", "tree"]
        yield lambda: subprocess.run(control, check=False, capture_output=True, timeout=60)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(60)
        for file in (script, settings):
            file.unlink()


def has_supervisor() -> bool:
    return Path(sys.executable).with_name("supervisord").exists() and shutil.which("timeout") is not None
