"""What the rotation runs and writes is the operator's alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.credentials.trust import check_program, check_way
from console.domain.errors import ConsoleError


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "rotate"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_our_own_programs_and_the_systems_are_fine(program: Path) -> None:
    check_program(str(program))
    check_program("/bin/sh")  # through links
    check_way(program)


def test_a_program_that_others_can_change_is_refused(program: Path) -> None:
    for mode, words in ((0o775, "changed by another account"), (0o757, "changed by another account"), (0o644, "not a program")):
        program.chmod(mode)
        with pytest.raises(ConsoleError, match=words):
            check_program(str(program))
    program.chmod(0o755)
    program.parent.chmod(0o777)
    with pytest.raises(ConsoleError, match="written by every account"):
        check_program(str(program))
    program.parent.chmod(0o1777)
    check_program(str(program))
    with pytest.raises(ConsoleError, match="cannot be run"):
        check_program(str(program) + "-gone")
    with pytest.raises(ConsoleError, match="not a program"):
        check_program(str(program.parent))


def test_a_way_through_links_or_another_users_folder_is_refused(program: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConsoleError, match="symbolic link"):
        check_way(tmp_path / "link" / "rotate")
    with pytest.raises(ConsoleError, match="looked at"):
        check_way(tmp_path / "gone" / "rotate")
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
        with pytest.raises(ConsoleError, match="belongs to another account"):
            check_way(program)
        check_way(program, owners=frozenset({65534}))
        os.chown(program, 65534, 65534)
        with pytest.raises(ConsoleError, match="changed by another account"):
            check_program(str(program))
