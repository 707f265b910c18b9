"""A process of which the first thread has ended is ended as a whole; nobody else is signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Refused
from console.killswitch.kill.targets import strike_leaderless

LEADERLESS = f"""import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({60 if os.uname().machine == "x86_64" else 93}, 0)"""


@pytest.fixture
def two() -> Iterator[list[subprocess.Popen[bytes]]]:
    """One without a first thread, and one that is whole."""
    made = [subprocess.Popen([sys.executable, "-S", "-c", LEADERLESS]), subprocess.Popen(["sleep", "600"])]
    while processes.state(made[0].pid) != "Z":
        time.sleep(0.01)
    yield made
    for one in made:
        one.kill()
        one.wait()


def held(*pids: int, then: tuple[int, ...] | None = None, refused: bool = False, folder: Path = Path("/nowhere"), did: Any = None) -> Any:
    lists = [list(pids), list(pids if then is None else then)]

    def check(_mount: object, _below: object) -> None:
        if refused:
            raise Refused("It holds process 1, which is never signalled.")

    leaf = SimpleNamespace(check=check, pids=lambda: lists.pop(0) if len(lists) > 1 else lists[0])
    leaf.path, leaf.freeze = folder, did
    return SimpleNamespace(leaf=leaf, container=None)


def test_it_is_ended_and_a_whole_one_is_left_to_its_cgroup(two: list[subprocess.Popen[bytes]]) -> None:
    leaderless, whole = (one.pid for one in two)
    assert processes.is_alive(leaderless), "a zombie in one of its threads alone"
    assert strike_leaderless(held(leaderless, whole), None, None, frozenset) == 1
    assert two[0].wait(60) == -signal.SIGKILL and two[1].poll() is None


def test_who_is_spared_or_no_member_any_more_is_not_signalled(two: list[subprocess.Popen[bytes]]) -> None:
    pid = two[0].pid
    assert strike_leaderless(held(pid), None, None, lambda: frozenset({pid})) == 0
    assert strike_leaderless(held(pid, then=()), None, None, frozenset) == 0
    assert strike_leaderless(held(2**22 + 1), None, None, frozenset) == strike_leaderless(None, None, None, frozenset) == 0
    assert strike_leaderless(held(pid, refused=True), None, None, frozenset) == 0
    assert processes.is_alive(pid)


def test_where_cgroup_kill_is_refused_everybody_is_ended_and_nobody_forks_meanwhile(
    two: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    (tmp_path / "cgroup.type").write_text("threaded\n")
    did: list[bool] = []
    leaderless, whole = (one.pid for one in two)
    group = held(leaderless, whole, os.getpid(), folder=tmp_path, did=did.append)
    assert strike_leaderless(group, None, None, lambda: frozenset({leaderless})) == 1
    assert two[1].wait(60) == -signal.SIGKILL and two[0].poll() is None and did == [True]
