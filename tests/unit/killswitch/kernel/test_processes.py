"""What /proc says, on real children of the test."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import Handle, find_marked


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    env = {"WATCHFLOOR_AGENT_ID": "a1", "WATCHFLOOR_INSTANCE": "0123abcd"}
    process = subprocess.Popen(["/bin/sleep", "60"], env=env)
    while processes.command_line(process.pid) != "/bin/sleep 60":
        pass
    yield process
    process.kill()
    process.wait()


def test_a_name_full_of_parentheses_confuses_nothing(tmp_path: Path) -> None:
    program = tmp_path / ") R 1 (x"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(program), "60"])
    try:
        assert processes.parent(process.pid) == os.getpid() and processes.start_ticks(process.pid)
    finally:
        process.kill()
        process.wait()


def test_what_is_gone_is_unknown() -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert processes.start_ticks(process.pid) is None and processes.state(process.pid) == "" and not processes.is_alive(process.pid)
    assert (
        processes.cgroup_line(process.pid) is None and processes.pid_namespace(process.pid) is None and processes.parent(process.pid) == 0
    )


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["/bin/true"])
    while processes.state(process.pid) != "Z":
        pass
    assert not processes.is_alive(process.pid) and processes.is_ending(process.pid)
    process.wait()
    assert processes.is_ending(process.pid) and not processes.is_ending(os.getpid())


def test_ancestors_end_at_one(sleeper: subprocess.Popen[bytes]) -> None:
    line = processes.ancestors(sleeper.pid)
    assert {1, os.getpid(), os.getppid(), sleeper.pid} <= line


def test_cgroup_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"9:name=systemd:/s\n8:pids,cpu:/p:q\n0::/watchfloor-x/agents/a (deleted)\n"
    monkeypatch.setattr(processes, "_read", lambda *a: text)
    assert processes.cgroup_line("self") == "/watchfloor-x/agents/a" and processes.cgroup_line("self", "pids") == "/p:q"
    assert processes.cgroup_line("self", "memory") is None


def test_only_the_process_that_was_meant_is_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    ticks = processes.start_ticks(sleeper.pid)
    assert ticks is not None
    for pid, start in ((sleeper.pid, ticks + 1), (1, 1), (0, 0), (-5, 1)):
        with pytest.raises(ProcessLookupError):
            Handle(pid, start)
    handle = Handle(sleeper.pid, ticks)
    assert handle.is_alive() and handle.send(signal.SIGKILL) == "sent"
    sleeper.wait()
    assert not handle.is_alive() and handle.send(signal.SIGKILL) == "gone"
    handle.close()
    handle.close()


def test_marked_processes_are_of_this_instance_only(sleeper: subprocess.Popen[bytes]) -> None:
    assert [(m.pid, m.agent_id) for m in find_marked("0123abcd", Path("/nowhere"))] == [(sleeper.pid, "a1")]
    assert list(find_marked("0123abc", Path("/nowhere"))) == []


def test_the_agents_socket_marks_as_well() -> None:
    env = {"WATCHFLOOR_AGENT_ID": "a2", "WATCHFLOOR_AGENT_SOCKET": "/run/wf-test/agents/a2.sock"}
    process = subprocess.Popen(["/bin/sleep", "60"], env=env)
    try:
        while processes.command_line(process.pid) != "/bin/sleep 60":
            pass
        assert [m.agent_id for m in find_marked("ffffffff", Path("/run/wf-test"))] == ["a2"]
        assert list(find_marked("ffffffff", Path("/run/wf"))) == []
    finally:
        process.kill()
        process.wait()


def test_a_pending_kill_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_read", lambda *a: b"SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n")
    assert processes.kill_is_pending(1)
    monkeypatch.setattr(processes, "_read", lambda *a: b"SigPnd:\t0000000000000000\nShdPnd:\t0000000000000400\n")
    assert not processes.kill_is_pending(1)


@pytest.fixture
def leave_descriptors() -> Iterator[Callable[[int], None]]:
    """Leaves this process so many more files to open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def leave(count: int) -> None:
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + count, before[1]))

    yield leave
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_could_not_be_looked_at_is_not_gone(sleeper: subprocess.Popen[bytes], leave_descriptors: Callable[[int], None]) -> None:
    ticks, namespace = processes.start_ticks(sleeper.pid), processes.pid_namespace("self")
    assert ticks is not None and namespace is not None
    leave_descriptors(1)  # enough for the pidfd, not for a look at whose it is
    with pytest.raises(OSError, match="Too many open files") as caught:
        Handle(sleeper.pid, ticks)
    assert caught.value.errno == errno.EMFILE
    leave_descriptors(0)
    assert processes.is_alive(sleeper.pid)
    with pytest.raises(OSError, match="Too many open files"):
        processes.members(namespace, since=time.monotonic())
    with pytest.raises(OSError, match="Too many open files"):
        list(find_marked("0123abcd", Path("/nowhere")))


