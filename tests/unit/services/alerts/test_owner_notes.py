"""The owner's folder is the operator's: its account reads it, nobody forges it, and no link leads elsewhere."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.agent import AgentId, ProcessIdentity
from console.domain.errors import ConsoleError
from console.sandbox.processes import start_ticks
from console.services.alerts.owner_notes import leave_for_owner, open_for_owner

ONE = AgentId("o-1")
OTHER_UID, OTHER_GID = 61_237, 61_238
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory that other accounts can pass, as the product makes it."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o711)
        yield Path(made)


@pytest.fixture
def session() -> Iterator[ProcessIdentity]:
    """A process of another account, where this is root."""
    as_other = {"user": OTHER_UID, "group": OTHER_GID, "extra_groups": []} if IS_ROOT else {}
    process = subprocess.Popen(["/bin/sleep", "600"], **as_other)  # type: ignore[call-overload]
    yield ProcessIdentity(process.pid, start_ticks(process.pid))
    process.kill()
    process.wait()


def uid() -> int:
    return OTHER_UID if IS_ROOT else os.geteuid()


def reads(file: Path) -> str:
    """As the owner does."""
    as_other = {"user": OTHER_UID, "group": OTHER_GID, "extra_groups": []} if IS_ROOT else {}
    done = subprocess.run(["/bin/sh", "-c", f"ls {file.parent}; cat {file}; echo x >> {file}"], capture_output=True, text=True, **as_other)  # type: ignore[call-overload]
    if IS_ROOT:
        assert "denied" in done.stderr.lower(), "nobody but the operator writes there"
    return str(done.stdout)


def test_the_owner_finds_and_reads_both_and_can_write_neither(state: Path, session: ProcessIdentity) -> None:
    folder = open_for_owner(state, ONE, session, uid(), "operator:0\x1b[2J")
    said = reads(folder / "ADOPTED-o-1.txt")
    assert f"process {session.pid}" in said and "HALTED-o-1.txt" in said and "\x1b" not in said
    note = leave_for_owner(state, ONE, "HALTED-o-1.txt", b"day limit cost_usd: 2 of 1\n")
    assert note.parent == folder and "day limit" in reads(note)
    seen = folder.stat()
    assert (seen.st_uid, seen.st_mode & 0o777) == (os.geteuid(), 0o750) and note.stat().st_uid == os.geteuid()


def test_a_second_halt_overwrites_nothing_and_an_adoption_again_neither(state: Path, session: ProcessIdentity) -> None:
    for _ in range(2):
        folder = open_for_owner(state, ONE, session, uid(), "me")
        leave_for_owner(state, ONE, "HALTED-o-1.txt", b"why")
    names = sorted(one.name for one in folder.iterdir())
    assert names == ["ADOPTED-o-1-1.txt", "ADOPTED-o-1.txt", "HALTED-o-1-1.txt", "HALTED-o-1.txt"]


def test_no_link_is_followed(state: Path, session: ProcessIdentity, tmp_path: Path) -> None:
    (state / "halts").symlink_to(tmp_path)
    with pytest.raises((OSError, ConsoleError)):
        open_for_owner(state, ONE, session, uid(), "me")
    (state / "halts").unlink()
    (state / "halts").mkdir()
    (state / "halts" / str(uid())).symlink_to(tmp_path)
    with pytest.raises((OSError, ConsoleError)):
        open_for_owner(state, ONE, session, uid(), "me")
    (tmp_path / "ADOPTED-o-1.txt").touch()
    with pytest.raises((OSError, ConsoleError)):
        leave_for_owner(state, ONE, "HALTED-o-1.txt", b"why")
    assert [one.name for one in tmp_path.iterdir()] == ["ADOPTED-o-1.txt"]


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a folder away")
def test_a_folder_of_somebody_elses_is_not_written_into(state: Path, session: ProcessIdentity) -> None:
    folder = open_for_owner(state, ONE, session, uid(), "me")
    os.chown(folder, OTHER_UID, OTHER_GID)
    with pytest.raises(ConsoleError, match="another account"):
        leave_for_owner(state, ONE, "HALTED-o-1.txt", b"why")
    with pytest.raises(ConsoleError, match="another account"):
        open_for_owner(state, ONE, session, uid(), "me")


def test_what_its_owner_cannot_reach_is_said(state: Path, session: ProcessIdentity) -> None:
    inside = state / "closed"
    inside.mkdir(mode=0o700)
    if IS_ROOT:
        with pytest.raises(ConsoleError, match=f"{inside} is closed to it"):
            open_for_owner(inside, ONE, session, uid(), "me")
        with pytest.raises(ConsoleError, match="closed to it"):
            leave_for_owner(inside, ONE, "HALTED-o-1.txt", b"why")
    else:
        assert open_for_owner(inside, ONE, session, uid(), "me")


def test_whose_process_is_gone_or_another_has_no_folder(state: Path, session: ProcessIdentity) -> None:
    for process in (ProcessIdentity(session.pid, session.start_ticks + 1), ProcessIdentity(2**22 + 9, 1)):
        with pytest.raises(ConsoleError, match="group of its owner"):
            open_for_owner(state, ONE, process, uid(), "me")
    with pytest.raises(ConsoleError, match="no folder"):
        leave_for_owner(state, ONE, "HALTED-o-1.txt", b"why")


def test_who_is_not_root_leaves_files_for_nobody_else(state: Path, session: ProcessIdentity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.services.alerts.owner_notes.os.geteuid", lambda: 4242)
    with pytest.raises(ConsoleError, match="Only root"):
        open_for_owner(state, ONE, session, uid(), "me")


def test_of_two_accounts_the_last_to_own_it_reads(state: Path, session: ProcessIdentity) -> None:
    old = open_for_owner(state, ONE, session, uid(), "me")
    os.utime(old / "ADOPTED-o-1.txt", (1, 1))
    if IS_ROOT:
        me = ProcessIdentity(os.getpid(), start_ticks(os.getpid()))
        new = open_for_owner(state, ONE, me, 0, "me")
        assert leave_for_owner(state, ONE, "HALTED-o-1.txt", b"why").parent == new != old
