"""Whether an agent's account can reach its program, also behind a wrapper that becomes it: told before the start."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from console.domain.agent import AgentId
from console.domain.errors import ConsoleError
from console.domain.network import NetworkMode
from console.sandbox.interface import LaunchSpec
from console.sandbox.program_access import check_program

ELSE = 54321
"""A uid that is nobody's here."""


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A program in a folder that other accounts may not enter."""
    made = tmp_path / "home" / "bin" / "prog"
    made.parent.mkdir(parents=True)
    made.write_bytes(b"\x7fELF")
    made.chmod(0o755)
    made.parent.parent.chmod(0o700)
    return made


def spec(tmp_path: Path, *argv: str, path: str = "/usr/bin:/bin") -> LaunchSpec:
    work, out = tmp_path / "work", tmp_path / "out"
    return LaunchSpec(AgentId("a-1"), argv, {"PATH": path}, work, tmp_path / "door", out, NetworkMode.NONE, uid=ELSE, gid=ELSE)


@pytest.mark.parametrize(
    "words",
    [
        "{}", "env {} -V", "/usr/bin/env -i X=1 {}", "nice -n 5 {}", "nohup {}", "timeout -k 5 10m {}", "env nice setsid {}",
        "sh -c 'exec {} -V'", "env A=b sh -c 'exec {}'",
    ],
)  # fmt: skip
def test_a_program_behind_a_wrapper_is_refused_with_the_folder_that_is_closed(tmp_path: Path, closed: Path, words: str) -> None:
    with pytest.raises(ConsoleError) as refused:
        check_program(spec(tmp_path, *shlex.split(words.format(closed))))
    assert str(closed) in refused.value.what and "may not enter" in refused.value.what and "every account can run" in refused.value.remedy


def test_a_bare_name_behind_a_wrapper_is_looked_for_on_the_agent_s_path(tmp_path: Path, closed: Path) -> None:
    with pytest.raises(ConsoleError, match="may not enter"):
        check_program(spec(tmp_path, "env", "prog", path=f"{closed.parent}:/usr/bin"))
    check_program(spec(tmp_path, "env", "PATH=/usr/bin", "prog", path=f"{closed.parent}:/usr/bin"))


@pytest.mark.parametrize(
    "argv", ["sh|-c|{} -V; true", "sh|-c|exec 'x", "sh|-c", "sh", "env", "timeout|5|sleep|1", "echo|{}", "env|-C|/x|./prog"]
)
def test_what_is_not_plain_to_see_is_left_to_the_kernel(tmp_path: Path, closed: Path, argv: str) -> None:
    check_program(spec(tmp_path, *argv.format(closed).split("|")))
