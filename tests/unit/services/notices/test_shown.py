"""What every console is told is kept with when it was said last."""

from __future__ import annotations

import time

import pytest

from console.services.notices.shown import Notices


def test_a_notice_says_when_and_one_that_is_said_again_is_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    notices = Notices(lambda kind, data: told.append((kind, data)))
    monkeypatch.setattr(time, "time", lambda: 0.0)
    notices.show("soft stop: the bucket is away", "red")
    monkeypatch.setattr(time, "time", lambda: 3600.0)
    notices.show("something else")
    assert [line[16:] for line in notices.lines(10)] == ["soft stop: the bucket is away", "something else"]
    first, second = notices.lines(10)
    assert first[:14] != second[:14] and len(first[:14].split(":")) == 3
    notices.show("soft stop: the bucket is away")
    assert [line.split("  ")[1] for line in notices.lines(1)] == ["soft stop: the bucket is away"]
    assert len(notices.lines(50)) == 2 and len(told) == 3
    assert told[0] == ("notice", {"level": "red", "text": "soft stop: the bucket is away"})


def test_fifty_are_kept() -> None:
    notices = Notices(lambda _kind, _data: None)
    for number in range(80):
        notices.show(str(number))
    assert [line.split("  ")[1] for line in notices.lines(80)] == [str(n) for n in range(30, 80)]
