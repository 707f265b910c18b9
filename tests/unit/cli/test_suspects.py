"""What the command line shows of programs outside, and ``kill --suspects``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.cli.stop.kill import kill
from console.cli.stop.receipt_text import show_receipt
from console.domain.errors import NotFound, UsageProblem
from console.domain.kill import Connection, Receipt, Suspect

PAPER = Receipt(
    "20260101-000000-abcdef01",
    "00c0ffee",
    "all",
    "",
    "",
    0.0,
    connections=(Connection("a-1", "unix", "", "/tmp/\x1b[31mevil", 4001, 1, "py\x1b]0;x", 0, "it has ended"),),  # noqa: S108 - a name only
    connections_state="not recorded",
    connections_detail="The list was not read.",
    uncovered=("a-2",),
    suspects=(Suspect("a-1", 4242, 1, "/usr/bin/sleep", 0, "sleep \x1b[2J600", "why it is one", "arguments", True, 4001),),
)


def test_connections_suspects_and_what_is_not_covered_are_shown_and_hostile_text_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    show_receipt(PAPER, as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    assert "\x1b[31m" not in said and "\x1b[2J" not in said and "\x1b]0" not in said
    for words in ("4001", "4242", "why it is one", "it has ended", f"watchfloor kill --suspects {PAPER.kill_id}"):
        assert words in said, words
    assert "connections not recorded: The list was not read." in said
    assert "Work it gave to other programs is not covered: a-2" in said


def test_nothing_is_said_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show_receipt(
        replace(PAPER, connections=(), connections_state="recorded", connections_detail="", uncovered=(), suspects=()), as_json=False
    )
    said = capsys.readouterr().out
    assert "onnections" not in said and "uspects" not in said and "covered" not in said


def test_suspects_go_with_a_kill_alone() -> None:
    with pytest.raises(UsageProblem, match="--suspects goes with"):
        kill(agents=["a-1"], suspects=PAPER.kill_id)
    with pytest.raises(UsageProblem, match="--pid names suspects"):
        kill(agents=["a-1"], pid=[4242])


def test_without_an_instance_nothing_is_killed(tmp_path: object) -> None:
    with pytest.raises(NotFound):
        kill(suspects=PAPER.kill_id, state_dir=f"{tmp_path}/none")
