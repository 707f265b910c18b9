"""The dump at a kill: asked for without waiting, bounded, and "not recorded" whenever it is not whole."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from console.killswitch.kernel import socket_lists as module
from console.killswitch.kernel.socket_lists import Dump, Raw, TooLate


class FakeReader:
    """A namespace whose list is this, or this error."""

    made: list[FakeReader]
    answers: dict[int, OSError]

    def __init__(self, pid: int | None = None) -> None:
        if isinstance(error := self.answers.get(-(pid or 0)), OSError) and pid:
            raise error
        self.pid, self.closed = pid, False
        self.made.append(self)

    def read(self, deadline: float) -> Raw:
        if (error := self.answers.get(self.pid or 0)) is not None:
            raise error
        return Raw(self.pid or 0, b"", b"")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeReader]:
    class Fresh(FakeReader):
        made: list[FakeReader] = []
        answers: dict[int, OSError] = {}

    monkeypatch.setattr(module, "Reader", Fresh)
    return Fresh


@pytest.fixture
def dump(fake: type[FakeReader]) -> Iterator[Dump]:
    made = Dump()
    yield made
    made.end()


def taken(dump: Dump) -> Any:
    asked = dump.ask()
    dump.take(asked)
    return asked


def test_asking_waits_for_nothing_and_the_thread_answers(dump: Dump) -> None:
    dump.start()
    asked = dump.ask()
    assert asked.done.wait(60) and not asked.trouble and [raw.namespace for raw in asked.raws] == [0]


def test_without_a_list_of_the_kernel_there_is_trouble(dump: Dump) -> None:
    assert "no list" in taken(dump).trouble and "no list" in dump.look()[1][0]


def test_every_namespace_of_an_agent_is_read_ours_first_and_closed_when_it_is_empty(dump: Dump, fake: type[FakeReader]) -> None:
    dump.open({7: 70, 8: 80})
    assert [raw.namespace for raw in taken(dump).raws] == [0, 70, 80]
    dump.open({8: 80})
    assert sorted((one.pid or 0, one.closed) for one in fake.made) == [(0, False)] * 2 + [(70, True)] * 2 + [(80, False)] * 2
    assert [raw.namespace for raw in dump.look()[0]] == [0, 80]


def test_a_namespace_that_cannot_be_entered_is_not_tried_at_each_look(dump: Dump, fake: type[FakeReader]) -> None:
    fake.answers[-70] = PermissionError(errno.EPERM, "not permitted")
    dump.open({7: 70})
    dump.open({7: 70})
    assert [one.pid for one in fake.made] == [None, None]


def test_a_list_that_is_late_or_refused_is_trouble_and_one_that_was_closed_is_not(dump: Dump, fake: type[FakeReader]) -> None:
    dump.open({7: 70})
    fake.answers[70] = OSError(errno.EBADF, "closed")
    assert not taken(dump).trouble
    fake.answers[70] = TooLate(0, "too long")
    assert taken(dump).trouble == "too long" and len(taken(dump).raws) == 1
    assert dump.look()[1] == {7: "too long"}
    fake.answers[0] = OSError(errno.EBADF, "closed")
    assert taken(dump).trouble == "closed"


def test_no_more_namespaces_than_the_bound(dump: Dump, fake: type[FakeReader]) -> None:
    dump.open({1000 + n: 10 + n for n in range(100)})
    assert len(taken(dump).raws) == module.MOST_NAMESPACES + 1


def test_the_real_kernel_answers_and_the_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DUMP_S", 60.0)
    made = Dump()
    made.start()
    asked = made.ask()
    assert asked.done.wait(60) and asked.raws[0].namespace == os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 - a link of /proc
    made.end()
    until = time.monotonic() + 60
    while any(thread.name == "socket-dump" for thread in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(thread.name == "socket-dump" for thread in threading.enumerate())
