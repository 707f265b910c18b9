"""The armed light: can this host be stopped right now, by which path, proven how and when, and how long it takes at worst.

Pure judgement over what the followers measured. A path is ``proven`` only while nothing speaks against it; every doubt is amber.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from console.api import armed as m
from console.domain.guard import LOCAL_WORST_S
from console.domain.words import listed

GUARD_FRESH_S = 3.0
"""The supervisor asks for the guard's status four times a second, and every two seconds while there is no agent."""
ENGINE_PERIOD_S = 5.0
LIMIT_S = 6.0
"""Longest wait for a canary's end, and again for the guard's word on it."""
PERIODS = 2
"""A proof older than this many periods is no proof."""


@dataclass(frozen=True, slots=True)
class Flight:
    """One canary: how it went, and whose guard it speaks for."""

    proven: bool
    words: str
    ms: float | None = None
    """From the press to its end, as its parent saw it; None when it did not end."""
    guard_pid: int = 0
    """The guard that was asked: a proof says nothing about its successor."""
    at: float = 0.0
    """Seconds since the epoch, to show."""
    tick: float = 0.0
    """CLOCK_MONOTONIC seconds, to judge its age by."""


@dataclass(slots=True)
class Gauges:
    """What was measured last; ticks are CLOCK_MONOTONIC seconds."""

    guard: dict[str, Any] = field(default_factory=dict)
    guard_tick: float = float("-inf")
    flight: Flight | None = None
    canary_s: float = 60.0
    engine_ok: bool | None = None
    """None: not asked yet."""
    engine_words: str = ""
    engine_tick: float = float("-inf")
    engine_at: float | None = None
    engine_wanted: bool = False
    """An engine is named in the options, has answered before, or holds agents: its absence is a doubt, not a fact of this host."""


def local_path(seen: Gauges, tick: float) -> m.PathView:
    """The guard kills and proves: held by a canary that it has killed."""
    status, flight = seen.guard, seen.flight
    doubts = _guard_doubts(seen, tick) + _flight_doubts(seen, tick)
    caps = status.get("caps") or {}
    facts = [
        ("How", flight.words[:60] if flight else "no canary yet"),
        ("By", str(caps.get("cgroup") or caps.get("why") or "unknown")[:60]),
        ("Agents", str(status.get("agents", "?"))),
        ("Canary", f"every {seen.canary_s:.0f} s"),
    ]
    return m.PathView(
        name="local",
        state="in_doubt" if doubts else "proven",
        detail=listed(doubts) or "canary killed and confirmed dead",
        checked_at=flight.at if flight else None,
        worst_s=LOCAL_WORST_S,
        facts=facts,
        how="a canary process in a leaf of its own, killed by the guard, its end seen by the guard and by its parent",
        proof_age_s=_age(flight.tick, tick) if flight and flight.proven else None,
        period_s=seen.canary_s,
        measured_ms=round(flight.ms, 1) if flight and flight.ms is not None else None,
    )


def _guard_doubts(seen: Gauges, tick: float) -> list[str]:
    if not seen.guard.get("ok"):
        return [str(seen.guard.get("error") or "the guard has not been asked yet")]
    silent = tick - seen.guard_tick
    return [f"the guard has not answered for {silent:.0f} s"] if silent > GUARD_FRESH_S else []


def _flight_doubts(seen: Gauges, tick: float) -> list[str]:
    flight = seen.flight
    if flight is None:
        return ["no canary was proven yet"]
    if not flight.proven:
        return [flight.words]
    # A new guard opened its files itself, so a proof by its predecessor says nothing about it.
    if flight.guard_pid != seen.guard.get("pid"):
        return ["this guard is a new one and has killed no canary yet"]
    age = tick - flight.tick
    return [f"the last canary was proven {age:.0f} s ago"] if age > m.fresh_for_s(seen.canary_s) else []


def engine_path(seen: Gauges, tick: float, local: m.PathView) -> m.PathView:
    """The second way into containers. It is asked, not tried: no container is killed to light a lamp, and the words say so."""
    how = "the engine answered and its events stream is open; containers die through their cgroups first, no container canary is flown"
    engine = seen.guard.get("engine") or {}
    facts = [(str(k), str(v)[:60]) for k, v in list(engine.items())[:4]]
    view = m.PathView(name="engine", state="in_doubt", facts=facts, how=how, period_s=ENGINE_PERIOD_S, checked_at=seen.engine_at)
    if seen.engine_ok is None:
        return view.replaced(detail="not looked at yet")
    if not seen.engine_ok and not seen.engine_wanted:
        return view.replaced(state="unavailable", detail=f"not available, because {seen.engine_words}", how="")
    doubts = []
    if not seen.engine_ok:
        doubts.append(f"the engine is away: {seen.engine_words}; containers are killed through their cgroups alone")
    elif tick - seen.engine_tick > PERIODS * ENGINE_PERIOD_S + 2:
        doubts.append(f"the engine has not answered for {tick - seen.engine_tick:.0f} s")
    if engine.get("state") != "ok":
        doubts.append(f"the guard's events stream is {engine.get('state') or 'unknown'}")
    if local.state != "proven":
        doubts.append("the guard itself is in doubt")
    return view.replaced(
        state="in_doubt" if doubts else "proven",
        detail=listed(doubts) or "cgroup first, then the engine",
        worst_s=LOCAL_WORST_S,
        proof_age_s=_age(seen.engine_tick, tick) if seen.engine_ok else None,
    )


def armed_view(paths: list[m.PathView], *, killed: bool, soft_stop: str) -> m.ArmedView:
    """All of it in one word. A path that this host does not have is no doubt; one that it has and cannot prove is."""
    why = [f"{p.name}: {p.detail}" for p in paths if p.state == "in_doubt"]
    if soft_stop:
        why.insert(0, f"soft stop: {soft_stop}")
    local = next((p for p in paths if p.name == "local"), None)
    if local is None or local.state != "proven":
        state = "in_doubt"
    else:
        state = "in_doubt" if why else "armed"
    worst = [p.worst_s for p in paths if p.state == "proven" and p.worst_s is not None and p.name in ("local", "engine")]
    return m.ArmedView(state="killed" if killed else state, why=why, worst_s=max(worst, default=None), paths=paths)  # type: ignore[arg-type]


def _age(then: float, tick: float) -> float:
    return round(max(0.0, tick - then), 1)
