"""The armed light: green only while every proof is fresh, amber on every doubt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.api.armed import PathView
from console.domain.guard import LOCAL_WORST_S
from console.services.stop.readiness import (
    ENGINE_PERIOD_S,
    GUARD_FRESH_S,
    LIMIT_S,
    PERIODS,
    Flight,
    Gauges,
    armed_view,
    engine_path,
    local_path,
)

NOW = 5000.0
FLIGHT = Flight(True, "canary dead in 4 ms", 4.2, guard_pid=77, at=1.7e9, tick=NOW - 10)
GUARD: dict[str, Any] = {"ok": True, "pid": 77, "agents": 3, "caps": {"cgroup": "v2 /x"}, "engine": {"socket": "/e", "state": "ok"}}


def gauges(**changes: Any) -> Gauges:
    seen = Gauges(
        guard=dict(GUARD), guard_tick=NOW, flight=FLIGHT, canary_s=60.0,
        engine_ok=True, engine_words="Docker 27", engine_tick=NOW, engine_at=1.7e9, engine_wanted=True,
    )  # fmt: skip
    for name, value in changes.items():
        setattr(seen, name, value)
    return seen


def test_a_fresh_canary_of_this_guard_is_proof_and_says_how_and_how_long() -> None:
    path = local_path(gauges(), NOW)
    assert (path.state, path.measured_ms, path.proof_age_s, path.worst_s) == ("proven", 4.2, 10.0, LOCAL_WORST_S)
    assert "canary" in path.how and path.period_s == 60.0 and path.checked_at == 1.7e9


DOUBTS: dict[str, tuple[dict[str, Any], str]] = {
    "the guard does not answer": ({"guard": {"ok": False, "error": "cannot be reached"}}, "cannot be reached"),
    "nobody has asked it yet": ({"guard": {}}, "not been asked"),
    "it is silent": ({"guard_tick": NOW - GUARD_FRESH_S - 1}, "not answered for 4 s"),
    "no canary yet": ({"flight": None}, "no canary"),
    "the canary does not die": (
        {"flight": Flight(False, "the canary was NOT confirmed dead", None, 77, 1.7e9, NOW)},
        "NOT confirmed dead",
    ),
    "the guard is a new one": ({"guard": {**GUARD, "pid": 78}}, "new one"),
    "the proof is old": ({"flight": replace(FLIGHT, tick=NOW - PERIODS * 60 - 2 * LIMIT_S - 1)}, "133 s ago"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_every_doubt_about_the_local_kill_is_amber(doubt: str) -> None:
    changes, words = DOUBTS[doubt]
    seen = gauges(**changes)
    local = local_path(seen, NOW)
    assert local.state == "in_doubt" and words in local.detail
    paths = [local, engine_path(seen, NOW, local)]
    light = armed_view(paths, killed=False, soft_stop="")
    assert light.state == "in_doubt" and any(words in why for why in light.why) and light.worst_s is None


def test_a_proof_just_within_two_periods_still_counts() -> None:
    assert local_path(gauges(flight=replace(FLIGHT, tick=NOW - PERIODS * 60 - 2 * LIMIT_S + 1)), NOW).state == "proven"


def test_the_engine_is_green_only_while_it_answers_and_the_guard_hears_its_events() -> None:
    seen = gauges()
    path = engine_path(seen, NOW, local_path(seen, NOW))
    assert path.state == "proven" and "no container canary is flown" in path.how


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine_ok": False, "engine_words": "no answer in time"}, "engine is away: no answer in time"),
        ({"engine_tick": NOW - PERIODS * ENGINE_PERIOD_S - 3}, "has not answered for 13 s"),
        ({"guard": {**GUARD, "engine": {"state": "down"}}}, "events stream is down"),
        ({"guard": {**GUARD, "engine": {}}}, "events stream is unknown"),
        ({"flight": None}, "guard itself is in doubt"),
    ],
)
def test_every_doubt_about_the_engine_is_amber(changes: dict[str, Any], words: str) -> None:
    seen = gauges(**changes)
    path = engine_path(seen, NOW, local_path(seen, NOW))
    assert path.state == "in_doubt" and words in path.detail


def test_an_engine_that_was_never_there_is_a_fact_and_no_doubt() -> None:
    seen = gauges(engine_ok=False, engine_words="no socket", engine_wanted=False, engine_at=None)
    local = local_path(seen, NOW)
    path = engine_path(seen, NOW, local)
    assert path.state == "unavailable" and "no socket" in path.detail
    assert armed_view([local, path], killed=False, soft_stop="").state == "armed"
    assert engine_path(gauges(engine_ok=None), NOW, local).state == "in_doubt"


def test_green_needs_a_proven_local_kill_and_no_doubt_anywhere() -> None:
    local = local_path(gauges(), NOW)
    remote = PathView(name="remote", state="proven", worst_s=20.3)
    light = armed_view([local, remote], killed=False, soft_stop="")
    assert (light.state, light.why, light.worst_s) == ("armed", [], LOCAL_WORST_S)
    assert armed_view([], killed=False, soft_stop="").state == "in_doubt"
    assert armed_view([remote], killed=False, soft_stop="").state == "in_doubt"
    doubtful = remote.replaced(state="in_doubt", detail="HTTP 503")
    assert armed_view([local, doubtful], killed=False, soft_stop="").why == ["remote: HTTP 503"]
    assert armed_view([local, remote], killed=False, soft_stop="lease over").state == "in_doubt"
    assert armed_view([local, remote], killed=True, soft_stop="").state == "killed"
