"""Which processes are worth a look: what began since the kill, and what runs another program since."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from console.killswitch.kernel.processes import ticks_now
from console.killswitch.kill.scan import AGAIN_S, Scan
from tests.fakes.instance import until

WAITS = "import os, sys\ninput()\nos.execv(sys.executable, [sys.executable, '-S', '-c', 'input()', 'become'])"


@pytest.fixture
def old() -> Iterator[subprocess.Popen[bytes]]:
    """A process from before the kill."""
    with subprocess.Popen([sys.executable, "-S", "-c", WAITS], stdin=subprocess.PIPE, bufsize=0) as found:
        until(lambda: os.readlink(f"/proc/{found.pid}/exe") == os.path.realpath(sys.executable))
        time.sleep(0.3)
        yield found
        found.kill()


def seen(scan: Scan, pid: int, since: int, seconds: float) -> list[tuple[str, ...]]:
    """Its arguments, at each look at which it was worth one."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        found += [one.argv for one in scan.look(since) if one.pid == pid]
        time.sleep(0.1)
    return found


def test_what_runs_another_program_since_the_kill_is_looked_at_and_nothing_else_of_before(old: subprocess.Popen[bytes]) -> None:
    scan, since = Scan(), ticks_now() + 1
    scan.mark()
    assert seen(scan, old.pid, since, AGAIN_S + 0.5) == []
    assert old.stdin is not None
    old.stdin.write(b"\n")
    (argv,) = seen(scan, old.pid, since, AGAIN_S + 1.5)
    assert argv[-1] == "become" and since <= scan.began[old.pid] <= ticks_now()


def test_without_a_mark_the_first_look_is_what_counts(old: subprocess.Popen[bytes]) -> None:
    """As of a guard that takes over."""
    scan, since = Scan(), ticks_now() + 1
    assert seen(scan, old.pid, since, AGAIN_S + 0.5) == []
    assert old.stdin is not None
    old.stdin.write(b"\n")
    assert len(seen(scan, old.pid, since, AGAIN_S + 1.5)) == 1
