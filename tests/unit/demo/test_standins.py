"""The demo's stand-ins: what cannot be had is said and missed by nobody, and what was started is ended once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from console.demo import standins as demo_standins
from console.demo.standins import Bucket, StandIns
from console.domain.errors import ConsoleError


def child() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sleep", "300"], stdout=subprocess.PIPE)


def refuse(_log_file: Path) -> Bucket:
    raise ConsoleError("It did not start.", "Look at its log.")


def test_what_cannot_be_had_is_said_with_why_and_the_rest_ends_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_standins, "start_bucket", lambda _log_file: Bucket(child(), "http://127.0.0.1:1"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    both = StandIns()
    both.stop()  # before anything was started
    both.start(tmp_path)
    assert both.bucket is not None and both.web is None
    assert not both.no_bucket and "needs root" in both.no_web and "needs root" in capsys.readouterr().err
    process = both.bucket.child
    both.stop()
    both.stop()
    assert process.returncode is not None
    monkeypatch.setattr(demo_standins, "start_bucket", refuse)
    none = StandIns()
    none.start(tmp_path)
    assert none.bucket is None and "did not start" in none.no_bucket
