"""Starts a sandbox outside of what binds the supervisor's own unit: systemd starts it, so nothing is inherited from the supervisor.

A seccomp filter and a mount namespace pass to every child (seccomp(2), mount_namespaces(7)). An agent needs debuggers, namespaces and a
/proc of its own, which watchfloor.service refuses to the supervisor (docs/decisions/0015-agents-start-outside-the-unit.md).

As a program, ``python -I -S outside.py PID DESCRIPTORS PROGRAM ARGUMENT...``, it runs between systemd and a program of ours. It opens what
the process has open under these numbers (``7:4711,9:4712``: each with its inode), tells it so through the last one, and runs the program.
"""

from __future__ import annotations

import fcntl
import os
import runpy
import secrets
import select
import subprocess
import sys
from collections.abc import Sequence

UNITS = "WATCHFLOOR_AGENT_UNITS"
"""Set by watchfloor.service: the first part of the names of units in which systemd starts agents. Drop-ins of that name bind them."""
_SYSTEMD_RUN = "/usr/bin/systemd-run"
# With oneshot systemd-run ends when the program did, and asks systemd itself. --wait and --pipe need D-Bus, which agents could flood.
_OPTIONS = ("--quiet", "--collect", "--property=Type=oneshot", "--description=Watchfloor starts an agent")
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8")  # -X utf8: the same bytes for names whatever the locale
_TAKE_S = 30.0
_SAID_MAX = 300


def prefix() -> tuple[str, ...]:
    """The words that have systemd run a command to its end; none where nothing binds the supervisor."""
    if not (units := os.environ.get(UNITS, "")):
        return ()
    # env: systemd gives each unit some variables of its own.
    return (_SYSTEMD_RUN, *_OPTIONS, f"--unit={units}{secrets.token_hex(8)}.service", "--", "/usr/bin/env", "-i")


def start(program: str, arguments: Sequence[object], fds: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """Start one of our own programs, without an environment and with these descriptors under their numbers.

    What is returned ends once the program did. Raises OSError, with systemd's words where systemd does not start it.
    """
    words = [program, *map(str, arguments)]
    if not (before := prefix()):
        return _popen([*_PYTHON, *words], None, fds)
    taken, tell = os.pipe()
    try:
        open_here = ",".join(f"{fd}:{os.fstat(fd).st_ino}" for fd in (*fds, tell))
        started = _popen([*before, *_PYTHON, __file__, str(os.getpid()), open_here, *words], subprocess.PIPE, ())
        try:
            _await_taken(started, taken)
        except OSError:
            started.kill()
            started.communicate()
            raise
        assert started.stderr is not None
        started.stderr.close()
        return started
    finally:
        os.close(taken)
        os.close(tell)


def _popen(command: Sequence[str], stderr: int | None, fds: tuple[int, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        pass_fds=fds,
        env={},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        close_fds=True,
        start_new_session=True,  # Ctrl-C at a terminal is not for it: doctor tries a sandbox out
    )


def _await_taken(started: subprocess.Popen[bytes], taken: int) -> None:
    """Return once the descriptors were taken: from then on they may be closed here. Raises OSError."""
    gone = os.pidfd_open(started.pid)
    try:
        poll = select.poll()
        for fd in (taken, gone):
            poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(int(_TAKE_S * 1000))}
    finally:
        os.close(gone)
    if taken in ready:
        return
    assert started.stderr is not None
    said = started.stderr.read(_SAID_MAX).decode(errors="replace").strip() if ready else "no answer in time"
    raise OSError(f"systemd does not start it: {said}")


def _take(pid: str, inodes: dict[int, int]) -> None:
    """Open what the process has open under these numbers, under the same numbers: each as it is open there, but for its position."""
    aside = []
    for number, inode in inodes.items():
        with open(f"/proc/{pid}/fdinfo/{number}") as file:  # noqa: PTH123 - pathlib would be a third of this program's start
            [flags] = [int(line.split()[1], 8) for line in file if line.startswith("flags:")]
        opened = os.open(f"/proc/{pid}/fd/{number}", flags & (os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK))
        if os.fstat(opened).st_ino != inode:
            sys.exit("it waits no longer, and has another file under that number")  # written to, that file would be damaged
        # First out of the way: the number that one is to have may be another's by now.
        aside.append(fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, max(inodes) + 1))
        os.close(opened)
    for fd, number in zip(aside, inodes, strict=True):
        os.dup2(fd, number)
        os.close(fd)


def main(pid: str, open_there: str, program: str) -> None:
    """Take the descriptors, tell the supervisor, then be the program."""
    inodes = {int(number): int(inode) for number, _, inode in (one.partition(":") for one in open_there.split(","))}
    _take(pid, inodes)
    *_, tell = inodes
    os.write(tell, b".")
    os.close(tell)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    given, sys.argv[:] = sys.argv[1:4], sys.argv[3:]
    main(*given)
