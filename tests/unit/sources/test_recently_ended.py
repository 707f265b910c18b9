"""Who has left is told of for a moment, by what is known then, and holds no process."""

from __future__ import annotations

import time

import pytest

from console.domain.agent import ProcessIdentity, Sighting
from console.sources.interface import GONE
from console.sources.recently_ended import FAREWELL_S, MOST, Farewells


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


def test_however_many_leave_only_the_last_are_told_of() -> None:
    farewells = Farewells()
    for number in range(MOST + 50):
        row = Sighting("codex", f"k{number}", "n", None, "s", "/", 0.0)
        farewells.add(row.key, lambda row=row: [row])  # type: ignore[misc]
    told = [one.key for one in farewells.now()]
    assert len(told) == MOST and told[0] == f"k{MOST + 49}" and "k0" not in told
    farewells.add("many", lambda: [Sighting("codex", "m", "n", None, "s", "/", 0.0)] * 10_000)
    assert len(farewells.now()) == MOST