def test_one_look_at_the_namespaces_serves_many_agents(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    namespace, looks, real = processes.pid_namespace("self"), list[int](), processes._list_pids
    assert namespace is not None

    def look() -> list[int]:
        looks.append(1)
        return real()

    monkeypatch.setattr(processes, "_list_pids", look)
    monkeypatch.setattr(processes, "_seen", processes._Seen(-1.0, -1.0, {}))
    monkeypatch.setattr(processes, "RECENT_S", 60.0)
    assert all(sleeper.pid in processes.members(namespace) for _ in range(5)) and not processes.members(1) and len(looks) == 1
    sleeper.kill()
    while processes.is_alive(sleeper.pid):
        pass
    assert sleeper.pid not in processes.members(namespace), "who ended since is no member"
    since = time.monotonic()
    assert processes.members(namespace, since=since) and processes.members(namespace, since=since) and len(looks) == 2


LEADERLESS = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall(93 if os.uname().machine == "aarch64" else 60, 0)  # exit(2): the first thread alone
"""


def test_a_process_without_its_first_thread_is_alive() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", LEADERLESS])
    try:
        while processes.state(process.pid) != "Z":
            pass
        assert processes.is_alive(process.pid) and not processes.is_ending(process.pid)
    finally:
        process.kill()
        while processes.is_alive(process.pid):
            pass
        process.wait()


def test_a_process_that_locks_its_memory_holds_nobody_up(monkeypatch: pytest.MonkeyPatch, sleeper: subprocess.Popen[bytes]) -> None:
    """cmdline and environ come out of its memory; a process stuck in the kernel with the lock of it makes every reader wait."""
    go, fetch, others = threading.Event(), processes._fetch, []

    def stuck(pid: int | str, name: str, limit: int = 65536) -> bytes:
        if pid == sleeper.pid and name in ("cmdline", "environ"):
            go.wait(60)
        return fetch(pid, name, limit)

    monkeypatch.setattr(processes, "_fetch", stuck)
    monkeypatch.setattr(processes, "MEMORY_S", 0.05)
    monkeypatch.setattr(processes, "_list_pids", lambda: [sleeper.pid, os.getpid()])
    assert processes.command_line(sleeper.pid) == "" and processes.command_line(os.getpid())
    with pytest.raises(OSError, match="memory") as caught:
        for marked in processes.find_marked("0badc0de", Path("/nowhere")):
            others.append(marked)
    assert caught.value.errno == errno.ETIMEDOUT and list(processes._waiting) == [sleeper.pid]
    assert sum(t.name == "proc-memory" for t in threading.enumerate()) == 1, "one thread waits for it, however often it is asked"
    go.set()
    processes._waiting[sleeper.pid].join(60)
    assert processes.command_line(sleeper.pid).startswith("/bin/sleep") or processes.command_line(sleeper.pid)
    assert processes._waiting == {}
