"""What every console is told is kept with when it was said last."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from console.supervisor.parts import Parts


@pytest.fixture
def parts() -> Any:
    made = Parts.__new__(Parts)  # the rest of a supervisor has no part in this
    made.notices, made.noticed = [], {}
    made.core = SimpleNamespace(loop=None)  # type: ignore[assignment]
    return made


def test_a_notice_says_when_and_one_that_is_said_again_is_the_newest(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)
    parts.notice("soft stop: the bucket is away")
    monkeypatch.setattr(time, "time", lambda: 3600.0)
    parts.notice("something else")
    assert [line[16:] for line in parts.noticed_lines(10)] == ["soft stop: the bucket is away", "something else"]
    first, second = parts.noticed_lines(10)
    assert first[:14] != second[:14] and len(first[:14].split(":")) == 3
    parts.notice("soft stop: the bucket is away")
    assert [line.split("  ")[1] for line in parts.noticed_lines(1)] == ["soft stop: the bucket is away"]
    assert len(parts.notices) == 2


def test_fifty_are_kept(parts: Any) -> None:
    for number in range(80):
        parts.notice(str(number))
    assert parts.notices == [str(n) for n in range(30, 80)] and set(parts.noticed) == set(parts.notices)
