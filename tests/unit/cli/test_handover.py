"""Programs of ours that a verb runs to their end."""

from __future__ import annotations

import pytest

from console.cli.handover import folded
from console.cli.terminal import out


def test_what_it_says_is_folded_at_the_terminal_and_its_exit_code_is_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(out, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert folded("this") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40 and lines[0] == "The Zen of Python, by Tim Peters"
    assert folded("json.tool", "--no-such-option") == 2
