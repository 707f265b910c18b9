"""The remote channel as the supervisor uses it: the poller's effects reach the guard at once, orders are written beside the local kill."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from console.api import messages as m
from console.api.armed import PathView
from console.domain.errors import Conflict, ConsoleError, NotFound
from console.domain.guard import LEASE_S, LOCAL_WORST_S
from console.domain.headline import headline_of
from console.domain.kill import Receipt, receipt_from_json
from console.domain.verdict import Verdict, verdict
from console.domain.words import listed
from console.remotekill.channel import PollerStatus
from console.remotekill.document import Junk, KeySet, KillOrder, SignedUnkill, generation_of, kill_document, order_of, parse
from console.remotekill.keys import PUBLIC_FILE, load_keys, load_signers
from console.remotekill.machine import Effect, Mode
from console.remotekill.poller import Poller
from console.remotekill.state_file import hold_state
from console.remotekill.store import RemoteStore, now_text
from console.remotekill.transport import DENIED
from console.remotekill.writing import RemoteWrite
from console.settings.options import RemoteOptions

log = logging.getLogger(__name__)
READ_S = 5.0
"""Deadline of one look at the object."""
CLOCK_OFF_S = 60.0
"""A clock further off than this from the bucket's breaks TLS and tokens sooner or later."""
TURN_S = 0.2
ROSTER_S = 60.0
LATEST = 32_503_680_000
"""The year 3000, seconds since the epoch: a later moment (or NaN, or a number with 400 digits) is no moment and is shown nowhere."""


