"""The way in: a FIFO that loses nothing, writes all or nothing, and is never followed elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.errors import Conflict, Unavailable
from console.services.conversation.stdin_channel import Channel, sweep_channels


def made(folder: Path) -> Channel:
    channel = Channel(folder)
    channel.make(os.geteuid(), os.getegid())
    return channel


def test_what_is_written_before_anybody_reads_is_read_and_a_restart_of_ours_loses_nothing(tmp_path: Path) -> None:
    channel = made(tmp_path)
    channel.write(b"one\n")
    theirs = os.open(tmp_path / "talk", os.O_RDWR)  # as the program holds it
    channel.close()
    again = Channel(tmp_path)
    again.open()
    again.write(b"two\n")
    assert os.read(theirs, 100) == b"one\ntwo\n"
    os.close(theirs)
    again.close(remove=True)
    assert not (tmp_path / "talk").exists()
    with pytest.raises(Unavailable):
        again.write(b"x")


def test_one_that_never_reads_is_told_no_more_and_what_was_written_is_whole(tmp_path: Path) -> None:
    channel, line = made(tmp_path), b"x" * 60_000 + b"\n"
    sent = 0
    with pytest.raises(Conflict, match="does not read"):
        for _ in range(100):
            channel.write(line)
            sent += 1
    theirs = os.open(tmp_path / "talk", os.O_RDONLY | os.O_NONBLOCK)
    got = b""
    while len(got) < sent * len(line):
        got += os.read(theirs, 1 << 20)
    assert sent and got == line * sent
    os.close(theirs)
    channel.close(remove=True)


def test_what_is_no_fifo_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "talk").write_text("a file")
    with pytest.raises(OSError, match="no FIFO"):
        Channel(tmp_path).open()
    (tmp_path / "talk").unlink()
    (tmp_path / "talk").symlink_to("/dev/null")
    with pytest.raises(OSError):
        Channel(tmp_path).open()


def test_what_the_dead_left_is_swept_and_nothing_is_followed(tmp_path: Path) -> None:
    agents, elsewhere = tmp_path / "agents", tmp_path / "elsewhere"
    for name in ("dead", "alive", "odd"):
        (agents / name).mkdir(parents=True)
        made(agents / name).close()
        (agents / name / "hooked").write_text("{}\n")
        (agents / name / "agent.sock").touch()
    (agents / "odd" / "hers").touch()
    elsewhere.mkdir()
    made(elsewhere).close()
    (agents / "link").symlink_to(elsewhere)
    sweep_channels(agents, {"alive"})
    assert sorted(entry.name for entry in agents.iterdir()) == ["alive", "link", "odd"]
    assert [entry.name for entry in (agents / "odd").iterdir()] == ["hers"], "what is not ours stays"
    assert len(list((agents / "alive").iterdir())) == 4 and (elsewhere / "talk").exists()
    sweep_channels(tmp_path / "none", set())


def test_after_the_end_its_reader_gets_what_waits_and_then_end_of_file(tmp_path: Path) -> None:
    channel = made(tmp_path)
    theirs = os.open(tmp_path / "talk", os.O_RDONLY | os.O_NONBLOCK)
    channel.write(b"last\n")
    channel.finish()
    channel.finish()
    shells = os.open(tmp_path / "ending", os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(theirs, 100) == b"last\n" and os.read(theirs, 100) == b"" and os.read(shells, 100) == b"\n\n"
    with pytest.raises(Unavailable):
        channel.write(b"x")
    again = Channel(tmp_path)  # after a restart of ours
    again.finish()
    assert not again.is_open and os.read(theirs, 100) == b""
    os.close(theirs)
    os.close(shells)
    again.close()
    channel.close(remove=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "ending").symlink_to("/dev/null")
    with pytest.raises(OSError):
        Channel(tmp_path).finish()
