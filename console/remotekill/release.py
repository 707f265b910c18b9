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


def review(store: Reviewable, keys: KeySet, latched: Iterable[str] = ()) -> Review:
    """Reads the live kill, and the earlier ones since the last release: from the kill log and from ``latched`` (hosts' status).

    Unreachable when it cannot be read, NotFound when no kill is live.
    """
    seen = store.read()
    if seen.fault:
        raise Unreachable(f"The remote kill file could not be read: {seen.fault}.", "Check the network and the bucket, then try again.")
    if seen.body is None:
        raise NotFound("No kill is live in the bucket: there is no readable document.", "Write a baseline with 'watchfloor keys init'.")
    content = parse(seen.body, keys)
    if not isinstance(content, KillOrder):
        state = "a signed un-kill lies there" if isinstance(content, SignedUnkill) else "an untrusted document lies there"
        raise NotFound(f"No kill is live in the bucket: {state}.", "There is nothing to release.")
    order = order_of(seen.generation, seen.body)
    logged, trouble = store.kill_log()
    earlier = _since_last_release(logged)
    orders = tuple(dict.fromkeys([*earlier, *(read_order(text) for text in latched), order]))
    return Review(seen.generation, order, content.reason, content.actor, orders, trouble)


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
