"""Identity by start time: a reused pid is nobody."""

from __future__ import annotations

import errno
import os
import subprocess

import pytest

from console.sandbox import processes
from console.sandbox.processes import open_process, start_ticks, wait_gone


def test_a_process_is_found_by_pid_and_start_and_seen_to_end() -> None:
    child = subprocess.Popen(["/bin/sleep", "60"])
    ticks = start_ticks(child.pid)
    assert open_process(child.pid, ticks + 1) is None
    pidfd = open_process(child.pid, ticks)
    assert pidfd is not None and not wait_gone(pidfd, 0.01)
    child.kill()
    assert wait_gone(pidfd, 30)
    os.close(pidfd)
    child.wait()
    assert open_process(child.pid, ticks) is None
    with pytest.raises(ProcessLookupError):
        start_ticks(child.pid)


def test_a_name_full_of_brackets_does_not_shift_the_field(tmp_path: object) -> None:
    program = "import ctypes,time; ctypes.CDLL(None).prctl(15, b') R 1 (1 2'); print('named', flush=True); time.sleep(60)"
    child = subprocess.Popen(["/usr/bin/python3", "-c", program], stdout=subprocess.PIPE)
    before = start_ticks(child.pid)
    assert child.stdout is not None and child.stdout.readline() == b"named\n"
    assert start_ticks(child.pid) == before
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.mark.parametrize("where", ["pidfd", "stat"])
def test_one_that_cannot_be_looked_at_has_not_ended(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    before = len(os.listdir("/proc/self/fd"))

    def too_many(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    ticks = start_ticks(os.getpid())
    monkeypatch.setattr(*((os, "pidfd_open") if where == "pidfd" else (processes, "start_ticks")), too_many)
    with pytest.raises(OSError, match="Too many"):
        open_process(os.getpid(), ticks)
    assert len(os.listdir("/proc/self/fd")) == before
