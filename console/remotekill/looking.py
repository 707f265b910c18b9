"""One poll's reads, as observations in the order in which they count: hidden kills, orders with a number, then the kill file itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from console.remotekill.document import Junk, KeySet, KillOrder, Order, SignedUnkill, order_of, parse
from console.remotekill.machine import History, HostState, Missing, Numbered, Observation, Read, Unchanged, Unreadable
from console.remotekill.orders import AHEAD, NO_ORDERS, Found, HistoryRead, OrdersRead
from console.remotekill.store import RemoteRead


class Readable(Protocol):
    """What the poller needs of a store. No method raises."""

    def read(self, known_generation: int = 0) -> RemoteRead:
        """The kill file."""

    def read_orders(self, first: int, *, ahead: int) -> OrdersRead:
        """The orders from this number on, and as many numbers ahead of a free one."""

    def read_history(self, known: frozenset[int] | None) -> HistoryRead:
        """The generations of the kill file that are not known."""


def judge(seen: RemoteRead, keys: KeySet) -> Observation:
    """The kill file alone."""
    if seen.fault:
        return Unreadable(seen.fault)
    if seen.unchanged:
        return Unchanged()
    if seen.missing:
        return Missing()
    if seen.body is None:
        return Read(Order(f"{seen.generation}:sha256:{'0' * 64}"), Junk(seen.junk or "it has no bytes"))
    return Read(order_of(seen.generation, seen.body), parse(seen.body, keys))


class Look:
    """The rest of a poll, after the kill file was read. Each observation is handed out as soon as it is known."""

    def __init__(self, store: Readable, seen: RemoteRead, state: HostState, keys: KeySet, *, changed: bool, far: bool) -> None:
        """``changed``: this is not the generation whose history was looked at last; ``far``: look behind a free number too."""
        self._store, self._seen, self._state, self._keys = store, seen, state, keys
        self._changed, self._ahead = changed, AHEAD if far else 0
        self.live = judge(seen, keys)
        """The kill file, as far as it may count: see ``_unless_known``."""
        self.orders = NO_ORDERS
        self.history: HistoryRead | None = None
        """None: it was not looked at."""

    def observations(self) -> Iterator[Observation]:
        """What kills comes first, and nothing lifts before every order was looked for."""
        content = self.live.content if isinstance(self.live, Read) else None
        # Told before the orders are read: those requests may hang for seconds, and this order needs none of them.
        if isinstance(content, KillOrder):
            yield self.live
        self.orders = self._read_orders(content)
        for found in self.orders.found:
            yield _numbered(found, self._keys)
        if self._changed:
            known = None if self._state.judged is None else frozenset((*self._state.judged, self._seen.generation))
            self.history = self._store.read_history(known)
            if not self.history.fault:
                yield _history(self.history, self._seen.generation, known, content, self._keys)
        if isinstance(self.live, Unchanged) or isinstance(content, SignedUnkill):
            self.live = self._unless_known()
        if not isinstance(content, KillOrder):
            yield self.live

    def _read_orders(self, content: object) -> OrdersRead:
        """The orders after the last one known. A new host learns from the signed document which are settled."""
        if self._state.epoch == 0 and not isinstance(content, SignedUnkill) and not self._seen.missing:
            # Something lies there that may settle orders, and cannot be believed yet: this host's keys are still to come, for example.
            # Until then it is killed or stopped softly, and nothing lifts before the orders were read.
            return NO_ORDERS
        settled = content.settled if isinstance(content, SignedUnkill) and content.epoch >= self._state.epoch else 0
        return self._store.read_orders(max(self._state.number, settled) + 1, ahead=self._ahead)

    def _unless_known(self) -> Observation:
        """A good document lifts and renews only when everything else is known too: unknown is never green.

        A permission that is missing is shown, and stops nothing.
        """
        orders, history = self.orders, self.history
        if orders.fault and not orders.denied:
            return Unreadable(orders.fault, "The orders folder")
        if history is not None and history.fault and not history.denied:
            return Unreadable(history.fault, "The history of the remote kill file")
        if history is not None and history.unread:
            return Unreadable(f"{history.unread} versions are still to be read", "The history of the remote kill file")
        return self.live


def _numbered(found: Found, keys: KeySet) -> Numbered:
    content = parse(found.body, keys) if found.body is not None else Junk("it could not be read whole")
    if isinstance(content, KillOrder):
        return Numbered(found.order, content.reason)
    why = content.why if isinstance(content, Junk) else "it is a signed un-kill, which belongs into the kill file"
    return Numbered(found.order, f"order {found.number} counts as a kill, though it does not say so: {why}")


def _history(history: HistoryRead, live: int, known: frozenset[int] | None, current: object, keys: KeySet) -> History:
    contents = [(found.order, parse(found.body, keys)) for found in history.found if found.body is not None]
    kills = tuple((order, content.reason) for order, content in contents if isinstance(content, KillOrder))
    signed = [current, *(content for _, content in contents)]
    released = frozenset(order for content in signed if isinstance(content, SignedUnkill) for order in content.releases)
    read = {found.generation for found in history.found} | (known or {*history.listed} - {history.live})
    # What appeared between the two requests is judged by the next poll. A generation that no longer exists needs no memory.
    judged = tuple(sorted(({*history.listed} & read) | ({live} if live else set())))
    return History(kills, released, judged)
