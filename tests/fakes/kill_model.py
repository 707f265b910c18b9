"""The remote kill's state machine told twice: an oracle written from the design's table, and every observation in bytes.

The oracle shares no code with ``console.remotekill``; it sees what a person would say of an observation, nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import secrets
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.remotekill.document import canonical, kill_document, order_of, signing_bytes

AT = "2026-01-01T00:00:00+00:00"
EMERGENCY = b'{"killed":true,"reason":"emergency"}'
GENERATIONS = {"A": 11, "A2": 12, "B": 13}
ORDER = {name: order_of(generation, EMERGENCY) for name, generation in GENERATIONS.items()}


@dataclass(frozen=True)
class Seen:
    """What a person would say of an observation; the oracle sees only this."""

    what: str
    """kill, numbered, history, unkill, junk, missing, unchanged, unreadable, lease_over, restart or lost."""
    order: str = ""
    """Of the kill; of a history: of the kill that was overwritten, if any."""
    number: int = 0
    settled: int = 0
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
    numbers: dict[str, int] = field(default_factory=dict)
    """Of the latched orders."""
    settled: int = 0
    has_history: bool = False

    def mode(self) -> str:
        return "killed" if self.latched else ("soft" if self.soft else "armed")

    def step(self, seen: Seen) -> set[str]:
        """The kinds of effects; changes the oracle."""
        what = seen.what
        if what == "lost":
            self.latched, self.released, self.epoch, self.soft = set(), set(), 0, True
            self.numbers, self.settled, self.has_history = {}, 0, False
            what = "restart"
        if what == "unkill" and seen.voters < self.quorum:
            what = "junk"
        mode = self.mode()
        if what in ("kill", "numbered", "history"):
            return {"kill": self._kill_file, "numbered": self._numbered, "history": self._history}[what](seen)
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

    def _kill_file(self, seen: Seen) -> set[str]:
        return self._kill(seen.order)

    def _kill(self, order: str) -> set[str]:
        if order in self.latched:
            return set()
        if order in self.released:
            return {"Alarm"}
        self.latched.add(order)
        return {"Latch"}

    def _numbered(self, seen: Seen) -> set[str]:
        if seen.number <= self.settled:
            return {"Alarm"}
        self.numbers[seen.order] = seen.number
        return self._kill(seen.order)

    def _history(self, seen: Seen) -> set[str]:
        is_new, self.has_history = not self.has_history, True
        over = self.latched | self.released | seen.releases
        if is_new or not seen.order or seen.order in over:
            return set()
        return self._kill(seen.order) | {"Alarm"}

    def _unkill(self, seen: Seen, mode: str) -> set[str]:
        if seen.epoch < self.epoch:
            return {"Alarm"}
        if mode == "killed":
            if seen.epoch == self.epoch:
                return set()
            for order in self.latched:
                number = self.numbers.get(order, 0)
                if (number > seen.settled) if number else (order not in seen.releases):
                    return {"Alarm"}
            self.released |= self.latched
            self.latched = set()
            self.released |= seen.releases
            self.epoch, self.soft = seen.epoch, False
            self.settled = max(self.settled, seen.settled)
            return {"Released", "LiftSoftStop", "LeaseRenewed"}
        self.released |= seen.releases
        self.epoch, self.soft = seen.epoch, False
        self.settled = max(self.settled, seen.settled)
        return {"LeaseRenewed"} | ({"LiftSoftStop"} if mode == "soft" else set())


def world(fleet: Any, quorum: int, document: ModuleType, machine: ModuleType) -> list[tuple[Seen, Any]]:
    """Every observation twice: in words for the oracle, and as the parser under test reads the real bytes."""
    given = fleet.keys(quorum)
    keys = document.KeySet(given.fleet, given.quorum, given.keys)

    def read(seen: Seen, generation: int, body: bytes) -> tuple[Seen, Any]:
        return seen, machine.Read(order_of(generation, body), document.parse(body, keys))

    def unkill(epoch: int, kids: tuple[str, ...], voters: int, *names: str, settled: int = 0) -> tuple[Seen, Any]:
        orders = [ORDER[n] for n in names]
        release = names or settled
        body = fleet.release(epoch, orders, *kids, settled=settled) if release else fleet.baseline(epoch, *kids)
        seen = Seen("unkill", epoch=epoch, releases=frozenset(ORDER[n] for n in names), voters=voters, settled=settled)
        return read(seen, 100 + epoch, body)

    def numbered(number: int) -> tuple[Seen, Any]:
        order = order_of(20 + number, EMERGENCY, number)
        return Seen("numbered", order, number), machine.Numbered(order, "emergency")

    tampered = json.loads(fleet.baseline(1, "k1", "k2"))
    tampered["epoch"] = 9
    signed_kill = kill_document(fleet="other", reason="x", actor="y", issued_at=AT, signers=fleet.signers("stranger"))
    return [
        read(Seen("kill", ORDER["A"]), GENERATIONS["A"], EMERGENCY),
        read(Seen("kill", ORDER["A2"]), GENERATIONS["A2"], EMERGENCY),
        read(Seen("kill", order_of(GENERATIONS["B"], signed_kill)), GENERATIONS["B"], signed_kill),
        unkill(1, ("k1",), 1),
        unkill(1, ("k1", "k2"), 2),
        unkill(2, ("k1", "k2"), 2),
        unkill(2, ("k1",), 1, "A"),
        unkill(2, ("k1", "k1-again"), 1, "A"),
        read(
            Seen("unkill", epoch=2, releases=frozenset({ORDER["A"]}), voters=1),
            102,
            signed_twice(fleet.release(2, [ORDER["A"]], "k1"), fleet.one),
        ),
        unkill(2, ("k1", "k2"), 2, "A"),
        unkill(2, ("k1", "k2", "stranger"), 2, "A2"),
        unkill(3, ("k1", "k2"), 2, "A", "A2"),
        unkill(2, ("stranger",), 0, "A"),
        numbered(1),
        numbered(2),
        unkill(2, ("k1", "k2"), 2, settled=1),
        unkill(3, ("k1", "k2"), 2, "A", settled=2),
        (Seen("history", ORDER["A"]), machine.History(((ORDER["A"], "emergency"),), frozenset(), (7, 11))),
        (
            Seen("history", ORDER["A"], releases=frozenset({ORDER["A"]})),
            machine.History(((ORDER["A"], ""),), frozenset({ORDER["A"]}), (7,)),
        ),
        read(Seen("junk"), 40, canonical(tampered)),
        read(Seen("junk"), 41, fleet.baseline(1, "k1", "k2", fleet="prod-us")),
        read(Seen("junk"), 42, b'{"killed":false}'),
        read(Seen("junk"), 43, b'{"killed":false,"killed":true}'),
        read(Seen("junk"), 44, b"\x00"),
        read(Seen("junk"), 45, b'{"killed":1}'),
        (Seen("missing"), machine.Missing()),
        (Seen("unchanged"), machine.Unchanged()),
        (Seen("unreadable"), machine.Unreadable("HTTP 503")),
        (Seen("lease_over"), machine.LeaseOver("HTTP 503")),
        (Seen("restart"), machine.Restarted()),
        (Seen("lost"), machine.Restarted()),
    ]


def walk(fleet: Any, quorum: int, depth: int, document: ModuleType, machine: ModuleType) -> int:
    """Every sequence of ``depth`` observations, step by step beside the oracle: the number of steps, or AssertionError."""
    steps = 0
    for path in itertools.product(world(fleet, quorum, document, machine), repeat=depth):
        oracle, state = Oracle(quorum), machine.HostState()
        for seen, observation in path:
            if seen.what == "lost":
                state = machine.HostState()
            state, effects = machine.observe(state, observation)
            expected = oracle.step(seen)
            steps += 1
            same = state.mode == oracle.mode() and set(state.latched) == oracle.latched and state.epoch == oracle.epoch
            assert same and {type(e).__name__ for e in effects} == expected, [s for s, _ in path]
    return steps


# --- two different signatures by one key ------------------------------------------------------------------------------

_P, _L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_BASE = (
    15112221349535400772501151409588531511454012693041857206046113283949847762202,
    46316835694926478169428394003475163141307993866256225615783033603165251855960,
)


def signed_twice(body: bytes, private: Ed25519PrivateKey) -> bytes:
    """The document with a second, different, equally good signature by the very key that signed it already.

    RFC 8032 derives the nonce from the message, so an honest signer always makes the same bytes; a dishonest one need not.
    """
    document = json.loads(body)
    first = document["sigs"][0]
    other = base64.b64encode(_sign_with_fresh_nonce(private, signing_bytes(document))).decode()
    assert other != first["sig"]
    return canonical({**document, "sigs": [first, {**first, "sig": other}]})


def _sign_with_fresh_nonce(private: Ed25519PrivateKey, message: bytes) -> bytes:
    half = bytearray(hashlib.sha512(private.private_bytes_raw()).digest()[:32])
    half[0] &= 248
    half[31] = half[31] & 127 | 64
    nonce = secrets.randbelow(_L - 1) + 1
    point = _packed(_times(nonce, _BASE))
    public = private.public_key().public_bytes_raw()
    challenge = int.from_bytes(hashlib.sha512(point + public + message).digest(), "little")
    return point + ((nonce + challenge * int.from_bytes(half, "little")) % _L).to_bytes(32, "little")


def _add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    (x1, y1), (x2, y2) = a, b
    product = _D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, _P - 2, _P) % _P
    y = (y1 * y2 + x1 * x2) * pow(1 - product, _P - 2, _P) % _P
    return x, y


def _times(number: int, point: tuple[int, int]) -> tuple[int, int]:
    found = (0, 1)
    while number:
        if number & 1:
            found = _add(found, point)
        point, number = _add(point, point), number >> 1
    return found


def _packed(point: tuple[int, int]) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")
