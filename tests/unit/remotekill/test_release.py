"""Kill wins: consoles that kill and consoles that release, in every order of their steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.api_core.exceptions import NotFound as ObjectMissing
from google.api_core.exceptions import PreconditionFailed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.domain.errors import ConsoleError
from console.remotekill import writing
from console.remotekill.document import KillOrder, Order, SignedUnkill, kill_document, order_of, parse
from console.remotekill.machine import HostState, Mode, Read, observe
from console.remotekill.objects import Fetched
from console.remotekill.records import LoggedDocument
from console.remotekill.release import make_release, review
from console.remotekill.store import RemoteRead
from console.remotekill.writing import KillObject, RemoteWrite

KEY = "platform/kill-switch.json"
LOG = "platform/kill-log/"


class Stage:
    """Threads that take one step at a time, in the order a schedule says."""

    def __init__(self, schedule: list[int]) -> None:
        self._schedule = schedule
        self._gates: dict[str, threading.Semaphore] = {}
        self._stopped = threading.Semaphore(0)
        self._alive: list[str] = []
        self._who = threading.local()
        self.errors: list[BaseException] = []

    def step(self) -> None:
        """Called before everything that others can see: waits for its turn."""
        self._stopped.release()
        self._gates[self._who.name].acquire()

    def play(self, parts: dict[str, Callable[[], None]]) -> None:
        """Runs all parts to their end."""
        threads = []
        for name, part in parts.items():
            self._gates[name] = threading.Semaphore(0)
            threads.append(threading.Thread(target=self._run, args=(name, part)))
            threads[-1].start()
            self._stopped.acquire()
            self._alive.append(name)
        turn = 0
        while self._alive:
            number = self._schedule[turn % len(self._schedule)] if self._schedule else 0
            turn += 1
            self._gates[self._alive[number % len(self._alive)]].release()
            self._stopped.acquire()
        for thread in threads:
            thread.join()
        assert not self.errors, self.errors

    def _run(self, name: str, part: Callable[[], None]) -> None:
        self._who.name = name
        try:
            self.step()
            part()
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.errors.append(error)
        finally:
            self._alive.remove(name) if name in self._alive else None
            self._stopped.release()


@dataclass
class Shelf:
    """The bucket: linearizable, generations that only grow, preconditions. Every access is a step."""

    stage: Stage | None = None
    objects: dict[str, Fetched] = field(default_factory=dict)
    last: int = 100

    def fetch(self, _bucket: Any, name: str, known: int, _limit: int) -> Fetched | None:
        if self.stage is not None:
            self.stage.step()
        found = self.objects.get(name)
        if found is None:
            raise ObjectMissing("missing")  # type: ignore[no-untyped-call]
        return None if known == found.generation else found

    def upload(self, _bucket: Any, name: str, body: bytes, expected: int | None) -> int:
        if self.stage is not None:
            self.stage.step()
        found = self.objects.get(name)
        if expected is not None and expected != (found.generation if found else 0):
            raise PreconditionFailed("changed")  # type: ignore[no-untyped-call]
        self.last += 1
        self.objects[name] = Fetched(self.last, body)
        return self.last

    # what a review asks

    def read(self, known_generation: int = 0) -> RemoteRead:
        if KEY not in self.objects:
            return RemoteRead(missing=True)
        found = self.fetch(None, KEY, known_generation, 0)
        return RemoteRead(missing=True) if found is None else RemoteRead(found.generation, found.body)

    def kill_log(self) -> tuple[list[LoggedDocument], str]:
        if self.stage is not None:
            self.stage.step()
        names = [n.removeprefix(LOG).removesuffix(".json").split("-") for n in self.objects if n.startswith(LOG)]
        return sorted((LoggedDocument(k, Order(f"{g}:sha256:{h}")) for g, k, h in names), key=lambda e: int(e.order.split(":")[0])), ""


@dataclass
class Fleet:
    """What happened: who wrote what, who was told ok."""

    material: Any
    shelf: Shelf
    kills: list[RemoteWrite] = field(default_factory=list)
    releases: list[tuple[bool, frozenset[str]]] = field(default_factory=list)
    epoch: int = 1

    def kill(self, actor: str) -> None:
        body = kill_document(fleet="prod-eu", reason="stop", actor=actor, issued_at="")
        there = KillObject(None, KEY, "platform/")
        self.kills.append(there.kill(body, self.material.keys(), lambda: 60.0))

    def release(self) -> None:
        keys = self.material.keys()
        try:
            seen = review(self.shelf, keys)
        except ConsoleError:
            return  # nothing is live, or it cannot be read
        self.epoch += 1
        body = make_release(seen, keys, self.material.signers("k1"), epoch=self.epoch, reason="over", actor="ann")
        try:
            done = KillObject(None, KEY, "platform/").put_exact(body, seen.generation, "release")
        except PreconditionFailed:
            self.releases.append((False, frozenset(seen.orders)))
            return
        self.releases.append((done.ok, frozenset(seen.orders)))


class Host:
    """Polls, whenever it is its turn."""

    def __init__(self, material: Any, shelf: Shelf, polls: int) -> None:
        self._keys, self._shelf, self._polls = material.keys(), shelf, polls
        self.state = HostState(soft=False, epoch=1)
        self.ever: set[str] = set()

    def poll(self) -> None:
        found = self._shelf.fetch(None, KEY, 0, 0)
        assert found is not None
        self.state, _ = observe(self.state, Read(order_of(found.generation, found.body), parse(found.body, self._keys)))
        self.ever |= set(self.state.latched)

    def __call__(self) -> None:
        for _ in range(self._polls):
            self.poll()


@pytest.fixture(scope="module", autouse=True)
def no_waiting() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("console.remotekill.writing.time.sleep", lambda _s: None)
        yield


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schedule=st.lists(st.integers(0, 5), max_size=60), second=st.booleans())
def test_a_kill_wins_over_a_release_in_every_order_of_their_steps(fleet: Any, schedule: list[int], second: bool) -> None:
    stage = Stage(schedule)
    shelf = Shelf()
    shelf.upload(None, KEY, fleet.baseline(1, "k1"), 0)
    ours = Fleet(fleet, shelf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "fetch", shelf.fetch)
        patch.setattr(writing, "upload", shelf.upload)
        ours.kill("first")  # one kill is live before anybody moves
        first = ours.kills[0].order
        shelf.stage = stage
        hosts = [Host(fleet, shelf, 3), Host(fleet, shelf, 1)]
        parts: dict[str, Callable[[], None]] = {"kill": lambda: ours.kill("ben"), "release": ours.release, "one": hosts[0], "two": hosts[1]}
        if second:
            parts["again"] = ours.release
            parts["more"] = lambda: ours.kill("eve")
        stage.play(parts)
        shelf.stage = None
    for host in hosts:
        host.poll()
    live = parse(shelf.objects[KEY].body, fleet.keys())
    reviewed = frozenset().union(*(orders for ok, orders in ours.releases if ok))
    assert all(kill.ok for kill in ours.kills), "a kill always ends with a live kill"
    # 1. What nobody reviewed is not released: a kill that landed in between is live, or was seen and reviewed by a later release.
    for kill in ours.kills:
        assert kill.order in reviewed or isinstance(live, KillOrder)
    # 2. Where a kill is live every host is killed; where a release is live, only for what it names. Both have converged.
    if isinstance(live, KillOrder):
        assert [host.state.mode for host in hosts] == [Mode.KILLED, Mode.KILLED]
    else:
        assert isinstance(live, SignedUnkill)
        assert all(host.ever <= reviewed for host in hosts if host.state.mode is Mode.ARMED)
        assert {host.state.mode for host in hosts} <= {Mode.ARMED, Mode.KILLED} and first in reviewed
        assert all(set(host.state.latched) - set(live.releases) for host in hosts if host.state.mode is Mode.KILLED)


HIDDEN = Order(f"77:sha256:{'7' * 64}")


@pytest.mark.parametrize("there", ["baseline", "junk", "nothing", "release"])
def test_a_kill_that_was_overwritten_is_released_by_who_still_obeys_it(fleet: Any, there: str) -> None:
    shelf, keys = Shelf(), fleet.keys()
    if there == "release":
        seen = review(_with_kill(shelf), keys)
        shelf.upload(None, KEY, make_release(seen, keys, fleet.signers("k1"), epoch=7, reason="over", actor="ann"), None)
    elif there != "nothing":
        shelf.upload(None, KEY, fleet.baseline(1, "k1") if there == "baseline" else b"{", 0)
    with pytest.raises(ConsoleError, match="No kill is live"):
        review(shelf, keys)
    found = review(shelf, keys, [HIDDEN])
    assert (found.order, found.orders[-1]) == (HIDDEN, HIDDEN) and found.instead
    assert found.epoch == {"baseline": 1, "release": 7}.get(there, 0)
    body = make_release(found, keys, fleet.signers("k1"), epoch=found.epoch + 1, reason="over", actor="ann")
    content = parse(body, keys)
    assert isinstance(content, SignedUnkill)
    state, _ = observe(HostState(soft=False, epoch=found.epoch, latched=(HIDDEN,)), Read(order_of(1, body), content))
    assert state.mode is Mode.ARMED
    if there == "release":
        assert set(content.releases) == {*seen.orders, HIDDEN}, "who has not read the release before misses nothing"


def _with_kill(shelf: Shelf) -> Shelf:
    shelf.upload(None, KEY, kill_document(fleet="prod-eu", reason="stop", actor="eve", issued_at=""), 0)
    return shelf
