"""Child processes: with nothing they do not need, kept running, ended for certain."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console.egress.children import Identity, KeptProcess, end, identities, launch, passable, readable

US = Identity(os.geteuid(), os.getegid())


def test_a_program_runs_without_environment_and_privilege(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shown.py").write_text(
        "import os\ndef main(*a):\n    status = open('/proc/self/status').read().split('NoNewPrivs:')[1].split()[0]\n"
        "    print(sorted(set(os.environ) - {'LC_CTYPE'}), a, os.geteuid(), status)\n"
    )
    monkeypatch.setattr("console.egress.children.PROGRAMS", tmp_path)
    (tmp_path / "launch.py").write_text((Path(__file__).parents[3] / "console" / "egress" / "launch.py").read_text())
    monkeypatch.setenv("SECRET_TOKEN", "x")
    process = launch(US, Path("/"), [1, "b"], program="shown.py", stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read().decode()
    end(process)
    assert output == f"[] (1, 'b') {US.uid} 1\n"


def test_only_root_may_choose_who_a_child_is() -> None:
    envoy, relay = identities()
    if os.geteuid() == 0:
        assert 0 not in (envoy.uid, relay.uid)
        assert envoy.uid != relay.uid
        assert envoy.gid == relay.gid
    else:
        assert envoy == relay == US


def test_passable(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "x").mkdir(parents=True)
    closed.chmod(0o700)
    assert not passable(closed / "x")
    assert passable(Path("/"))


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])


def test_a_kept_process_is_started_again_until_it_is_stopped() -> None:
    kept = KeptProcess("sleeper", sleeper)
    assert kept.pid is None
    kept.start()
    try:
        first = wait_for_pid(kept, None)
        os.kill(first, 9)
        second = wait_for_pid(kept, first)
        assert kept.failure == "sleeper ended with -9"
        assert kept.starts == 2
    finally:
        kept.stop()
    assert kept.pid is None
    assert not Path(f"/proc/{second}").exists()


def wait_for_pid(kept: KeptProcess, other: int | None) -> int:
    until = time.monotonic() + 60
    while (pid := kept.pid) in (None, other):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert pid is not None
    return pid


def test_what_cannot_start_says_why_and_can_be_stopped() -> None:
    def fails() -> subprocess.Popen[bytes]:
        raise OSError("no such program")

    kept = KeptProcess("it", fails)
    kept.start()
    until = time.monotonic() + 60
    while not kept.failure:
        assert time.monotonic() < until
        time.sleep(0.01)
    kept.stop()
    assert kept.failure == "it does not start: no such program"


def test_a_descriptor_of_any_number_is_waited_for() -> None:
    """A supervisor of a thousand agents holds more than the 1023 descriptors that select() knows."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        held = os.pidfd_open(child.pid)
        high = fcntl.fcntl(held, fcntl.F_DUPFD_CLOEXEC, 1500)
        os.close(held)
        try:
            assert not readable(high, 0)
            child.stdin.close()
            assert readable(high, 60)
        finally:
            os.close(high)
