"""What takes longer than a moment is said, once; what does not is not."""

from __future__ import annotations

import threading
import time

import pytest

from console.cli.terminal import waiting
from console.cli.terminal.waiting import said_while


def test_what_is_over_at_once_needs_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    with said_while("it", "after 5 s"):
        pass
    assert capsys.readouterr().err == ""


def test_what_takes_long_is_said_once_with_its_end_and_nothing_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "AFTER_S", 0.0)
    before = threading.active_count()
    said = ""
    with said_while("the agent to run", "after 300 s"):
        deadline = time.monotonic() + 60
        while not said and time.monotonic() < deadline:
            said += capsys.readouterr().err
    assert said == "waiting for the agent to run; gives up after 300 s (exit 5)\n"
    assert capsys.readouterr().err == "" and threading.active_count() == before
