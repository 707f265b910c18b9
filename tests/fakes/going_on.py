"""An agent with eight ways to go on after a kill, run as ``python3 -S -c`` with a UDP port: each beats there for as long as it acts.

The beats are the oracle: who acts is heard, whatever any list of processes says.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

LIBC = ctypes.CDLL(None, use_errno=True)
NEWUSER, NEWPID, NEWNS, NEWCGROUP = 0x10000000, 0x20000000, 0x20000, 0x02000000
CLONE, EXIT, CLONE_PARENT, SUBREAPER = (56, 60, 0x8000, 36) if os.uname().machine == "x86_64" else (220, 93, 0x8000, 36)
PYTHON = "/usr/bin/python3"


def say(words: str, to: socket.socket | None = None) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        (to or own).sendto(words.encode(), ("127.0.0.1", int(sys.argv[1])))


def beat(name: str, to: socket.socket | None = None) -> NoReturn:
    while True:
        say(name, to)
        time.sleep(0.02)


def unshare(flags: int) -> None:
    if LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def leader() -> None:
    """Its first thread has ended: a zombie, of which another thread lives."""
    threading.Thread(target=beat, args=("leader",)).start()
    LIBC.syscall(EXIT, 0)


def nested() -> None:
    """Six PID namespaces deep, each with an init of its own."""
    unshare(NEWUSER)
    for _ in range(6):
        unshare(NEWPID)
        if os.fork():
            time.sleep(600)
    beat("nested")


def migrates() -> None:
    """A cgroup file system of its own: it moves itself wherever it may."""
    unshare(NEWUSER | NEWNS | NEWCGROUP)
    place = "/mnt"  # in its own mount namespace alone
    LIBC.mount(b"none", place.encode(), b"cgroup2", 0, None)
    for at, _, _ in os.walk(place):
        try:
            with open(f"{at}/cgroup.procs", "w") as file:  # noqa: PTH123 - nothing but what is needed is loaded
                file.write("0")
            say("moved")
        except OSError:
            pass
    beat("migrates")


def nameless() -> None:
    """A program that lies in no file, without environment, under a kernel's name, in a session of its own."""
    os.setsid()
    if os.fork():
        os._exit(0)
    program = os.memfd_create("x", 0)
    with open(PYTHON, "rb") as file:  # noqa: PTH123
        os.write(program, file.read())
    os.execve(program, ["[kworker/0:1]", "-S", "-c", SOURCE, sys.argv[1], "nameless"], {})


def execs() -> None:
    """Another thread than the first one calls execve, again and again."""
    say("execs")
    threading.Thread(target=lambda: os.execv(PYTHON, ["python3", "-S", "-c", SOURCE, sys.argv[1], "execs"])).start()
    time.sleep(600)


def sibling() -> None:
    """A child of whoever started us."""
    if LIBC.syscall(CLONE, CLONE_PARENT | 17, 0, 0, 0, 0) == 0:
        beat("sibling")


def unreaped() -> None:
    """A zombie in a PID namespace below whose parent, outside of it, never waits: that namespace's init cannot end before."""
    unshare(NEWUSER)
    unshare(NEWPID)
    if not (init := os.fork()):
        beat("unreaped")
    LIBC.setns(os.open(f"/proc/{init}/ns/pid", os.O_RDONLY), NEWPID)
    if os.fork() == 0:
        os._exit(0)
    time.sleep(600)


def reapers() -> None:
    """A chain of twenty, each of whom takes in the orphans of those below."""
    for _ in range(20):
        LIBC.prctl(SUBREAPER, 1, 0, 0, 0)
        if os.fork():
            time.sleep(600)
    beat("reapers")


TRICKS: tuple[Callable[[], None], ...] = (leader, nested, migrates, nameless, execs, sibling, unreaped, reapers)
SOURCE = ""


def go_on(source: str) -> None:
    """Every trick in a process of its own; the nameless one beats, the one that execs goes on with it."""
    global SOURCE
    SOURCE = source
    if sys.argv[2:] == ["nameless"]:
        beat("nameless")
    if sys.argv[2:] == ["execs"]:
        execs()
    for trick in TRICKS:
        if os.fork() == 0:
            trick()
            os._exit(0)
    time.sleep(600)
