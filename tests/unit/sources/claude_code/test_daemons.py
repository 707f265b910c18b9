"""The daemon of Claude Code is found from a session's process, and what it hosts is the kernel's word."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.agent import ProcessIdentity
from console.sources.claude_code.daemons import ClaudeDaemons
from console.sources.daemons.interface import FoundDaemon
from console.sources.daemons.processes import Processes
from tests.fakes.claude_stage import Stage

ONE, TWO = "11111111-aaaa-4bbb-8ccc-dddddddddddd", "22222222-aaaa-4bbb-8ccc-dddddddddddd"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as it:
        yield it


def find(pid: int) -> FoundDaemon | None:
    processes = Processes()
    process = processes.identity(pid)
    assert process is not None
    return ClaudeDaemons().find(processes.line(process), processes)


def test_it_names_its_sessions_and_those_that_wait(stage: Stage) -> None:
    one, two = stage.start(ONE), stage.start(TWO)
    found = find(one)
    assert found is not None and stage.daemon is not None
    assert (found.process.pid, found.uid, found.exe, found.refused) == (stage.daemon.pid, stage.uid, str(stage.program), "")
    assert sorted(h.session for h in found.hosted) == ["11111111", "22222222"] and not found.unknown
    assert [i.sign for i in found.idle] == [str(stage.sockets / "spare" / "0badcafe.claim.sock")]
    parents = Processes().rows
    assert {h.child.pid for h in found.hosted if h.child} == {parents[one][0], parents[two][0]}
    assert found.home == (("HOME", str(stage.home)),)


def test_the_program_s_own_command_drops_one_session(stage: Stage) -> None:
    found = find(stage.start(ONE))
    assert found is not None
    assert ClaudeDaemons().drop(found, ONE) == (str(stage.program), "stop", "11111111")
    assert ClaudeDaemons().drop(found, "--all") == ClaudeDaemons().drop(found, "") == ()


def test_a_folder_that_others_can_write_is_refused(stage: Stage) -> None:
    pid = stage.start(ONE)
    stage.sockets.chmod(0o777)
    found = find(pid)
    assert found is not None and "other accounts can write" in found.refused


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another account")
def test_a_folder_of_another_account_is_refused(stage: Stage) -> None:
    pid = stage.start(ONE)
    os.chown(stage.sockets, 4321, 4321)
    found = find(pid)
    assert found is not None and "belongs to account 4321" in found.refused


def test_another_listener_behind_its_path_is_refused(stage: Stage) -> None:
    """An agent moves a socket of its own over the daemon's: the path that was bound tells."""
    pid = stage.start(ONE)
    (stage.sockets / "rv" / "11111111.sock").rename(stage.sockets / "control.sock")
    found = find(pid)
    assert found is not None and found.refused == "another process answers on its control socket, or none"


def test_a_renamed_socket_makes_no_session_another(stage: Stage) -> None:
    one = stage.start(ONE)
    stage.start(TWO)
    (stage.sockets / "rv" / "22222222.sock").rename(stage.sockets / "rv" / "33333333.sock")
    found = find(one)
    assert found is not None and sorted(h.session for h in found.hosted) == ["11111111", "22222222"]


def test_an_executable_of_another_package_is_refused() -> None:
    with Stage(package="something-else") as stage:
        found = find(stage.start(ONE))
    assert found is not None and "no installation" in found.refused


@pytest.mark.skipif(os.geteuid() != 0, reason="starts a process under another account")
def test_a_session_of_another_account_is_refused(stage: Stage) -> None:
    processes = Processes()
    pid = stage.start(ONE)
    process, ours = processes.identity(pid), Processes().identity(os.getpid())
    assert process is not None and ours is not None
    line = [ours, *Processes().line(process)[1:]]
    found = ClaudeDaemons().find(line, Processes())
    assert found is not None and "account" in found.refused


def test_arguments_alone_make_no_daemon(tmp_path: Path) -> None:
    """Its parent is this test's Python, whose arguments are its own."""
    own = ProcessIdentity(os.getpid(), Processes().rows[os.getpid()][1])
    assert ClaudeDaemons().find([own, own], Processes()) is None
