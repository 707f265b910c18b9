"""Who has left is told of for a moment, by what is known then, and holds no process."""

from __future__ import annotations

import time

import pytest

from console.domain.agent import ProcessIdentity, Sighting
from console.sources.farewell import FAREWELL_S, Farewells
from console.sources.interface import GONE


def test_it_is_asked_anew_each_time_until_it_is_over_or_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said = ["first"]
    farewells = Farewells()
    farewells.add("k", lambda: [Sighting("codex", "k", said[0], ProcessIdentity(7, 1), "s", "/", 0.0, status="running")])
    (one,) = farewells.now()
    assert (one.name, one.status, one.process) == ("first", GONE, None)
    said[0] = "later"
    assert [one.name for one in farewells.now()] == ["later"]
    clock[0] += FAREWELL_S + 0.1
    assert farewells.now() == []
    farewells.add("k", list)
    farewells.drop("k")
    farewells.drop("k")
    assert farewells.now() == []
