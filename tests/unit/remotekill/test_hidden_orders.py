"""Every short story of a bucket: orders are written, overwritten, deleted, read late and out of order, and none is hidden from a host.

A story is a sequence of steps by consoles, an attacker with the right to write the kill file, the bucket's owner and a host's polls.
What must follow is said by ``Story`` in a person's words; it shares no code with the state machine.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import NotFound
from console.remotekill.channel import FULL_READ_EVERY
from console.remotekill.document import SignedUnkill, order_of, parse
from console.remotekill.machine import Mode
from console.remotekill.poller import Poller
from console.remotekill.release import make_release, review
from tests.fakes.bucket_model import KEY, ORDERS, Shelf

EMERGENCY = b'{"killed":true,"reason":"emergency"}'
GARBAGE = b"\xff{"
STEPS = ("order", "garbage", "by_hand", "old_baseline", "delete", "owner_deletes_first", "release", "poll", "stale_file", "stale_orders")


class Mixed:
    """A poll that reads the kill file at one moment and the orders at another: reordered, or from a cache."""

    def __init__(self, file: Shelf, orders: Shelf) -> None:
        self.read, self.read_history = file.read, file.read_history
        self._orders = orders

    def read_orders(self, first: int, *, ahead: int) -> Any:
        return self._orders.read_orders(first, 16, ahead)


class Story:
    """One host that runs, and what a person knows of every order."""

    def __init__(self, fleet: Any, folder: Path) -> None:
        self.fleet, self.keys = fleet, fleet.keys()
        self.shelf = Shelf()
        self.baseline = fleet.baseline(1, "k1")
        self.shelf.put(KEY, self.baseline)
        self.host = Poller(self.shelf, folder / "state.json", self.keys, lambda _effect: None)
        self.epoch = 1
        self.open: set[str] = set()
        """Orders that were written and that no signed release has ended. Those that the owner deleted unread are not among them."""
        self.obeyed: set[str] = set()
        self.over: set[str] = set()
        """Ended by a release."""
        self.host.poll_once()
        assert self.host.status().mode is Mode.ARMED
        self.before = self.shelf.copy()

    def tell(self, step: str) -> None:
        before = self.shelf.copy()
        getattr(self, step)()
        if step not in ("poll", "stale_file", "stale_orders"):
            self.before = before

    def order(self, body: bytes = EMERGENCY) -> None:
        there = self.shelf.objects.get(KEY)
        content = parse(there.body, self.keys) if there else None
        number = 1 + max(content.settled if isinstance(content, SignedUnkill) else 0, self.host.status().settled)
        while f"{ORDERS}{number}" in self.shelf.objects:
            number += 1
        self.open.add(order_of(self.shelf.put(f"{ORDERS}{number}", body), body, number))

    def garbage(self) -> None:
        self.order(GARBAGE)

    def by_hand(self) -> None:
        self.open.add(order_of(self.shelf.put(KEY, EMERGENCY), EMERGENCY))

    def old_baseline(self) -> None:
        self.shelf.put(KEY, self.baseline)

    def delete(self) -> None:
        self.shelf.delete(KEY)

    def owner_deletes_first(self) -> None:
        numbers = self.shelf.numbers()
        if numbers:
            gone = f"{ORDERS}{numbers[0]}"
            self.open = {order for order in self.open if not order.startswith(f"{numbers[0]}/") or order in self.obeyed}
            self.shelf.delete(gone)

    def release(self) -> None:
        status = self.host.status()
        try:
            seen = review(self.shelf, self.keys, status.latched, status.settled)
        except NotFound:
            return
        self.epoch = max(self.epoch, seen.epoch, status.epoch) + 1
        self.shelf.put(KEY, make_release(seen, self.keys, self.fleet.signers("k1"), epoch=self.epoch, reason="over", actor="ann"))
        self.open -= set(seen.orders)
        self.over |= set(seen.orders)

    def poll(self) -> None:
        self._look(self.shelf, self.shelf)
        if self.open:
            assert self.host.status().mode is Mode.KILLED, "an order that nobody released was hidden"
        there = self.shelf.objects.get(KEY)
        if not self.open and there is not None and isinstance(parse(there.body, self.keys), SignedUnkill):
            content = parse(there.body, self.keys)
            if isinstance(content, SignedUnkill) and content.epoch == self.epoch:
                assert self.host.status().mode is Mode.ARMED, "what is over must not hold a host"

    def stale_file(self) -> None:
        self._look(self.before, self.shelf)

    def stale_orders(self) -> None:
        self._look(self.shelf, self.before)

    def _look(self, file: Shelf, orders: Shelf) -> None:
        self.host._store = Mixed(file, orders)
        self.host._channel._polls = 0  # each one looks behind a free number, as every 30th does
        self.host.poll_once()
        self.obeyed |= {str(order) for order in self.host.status().latched}
        self.open |= self.obeyed - self.over  # what a host has read is in force, whatever its owner deletes

    def end(self) -> None:
        """Whatever happened, one good poll knows everything; and a new host obeys no order that is over."""
        self.poll()
        new = Poller(self.shelf, Path("/nonexistent"), self.keys, lambda _effect: None)
        new._persist = lambda _state: True  # type: ignore[method-assign, assignment]
        new.poll_once()
        over = [order for order in new.status().latched if order not in self.open]
        there = self.shelf.objects.get(KEY)
        content = parse(there.body, self.keys) if there else None
        if isinstance(content, SignedUnkill) and content.epoch == self.epoch:
            assert not over, "a released order acted again on a new host"


def play(fleet: Any, folder: Path, steps: tuple[str, ...]) -> None:
    story = Story(fleet, folder)
    try:
        for step in steps:
            story.tell(step)
        story.end()
    except AssertionError as error:
        raise AssertionError(f"{' -> '.join(steps)}: {error}") from error


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.remotekill.poller.save_state", lambda *_: None)


def test_no_story_of_three_steps_hides_an_order(fleet: Any, tmp_path: Path) -> None:
    for steps in itertools.product(STEPS, repeat=3):
        play(fleet, tmp_path, steps)


@pytest.mark.long
def test_no_story_of_four_steps_hides_an_order(fleet: Any, tmp_path: Path) -> None:
    for steps in itertools.product(STEPS, repeat=4):
        play(fleet, tmp_path, steps)


@pytest.mark.parametrize(
    ("planted", "steps"),
    [
        ("console.remotekill.looking.Look._read_orders", ("order", "old_baseline", "poll")),
        ("console.remotekill.machine._history", ("by_hand", "old_baseline", "poll")),
    ],
)
def test_the_stories_find_a_poller_that_does_not_look(
    fleet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str, steps: tuple[str, ...]
) -> None:
    from console.remotekill.orders import NO_ORDERS

    if planted.endswith("_history"):
        monkeypatch.setattr(planted, lambda state, _seen: (state, ()))
    else:
        monkeypatch.setattr(planted, lambda *_: NO_ORDERS)
    with pytest.raises(AssertionError, match="hidden"):
        play(fleet, tmp_path, steps)


def test_the_look_behind_a_free_number_is_taken_by_every_thirtieth_poll(fleet: Any, tmp_path: Path) -> None:
    story = Story(fleet, tmp_path)
    for _ in range(3):
        story.order()
    story.owner_deletes_first()
    for _ in range(FULL_READ_EVERY):
        story.host.poll_once()
    assert story.host.status().mode is Mode.KILLED
