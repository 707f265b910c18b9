"""Where a guard records when its state directory is gone: only a folder of its own account, found only by the same account."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from console.killswitch.guard import relocation


def test_a_folder_that_another_account_could_have_planted_is_no_place_of_a_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relocation, "bases", lambda: (tmp_path,))
    folder = relocation.make_folder("01234567", Path("/gone"))
    assert list(relocation.found_for(Path("/gone"))) == [("01234567", folder)]
    folder.chmod(0o777)
    assert not list(relocation.found_for(Path("/gone")))
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path)
    with pytest.raises(OSError, match="another account"):
        relocation.make_folder("01234567", Path("/gone"))


def test_instances_are_looked_for_by_command_lines_and_environments_that_name_the_folder() -> None:
    waits = "import sys; sys.stdin.read()"
    words = ("console.killswitch", "--state-dir", "/gone/st", "--instance", "01234567")
    guard = subprocess.Popen([sys.executable, "-c", waits, *words], stdin=subprocess.PIPE, env={})
    marked = {"WATCHFLOOR_INSTANCE": "89abcdef", "WATCHFLOOR_WORKSPACE": "/gone/st/workspaces/c"}
    agent = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE, env=marked)
    hostile = {"WATCHFLOOR_INSTANCE": "../../etc", "WATCHFLOOR_WORKSPACE": "/gone/st/x"}
    other = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE, env=hostile)
    try:
        found, passed_over = relocation.candidates(Path("/gone/st"))
        assert [(one.instance_id, one.has_guard, one.folder) for one in found] == [("01234567", True, None)]
        assert passed_over == ["instance 89abcdef is named by processes without a cgroup alone"]
        assert relocation.candidates(Path("/gone/s")) == ([], [])
    finally:
        for process in (guard, agent, other):
            process.communicate()
