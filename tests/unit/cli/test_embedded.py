"""Starting a supervisor when none runs: it answers, or there are words."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest

import console
from console.cli import embedded
from console.cli.terminal import waiting
from console.domain.errors import ConsoleError, TimedOut
from console.killswitch.client import patience
from console.settings.places import Places
from tests.fakes.canned_api import CannedApi

STATUS = {"instance": "i", "host": "h", "version": "1", "state_dir": "/", "mode": "root", "killed": False, "pid": 1}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is started in place of Python."""
    script = tmp_path / "program"
    script.write_text("#!/bin/sh\necho starting; echo 'it broke \033[31m'; exit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return script


def test_one_that_answers_is_not_started_again(places: Places, api: CannedApi, program: Path) -> None:
    api.say("GET /api/status", STATUS)
    assert embedded.ensure_supervisor(str(places.state_dir)) == places


def test_one_that_cannot_start_says_its_last_words(places: Places, program: Path) -> None:
    with pytest.raises(ConsoleError, match=r"exit 3\): it broke \\e\[31m") as caught:
        embedded.ensure_supervisor(str(places.state_dir))
    assert str(places.log_file) in caught.value.remedy
    assert places.log_file.stat().st_mode & 0o077 == 0, "agents may pass through the folder"


def test_one_that_never_answers_is_a_time_out_and_the_wait_is_said(
    places: Places, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text("#!/bin/sh\nexec sleep 1\n")
    monkeypatch.setattr(waiting, "AFTER_S", 0.0)
    with pytest.raises(TimedOut, match="did not answer within"):
        embedded.start_supervisor(places, ready_s=0.3)
    assert "waiting for the supervisor that was just started; gives up once it has stood still" in capsys.readouterr().err
    assert embedded.detached.pop().wait() == 0


def test_one_that_gets_on_is_waited_for_however_long_that_takes(places: Places, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program.write_text("#!/bin/sh\nexec sleep 1\n")
    rounds = list[int]()

    def looked(places: Places, timeout_s: float = 5) -> bool:
        rounds.append(1)
        return len(rounds) == 8

    monkeypatch.setattr(embedded, "answers", looked)
    ticks = itertools.count()
    monkeypatch.setattr(patience, "done_by", lambda _pid: (next(ticks),))
    monkeypatch.setattr(patience, "MOST", 10**9)
    embedded.start_supervisor(places, ready_s=1e-6)
    assert len(rounds) == 8 and embedded.detached.pop().wait() == 0


def test_one_that_listens_before_it_has_time_to_answer_is_waited_for(
    places: Places, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text("#!/bin/sh\nexec sleep 1\n")
    said: list[bool | TimedOut] = [False, TimedOut("It did not answer in time.", ""), True]

    def looked(places: Places, timeout_s: float = 5) -> bool:
        answer = said.pop(0)
        if isinstance(answer, TimedOut):
            raise answer
        return answer

    monkeypatch.setattr(embedded, "answers", looked)
    embedded.start_supervisor(places, ready_s=60)
    assert said == [] and embedded.detached.pop().wait() == 0


def test_one_that_hangs_gets_no_second_beside_it_and_the_wait_is_said(
    places: Places, api: CannedApi, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /api/status"] = (0, b"")
    monkeypatch.setattr(embedded, "ANSWER_S", 0.5)
    monkeypatch.setattr(waiting, "AFTER_S", 0.01)
    with pytest.raises(TimedOut, match="listens but did not answer in time; nothing was started"):
        embedded.ensure_supervisor(str(places.state_dir))
    said = capsys.readouterr().err
    assert said == f"waiting for the supervisor of {places.state_dir} to answer; gives up after 0.5 s (exit 5)\n"
    assert not places.log_file.exists()


def test_children_find_this_very_package(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(console.__file__).resolve().parent.parent)
    monkeypatch.setenv("PYTHONPATH", f"/x{os.pathsep}{root}")
    assert embedded.child_environment()["PYTHONPATH"] == f"{root}{os.pathsep}/x"
    monkeypatch.delenv("PYTHONPATH")
    assert embedded.child_environment()["PYTHONPATH"] == root
