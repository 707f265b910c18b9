"""An operator ends suspects: of a kill that there is, only those named, and the receipt says what became of each."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from console.domain.errors import NotFound, UsageProblem
from console.domain.kill import Outcome, Receipt, Suspect, Target
from console.killswitch.guard.operations import end_suspects
from console.killswitch.kill.receipt import read_receipt, write_receipt
from console.killswitch.kill.snapshot import find_process
from tests.fakes.guard_room import Room


@pytest.fixture
def sleep() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "600"])
    yield process
    process.kill()
    process.wait()


def on_disk(room: Room, process: subprocess.Popen[bytes], preselected: bool = True) -> Receipt:
    there = find_process(process.pid)
    assert there is not None
    program = "/usr/bin/sleep"
    one = Suspect("a-1", there.pid, there.start_ticks, program, there.uid, "sleep 600", "why", "arguments", preselected, 1)
    target = Target("a-1", "managed", Outcome.PROVEN_ZERO, 1.0, {"accounts": [os.geteuid()]})
    receipt = Receipt("20260101-000000-abcdef01", "00c0ffee", "a-1", "", "", 0.0, targets=(target,), suspects=(one,), complete=True)
    write_receipt(room.guard.config.guard_dir, receipt)
    return receipt


def test_a_suspect_of_a_kill_on_disk_is_killed_and_the_receipt_amended(room: Room, sleep: subprocess.Popen[bytes]) -> None:
    receipt = on_disk(room, sleep)
    answer = end_suspects(room.guard, {"kill_id": receipt.kill_id, "by": "ann"}, os.getppid())
    assert (answer["n"], answer["n_done"]) == (1, 1) and sleep.wait() == -9
    after = read_receipt(room.guard.config.guard_dir, receipt.kill_id)
    assert after is not None and after.amended == (f"suspect process {sleep.pid}: killed, as ann asked",)
    assert replace(after, amended=()) == replace(receipt, verified_zero=after.verified_zero)


@pytest.mark.parametrize("kill_id", ["20260101-000000-00000000", "../../etc/passwd", "k", "\x1b[31m"])
def test_an_unknown_kill_kills_nothing(room: Room, sleep: subprocess.Popen[bytes], kill_id: str) -> None:
    on_disk(room, sleep)
    with pytest.raises(NotFound, match="nothing was killed"):
        end_suspects(room.guard, {"kill_id": kill_id}, 0)
    assert sleep.poll() is None


def test_a_pid_that_is_no_suspect_stops_all_of_it(room: Room, sleep: subprocess.Popen[bytes]) -> None:
    receipt = on_disk(room, sleep)
    with pytest.raises(UsageProblem, match="nothing was killed"):
        end_suspects(room.guard, {"kill_id": receipt.kill_id, "pids": [sleep.pid, os.getpid()]}, 0)
    assert sleep.poll() is None


def test_one_that_is_not_preselected_is_left_unless_it_is_named(room: Room, sleep: subprocess.Popen[bytes]) -> None:
    receipt = on_disk(room, sleep, preselected=False)
    assert end_suspects(room.guard, {"kill_id": receipt.kill_id}, 0)["n"] == 0 and sleep.poll() is None
    assert end_suspects(room.guard, {"kill_id": receipt.kill_id, "pids": [sleep.pid]}, 0)["n_done"] == 1


def test_never_the_caller_or_a_connected_console(room: Room, sleep: subprocess.Popen[bytes]) -> None:
    receipt = on_disk(room, sleep)
    assert end_suspects(room.guard, {"kill_id": receipt.kill_id}, sleep.pid)["n_done"] == 0
    room.guard.connected = lambda: frozenset({sleep.pid})
    assert end_suspects(room.guard, {"kill_id": receipt.kill_id}, 0)["n_done"] == 0
    room.guard.connected = frozenset
    room.guard.supervisor_pid = sleep.pid
    assert end_suspects(room.guard, {"kill_id": receipt.kill_id}, 0)["n_done"] == 0 and sleep.poll() is None