class RemoteDesk:
    """Store, poller and keys of one host. Methods block: call them from threads, but for the views."""

    __slots__ = (
        "keys", "store", "_state_file", "poller", "_turn", "_ending", "_waiter", "_keys_seen", "own_documents", "_unwritten", "hosts",
        "generation", "_watched", "_roster", "options", "host", "_keys_dir", "_stand_in"
    )  # fmt: skip

    def __init__(self, options: RemoteOptions, keys_dir: Path, state_file: Path, host: str, stand_in: bool) -> None:
        self.options, self.host, self._keys_dir, self._stand_in = options, host, keys_dir, stand_in
        self.keys = _keys(keys_dir, options.fleet)
        self.store = RemoteStore(options.bucket, options.key, options.endpoint or None, read_deadline_s=READ_S)
        self._state_file = state_file
        self.poller: Poller | None = None
        self._turn: IO[bytes] | None = None
        self._ending = threading.Event()
        self._waiter: threading.Thread | None = None
        self._keys_seen = 0
        self.own_documents: set[str] = set()
        """SHA-256 of the kills this process wrote: read back, they are no new order."""
        self._unwritten: dict[tuple[str, str], bytes] = {}
        """(reason, actor) -> the order that is still to be written: a retry writes the same bytes, so that it is one order."""
        self.hosts: list[m.HostView] = []
        self.generation = 0
        """The kill generation whose receipts are watched; 0: none."""
        self._watched = (0, 0.0)
        self._roster: tuple[float, list[str]] = (float("-inf"), [])

    def start(self, on_effect: Callable[[Effect], None], lease_left_s: float) -> None:
        """Starts the poller; with a valid lease of the guard's this is not a fresh start. Where ``watch`` polls, its turn ends first."""
        if not self._begin(on_effect, lease_left_s):
            # The lease that is left now may be over when the turn comes: then it is a fresh start.
            self._waiter = threading.Thread(target=self._await_turn, args=(on_effect,), name="remotekill-turn", daemon=True)
            self._waiter.start()

    def _begin(self, on_effect: Callable[[Effect], None], lease_left_s: float) -> bool:
        self._turn = self._turn or hold_state(self._state_file)
        if self._turn is None:
            return False
        lease = LEASE_S if self.options.lease == "stop" else 10 * 365 * 86400.0
        self.poller = Poller(
            self.store, self._state_file, self.keys, on_effect, period_s=self.options.poll_s, lease_s=lease, lease_left_s=lease_left_s
        )
        self.poller.start()
        return True

    def _await_turn(self, on_effect: Callable[[Effect], None]) -> None:
        while not self._ending.wait(TURN_S):
            try:
                if self._begin(on_effect, 0.0):
                    return
            except OSError as error:
                log.warning("the state of the remote kill channel cannot be locked: %s", error)

    def reload_keys(self) -> None:
        """Takes over a changed public key set (``watchfloor secrets keys``), so that no restart is needed."""
        try:
            changed = (self._keys_dir / PUBLIC_FILE).stat().st_mtime_ns
        except OSError:
            return
        if changed != self._keys_seen and self.poller is not None:
            self._keys_seen = changed
            self.keys = _keys(self._keys_dir, self.options.fleet)
            self.poller.use_keys(self.keys)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Ends poller and connections; nothing is lifted."""
        self._ending.set()
        if self._waiter is not None:
            self._waiter.join(2 * TURN_S + 1)
        if self.poller is not None:
            self.poller.stop(timeout_s)
        self.store.close()
        if self._turn is not None:
            self._turn.close()

    def latched(self) -> list[str]:
        """Remote orders this host obeys now."""
        return [str(order) for order in self.poller.status().latched] if self.poller else []

    def write_kill(self, reason: str, actor: str) -> RemoteWrite:
        """Tells every other host; ``ok`` only after the order was read back."""
        body = self._unwritten.get((reason, actor)) or _kill_document(self.options.fleet, self._keys_dir, reason, actor)
        # Known before it is sent: the poller may read it back before the write has returned.
        self.own_documents.add(hashlib.sha256(body).hexdigest())
        written = self.store.write_kill(body, self.keys, self.poller.status().settled if self.poller is not None else 0)
        if not written.ok:
            self._unwritten[(reason, actor)] = body
            return written
        self._unwritten.pop((reason, actor), None)
        self.generation = written.generation
        if self.poller is not None:
            self.poller.poll_now()
        return written

    def standing(self) -> str:
        """Read the bucket again. Returns the kill that lies there now, or "" when a valid un-kill lies there and no order follows.

        Raises ConsoleError when the bucket cannot be read or trusted, or when this host's own record of seen orders is missing.
        """
        # To un-kill, everything must be known (promise 2).
        self.check_known()
        seen = self.store.read()
        order = order_of(seen.generation, seen.body) if seen.body is not None else None
        content = parse(seen.body, self.keys) if seen.body is not None else None
        if order is None or isinstance(content, Junk):
            why = seen.fault or seen.junk or (content.why if isinstance(content, Junk) else "the kill file is missing")
            raise Conflict(
                f"The kill file cannot be trusted now: {why}.",
                "Fix the bucket or write a baseline (watchfloor secrets keys init), then rearm.",
            )
        if isinstance(content, SignedUnkill) and content.epoch < (known := self._epoch()):
            raise Conflict(
                f"An older signed document lies in the bucket: epoch {content.epoch}, this host knows {known}.",
                "Sign a release of a higher epoch (watchfloor remote release), then rearm.",
            )
        return str(order) if isinstance(content, KillOrder) else self._standing_order(content)

    def _standing_order(self, content: SignedUnkill | KillOrder | Junk | None) -> str:
        number = self.poller.status().number if self.poller is not None else 0
        settled = content.settled if isinstance(content, SignedUnkill) else 0
        orders = self.store.read_orders(max(number, settled) + 1, 1)
        if orders.fault and not orders.denied:  # a missing permission is shown; it keeps no host from running, nor from coming back
            raise Conflict(f"Whether there is a new remote order is not known: {orders.fault}.", "Check the network, then rearm.")
        return str(orders.found[0].order) if orders.found else ""

    def check_known(self) -> None:
        """Conflict unless this process knows which remote orders this host has seen (``latched``) and the epoch it is in."""
        if self.poller is None:
            raise Conflict(
                "Which remote orders this host obeys is not known here: another process still polls with its state.",
                "End watchfloor remote watch, or wait until the supervisor polls, then rearm.",
            )

    def _epoch(self) -> int:
        return self.poller.status().epoch if self.poller is not None else 0

    def answer_order(self, order: str, receipt: Receipt) -> str:
        """Writes this host's receipt under the order's generation; "" when it is there, else what went wrong.

        It is written once: where the same kill was answered already, by ``watch`` or before a restart, that answer stands.
        """
        generation = generation_of(order)
        self.generation = generation
        short = receipt.as_json() | {"host": self.host}
        for target in short["targets"]:
            target["evidence"] = {k: v for k, v in target["evidence"].items() if k in ("populated", "inode", "container")}
        written = self.store.write_receipt(generation, self.host, json.dumps(short, default=str))
        if written.already and not written.ok and self._answered(generation) == receipt.kill_id:
            return ""
        return "" if written.ok else written.detail

    def _answered(self, generation: int) -> str:
        """The kill id of the receipt that lies there under this host's name."""
        found, _ = self.store.receipts(generation)
        return next((str((entry.receipt or {}).get("kill_id", "")) for entry in found if entry.host == self.host), "")

    def look_at_hosts(self) -> None:
        """Reads who answered the live order, and who of the fleet is silent."""
        generation, tick = self.generation, time.monotonic()
        if not generation:
            return
        if self._watched[0] != generation:
            self._watched = (generation, tick)
        found, trouble = self.store.receipts(generation)
        views = [_host_view(entry.host, entry.receipt, entry.why) for entry in found]
        silent = sorted({*self.options.hosts, *self._known_hosts(tick), self.host} - {entry.host for entry in found})
        words = f"silent for {tick - self._watched[1]:.0f} s"
        views += [m.HostView(host=host, acknowledged=False, detail=words) for host in silent]
        if trouble:
            views.append(m.HostView(host="(bucket)", acknowledged=False, detail=trouble))
        self.hosts = views

    def _known_hosts(self, tick: float) -> list[str]:
        """Return the hosts that answered an earlier order. Such a host is reported as missing when it is silent."""
        if tick - self._roster[0] > ROSTER_S:
            known, trouble = self.store.hosts_ever()
            self._roster = (tick, known) if not trouble else self._roster
        return self._roster[1]

    def path_view(self, guard_lease_s: float | None) -> PathView:
        """The card of the remote path. ``guard_lease_s``: what the guard says is left; None: it holds no lease."""
        how = "the kill file read whole with this host's credentials, its signatures checked, and no order after the last one known"
        view = PathView(name="remote", state="in_doubt", how=how, period_s=self.options.poll_s, worst_s=worst_s(self.options))
        if self.poller is None:
            return view.replaced(detail="another process still polls with this state (watchfloor remote watch)")
        status, off = self.poller.status(), self.store.clock_off()
        doubts = _doubts(self.options, status, guard_lease_s, off)
        proven = f"read with current credentials, generation {status.generation}, epoch {status.epoch}"
        words = [*(doubts or [proven]), *([missed_words(status.history_unread)] if status.history_unread else [])]
        return view.replaced(
            state="in_doubt" if doubts else "proven",
            detail=listed(words),
            checked_at=None if status.good_age_s is None else time.time() - status.good_age_s,
            facts=_facts(self.options, status, guard_lease_s, off, self._stand_in),
            proof_age_s=_rounded(status.good_age_s),
            heartbeat_age_s=_rounded(status.answer_age_s),
            lease_left_s=None if self.options.lease == "alarm" else guard_lease_s,
            clock_off_s=None if off is None else off[0],
        )


