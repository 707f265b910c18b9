"""Faults 18 and 20: too few descriptors, no more threads, an agent that eats processes and memory. The guard still stops everything."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError
from tests.fakes.in_time import is_done
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, living
from tests.fakes.nursery import Nursery
from tests.fault.conftest import Make

BOMB = "print('ran', flush=True)\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.5)\n"
HOG = "print('ran', flush=True)\nkept = []\nwhile True:\n    kept.append(bytearray(os.urandom(1 << 20)) * 8)\n"


def test_with_64_descriptors_nothing_starts_and_a_flooded_guard_still_kills(broken: Make, nursery: Nursery) -> None:
    it = broken()
    it.start()
    it.stubborn()
    guard = it.living_guard()
    resource.prlimit(guard, resource.RLIMIT_NOFILE, (64, 64))
    with pytest.raises(ConsoleError, match="descriptor"):
        it.launch("sleep", "300")
    flood = []
    for _ in range(100):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(0.2)
        with contextlib.suppress(OSError):
            sock.connect(str(it.places.guard_sock))
        flood.append(sock)
    presser = nursery.run("console", "panic", "--reason", "flooded", "--state-dir", str(it.state_dir))
    until(lambda: not living(it.places), words="nobody is left")
    for sock in flood:
        sock.close()
    assert is_done(presser.wait(90), presser.said()), presser.said()
    assert it.receipt_of().verified_zero
    assert it.guard_pid() == guard, "the same guard"
    check_invariants(it.places, killed=True)


def test_a_guard_that_gets_no_thread_kills_in_the_one_it_has(broken: Make) -> None:
    it = broken()
    guard = it.start_guard()
    it.start()
    it.stubborn()
    group = Path(f"/sys/fs/cgroup/pids/watchfloor-{it.places.instance_id}-no-thread")
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(guard.pid))
        (group / "pids.max").write_text(str(len(os.listdir(f"/proc/{guard.pid}/task"))))
        with contextlib.suppress(ConsoleError):  # it answers when all is done, which may be later than the presser waits
            it.press_guard()
        until(lambda: not living(it.places), words="nobody is left")
        assert it.receipt_of().verified_zero
        check_invariants(it.places, killed=True)
    finally:
        (group / "pids.max").write_text("max")
        guard.end()
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_supervisor_and_guard_outlive_an_agent_that_eats_everything(broken: Make, state_dir: Path) -> None:
    # A bomb of many hundred Pythons stalls the machine's memory management for everybody; what is shown here needs fewer.
    (state_dir / "settings.json").write_text('{"agents": {"pids_max": 64}}')
    it = broken()
    it.places.settings_file.write_text('{"agents": {"pids_max": 64, "memory_max_mib": 128}}')
    it.start()
    assert it.supervisor is not None
    score = {pid: int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (it.supervisor.pid, it.living_guard())}
    may = subprocess.run(["sh", "-c", "echo -900 > /proc/self/oom_score_adj"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    assert set(score.values()) == ({-900} if may else {0}), "as low as this host lets us"
    bomb, hog = it.python(BOMB), it.python(HOG)
    it.says(bomb, "ran")
    it.says(hog, "ran")
    agents = []
    for pid in list(living(it.places))[:20]:
        with contextlib.suppress(OSError):  # it ended meanwhile
            agents.append(int(Path(f"/proc/{pid}/oom_score_adj").read_text()))
            assert os.getpriority(os.PRIO_PROCESS, pid) >= 0, "no agent is ahead of others"
    assert agents and min(agents) >= 500, "agents go first"
    receipt = it.api.activate("they eat everything")
    assert receipt.verified_zero
    assert {it.supervisor.pid, it.guard_pid()} == set(score)
    check_invariants(it.places, killed=True)
