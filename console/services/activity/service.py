"""The activity of agents: what their own files and our machinery say they did, collected in a thread of its own and kept.

Nothing waits for it: events are handed over and written soon; files of those who live are looked at a few times a second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from console.audit.record import Record
from console.domain.activity import Kept, Window
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, NotFound, Unavailable
from console.domain.network import EgressRecord
from console.ledger.activity import ActivityStore
from console.ledger.activity_file import Bounds
from console.services.activity.clean import Redact, cleaned_all
from console.services.activity.follow import Changed, Following
from console.services.activity.intake import Intake
from console.services.fleet.core import Core
from console.sources.change_tracker import Freshness

log = logging.getLogger(__name__)
PERIOD_S, REST_MAX_S = 0.4, 0.7
TOLD_MAX = 500
_TROUBLE = (ConsoleError, OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RuntimeError, MemoryError)


class ActivityDesk:
    """One per supervisor. What comes in is taken from any thread and never blocks; what is asked for blocks."""

    __slots__ = ("intake", "problem", "store", "following", "_ended", "_thread", "_core", "_redact")

    def __init__(
        self, file: Path, bounds: Bounds, core: Core, redact: Redact, root: Path | None, homes: Path, fresh: Freshness | None = None
    ) -> None:
        """``root``: the one home in which others are looked for, None: any. ``homes``: the workspaces of agents of ours."""
        self._core, self._redact = core, redact
        self.intake = Intake(core)
        self.problem = ""
        """Why nothing is kept at present, or empty."""
        self.store: ActivityStore | None = None
        self.following: Following | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            self.store = ActivityStore(file, bounds)
        except ConsoleError as error:
            self.problem = str(error)
            return
        self.problem = self.store.lost
        self.following = Following(core, self.store, redact, root, homes, self.intake.streams, fresh)

    def start(self) -> None:
        """Begins to collect."""
        if self.store is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="activity", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Writes what waits, then ends."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(20)
        if self.store is not None:
            self.store.close()

    # --- what comes in

    def heard(self, step: e.Event | c.Command) -> None:
        """A step of the engine: an event, or one of the commands that followed."""
        if isinstance(step, e.Sighted) and self.following is not None:
            self.following.sighted(step.reports)
        self.intake.heard(step)

    def recorded(self, record: Record) -> None:
        """An audit record is on disk."""
        self.intake.recorded(record)

    def egress(self, record: EgressRecord) -> None:
        """A request through Envoy."""
        self.intake.egress(record)

    def on_event(self, agent_id: str, event: dict[str, Any]) -> None:
        """One event of a started program."""
        self.intake.on_event(agent_id, event)

    # --- what is asked for

    def window(
        self, agent_id: str, *, before: int | None, after: int | None, limit: int, query: str = "", kinds: Sequence[str] = ()
    ) -> Window:
        """A page of an agent's feed. Blocks. Raises Unavailable when nothing can be kept."""
        store = self.kept()
        if self.following is not None:
            self.following.look_at(agent_id)
        return store.window(agent_id, before=before, after=after, limit=limit, query=query, kinds=kinds)

    def one(self, agent_id: str, seq: int) -> Kept:
        """One entry with all that is kept of it. Blocks. Raises NotFound."""
        kept = self.kept().one(agent_id, seq)
        if kept is None:
            raise NotFound(f"There is no entry {seq} of this agent.", "It may have been dropped: the oldest go first.")
        return kept

    def words(self, agent_id: str) -> str:
        """What a person should know of where this feed comes from, or empty. Blocks."""
        said = self.following.words(agent_id) if self.following is not None else []
        return " ".join(word for word in (self.problem, *said) if word)

    def kept(self) -> ActivityStore:
        """Where it is kept. Raises Unavailable when nothing can be."""
        if self.store is None:
            raise Unavailable(f"Activity is not available, because {self.problem}", "Fix it and start the supervisor again.")
        return self.store

    # --- the thread

    def _run(self) -> None:
        rest = 0.0
        while not self._ended.wait(rest):
            began = time.monotonic()
            self.turn()
            rest = min(REST_MAX_S, max(PERIOD_S, 3 * (time.monotonic() - began)))
        self.turn()

    def turn(self) -> None:
        """One round: what waits is written, what is new in files is read. Trouble is shown, and the next round goes on."""
        if self.store is None or self.following is None:
            return
        try:
            self._tell(self._write_waiting(self.store))
            self._tell(self.following.read())
            self.problem = self.store.lost
        except _TROUBLE as error:
            if str(error) != self.problem:
                # A full disk names itself; where it was met helps nobody who reads the log.
                log.error("activity could not be kept: %s", error, exc_info=None if isinstance(error, ConsoleError) else error)
            self.problem = str(error) or repr(error)

    def _write_waiting(self, store: ActivityStore) -> Changed:
        waiting, changed = self.intake.taken(), Changed()
        if not waiting:
            return changed
        try:
            with store.together():
                for agent_id, entries in waiting.items():
                    added, newest = store.add(agent_id, cleaned_all(entries, self._redact))
                    if added:
                        changed[agent_id] = (newest, added)
        except ConsoleError:
            self.intake.give_back(waiting)
            raise
        return changed

    def _tell(self, changed: Changed) -> None:
        loop = self._core.loop
        if changed and loop is not None and not loop.is_closed():
            first = dict(sorted(changed.items())[:TOLD_MAX])
            loop.call_soon_threadsafe(self._core.hub.publish, "activity", {"agents": first, "more": len(changed) > TOLD_MAX})
