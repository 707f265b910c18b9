"""The un-kill, step by step: review what is live, sign a release of exactly that, replace exactly the kill file that was reviewed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.domain.errors import Conflict, NotFound, Unreachable, UsageProblem
from console.remotekill.document import (
    Junk,
    KeySet,
    KillOrder,
    Order,
    SignedUnkill,
    Signer,
    generation_of,
    number_of,
    order_of,
    parse,
    read_order,
    release_document,
)
from console.remotekill.machine import RELEASED_KEPT
from console.remotekill.orders import AHEAD, GENERATIONS_AT_ONCE, ORDERS_AT_ONCE, Found, HistoryRead, OrdersRead
from console.remotekill.store import RemoteRead, now_text

SHOWN = 64
"""Orders with a number that a review reads and shows at most."""
GENERATIONS_SHOWN = 64
"""Earlier generations of the kill file that a review reads at most."""


class Reviewable(Protocol):
    """What a review needs of a store. No method raises."""

    def read(self, known_generation: int = 0) -> RemoteRead:
        """The kill file."""

    def read_orders(self, first: int, most: int = ORDERS_AT_ONCE) -> OrdersRead:
        """The orders from this number on."""

    def order_numbers(self) -> tuple[list[int], str]:
        """(the numbers of all orders, trouble)."""

    def read_history(self, known: Collection[int] | None, most: int = GENERATIONS_AT_ONCE) -> HistoryRead:
        """The generations of the kill file that are not known."""


@dataclass(frozen=True, slots=True)
class Review:
    """What the operator looks at before signing. A release of this review ends ``orders``, and settles every number up to ``settled``."""

    generation: int
    """Of the kill file, which the release replaces."""
    reason: str
    """Hostile text, as the newest live kill gives it."""
    actor: str
    orders: tuple[Order, ...]
    """Every order that a release would end, the newest last."""
    settled: int = 0
    """The number up to which orders are over with this release."""
    trouble: str = ""
    """Why an order may be missing here, or empty."""
    instead: str = ""
    """What lies in the kill file where no kill does and none has a number, though hosts obey one; empty: an order is live."""
    epoch: int = 0
    """Of a signed document that lies there: the release must be above it."""
    earlier: tuple[Order, ...] = ()
    """Those of ``orders`` that the document there releases already: a host that has not read it yet must not miss it."""

    @property
    def order(self) -> str:
        """All that would end now, in one text: naming it means that each one was reviewed."""
        return ",".join(order for order in self.orders if order not in self.earlier)

    @property
    def handle(self) -> str:
        """What a person types: the number of the newest order, or the generation of one in the kill file."""
        newest = self.orders[-1]
        return str(number_of(newest) or generation_of(newest))


def review(store: Reviewable, keys: KeySet, latched: Iterable[str] = (), settled: int = 0) -> Review:
    """Reads what is live: orders after the settled ones, the kill file, and kills that were overwritten there.

    A kill that was overwritten or deleted stays in force on every host that read it: ``latched`` and ``settled`` are what this host
    knows. Unreachable when the bucket cannot be read, NotFound when no kill is live and none is latched.
    """
    seen = store.read()
    if seen.fault:
        raise Unreachable(f"The remote kill file could not be read: {seen.fault}.", "Check the network and the bucket, then try again.")
    content = parse(seen.body, keys) if seen.body is not None else None
    signed = content if isinstance(content, SignedUnkill) else None
    obeyed = [read_order(text) for text in latched]
    if signed is not None:
        # A number that is settled once stays so, even where this host has not read the document that settles it.
        settled = max(settled, signed.settled)
    numbered, top, troubles = _numbered(store, settled)
    past, trouble = _past(store, keys, seen, signed)
    before = [order for order in signed.releases[-RELEASED_KEPT:] if order not in obeyed] if signed is not None else []
    live = order_of(seen.generation, seen.body) if isinstance(content, KillOrder) else None
    orders = list(dict.fromkeys([*before, *past, *obeyed, *([live] if live else []), *(found.order for found in numbered)]))
    there = _what_lies_there(seen, signed)
    if not obeyed and not past and not live and not numbered:
        remedy = "Write a baseline with 'watchfloor secrets keys init'." if seen.body is None else "There is nothing to rearm."
        raise NotFound(f"No kill is live in the bucket: {there}.", remedy)
    reason, actor = _said(parse(numbered[-1].body or b"", keys) if numbered else content)
    top = max([top, *(number_of(order) for order in orders)])
    trouble = "; ".join(words for words in (*troubles, trouble) if words)
    instead, epoch = "" if live or numbered else there, signed.epoch if signed else 0
    return Review(seen.generation, reason, actor, tuple(orders), top, trouble, instead, epoch, tuple(before))


def _said(newest: KillOrder | SignedUnkill | Junk | None) -> tuple[str, str]:
    """(reason, actor) of the newest order, or what is wrong with it."""
    if isinstance(newest, KillOrder):
        return newest.reason, newest.actor
    return (f"(it counts as a kill, though it does not say so: {newest.why})", "") if isinstance(newest, Junk) else ("", "")


def _what_lies_there(seen: RemoteRead, signed: SignedUnkill | None) -> str:
    if signed is not None:
        return "a signed un-kill lies there"
    return "there is no readable document" if seen.body is None else "an untrusted document lies there"


def _numbered(store: Reviewable, settled: int) -> tuple[list[Found], int, list[str]]:
    """(orders after the settled ones, the highest number, troubles). The list finds those behind a number whose object was deleted."""
    read = store.read_orders(settled + 1, SHOWN)
    found, troubles = list(read.found), [f"the orders: {read.fault}"] if read.fault else []
    listed, trouble = store.order_numbers()
    after = found[-1].number if found else settled
    numbers, far = _reachable(listed, after)
    top = max([after, *numbers])
    if far:
        troubles.append(f"{len(far)} orders from number {far[0]} on lie where no host reads, and are not settled; delete them")
    for number in numbers[: SHOWN - len(found)]:
        more = store.read_orders(number, 1)
        found += more.found
        troubles += [f"order {number}: {more.fault}"] if more.fault else []
    if trouble:
        troubles.append(f"the orders cannot be listed: {trouble}")
    if len(found) >= SHOWN:
        troubles.append(f"only the first {SHOWN} orders are shown; the release settles every number up to {top}")
    return found, top, troubles


def _reachable(listed: Sequence[int], after: int) -> tuple[list[int], list[int]]:
    """(numbers that a host comes to from ``after`` on, looking ahead; those it does not).

    A release must not settle the latter: an order at a huge number would use up all numbers, and with them every later order.
    """
    near: list[int] = []
    for number in (n for n in listed if n > after):
        if number > (near[-1] if near else after) + AHEAD + 1:
            break
        near.append(number)
    return near, [n for n in listed if n > max([after, *near])]


def _past(store: Reviewable, keys: KeySet, seen: RemoteRead, signed: SignedUnkill | None) -> tuple[list[Order], str]:
    """(kills that were overwritten or deleted in the kill file and that no signed document releases, trouble)."""
    history = store.read_history(frozenset({seen.generation}), GENERATIONS_SHOWN)
    contents = [(found.order, parse(found.body, keys)) for found in history.found if found.body is not None]
    released = {order for _, c in [(None, signed), *contents] if isinstance(c, SignedUnkill) for order in c.releases}
    kills = [order for order, content in contents if isinstance(content, KillOrder) and order not in released]
    more = f"{history.unread} versions of the kill file were not read" if history.unread else ""
    return kills, history.blind or history.fault or more


def make_release(reviewed: Review, keys: KeySet, signers: Sequence[Signer], *, epoch: int, reason: str, actor: str) -> bytes:
    """A release bound to the generation and content of what was reviewed; write it with ``write_release(…, reviewed.generation)``.

    ``epoch`` must be above every host's: see ``keys.take_epoch``. UsageProblem without a reason, Conflict without enough keys.
    """
    if not reason.strip():
        raise UsageProblem("A release needs a reason.", "Say why it is safe to run again.")
    if len({s.kid for s in signers} & set(keys.keys)) < keys.quorum:
        raise Conflict(f"A release takes {keys.quorum} signing keys of this fleet.", "Sign where the private keys are.")
    body = release_document(
        fleet=keys.fleet,
        epoch=epoch,
        reason=reason,
        actor=actor,
        issued_at=now_text(),
        releases=[order for order in reviewed.orders if not number_of(order)],
        settled=reviewed.settled,
        signers=signers,
    )
    # What hosts would not accept must not replace a live kill.
    # Judged here by the hosts' own code, because the signer may hold other keys than the fleet trusts.
    if not isinstance(parse(body, keys), SignedUnkill):
        raise Conflict("The release would not be accepted by a host.", "Check the keys folder.")
    return body