def _kill_document(fleet: str, keys_dir: Path, reason: str, actor: str) -> bytes:
    signers = []
    try:
        signers = load_signers(keys_dir)
    except ConsoleError as error:
        log.warning("the kill document stays unsigned: %s", error)  # attribution only; an unsigned kill kills as well
    return kill_document(fleet=fleet, reason=reason, actor=actor, issued_at=now_text(), signers=signers)


def worst_s(options: RemoteOptions) -> float:
    """Seconds from an order's write to the kill here, at worst: a period, both requests of a poll, and the local kill."""
    return options.poll_s + 2 * READ_S + LOCAL_WORST_S


def missed_words(why: str) -> str:
    """What ``doctor`` and ``status`` say of a host that cannot read the history of the kill file."""
    return f"a hidden hand-written order can be missed: {why}"


def unread_words(why: str) -> str:
    """What they say of a host that may not know of a new order."""
    remedy = "; grant storage.objects.get below orders/ and storage.objects.list" if why == DENIED else ""
    return f"whether there is a new order is not known: {why}{remedy}"


def _facts(
    options: RemoteOptions, status: PollerStatus, guard_lease_s: float | None, off: tuple[float, float] | None, stand_in: bool
) -> list[tuple[str, str]]:
    age = "never" if status.good_age_s is None else f"{status.good_age_s:.0f} s ago"
    beat = "never" if status.answer_age_s is None else f"{status.answer_age_s:.0f} s ago"
    lease = "alarm only" if options.lease == "alarm" else f"{guard_lease_s or 0:.0f} s of {LEASE_S:.0f} s left"
    clock = ("Clock", "unknown" if off is None else f"off by {off[0]:.0f} s")
    return [("Last good read", age), ("Poller answered", beat), ("Lease", lease), ("Stand-in", options.endpoint) if stand_in else clock]


