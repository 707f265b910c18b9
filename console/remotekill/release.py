"""The un-kill, step by step: review what is live, sign a release of exactly that, replace exactly what was reviewed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.domain.errors import Conflict, NotFound, Unreachable, UsageProblem
from console.remotekill.document import KeySet, KillOrder, Order, SignedUnkill, Signer, order_of, parse, read_order, release_document
from console.remotekill.records import LoggedDocument
from console.remotekill.store import RemoteRead, now_text


class Reviewable(Protocol):
    """What a review needs of a store."""

    def read(self, known_generation: int = 0) -> RemoteRead:
        """One look; never raises."""

    def kill_log(self) -> tuple[list[LoggedDocument], str]:
        """(entries, trouble)."""


@dataclass(frozen=True, slots=True)
class Review:
    """What the operator looks at before signing. ``orders`` is what a release of this review names."""

    generation: int
    order: Order
    reason: str
    """Hostile text, as the live kill gives it."""
    actor: str
    orders: tuple[Order, ...]
    trouble: str = ""
    """Why earlier orders may be missing (the kill log could not be listed), or empty."""
    instead: str = ""
    """What lies in the bucket where no kill does any more, though hosts obey one; empty: ``order`` is live."""
    epoch: int = 0
    """Of a signed document that lies there: the release must be above it."""


def review(store: Reviewable, keys: KeySet, latched: Iterable[str] = ()) -> Review:
    """Reads the live kill, and the earlier ones since the last release: from the kill log and from ``latched`` (hosts' status).

    A kill that was overwritten or deleted stays in force on every host that read it: then ``latched`` alone is reviewed.
    Unreachable when it cannot be read, NotFound when no kill is live and none is latched.
    """
    seen = store.read()
    if seen.fault:
        raise Unreachable(f"The remote kill file could not be read: {seen.fault}.", "Check the network and the bucket, then try again.")
    content = parse(seen.body, keys) if seen.body is not None else None
    obeyed = [read_order(text) for text in latched]
    if seen.body is None or not isinstance(content, KillOrder):
        return _overwritten(store, seen, content if isinstance(content, SignedUnkill) else None, obeyed)
    order = order_of(seen.generation, seen.body)
    logged, trouble = store.kill_log()
    earlier = _since_last_release(logged)
    orders = tuple(dict.fromkeys([*earlier, *obeyed, order]))
    return Review(seen.generation, order, content.reason, content.actor, orders, trouble)


def _overwritten(store: Reviewable, seen: RemoteRead, signed: SignedUnkill | None, obeyed: Sequence[Order]) -> Review:
    """Whoever may write the object can hide a kill, and must not thereby make it last for ever."""
    there = "there is no readable document" if seen.body is None else "an untrusted document lies there"
    there = "a signed un-kill lies there" if signed is not None else there
    if not obeyed:
        remedy = "Write a baseline with 'watchfloor keys init'." if seen.body is None else "There is nothing to release."
        raise NotFound(f"No kill is live in the bucket: {there}.", remedy)
    logged, trouble = store.kill_log()
    before = signed.releases if signed is not None else ()  # a host that has not read that release yet must not miss it
    orders = tuple(dict.fromkeys([*before, *_since_last_release(logged), *obeyed]))
    return Review(seen.generation, obeyed[-1], "", "", orders, trouble, there, signed.epoch if signed is not None else 0)


def _since_last_release(logged: Sequence[LoggedDocument]) -> list[Order]:
    found: list[Order] = []
    for entry in logged:
        if entry.kind == "kill":
            found.append(entry.order)
        elif entry.kind == "release":
            found.clear()
    return found


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
        releases=reviewed.orders,
        signers=signers,
    )
    # What hosts would not accept must not replace a live kill.
    if not isinstance(parse(body, keys), SignedUnkill):
        raise Conflict("The release would not be accepted by a host.", "Check the keys folder.")
    return body
