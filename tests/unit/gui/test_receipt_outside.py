"""The window's receipt: programs that agents were connected to, suspects, and what is not covered."""

from __future__ import annotations

from console.domain.kill import Connection, Receipt, Step, StepName, StepStatus, Suspect
from console.gui.pages.receipt.head import is_amber
from console.gui.pages.receipt.outside import NAMED, connection_lines, suspect_lines

PAPER = Receipt("20260101-000000-abcdef01", "00c0ffee", "all", "", "", 0.0)


def connection(n: int, **more: object) -> Connection:
    return Connection("a-1", "tcp", "", f"127.0.0.1:{n}", 4000 + n, 1, "python3", 0, str(more.get("note", "")))


def test_each_program_has_its_agent_its_address_and_what_is_known() -> None:
    paper = Receipt(**{**{f: getattr(PAPER, f) for f in PAPER.__slots__}, "connections": (connection(1, note="it has ended"),)})
    lines = connection_lines(paper)
    assert [line.left for line in lines] == ["python3, pid 4001", "tcp 127.0.0.1:1", "it has ended"] and lines[0].right == "a-1"


def test_not_recorded_and_not_covered_are_said_and_nothing_is_said_of_nothing() -> None:
    assert connection_lines(PAPER) == [] and suspect_lines(PAPER) == []
    fields = {f: getattr(PAPER, f) for f in PAPER.__slots__}
    words = [
        line.left
        for line in connection_lines(Receipt(**fields | {"connections_state": "not recorded", "uncovered": ("a-2", "a-3", "a-4", "a-5")}))
    ]
    assert words == ["Connections not recorded", "Work it gave to other programs is not covered", "a-2, a-3, a-4", "a-5"]


def test_suspects_with_the_command_that_ends_them_and_no_list_without_end() -> None:
    one = Suspect("a-1", 4242, 1, "/usr/bin/sleep", 0, "sleep 600", "why", "arguments", True, 4001)
    fields = {f: getattr(PAPER, f) for f in PAPER.__slots__}
    words = [line.left for line in suspect_lines(Receipt(**fields | {"suspects": (one,)}))]
    assert words == ["sleep 600", "pid 4242 · preselected", "why", f"watchfloor kill --suspects {PAPER.kill_id}"]
    many = Receipt(**fields | {"connections": tuple(connection(n) for n in range(NAMED + 5))})
    assert connection_lines(many)[-1].left == "and 5 more"


def test_a_step_that_was_never_configured_is_not_amber_but_a_check_that_was_skipped_is() -> None:
    amber = {(name, status) for name in StepName for status in StepStatus if is_amber(Step(name, status, None, ""))}
    skipped = {name for name, status in amber if status is StepStatus.SKIPPED}
    assert skipped == {StepName.ZERO, StepName.SECOND_LOOK}
    assert all((name, status) in amber for name in StepName for status in (StepStatus.FAILED, StepStatus.UNKNOWN))
    assert not any(status is StepStatus.OK for _name, status in amber)
