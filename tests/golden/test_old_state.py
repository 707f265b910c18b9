"""What commit 818e0ef left behind goes on: a state directory that it made and killed, and a guard of it that still runs."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.messages import LaunchBody
from console.domain.errors import Killed
from console.settings.places import find_places
from tests.fakes.instance import ROOT, Instance, listens, until

DATA = ROOT / "tests" / "data" / "state-818e0ef"
SLEEP = LaunchBody(argv=["sleep", "300"])


@pytest.fixture(scope="module", autouse=True)
def forked_instance(forked: None) -> None:
    """The instances are forked from a process that has imported what they need."""


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One test at a time on this host: every copy of the directory has the same instance id, which names cgroups."""
    with socket.socket(socket.AF_UNIX) as one:
        until(lambda: _bound(one), words="no other test uses the old state directory")
        yield


def _bound(one: socket.socket) -> bool:
    with contextlib.suppress(OSError):
        one.bind("\0watchfloor-state-818e0ef")
        return True
    return False


def _extract(archive: tarfile.TarFile, place: Path) -> None:
    """With owners and modes as they were made. Python 3.11.2, which Debian 12 has, knows no filter yet, and needs none to trust."""
    if hasattr(tarfile, "fully_trusted_filter"):
        archive.extraction_filter = tarfile.fully_trusted_filter
    archive.extractall(place)


@pytest.fixture
def old_state(state_dir: Path) -> Iterator[Path]:
    """Made by 818e0ef: an agent with a file write, one with approvals, one with limits, one killed alone; then a panic."""
    with alone():
        with tarfile.open(DATA / "state.tar.gz") as archive:
            _extract(archive, state_dir)
        state_dir.chmod(0o711)
        yield state_dir


@pytest.fixture
def home(tmp_path: Path) -> str:
    """Where no program is discovered."""
    return str(tmp_path)


def test_a_killed_directory_opens_whole_is_still_killed_and_can_be_rearmed(old_state: Path, home: str) -> None:
    with Instance(old_state, "--discover-root", home, envoy=True) as it:
        verdict = it.api.verify_audit()
        assert verdict.whole and verdict.records >= 30, verdict
        assert it.api.status().killed
        with pytest.raises(Killed):
            it.api.launch(SLEEP)
        rows = it.api.receipts().receipts
        assert [(row.scope == "all", row.verified_zero, row.exit_code) for row in rows] == [(True, True, 0), (False, True, 0)]
        assert it.api.receipt(rows[0].kill_id).reason == "Sample of 818e0ef"
        ends = {agent.state for agent in it.api.fleet().agents}
        assert len(it.api.fleet().agents) == 4 and ends == {"killed", "ended"}, ends
        [record] = it.api.rollback().records
        assert record.path == "output/plan.txt" and record.state == "can_restore"
        assert [g.cap for g in it.api.budget_node("session", "rocket").gauges if g.limit == "cost_usd"] == [3.0]
        assert not it.api.approvals().waiting
        it.api.rearm("the sample goes on")
        assert not it.api.status().killed
        agent = it.launch("sleep", "300")
        receipt = it.api.kill(agent, reason="test")
        assert receipt.verified_zero and it.api.verify_audit().whole


def test_it_is_still_killed_after_a_crash_of_the_supervisor_that_took_it_over(old_state: Path, home: str) -> None:
    with Instance(old_state, "--discover-root", home, envoy=True) as it:
        it.stop(signal.SIGKILL)
        it.start()
        assert it.api.status().killed


def test_a_running_guard_of_818e0ef_is_taken_over(state_dir: Path, home: str, tmp_path: Path) -> None:
    code = tmp_path / "code"
    with tarfile.open(DATA / "guard.tar.gz") as archive:
        _extract(archive, code)
    places = find_places(str(state_dir), create=True)
    assert places is not None
    argv = [sys.executable, "-m", "console.killswitch", "--state-dir", str(places.state_dir), "--run-dir", str(places.guard_sock.parent)]
    environment = {**os.environ, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"}
    old = subprocess.Popen([*argv, "--instance", places.instance_id], cwd=code, env=environment, stderr=subprocess.DEVNULL)
    try:
        until(lambda: listens(places.guard_sock) and listens(places.guard_supervisor_sock), words="the old guard listens")
        with Instance(state_dir, "--discover-root", home, envoy=True) as it:
            assert it.guard_pid() == old.pid
            agent = it.launch("sleep", "300")
            assert it.agent(agent).state == "running"
            assert it.api.kill(agent, reason="test").verified_zero
            it.launch("sleep", "300")
            receipt = it.api.activate("test")
            assert receipt.verified_zero and {t.outcome.value for t in receipt.targets} == {"proven_zero"}
            assert receipt.connections_state == "not recorded" and "older version" in receipt.connections_detail
            with pytest.raises(Killed):
                it.api.launch(SLEEP)
            it.api.rearm("test")
            assert it.agent(it.launch("sleep", "300")).state == "running"
            assert it.api.verify_audit().whole
            assert it.guard_pid() == old.pid
    finally:
        old.terminate()
        old.wait(60)
