"""Kill wins: consoles that kill and consoles that release, in every order of their steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.api_core.exceptions import PreconditionFailed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.domain.errors import ConsoleError
from console.remotekill import orders, writing
from console.remotekill.document import Order, SignedUnkill, kill_document, number_of, order_of, parse
from console.remotekill.looking import Look
from console.remotekill.machine import HostState, Mode, Read, observe
from console.remotekill.orders import AHEAD, add_order
from console.remotekill.release import make_release, review
from console.remotekill.writing import RemoteWrite, put_exact
from tests.fakes.bucket_model import KEY, ORDERS, Shelf


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
class Fleet:
    """What happened: who wrote what, who was told ok."""

    material: Any
    shelf: Shelf
    kills: list[RemoteWrite] = field(default_factory=list)
    releases: list[tuple[bool, frozenset[str]]] = field(default_factory=list)
    epoch: int = 1

    def kill(self, actor: str) -> None:
        body = kill_document(fleet="prod-eu", reason="stop", actor=actor, issued_at="")
        there = parse(self.shelf.objects[KEY].body, self.material.keys())
        settled = there.settled if isinstance(there, SignedUnkill) else 0
        self.kills.append(add_order(None, "platform/", body, settled + 1, lambda: 60.0))

    def release(self) -> None:
        keys = self.material.keys()
        try:
            seen = review(self.shelf, keys)
        except ConsoleError:
            return  # nothing is live, or it cannot be read
        self.epoch += 1
        body = make_release(seen, keys, self.material.signers("k1"), epoch=self.epoch, reason="over", actor="ann")
        try:
            done = put_exact(None, KEY, body, seen.generation)
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
        look = Look(self._shelf, self._shelf.read(), self.state, self._keys, changed=False, far=False)
        for observation in look.observations():
            self.state, _ = observe(self.state, observation)
            self.ever |= set(self.state.latched)

    def __call__(self) -> None:
        for _ in range(self._polls):
            self.poll()


@pytest.fixture(scope="module", autouse=True)
def no_waiting() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("console.remotekill.orders.time.sleep", lambda _s: None)
        yield


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schedule=st.lists(st.integers(0, 5), max_size=60), second=st.booleans())
def test_a_kill_wins_over_a_release_in_every_order_of_their_steps(fleet: Any, schedule: list[int], second: bool) -> None:
    stage = Stage(schedule)
    shelf = Shelf()
    shelf.put(KEY, fleet.baseline(1, "k1"))
    ours = Fleet(fleet, shelf)
    with pytest.MonkeyPatch.context() as patch:
        for module in (orders, writing):
            patch.setattr(module, "fetch", shelf.fetch)
            patch.setattr(module, "upload", shelf.upload)
        ours.kill("first")  # one kill is live before anybody moves
        first = ours.kills[0].order
        shelf.step = stage.step
        hosts = [Host(fleet, shelf, 3), Host(fleet, shelf, 1)]
        parts: dict[str, Callable[[], None]] = {"kill": lambda: ours.kill("ben"), "release": ours.release, "one": hosts[0], "two": hosts[1]}
        if second:
            parts["again"] = ours.release
            parts["more"] = lambda: ours.kill("eve")
        stage.play(parts)
        shelf.step = lambda: None
    for host in hosts:
        host.poll()
    live = parse(shelf.objects[KEY].body, fleet.keys())
    assert isinstance(live, SignedUnkill)
    reviewed = frozenset().union(*(seen for ok, seen in ours.releases if ok))
    assert all(kill.ok for kill in ours.kills), "a kill always ends with an order in the bucket"
    assert len({kill.number for kill in ours.kills}) == len(ours.kills), "and each with a number of its own"
    assert shelf.numbers() == list(range(1, len(ours.kills) + 1))
    # 1. What was not reviewed is not settled: an order that landed in between kills, until a later release has seen it.
    for kill in ours.kills:
        assert kill.number > live.settled or kill.order in reviewed
    # 2. Where an order is not settled every host is killed; an armed one obeyed only what was reviewed. Both have converged.
    if any(kill.number > live.settled for kill in ours.kills):
        assert [host.state.mode for host in hosts] == [Mode.KILLED, Mode.KILLED]
    else:
        assert first in reviewed and [host.state.mode for host in hosts] == [Mode.ARMED, Mode.ARMED]
        assert all(host.ever <= reviewed for host in hosts)


HIDDEN = Order(f"77:sha256:{'7' * 64}")


@pytest.mark.parametrize("there", ["baseline", "junk", "nothing", "release"])
def test_a_kill_that_was_overwritten_is_released_by_who_still_obeys_it(fleet: Any, there: str) -> None:
    shelf, keys = Shelf(), fleet.keys()
    if there == "release":
        seen = review(_with_kill(shelf), keys)
        shelf.put(KEY, make_release(seen, keys, fleet.signers("k1"), epoch=7, reason="over", actor="ann"))
    elif there != "nothing":
        shelf.put(KEY, fleet.baseline(1, "k1") if there == "baseline" else b"{")
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
    shelf.put(KEY, kill_document(fleet="prod-eu", reason="stop", actor="eve", issued_at=""))
    return shelf


# --- what a review names ----------------------------------------------------------------------------------------------


def test_a_release_names_every_order_and_the_number_up_to_which_they_are_settled(fleet: Any) -> None:
    shelf, keys = Shelf(), fleet.keys()
    shelf.put(KEY, fleet.baseline(3, "k1", settled=4))
    for number in (5, 6, 9):  # 7 and 8 were deleted by the bucket's owner
        shelf.put(f"{ORDERS}{number}", kill_document(fleet="prod-eu", reason=f"reason {number}", actor="eve", issued_at=""))
    shelf.put(KEY, b'{"killed":true}')
    hidden = order_of(shelf.last, b'{"killed":true}')
    shelf.put(KEY, fleet.baseline(3, "k1", settled=4))
    seen = review(shelf, keys)
    assert [number_of(order) for order in seen.orders] == [0, 5, 6, 9] and hidden in seen.orders and not seen.trouble
    assert (seen.settled, seen.reason, seen.handle, seen.epoch, seen.instead) == (9, "reason 9", "9", 3, "")
    assert seen.order == ",".join(seen.orders), "who names it has seen each one"
    content = parse(make_release(seen, keys, fleet.signers("k1"), epoch=4, reason="over", actor="ann"), keys)
    assert isinstance(content, SignedUnkill) and (content.releases, content.settled) == ((hidden,), 9)


def test_garbage_in_the_orders_folder_is_reviewed_and_settled_like_any_order(fleet: Any) -> None:
    shelf, keys = Shelf(), fleet.keys()
    shelf.put(KEY, fleet.baseline(1, "k1"))
    for number, body in enumerate((b"\x00", fleet.baseline(9, "k1", settled=9)), 1):
        shelf.put(f"{ORDERS}{number}", body)
    seen = review(shelf, keys)
    assert (seen.settled, seen.reason) == (2, "") and [number_of(order) for order in seen.orders] == [1, 2]


def test_a_release_of_one_that_was_not_read_everywhere_is_carried_on(fleet: Any) -> None:
    shelf, keys = Shelf(), fleet.keys()
    before = order_of(7, b"x")
    shelf.put(KEY, fleet.release(2, [before], "k1", settled=1))
    shelf.put(f"{ORDERS}2", b'{"killed":true}')
    seen = review(shelf, keys)
    assert seen.earlier == (before,) and before not in seen.order
    content = parse(make_release(seen, keys, fleet.signers("k1"), epoch=3, reason="over", actor="ann"), keys)
    assert isinstance(content, SignedUnkill) and (content.releases, content.settled) == ((before,), 2)


def test_an_order_at_a_number_that_no_host_reads_is_named_and_uses_up_no_numbers(fleet: Any) -> None:
    shelf, keys = Shelf(), fleet.keys()
    shelf.put(KEY, fleet.baseline(1, "k1", settled=4))
    for number in (5, 14, 14 + AHEAD + 2, 2**53 - 1):
        shelf.put(f"{ORDERS}{number}", b'{"killed":true}')
    seen = review(shelf, keys)
    assert [number_of(order) for order in seen.orders] == [5, 14] and seen.settled == 14
    assert "2 orders from number 24 on lie where no host reads" in seen.trouble
    assert shelf.read_orders(6, 16, AHEAD).found[-1].number == 14, "a host that looks ahead comes as far as the review"
