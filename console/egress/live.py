"""The live configuration: written atomically, then believed only when Envoy's own counters say that it was taken."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from console.domain.errors import ConsoleError, Unavailable
from console.domain.network import Allowlist, AllowlistEntry, Narrowing, Sensitivity, narrow
from console.egress.envoy.admin import Admin, Taken
from console.egress.envoy.config import clusters, listeners, route_config
from console.egress.envoy.files import Files
from console.egress.envoy.fragments import Slot, Surroundings

# Measured: 10,000 entries take Envoy 1.2 s (median), 2.7 s at most, on a busy machine with two processors.
CONFIRM_S = 20.0
_POLL_S = 0.005


class Refused(ConsoleError):
    """Envoy did not take a configuration; the one before it is live."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a file on disk says."""

    version: str
    content: Any


class LiveConfig:
    """What Envoy runs now: the list and one slot per sandbox. Not thread-safe: the service holds a lock."""

    def __init__(self, files: Files, admin: Admin, answer_for: Callable[[Sequence[AllowlistEntry]], None]) -> None:
        """``answer_for``: tells the name server whose names it answers from now on."""
        self._files, self._admin, self._answer_for = files, admin, answer_for
        self.allowlist = Allowlist()
        self.around = Surroundings()
        self.slots: dict[str, Slot] = {}
        self._revision = 0
        self._next_slot = 1
        self._written: dict[str, Written] = {}
        """By subscription, as Envoy names them; what is not here is not known to be on disk."""

    def put(self, allowlist: Allowlist, around: Surroundings) -> None:
        """Makes a list the live one in every sandbox. Raises Refused or Unavailable; then the old files are back."""
        old, old_around = self.allowlist, self.around
        # Both lists until Envoy has confirmed: it resolves names of either one while the change is on its way.
        self._names(*old.entries, *allowlist.entries)
        try:
            marks = self._marks()
            self.allowlist, self.around = allowlist, around
            try:
                self._write()
                self._confirm(marks)
            except (ConsoleError, OSError):
                self.allowlist, self.around = old, old_around
                with contextlib.suppress(ConsoleError, OSError):  # the reason of the refusal is what the person needs
                    self._write()
                    self._confirm(self._marks())
                raise
        finally:
            self._names(*self.allowlist.entries)

    def _names(self, *listed: AllowlistEntry) -> None:
        """The name server answers for these, and for the models of the sandboxes that have one of their own."""
        own = {entry.host: entry for slot in self.slots.values() if slot.narrowing is not None for entry in slot.narrowing.models()}
        self._answer_for((*listed, *own.values()))

    def add(self, agent_id: str, narrowing: Narrowing | None = None, level: Sensitivity = Sensitivity.PUBLIC) -> Slot:
        """A listener, a gate, routes and clusters for one more sandbox. Raises Refused or Unavailable; then it is not there."""
        marks = self._marks()
        slot = Slot(f"s{self._next_slot}", agent_id, narrowing, level)
        # Never used twice: a name that comes back could meet log lines or connections of the sandbox that had it before.
        self._next_slot += 1
        self.slots[agent_id] = slot
        if narrowing is not None and narrowing.own:
            self._names(*self.allowlist.entries)
        try:
            self._write()
            self._confirm(marks)
        except (ConsoleError, OSError):
            self.remove(agent_id)
            raise
        return slot

    def classify(self, agent_id: str, level: Sensitivity) -> None:
        """More sensitive data came into its session. Raises Refused or Unavailable; then what it may reach is as before."""
        old = self.slots[agent_id]
        marks = self._marks()
        self.slots[agent_id] = replace(old, level=level)
        try:
            self._write()
            self._confirm(marks)
        except (ConsoleError, OSError):
            self.slots[agent_id] = old
            raise

    def remove(self, agent_id: str) -> None:
        """Takes a sandbox out; Envoy closes its listener and everything behind it (no drain)."""
        slot = self.slots.pop(agent_id, None)
        if slot is not None:
            with contextlib.suppress(OSError):  # a full disk: nobody reaches it any more, and the next write takes it out
                self._write()
                self._files.remove_routes(slot)
            if slot.narrowing is not None and slot.narrowing.own:
                self._names(*self.allowlist.entries)

    def _write(self) -> None:
        """Brings the files to the present state. Those that say so already stay: an edit changes routes, hardly ever a listener."""
        self._revision += 1
        version = f"{self.allowlist.version}.{self._revision}"
        slots = list(self.slots.values())
        mine = {s.name: narrow(self.allowlist, s.narrowing, s.level) for s in slots}
        present: dict[str, Any] = {
            "cds": [c for s in slots for c in clusters(s, self.around)],
            "lds": [x for s in slots for x in listeners(s, mine[s.name], self.around)],
        } | {s.name: route_config(s, mine[s.name], self.around) for s in slots}
        before, self._written = self._written, {}  # nothing is known when the writing fails
        changed = {k: v for k, v in present.items() if k not in before or before[k].content != v}
        self._files.write(version, changed.get("cds"), {s: changed[s.name] for s in slots if s.name in changed}, changed.get("lds"))
        self._written = {k: Written(version, v) if k in changed else before[k] for k, v in present.items()}

    def restart(self) -> None:
        """Nothing of what was written counts any more."""
        self.slots.clear()
        self._written.clear()

    def _marks(self) -> tuple[dict[str, Taken], int]:
        try:
            return self._admin.taken(), self._files.envoy_log_size()
        except OSError as error:
            raise Unavailable(
                "Envoy does not answer, so the change was not made.", "Look at its health; it is restarted by itself."
            ) from error

    def _confirm(self, marks: tuple[dict[str, Taken], int]) -> None:
        before, log_size = marks
        wanted = dict(self._written)
        until = time.monotonic() + CONFIRM_S
        waiting = set(wanted)
        while time.monotonic() < until:
            try:
                now = self._admin.taken()
            except OSError:  # restarting: it reads the new files, or the time is over
                now = {}
            refused = sorted(k for k in wanted if k in now and now[k].refused > before.get(k, Taken()).refused)
            if refused:
                raise Refused(
                    f"Envoy refused the configuration ({', '.join(refused)}): {self._words(log_size)}", "The list before it stays live."
                )
            waiting = {k for k in wanted if k not in now or now[k].version != wanted[k].version}
            if not waiting:
                return
            time.sleep(_POLL_S)
        raise Refused(
            f"Envoy did not confirm the configuration in {CONFIRM_S:.0f} s ({len(waiting)} parts missing).",
            "The list before it stays live.",
        )

    def _words(self, log_size: int) -> str:
        with contextlib.suppress(OSError, ValueError):
            if words := self._admin.refusals():
                return words[0][:1000]
        return self._files.envoy_words(log_size) or "it gave no reason"


def shrank(old: Allowlist, new: Allowlist) -> bool:
    """Whether anything that was reachable may not be any more: only pure additions keep connections."""
    kept = {_effect(new, i) for i in range(len(new.entries))}
    return any(_effect(old, i) not in kept for i in range(len(old.entries)))


def _effect(allowlist: Allowlist, at: int) -> object:
    """What an entry does, without its paperwork."""
    return replace(allowlist.entries[at], entry_id="", reason="", owner="", review_by="")
