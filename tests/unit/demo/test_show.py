"""What the demo prints."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from console.api.messages import AgentView, FleetView
from console.demo import show as demo_show
from console.demo.checks import Promise, Verdict


def test_the_commands_can_be_pasted_whatever_the_folder_is_called() -> None:
    lines = demo_show.commands(Path("/tmp/a b'c/a"), Path("/tmp/a b'c/b"))
    for line in lines:
        words = shlex.split(line)
        assert words[words.index("--state-dir") + 1] in ("/tmp/a b'c/a", "/tmp/a b'c/b")
    assert sum("/b" in shlex.split(line)[-1] for line in lines) == 1
    assert len(demo_show.commands(Path("/x"), None)) == len(lines) - 1


def test_the_tree_shows_guides_reasons_and_what_is_not_enforced(capsys: pytest.CaptureFixture[str]) -> None:
    agents = [
        AgentView(id="r", name="root \x1b[31m", network_enforced=True, network_mode="NONE"),
        AgentView(id="c", parent_id="r", name="child", depth=2, state="halted", state_reason="halted: agent limit", ended_at=1.0),
    ]
    demo_show.watch(lambda: FleetView(agents=agents), 0.1)
    said = capsys.readouterr().out
    assert "└─ child" in said
    assert "halted: agent limit" in said
    assert "halted: halted" not in said
    assert "FULL, not enforced" in said
    assert "2 agents, 1 active" in said
    assert "\x1b" not in said


def test_each_promise_is_a_line_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    demo_show.promises([Promise("a claim", verdict, "seen [bold]so") for verdict in Verdict])
    said = capsys.readouterr().out
    for words in ("held", "NOT HELD", "not shown", "seen [bold]so"):
        assert words in said
