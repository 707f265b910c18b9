"""Faults 2 and 3 of a whole instance: no room, and no writing at all. Actions are refused and that is said; the kill works and is proven;
when there is room again nobody has to do anything."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError, ExitCode
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, latched, living
from tests.fakes.nursery import ROOT
from tests.fakes.private_disk import run_on_a_small_disk
from tests.fault.conftest import Make

NO_MORE = 100
"""Bytes: every write beyond them fails (EFBIG), whatever was free."""

FULL = """
import contextlib, tempfile
tempfile.tempdir = str(disk)
from console.domain.errors import ConsoleError
from tests.fakes.broken import Broken
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, living
from tests.fakes.nursery import Nursery

said = {}
disk.chmod(0o711)
nursery = Nursery(Path(sys.argv[1]).parent / "n")
state = disk / "s"
state.mkdir(mode=0o711)
state.chmod(0o711)
it = Broken(state, nursery)
try:
    it.start()
    it.stubborn()
    fill()
    try:
        for _ in range(50):
            it.launch("sleep", "300")
        said["launch"] = "started 50"
    except ConsoleError as error:
        said["launch"] = str(error)
    until(lambda: it.api.status().notices, 90, said["launch"])
    said["notices"] = it.api.status().notices
    kill_id = it.press_guard()
    until(lambda: not living(it.places))
    said["latched"] = until(lambda: it.api.fleet().killed)
    empty()
    receipt = it.receipt_of(kill_id)
    said["verified"] = receipt.verified_zero
    check_invariants(it.places, killed=True)
    it.api.rearm("there is room again")
    said["again"] = it.state_becomes(it.launch("sleep", "300"), "running").state
    check_invariants(it.places, killed=False)
finally:
    with contextlib.redirect_stdout(sys.stderr):
        it.close()
    nursery.close()
print(json.dumps(said))
"""


def test_a_full_disk_refuses_actions_in_words_kills_with_proof_and_recovers_alone(state_dir: Path) -> None:
    said = run_on_a_small_disk(state_dir / "d", FULL, size="6m", timeout=280)
    assert "started" not in said["launch"] and said["launch"], said
    assert said["latched"] and said["verified"] and said["again"] == "running"


def test_a_disk_that_takes_nothing_more_stops_no_kill_and_is_made_good_later(broken: Make) -> None:
    it = broken()
    it.start()
    it.stubborn()
    one = it.launch("sleep", "300")
    assert it.supervisor is not None
    both = (it.supervisor.pid, it.living_guard())
    before = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in both]
    for pid, (_, hard) in zip(both, before, strict=True):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (NO_MORE, hard))
    with pytest.raises(ConsoleError):
        it.launch("sleep", "300")
    it.api.kill(one, reason="its receipt has no room")
    it.state_becomes(one, "killed")
    kill_id = it.press_guard()
    until(lambda: not living(it.places), words="nobody is left")
    assert it.api.fleet().killed or until(lambda: it.api.fleet().killed)
    until(lambda: "not written" in str(it.api.status().notices) or "could not be" in str(it.api.status().notices), words="that is said")
    for pid, limits in zip(both, before, strict=True):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    until(lambda: latched(it.places), words="the latch is written once that works")
    assert it.receipt_of(kill_id).verified_zero
    check_invariants(it.places, killed=True)


def test_a_press_from_a_read_only_disk_with_nobody_alive_kills_and_owns_up_to_what_it_could_not_write(broken: Make) -> None:
    it = broken()
    it.start()
    it.stubborn()
    guard = it.living_guard()
    it.stop(9)
    os.kill(guard, 9)  # our own guard, named by its own answer
    shell = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -m console panic --json --reason test --state-dir "$1"'
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", shell, "sh", str(it.state_dir), sys.executable]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=150, check=False
    )
    assert not living(it.places)
    # Without a guard nobody recorded connections, which ranks before a later step that is not done; the headline names both.
    assert done.returncode == ExitCode.BEST_EFFORT, (done.returncode, done.stdout, done.stderr)
    headline = json.loads(done.stdout)["headline"]
    assert "Connections to other programs were not recorded" in headline and "latch" in headline, headline
    assert '"latch"' in done.stdout and '"failed"' in done.stdout
