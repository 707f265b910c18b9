"""A launch is a success once the program was executed; what cannot be, what is not known and what merely ended badly are told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import Agent, AgentId, AgentState
from console.sandbox.interface import Prepared
from console.services.launch import exec_check
from console.services.launch.exec_check import UNKNOWN, is_another_program, not_begun
from tests.fakes.playbook import Playbook

HELD = Prepared(AgentId("a1"), pid=7, start_ticks=1)
CANNOT = "[watchfloor: cannot run '/x': [Errno 2] No such file or directory]\nmore\n"


def lives_for(looks: int, code: int | None = 0) -> Callable[[], Agent]:
    """The agent, as it is at each look."""
    alive = Playbook().run("a1").agent("a1")
    ended = replace(alive, state=AgentState.ENDED, exit_code=code)
    left = [alive] * looks
    return lambda: left.pop() if left else ended


@pytest.fixture(autouse=True)
def sees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(exec_check, "SEES", tmp_path)


@pytest.mark.parametrize(
    ("code", "output", "answer"),
    [
        (127, CANNOT, ("cannot run '/x': No such file or directory", "")),
        (126, CANNOT, ("cannot run '/x': No such file or directory", "")),
        (127, "sh: 1: nosuch: not found\n", ("", "")),
        (127, f"it ran\n{CANNOT}", ("", "")),
        (0, CANNOT, ("", "")),
        (None, "", ("", UNKNOWN)),
    ],
)
async def test_only_what_our_own_first_process_says_at_such_an_end_is_a_program_that_did_not_begin(
    code: int | None, output: str, answer: tuple[str, str]
) -> None:
    assert await not_begun(None, lives_for(2, code), lambda: output) == answer


async def test_it_is_waited_until_another_program_runs_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [True, False, False]
    monkeypatch.setattr(exec_check, "is_another_program", lambda pid: pid == 7 and looks.pop())
    assert await not_begun(HELD, lives_for(1000), str) == ("", "")
    assert looks == []


async def test_what_cannot_be_seen_is_not_known_and_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(exec_check, "is_another_program", lambda pid: False)
    assert await not_begun(replace(HELD, container_id="ab"), lives_for(1), str) == ("", UNKNOWN)
    monkeypatch.setattr(exec_check, "WAIT_S", 0.02)
    assert await not_begun(HELD, lives_for(1000), str) == ("", UNKNOWN)
    monkeypatch.setattr(exec_check, "WAIT_S", 60)
    monkeypatch.setattr(exec_check, "SEES", tmp_path / "none")
    assert await not_begun(HELD, lives_for(1), str) == ("", UNKNOWN)


def test_a_copy_of_the_init_and_what_looks_from_inside_are_not_the_agents_program(tmp_path: Path) -> None:
    def has(pid: int, cmdline: bytes) -> None:
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        (tmp_path / str(pid) / "cmdline").write_bytes(cmdline)

    assert not is_another_program(7, tmp_path)  # it is gone
    has(7, b"python\0shim.py\0")
    (tmp_path / "7/task/7").mkdir(parents=True)
    (tmp_path / "7/task/7/children").write_text("8 9 10 ")
    for pid, cmdline in ((8, b"python\0shim.py\0"), (9, b"python\0-I\0/.watchfloor/look.py\0003\0004\0--\0sleep\0")):
        has(pid, cmdline)
        assert not is_another_program(7, tmp_path)  # 10 has gone meanwhile
    has(10, b"")
    assert not is_another_program(7, tmp_path)  # it ends
    has(10, b"sleep\0001\0")
    assert is_another_program(7, tmp_path)
