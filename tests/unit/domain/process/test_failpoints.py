"""Failpoints: inert unless armed from the environment; armed late through a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.domain.process import failpoints

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(failpoints, "_armed", f"@{tmp_path / 'armed'}")
    return tmp_path / "armed"


def in_a_process(armed: str, code: str) -> int:
    env = {**os.environ, "PYTHONPATH": str(ROOT), failpoints.VARIABLE: armed}
    script = f"from console.domain.process.failpoints import disarm, failpoint\n{code}"
    return subprocess.run([sys.executable, "-S", "-c", script], env=env, stderr=subprocess.DEVNULL, check=False, timeout=120).returncode


def test_without_the_variable_nothing_is_broken() -> None:
    assert failpoints._armed == os.environ.get(failpoints.VARIABLE, "")
    failpoints.failpoint("latch.written")


@pytest.mark.parametrize(
    ("armed", "code", "ends_with"),
    [
        ("here:kill", "failpoint('there'); failpoint('here'); raise SystemExit(3)", -signal.SIGKILL),
        ("here:raise", "try: failpoint('here')\nexcept OSError as e: raise SystemExit(e.errno)", 5),
        ("here:nonsense", "failpoint('here'); raise SystemExit(3)", 3),
        ("here", "failpoint('here'); raise SystemExit(3)", 3),
        ("here:kill", "disarm(); failpoint('here'); raise SystemExit(3)", 3),
        ("@/nonexistent/file", "failpoint('here'); raise SystemExit(3)", 3),
    ],
)
def test_the_variable_arms_one_point(armed: str, code: str, ends_with: int) -> None:
    assert in_a_process(armed, code) == ends_with


def test_a_file_arms_it_late_says_what_was_reached_and_takes_it_away_again(armed: Path) -> None:
    failpoints.failpoint("here")
    armed.write_text("here:raise\n")
    failpoints.failpoint("there")
    assert not armed.with_name("armed.hit").exists()
    with pytest.raises(OSError, match="failpoint here"):
        failpoints.failpoint("here")
    assert armed.with_name("armed.hit").read_text() == "here"
    armed.unlink()
    failpoints.failpoint("here")


def test_a_hang_lasts_until_it_is_disarmed(armed: Path) -> None:
    import threading

    armed.write_text("here:hang")
    waiting = threading.Thread(target=failpoints.failpoint, args=("here",))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    armed.unlink()
    waiting.join(60)
    assert not waiting.is_alive()
