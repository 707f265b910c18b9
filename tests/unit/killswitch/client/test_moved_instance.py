"""An instance whose state directory is gone is found by what names that directory, and only by that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from console.killswitch.client import moved_instance


def test_instances_are_looked_for_by_command_lines_and_environments_that_name_the_folder() -> None:
    waits = "import sys; sys.stdin.read()"
    words = ("console.killswitch", "--state-dir", "/gone/st", "--instance", "01234567")
    guard = subprocess.Popen([sys.executable, "-c", waits, *words], stdin=subprocess.PIPE, env={})
    marked = {"WATCHFLOOR_INSTANCE": "89abcdef", "WATCHFLOOR_WORKSPACE": "/gone/st/workspaces/c"}
    agent = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE, env=marked)
    hostile = {"WATCHFLOOR_INSTANCE": "../../etc", "WATCHFLOOR_WORKSPACE": "/gone/st/x"}
    other = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE, env=hostile)
    try:
        found, passed_over = moved_instance.candidates(Path("/gone/st"))
        assert [(one.instance_id, one.has_guard, one.folder) for one in found] == [("01234567", True, None)]
        assert passed_over == ["instance 89abcdef is named by processes without a cgroup alone"]
        assert moved_instance.candidates(Path("/gone/s")) == ([], [])
    finally:
        for process in (guard, agent, other):
            process.communicate()
