"""Where a cgroup tree can live: what is asked of systemd, what it answers, and what is said when nothing can be had."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Unavailable
from console.killswitch.kernel import delegation
from console.killswitch.kernel.cgroups import Mount, Mounts
from console.killswitch.kernel.delegation import ASKED_VARIABLE, Home, find_cgroup, find_home, scope_of, scope_prefix

INSTANCE = "0badc0de"


class Systemd:
    """systemd-run as an ordinary user sees it: a socket, and what a command that is started in a scope comes to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.commands: list[list[str]] = []
        self.environments: list[dict[str, str]] = []
        self.refuses: tuple[str, ...] = ()
        self.hangs = False
        self.printed = json.dumps({"folder": "/x", "why": ""}).encode()
        program = folder / "systemd-run"
        program.write_text("")
        program.chmod(0o755)
        self.runtime = folder / "run"
        (self.runtime / "systemd").mkdir(parents=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.runtime / "systemd" / "private"))
        monkeypatch.setattr(delegation, "SYSTEMD_RUN", (str(program),))
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        monkeypatch.setattr(subprocess, "run", self._run)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(self.runtime))
        monkeypatch.delenv(ASKED_VARIABLE, raising=False)

    def _run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        self.commands.append(command)
        self.environments.append(options["env"])
        if self.hangs:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        refused = next((word for word in command if word in self.refuses), "")
        return subprocess.CompletedProcess(command, 1 if refused else 0, self.printed, f"Unknown assignment: {refused}\n".encode())

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch, state_dir: Path) -> Iterator[Systemd]:
    made = Systemd(monkeypatch, state_dir)
    yield made
    made.close()


@pytest.fixture
def mounts(tmp_path: Path) -> Mounts:
    return Mounts(Mount(tmp_path / "cgroup", "/"))


def stand_in(mounts: Mounts, monkeypatch: pytest.MonkeyPatch, line: str, *, writable: bool) -> Path:
    assert mounts.v2 is not None
    folder = mounts.v2.point / line.lstrip("/")
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text("")
    monkeypatch.setattr(delegation, "cgroup_line", lambda _: line)
    monkeypatch.setattr(delegation, "is_writable", lambda _: writable)
    monkeypatch.setattr(delegation, "find_mounts", lambda: mounts)
    return folder


def test_root_and_whoever_was_started_in_a_scope_ask_nobody(monkeypatch: pytest.MonkeyPatch, mounts: Mounts) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_home(INSTANCE, mounts) == Home()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    monkeypatch.setenv(ASKED_VARIABLE, "1")
    assert find_home(INSTANCE, mounts) == Home()


def test_an_ordinary_user_gets_a_delegated_scope(systemd: Systemd, mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(mounts, monkeypatch, "/user.slice/user-4242.slice/session-2.scope", writable=False)
    home = find_home(INSTANCE, mounts)
    assert home.prefix[:3] == (delegation.SYSTEMD_RUN[0], "--user", "--scope") and home.prefix[-1] == "--"
    assert {"Delegate=yes", "OOMPolicy=continue"} <= set(home.prefix)
    [unit] = [word for word in home.prefix if word.startswith("--unit=")]
    assert scope_of(Path("/x") / unit.removeprefix("--unit=") / "control") == Path("/x") / unit.removeprefix("--unit=")
    assert home.environment == {"XDG_RUNTIME_DIR": str(systemd.runtime), ASKED_VARIABLE: "1"}
    assert set(systemd.environments[0]) == {"PATH", "LC_ALL", "XDG_RUNTIME_DIR"}, "nothing else of our environment"


def test_an_older_systemd_is_asked_for_less(systemd: Systemd) -> None:
    systemd.refuses = ("OOMPolicy=continue",)
    prefix = scope_prefix(INSTANCE)
    assert "Delegate=yes" in prefix and "OOMPolicy=continue" not in prefix and len(systemd.commands) == 2


def test_a_systemd_that_refuses_hangs_or_is_not_there_is_no_home(systemd: Systemd, mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(mounts, monkeypatch, "/user.slice/user-4242.slice/session-2.scope", writable=False)
    systemd.refuses = ("Delegate=yes",)
    home = find_home(INSTANCE, mounts)
    assert not home.prefix and "Unknown assignment" in home.why_not
    systemd.hangs = True
    assert "no answer within" in find_home(INSTANCE, mounts).why_not
    (systemd.runtime / "systemd" / "private").unlink()
    assert "no user systemd" in find_home(INSTANCE, mounts).why_not
    monkeypatch.setattr(delegation, "SYSTEMD_RUN", ("/nonexistent/systemd-run",))
    with pytest.raises(Unavailable, match="not installed"):
        scope_prefix(INSTANCE)


@pytest.mark.parametrize(
    ("line", "writable", "asks"),
    [
        ("/system.slice/watchfloor.service", True, False),  # delegated to us on purpose
        ("/system.slice/other.service", False, True),
        ("/user.slice/user-4242.slice/user@4242.service/app.slice/terminal.scope", True, True),  # ends with the terminal
        (f"/user.slice/user@4242.service/app.slice/watchfloor-{INSTANCE}-abcdef.scope/control", True, False),
        (f"/user.slice/user@4242.service/app.slice/watchfloor-{INSTANCE}-abcdef.scope-not", True, True),
    ],
)
def test_a_cgroup_that_lasts_is_kept(
    systemd: Systemd, mounts: Mounts, monkeypatch: pytest.MonkeyPatch, line: str, writable: bool, asks: bool
) -> None:
    stand_in(mounts, monkeypatch, line, writable=writable)
    assert bool(find_home(INSTANCE, mounts).prefix) is asks and bool(systemd.commands) is asks


def test_the_scope_is_tried_from_inside(systemd: Systemd, mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(mounts, monkeypatch, "/user.slice/user-4242.slice/session-2.scope", writable=False)
    found = find_cgroup(INSTANCE)
    assert found.ok and "systemd user scope" in found.tried and systemd.commands[-1][-1] == "console.killswitch.kernel.delegation"
    systemd.printed = json.dumps({"folder": "/x", "why": "/x: Permission denied"}).encode()
    found = find_cgroup(INSTANCE)
    assert not found.ok and "systemd user scope: /x: Permission denied" in found.tried and any("linger" in way for way in found.raised_by)
    systemd.printed = b"nonsense"
    assert "said nothing" in find_cgroup(INSTANCE).tried


def test_without_cgroup_v2_it_says_what_to_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation, "find_mounts", lambda: Mounts())
    found = find_cgroup(INSTANCE)
    assert not found.ok and "no cgroup v2" in found.tried and any("mount" in way for way in found.raised_by)


def test_settling_moves_only_out_of_the_scope_itself(mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = stand_in(mounts, monkeypatch, f"/user@1.service/watchfloor-{INSTANCE}-abcdef.scope", writable=True)
    (scope / "control").mkdir()
    assert delegation.settle_in_scope() == str(scope / "control") and (scope / "control" / "cgroup.procs").read_text() == "0"
    monkeypatch.setattr(delegation, "cgroup_line", lambda _: "/elsewhere")
    assert delegation.settle_in_scope() == ""