def _doubts(options: RemoteOptions, status: PollerStatus, guard_lease_s: float | None, off: tuple[float, float] | None) -> list[str]:
    doubts = []
    if not status.running:
        doubts.append("the poller does not run")
    if not status.good or status.mode is Mode.SOFT or status.detail:
        doubts.append(status.detail or "no good signed read yet")
    if status.orders_unread and status.orders_unread not in status.detail:
        doubts.append(unread_words(status.orders_unread))
    if options.lease == "stop" and not guard_lease_s and status.mode is Mode.ARMED:
        doubts.append("the guard holds no lease of this channel")
    if off is not None and abs(off[0]) > CLOCK_OFF_S:
        doubts.append(f"this host's clock is off by {off[0]:.0f} s from the bucket's")
    return doubts


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _host_view(host: str, receipt: dict[str, Any] | None, why: str) -> m.HostView:
    """A host's receipt, judged here again: what it claims of itself is not asked, and each field is hostile until it has its type."""
    body = receipt or {}
    survivors, at, kill_id = (body.get(k) for k in ("survivors", "pressed_at", "kill_id"))
    found: Verdict | None = None
    with suppress(KeyError, TypeError, ValueError, AttributeError, OSError, OverflowError):  # a receipt of any shape
        claimed = receipt_from_json(body)
        headline_of(claimed)  # what cannot be said in words is no receipt
        found = verdict(claimed)
    is_moment = isinstance(at, int | float) and not isinstance(at, bool) and 0 <= at < LATEST
    return m.HostView(
        host=host[:253],
        acknowledged=receipt is not None,
        verified_zero=found.verified_zero if found is not None else None,
        exit_code=int(found.exit_code) if found is not None else None,
        short=found.short if found is not None else "",
        survivors=len(survivors) if isinstance(survivors, list) else None,
        at=at if is_moment else None,
        detail=why[:500] or (kill_id[:64] if isinstance(kill_id, str) else ""),
    )


def _keys(keys_dir: Path, fleet: str) -> KeySet:
    """The fleet's public keys; with none no un-kill can be believed, so the host stays soft-stopped and says why."""
    try:
        return load_keys(keys_dir)
    except NotFound:
        return KeySet(fleet, 1, {})
