"""The bucket in memory, as its documents describe it: generations, versions, create-only writes; every access may be a step of a schedule.

It serves pollers and reviews directly (``read``, ``read_orders`` ...), and the writers through ``fetch`` and ``upload``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from google.api_core.exceptions import NotFound as ObjectMissing
from google.api_core.exceptions import PreconditionFailed

from console.remotekill.objects import Fetched
from console.remotekill.orders import Found, HistoryRead, OrdersRead
from console.remotekill.store import RemoteRead

KEY = "platform/kill-switch.json"
ORDERS = "platform/orders/"


@dataclass
class Shelf:
    """Linearizable; generations only grow; what is replaced or deleted stays as a version."""

    step: Callable[[], None] = lambda: None
    """Called before everything that others can see."""
    objects: dict[str, Fetched] = field(default_factory=dict)
    past: dict[str, list[Fetched]] = field(default_factory=dict)
    last: int = 100

    def fetch(self, _bucket: Any, name: str, known: int, _limit: int) -> Fetched | None:
        self.step()
        found = self.objects.get(name)
        if found is None:
            raise ObjectMissing("missing")  # type: ignore[no-untyped-call]
        return None if known == found.generation else found

    def upload(self, _bucket: Any, name: str, body: bytes, expected: int | None) -> int:
        self.step()
        found = self.objects.get(name)
        if expected is not None and expected != (found.generation if found else 0):
            raise PreconditionFailed("changed")  # type: ignore[no-untyped-call]
        return self.put(name, body)

    def put(self, name: str, body: bytes) -> int:
        self.delete(name)
        self.last += 1
        self.objects[name] = Fetched(self.last, body)
        return self.last

    def delete(self, name: str) -> None:
        if name in self.objects:
            self.past.setdefault(name, []).append(self.objects.pop(name))

    def copy(self) -> Shelf:
        """As it is now: what a reader with a stale cache would be served."""
        return Shelf(self.step, dict(self.objects), copy.deepcopy(self.past), self.last)

    # what pollers and reviews ask

    def read(self, known_generation: int = 0) -> RemoteRead:
        self.step()
        found = self.objects.get(KEY)
        if found is None:
            return RemoteRead(missing=True)
        if found.generation == known_generation:
            return RemoteRead(known_generation, unchanged=True)
        return RemoteRead(found.generation, found.body)

    def read_orders(self, first: int, most: int = 16, ahead: int = 0) -> OrdersRead:
        self.step()
        found: list[Found] = []
        number = first
        while len(found) < most and ahead >= 0:
            there = self.objects.get(f"{ORDERS}{number}")
            if there is None:
                ahead -= 1
            else:
                found.append(Found(number, there.generation, there.body))
            number += 1
        return OrdersRead(tuple(found))

    def numbers(self) -> list[int]:
        return sorted(int(name.removeprefix(ORDERS)) for name in self.objects if name.startswith(ORDERS))

    def order_numbers(self) -> tuple[list[int], str]:
        self.step()
        return self.numbers(), ""

    def read_history(self, known: Collection[int] | None, most: int = 24) -> HistoryRead:
        self.step()
        here = [self.objects[KEY]] if KEY in self.objects else []
        every = [*self.past.get(KEY, []), *here]
        new = [] if known is None else [one for one in every if one.generation not in known]
        found = tuple(Found(0, one.generation, one.body) for one in new[:most])
        listed = tuple(one.generation for one in every)
        return HistoryRead(found, listed, here[0].generation if here else 0, max(0, len(new) - most), True)
