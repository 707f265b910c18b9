"""The shim's pure parts: what is masked, what is kept of the output. The rest is in tests/integration."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from console.sandbox import shim

UID = 64321


def test_below_means_the_folder_or_inside_it() -> None:
    assert shim.is_below("/a", "/a") and shim.is_below("/a/b", "/a")
    assert not shim.is_below("/ab", "/a") and not shim.is_below("/", "/a")


def test_hidden_folders_are_masked_once_and_absent_ones_skipped(tmp_path: Path) -> None:
    for name in ("state/run", "other"):
        (tmp_path / name).mkdir(parents=True)
    hide = [str(tmp_path / name) for name in ("state/run", "state", "other", "absent")]
    assert shim.mask_list(hide, [], UID, UID) == sorted(str(tmp_path / name) for name in ("state", "other"))


def test_what_the_agent_could_not_pass_is_masked_so_that_its_own_can_be_bound_back(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "open").mkdir(parents=True)
    tmp_path.chmod(0o711)
    closed.chmod(0o700)
    found = shim.first_closed(str(closed / "open" / "work"), UID, UID)
    assert found is not None and str(closed).startswith(found)
    assert shim.mask_list([], [str(closed / "open" / "work")], UID, UID) == [found]
    assert shim.first_closed("/usr/bin/env", UID, UID) is None


def test_the_whole_file_system_is_never_masked() -> None:
    with pytest.raises(OSError, match="whole"):
        shim.mask_list(["/"], [], UID, UID)


def test_output_is_kept_up_to_its_limit_and_the_pipe_drained(tmp_path: Path) -> None:
    read, write = os.pipe()
    output = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.set_blocking(read, False)
    os.write(write, b"x" * 100)
    assert shim.copy(read, output, 0, 60) == (100, True)
    os.write(write, b"y" * 100)
    assert shim.copy(read, output, 100, 60) == (200, True)
    assert shim.copy(read, output, 200, 60) == (200, True)
    os.close(write)
    assert shim.copy(read, output, 200, 60) == (200, False)
    assert (tmp_path / "out").read_bytes() == b"x" * 60 + shim.LIMIT_NOTE
    os.close(read)
    os.close(output)


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -KILL $$", 137)])
def test_the_reaper_tells_code_and_signal(command: str, code: int) -> None:
    child = subprocess.Popen(["/bin/sh", "-c", command])
    found = None
    while found is None:
        found = shim.reap(child.pid)
        time.sleep(0.01)
    child.returncode = found  # reaped behind its back
    assert found == code
