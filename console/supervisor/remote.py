"""The remote kill file as the supervisor uses it: the poller's effects reach the guard at once, writes run beside the local kill."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path

from console.api import messages as m
from console.domain.errors import Conflict, ConsoleError, NotFound
from console.domain.guard import LEASE_S
from console.domain.kill import Receipt
from console.remotekill.document import Junk, KeySet, KillOrder, kill_document, order_of, parse
from console.remotekill.keys import PUBLIC_FILE, load_keys, load_signers
from console.remotekill.machine import Effect, Mode
from console.remotekill.poller import Poller
from console.remotekill.store import RemoteStore, now_text
from console.remotekill.writing import RemoteWrite
from console.settings.options import RemoteOptions

log = logging.getLogger(__name__)
WORST_SECOND_LOOK_S = 6.0


class RemoteDesk:
    """Store, poller and keys of one host. Methods block: call them from threads, but for the views."""

    def __init__(self, options: RemoteOptions, keys_dir: Path, state_file: Path, host: str, stand_in: bool) -> None:
        self.options, self.host, self._keys_dir, self._stand_in = options, host, keys_dir, stand_in
        self.keys = _keys(keys_dir, options.fleet)
        self.store = RemoteStore(options.bucket, options.key, options.endpoint or None)
        self._state_file = state_file
        self.poller: Poller | None = None
        self._keys_seen = 0
        self.own_documents: set[str] = set()
        """SHA-256 of the kills this process wrote: read back, they are no new order."""
        self.hosts: list[m.HostView] = []
        self.generation = 0
        """The kill generation whose receipts are watched; 0: none."""

    def start(self, on_effect: Callable[[Effect], None], lease_left_s: float) -> None:
        """Starts the poller; with a valid lease of the guard's this is not a fresh start."""
        lease = LEASE_S if self.options.lease == "stop" else 10 * 365 * 86400.0
        self.poller = Poller(
            self.store, self._state_file, self.keys, on_effect, period_s=self.options.poll_s, lease_s=lease, lease_left_s=lease_left_s
        )
        self.poller.start()

    def reload_keys(self) -> None:
        """Takes over a changed public key set (``watchfloor keys``), so that no restart is needed."""
        try:
            changed = (self._keys_dir / PUBLIC_FILE).stat().st_mtime_ns
        except OSError:
            return
        if changed != self._keys_seen and self.poller is not None:
            self._keys_seen = changed
            self.keys = _keys(self._keys_dir, self.options.fleet)
            self.poller.use_keys(self.keys)

    def stop(self) -> None:
        """Ends poller and connections; nothing is lifted."""
        if self.poller is not None:
            self.poller.stop()
        self.store.close()

    def latched(self) -> list[str]:
        """Remote orders this host obeys now."""
        return [str(order) for order in self.poller.status().latched] if self.poller else []

    def write_kill(self, reason: str, actor: str) -> RemoteWrite:
        """Tells every other host; ``ok`` only after the object was read back."""
        signers = []
        try:
            signers = load_signers(self._keys_dir)
        except ConsoleError as error:
            log.warning("the kill document stays unsigned: %s", error)  # attribution only; an unsigned kill kills as well
        body = kill_document(fleet=self.options.fleet, reason=reason, actor=actor, issued_at=now_text(), signers=signers)
        # Known before it is sent: the poller may read it back before the write has returned.
        self.own_documents.add(hashlib.sha256(body).hexdigest())
        written = self.store.write_kill(body, self.keys)
        if written.ok:
            self.generation = written.generation
            if self.poller is not None:
                self.poller.poll_now()
        return written

    def standing(self) -> str:
        """The kill that lies in the bucket now, read again for this question; "" when a good un-kill lies there.

        ConsoleError when it cannot be read or is not to be trusted: un-killing needs everything (promise 2).
        """
        seen = self.store.read()
        order = order_of(seen.generation, seen.body) if seen.body is not None else None
        content = parse(seen.body, self.keys) if seen.body is not None else None
        if order is None or isinstance(content, Junk):
            why = seen.fault or seen.junk or (content.why if isinstance(content, Junk) else "the kill file is missing")
            raise Conflict(
                f"The kill file cannot be trusted now: {why}.", "Mend the bucket or write a baseline (watchfloor keys init), then rearm."
            )
        return str(order) if isinstance(content, KillOrder) else ""

    def answer_order(self, order: str, receipt: Receipt) -> str:
        """Writes this host's receipt under the order's generation; "" when read back, else what went wrong."""
        generation = int(order.split(":", 1)[0])
        self.generation = generation
        short = receipt.as_json() | {"host": self.host}
        for target in short["targets"]:
            target["evidence"] = {k: v for k, v in target["evidence"].items() if k in ("populated", "inode", "container")}
        written = self.store.write_receipt(generation, self.host, json.dumps(short, default=str))
        return "" if written.ok else written.detail

    def look_at_hosts(self) -> None:
        """Reads who answered the live order."""
        if not self.generation:
            return
        found, trouble = self.store.receipts(self.generation)
        views = []
        for entry in found:
            body = entry.receipt or {}
            zero = body.get("verified_zero")
            views.append(
                m.HostView(
                    host=entry.host,
                    acknowledged=entry.receipt is not None,
                    verified_zero=zero if isinstance(zero, bool) else None,
                    survivors=len(body["survivors"]) if isinstance(body.get("survivors"), list) else None,
                    at=body.get("pressed_at") if isinstance(body.get("pressed_at"), int | float) else None,
                    detail=entry.why or str(body.get("kill_id", ""))[:64],
                )
            )
        if trouble:
            views.append(m.HostView(host="(bucket)", acknowledged=False, detail=trouble))
        self.hosts = views

    def path_view(self) -> m.PathView:
        """The card of the remote path."""
        assert self.poller is not None
        status = self.poller.status()
        age = "never" if status.good_age_s is None else f"{status.good_age_s:.0f} s ago"
        facts = [
            ("Generation", str(status.generation or "none")),
            ("Epoch", str(status.epoch)),
            ("Last good read", age),
            ("Lease", f"{status.lease_left_s:.0f} s of {LEASE_S:.0f} s left"),
        ]
        if self._stand_in:
            facts[3] = ("Stand-in", self.options.endpoint)
        detail = status.detail or ("read with current credentials" if status.good else "no good signed read yet")
        checked = None if status.answer_age_s is None else time.time() - status.answer_age_s
        state = "proven" if status.good and status.mode is not Mode.SOFT else "in_doubt"
        worst = self.options.poll_s + 5 + WORST_SECOND_LOOK_S
        return m.PathView(name="remote", state=state, detail=detail, checked_at=checked, worst_s=worst, facts=facts)  # type: ignore[arg-type]


def _keys(keys_dir: Path, fleet: str) -> KeySet:
    """The fleet's public keys; with none no un-kill can be believed, so the host stays soft-stopped and says why."""
    try:
        return load_keys(keys_dir)
    except NotFound:
        return KeySet(fleet, 1, {})
