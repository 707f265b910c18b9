"""What goes down to the shim, and the output file."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import AgentId
from console.domain.errors import ConsoleError
from console.domain.network import NetworkMode
from console.sandbox import launcher
from console.sandbox.interface import LaunchSpec, Ticket

SPEC = LaunchSpec(AgentId("a1"), ("/bin/x",), {"A": "b"}, Path("/w"), Path("/run/agents/a1.sock"), Path("/out"), NetworkMode.NONE)


def test_the_orders_survive_the_pipe() -> None:
    spec = replace(SPEC, argv=("/bin/x", "\udcff", "a\nb"), extra_binds=((Path("/usr"), "/opt/usr"),))
    found = launcher.shim_spec(spec, Ticket("/leaf", ("/limit",)), launcher.Plan(drop=True, seccomp=b"\x01\x02"))
    assert json.loads(json.dumps(found)) == {**found, "keep": [list(item) for item in found["keep"]]}
    assert found["keep"][-1] == ("/usr", "/opt/usr", True)
    assert found["leaf"] == "/leaf" and found["limit_leaves"] == ["/limit"] and found["seccomp"] == "0102"


def test_the_door_is_the_socket_or_the_folder_of_its_own() -> None:
    assert launcher.socket_door(SPEC) == Path("/run/agents/a1.sock")
    assert launcher.socket_door(replace(SPEC, agent_socket=Path("/run/agents/a1/sock"))) == Path("/run/agents/a1")


def test_limits_go_into_the_leaf_that_has_them_and_only_downwards(tmp_path: Path) -> None:
    (tmp_path / "pids.max").write_text("50\n")
    spec = replace(SPEC, pids_max=80, memory_max_bytes=1000)
    found = launcher.shim_spec(spec, Ticket("", (str(tmp_path),)), launcher.Plan())
    assert (tmp_path / "pids.max").read_text() == "50\n"
    assert found["rlimits"]["RLIMIT_DATA"] == 1000 and "RLIMIT_NPROC" not in found["rlimits"]
    (tmp_path / "pids.max").write_text("max\n")
    launcher.shim_spec(spec, Ticket("", (str(tmp_path),)), launcher.Plan())
    assert (tmp_path / "pids.max").read_text() == "80"


def test_output_is_private_and_never_a_link_or_a_fifo(tmp_path: Path) -> None:
    path = tmp_path / "out"
    os.close(launcher.open_output(path))
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic"):
        launcher.open_output(tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises((ConsoleError, OSError)):
        launcher.open_output(tmp_path / "fifo")


@pytest.mark.parametrize(("number", "is_empty"), [(errno.ENOENT, True), (errno.ENODEV, True), (errno.EMFILE, False), (errno.EACCES, False)])
def test_a_leaf_that_was_removed_was_empty_and_one_that_cannot_be_read_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_empty: bool
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise OSError(number, "it cannot be opened")

    monkeypatch.setattr(Path, "open", broken)
    assert launcher.wait_empty(str(tmp_path)) is is_empty


def test_time_in_which_a_group_is_frozen_is_not_counted_for_as_long_as_the_sandbox_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "PREPARE_S", 0.3)
    (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    asked: list[int] = []
    silent, said = os.pipe()

    def is_wanted() -> bool:
        asked.append(1)
        if len(asked) == 4:  # it was frozen for longer than its time, and answers once it runs again
            (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 0\n")
            os.write(said, b"{}")
        return True

    try:
        assert launcher.Patience(str(tmp_path), is_wanted).wait(silent)
        os.read(silent, 10)
        assert not launcher.Patience(str(tmp_path), lambda: True).wait(silent), "time in which it runs counts"
        (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 1\n")
        assert not launcher.Patience(str(tmp_path), lambda: False).wait(silent), "nobody wants it any more"
        assert not launcher.Patience(str(tmp_path)).wait(silent), "an agent's launch has its time, frozen or not"
    finally:
        os.close(silent)
        os.close(said)
