"""The state machine, exhaustively, against an oracle that was written from the table and shares no code with it."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from console.remotekill.document import Junk, KeySet, KillOrder, Order, canonical, kill_document, order_of, parse
from console.remotekill.machine import (
    RELEASED_KEPT,
    HostState,
    Latch,
    LeaseOver,
    LiftSoftStop,
    Missing,
    Mode,
    Observation,
    Read,
    Released,
    Restarted,
    SoftStop,
    Unchanged,
    Unreadable,
    observe,
)

AT = "2026-01-01T00:00:00+00:00"
EMERGENCY = b'{"killed":true,"reason":"emergency"}'
GEN = {"A": 11, "A2": 12, "B": 13}


@dataclass(frozen=True)
class Seen:
    """What a person would say of an observation; the oracle sees only this."""

    what: str
    """kill, unkill, junk, missing, unchanged, unreadable, lease_over, restart or lost."""
    order: str = ""
    epoch: int = 0
    releases: frozenset[str] = frozenset()
    voters: int = 0
    """Distinct keys with a good signature over these bytes for this fleet."""


@dataclass
class Oracle:
    """The table, row by row."""

    quorum: int
    latched: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    epoch: int = 0
    soft: bool = True

    def mode(self) -> str:
        return "killed" if self.latched else ("soft" if self.soft else "armed")

    def step(self, seen: Seen) -> set[str]:
        """The kinds of effects; changes the oracle."""
        what = seen.what
        if what == "lost":
            self.latched, self.released, self.epoch, self.soft = set(), set(), 0, True
            what = "restart"
        if what == "unkill" and seen.voters < self.quorum:
            what = "junk"
        mode = self.mode()
        if what == "kill":
            return self._kill(seen.order)
        if what == "unkill":
            return self._unkill(seen, mode)
        if what in ("junk", "missing", "lease_over"):
            if mode == "armed":
                self.soft = True
                return {"SoftStop", "Alarm"}
            return set()
        if what == "unreadable":
            return {"Alarm"}
        if what == "unchanged":
            return {"LeaseRenewed"} if mode == "armed" else set()
        assert what == "restart"
        if mode == "killed":
            return {"Latch"}
        self.soft = True
        return {"SoftStop"}

    def _kill(self, order: str) -> set[str]:
        if order in self.latched:
            return set()
        if order in self.released:
            return {"Alarm"}
        self.latched.add(order)
        return {"Latch"}

    def _unkill(self, seen: Seen, mode: str) -> set[str]:
        if seen.epoch < self.epoch:
            return {"Alarm"}
        if mode == "killed":
            if seen.epoch == self.epoch:
                return set()
            if self.latched - seen.releases:
                return {"Alarm"}
            self.released |= self.latched
            self.latched = set()
            self.epoch, self.soft = seen.epoch, False
            return {"Released", "LiftSoftStop", "LeaseRenewed"}
        self.epoch, self.soft = seen.epoch, False
        return {"LeaseRenewed"} | ({"LiftSoftStop"} if mode == "soft" else set())


ORDER = {name: order_of(gen, EMERGENCY) for name, gen in GEN.items()}


def world(fleet: Any, quorum: int) -> list[tuple[Seen, Observation]]:
    """Every observation twice: in words for the oracle, and as the real parser reads the real bytes."""
    keys: KeySet = fleet.keys(quorum)

    def read(seen: Seen, generation: int, body: bytes) -> tuple[Seen, Observation]:
        return seen, Read(order_of(generation, body), parse(body, keys))

    def unkill(epoch: int, kids: tuple[str, ...], voters: int, *names: str) -> tuple[Seen, Observation]:
        orders = [ORDER[n] for n in names]
        body = fleet.release(epoch, orders, *kids) if names else fleet.baseline(epoch, *kids)
        return read(Seen("unkill", "", epoch, frozenset(ORDER[n] for n in names), voters), 100 + epoch, body)

    tampered = json.loads(fleet.baseline(1, "k1", "k2"))
    tampered["epoch"] = 9
    signed_kill = kill_document(fleet="other", reason="x", actor="y", issued_at=AT, signers=fleet.signers("stranger"))
    return [
        read(Seen("kill", ORDER["A"]), GEN["A"], EMERGENCY),
        read(Seen("kill", ORDER["A2"]), GEN["A2"], EMERGENCY),
        read(Seen("kill", order_of(GEN["B"], signed_kill)), GEN["B"], signed_kill),
        unkill(1, ("k1",), 1),
        unkill(1, ("k1", "k2"), 2),
        unkill(2, ("k1", "k2"), 2),
        unkill(2, ("k1",), 1, "A"),
        unkill(2, ("k1", "k1-again"), 1, "A"),
        unkill(2, ("k1", "k2"), 2, "A"),
        unkill(2, ("k1", "k2", "stranger"), 2, "A2"),
        unkill(3, ("k1", "k2"), 2, "A", "A2"),
        unkill(2, ("stranger",), 0, "A"),
        read(Seen("junk"), 40, canonical(tampered)),
        read(Seen("junk"), 41, fleet.baseline(1, "k1", "k2", fleet="prod-us")),
        read(Seen("junk"), 42, b'{"killed":false}'),
        read(Seen("junk"), 43, b'{"killed":false,"killed":true}'),
        read(Seen("junk"), 44, b"\x00"),
        read(Seen("junk"), 45, b'{"killed":1}'),
        (Seen("missing"), Missing()),
        (Seen("unchanged"), Unchanged()),
        (Seen("unreadable"), Unreadable("HTTP 503")),
        (Seen("lease_over"), LeaseOver("HTTP 503")),
        (Seen("restart"), Restarted()),
        (Seen("lost"), Restarted()),
    ]


def walk(fleet: Any, quorum: int, depth: int) -> int:
    steps = 0
    everything = world(fleet, quorum)
    for path in itertools.product(everything, repeat=depth):
        oracle, state = Oracle(quorum), HostState()
        for seen, observation in path:
            if seen.what == "lost":
                state = HostState()
            state, effects = observe(state, observation)
            expected = oracle.step(seen)
            steps += 1
            where = [s for s, _ in path]
            assert state.mode == oracle.mode(), where
            assert set(state.latched) == oracle.latched and state.epoch == oracle.epoch, where
            assert {type(e).__name__ for e in effects} == expected, where
    return steps


@pytest.mark.parametrize("quorum", [1, 2])
def test_every_sequence_of_three_observations_follows_the_table(fleet: Any, quorum: int) -> None:
    assert walk(fleet, quorum, 3) == 3 * 24**3


@pytest.mark.long
@pytest.mark.parametrize("quorum", [1, 2])
def test_every_sequence_of_four_observations_follows_the_table(fleet: Any, quorum: int) -> None:
    assert walk(fleet, quorum, 4) == 4 * 24**4


def test_killing_comes_before_everything_and_names_the_order() -> None:
    state, effects = observe(HostState(soft=False, epoch=1), Read(ORDER["A"], KillOrder("why", "who")))
    assert effects == (Latch(ORDER["A"], "why"),) and state.mode is Mode.KILLED


def test_a_release_tells_what_it_released_and_only_then_lifts() -> None:
    from console.remotekill.document import SignedUnkill

    state = HostState(soft=True, epoch=1, latched=(ORDER["A"], ORDER["A2"]))
    after, effects = observe(state, Read(ORDER["B"], SignedUnkill(2, (ORDER["A"], ORDER["A2"]), "", "", "")))
    assert [type(e) for e in effects][:2] == [Released, LiftSoftStop]
    assert effects[0] == Released((ORDER["A"], ORDER["A2"])) and after.mode is Mode.ARMED


def test_a_restart_while_killed_says_so_again() -> None:
    state = HostState(latched=(ORDER["A"],), epoch=3)
    after, effects = observe(state, Restarted())
    assert after == state and isinstance(effects[0], Latch) and effects[0].remembered


def test_a_soft_stop_says_why() -> None:
    _, effects = observe(HostState(soft=False, epoch=1), Read(ORDER["A"], Junk("its schema is not agent-kill/2")))
    assert isinstance(effects[0], SoftStop) and "schema" in effects[0].why


def test_the_memory_of_released_orders_is_bounded() -> None:
    from console.remotekill.document import SignedUnkill

    state = HostState(soft=False, epoch=0)
    for n in range(RELEASED_KEPT + 10):
        order = Order(f"{n}:sha256:{'0' * 64}")
        state, _ = observe(state, Read(order, KillOrder("", "")))
        state, _ = observe(state, Read(order, SignedUnkill(n + 1, (order,), "", "", "")))
    assert len(state.released) == RELEASED_KEPT and state.mode is Mode.ARMED
