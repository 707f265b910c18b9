"""The scribe: one thread that writes the ledger and the audit in order, so that the event loop never waits on a disk.

What acts is recorded *first* through ``record_first``; what only stops or tightens is recorded through ``record``
after it acted (promise 5).
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from console.audit.anchors import NOTED
from console.audit.log import AuditLog
from console.audit.record import Record as AuditRecord
from console.domain.agent import Agent
from console.domain.budget import Day
from console.domain.engine.command import KeepBooks, Record
from console.domain.errors import ConsoleError, NotRecorded
from console.domain.network import EgressRecord
from console.domain.process.failpoints import failpoint
from console.ledger.budgets import Books, KeptReservation, KeptUsage
from console.ledger.network_history import NetworkChange
from console.ledger.spending import SpendSample
from console.ledger.store import Ledger
from console.services.records.egress_seal import EgressSeal, left_over

log = logging.getLogger(__name__)
Job = Callable[[], object]
_TROUBLE = (
    ConsoleError,
    OSError,
    ValueError,
    SQLAlchemyError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)
"""Errors that a write may meet. They must not end the writer's thread: then nothing would be written, and no notice shown."""
PAY_S = 5.0
"""Between two tries of a log that refused."""
NOTE_S = 5.0
"""Between two notes of the newest record in the ledger."""
# A disk that stays full for days must not fill the memory as well.
KEEP_LINES = 20_000
"""Lines kept in memory while the disk refuses them; the oldest go first."""


def note_head(ledger: Ledger, audit: AuditLog) -> tuple[int, str]:
    """Note the newest record in the ledger and return it. Raises NotRecorded."""
    head = audit.head
    ledger.kv_set(NOTED, f"{head[0]}:{head[1]}")
    return head


class HeadNote:
    """The newest record as the ledger knows it: an older copy of the log betrays itself though its checkpoints fit."""

    __slots__ = ("_noted", "_next", "_ledger", "_audit", "_queue_job")

    def __init__(self, ledger: Ledger, audit: AuditLog, queue_job: Callable[[Job], None]) -> None:
        self._ledger, self._audit, self._queue_job = ledger, audit, queue_job
        self._noted: tuple[int, str] | None = None
        self._next = 0.0

    def look(self) -> None:
        """Queues the note when there are newer records, not too often."""
        if self._audit.head != self._noted and time.monotonic() >= self._next:
            self._next = time.monotonic() + NOTE_S
            self._queue_job(self.write)

    def write(self) -> None:
        """Durable when it returns. Raises NotRecorded."""
        self._noted = note_head(self._ledger, self._audit)


class Waiting:
    """Records that the log has not taken yet, in order, each with the moment (CLOCK_MONOTONIC) since when it waits."""

    __slots__ = ("_coming", "_owed")

    def __init__(self) -> None:
        self._coming: deque[tuple[Record, float]] = deque()
        """Handed over; each has a job in the queue."""
        self._owed: deque[tuple[Record, float]] = deque(maxlen=KEEP_LINES)

    def hand_over(self, record: Record) -> None:
        """From any thread."""
        self._coming.append((record, time.monotonic()))

    def owe(self, record: Record | None = None) -> None:
        """Owes this one; None: the next that was handed over."""
        self._owed.append(self._coming.popleft() if record is None else (record, time.monotonic()))

    def __len__(self) -> int:
        """How many are owed. From any thread."""
        return len(self._owed)

    @property
    def first(self) -> Record:
        """The oldest that is owed. IndexError when none is."""
        return self._owed[0][0]

    def drop(self) -> None:
        """The oldest is written, or never can be."""
        self._owed.popleft()

    def lag(self) -> tuple[int, float]:
        """(how many wait, seconds since the oldest of them does). From any thread."""
        waiting = [*self._owed.copy(), *self._coming.copy()]
        return len(waiting), max(0.0, time.monotonic() - waiting[0][1]) if waiting else 0.0


class Scribe:
    """Owns the writing side of ledger and audit."""

    __slots__ = (
        "_on_trouble", "_jobs", "_dirty", "_events", "_egress", "_spend", "_books", "_day", "_network", "_seal", "_pay_at",
        "_noted", "waiting", "_lock", "_thread", "ledger", "audit", "_recorded", "_redact"
    )  # fmt: skip

    def __init__(
        self,
        ledger: Ledger,
        audit: AuditLog,
        on_trouble: Callable[[str], None],
        recorded: Callable[[AuditRecord], None],
        redact: Callable[[Any], Any] = lambda data: data,
    ) -> None:
        """``recorded`` gets every entry that is on disk, from any thread, and never blocks.

        ``redact`` takes known secrets out of plain data before it is stored.
        """
        self.ledger, self.audit = ledger, audit
        self._recorded, self._redact = recorded, redact
        self._on_trouble = on_trouble
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._dirty: dict[str, Agent] = {}
        self._events: list[tuple[str, float, str, str]] = []
        self._egress: list[EgressRecord] = []
        self._spend: list[SpendSample] = []
        self._books = Books()
        self._day: Day | None = None
        """The newest that was told and is not in the books yet: it changes with every charge, and is written once for many."""
        self._network: list[tuple[str, NetworkChange]] = []
        self._seal = EgressSeal()
        self.waiting, self._pay_at = Waiting(), 0.0
        self._noted = HeadNote(ledger, audit, self._jobs.put)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="scribe", daemon=True)
        self._thread.start()

    def record_first(self, record: Record) -> None:
        """Blocks until the entry is on disk; NotRecorded: the action must not be taken. Call from a thread."""
        actor, what, data = self._redact([record.actor, record.what, record.data])
        try:
            kept = self.audit.append(
                actor, record.kind, what, verdict=record.verdict, agent_id=record.agent_id, data=data, must=record.must
            )
        except NotRecorded as error:  # whoever asked is told; so is everybody else, for the next action fails as well
            self._on_trouble(f"actions are refused: {error.what}")
            raise
        failpoint("act.recorded")
        self._recorded(kept)

    def record(self, record: Record) -> None:
        """Queues an entry; trouble is shown, never hidden, and the entry stays owed until the log takes it, in order."""
        self.waiting.hand_over(record)
        self._jobs.put(self._owe)

    def _owe(self, record: Record | None = None) -> None:
        self.waiting.owe(record)
        self._pay()

    def _pay(self) -> None:
        """Writes what is owed; a log that refuses is asked again after a while."""
        while self.waiting and time.monotonic() >= self._pay_at:
            try:
                self.record_first(self.waiting.first)
            except NotRecorded:
                self._pay_at = time.monotonic() + PAY_S
                raise
            except ConsoleError:
                self.waiting.drop()  # it can never be written; what is wrong with it is shown
                raise
            self.waiting.drop()

    def agent(self, agent: Agent) -> None:
        """Saves the newest state of an agent soon; many changes become one write."""
        with self._lock:
            self._dirty[agent.agent_id] = agent

    def books(self, command: KeepBooks) -> None:
        """What was charged and set aside; agents of it are saved in the same transaction."""
        boot_s, boot_id = command.boot_s, command.boot_id
        usage = {node: KeptUsage(used, boot_s, boot_id) for node, used in command.usage.items()}
        held = {
            i: None
            if r is None
            else KeptReservation(r.reservation_id, r.agent_id, r.estimate, r.expires_boot, boot_id, self._redact(r.tool))
            for i, r in command.held.items()
        }
        with self._lock:
            self._dirty.update({agent.agent_id: agent for agent in command.agents})
            self._books.take_in(Books({}, usage, held, command.warned, None, command.limits))
            self._day = command.day or self._day

    def event(self, agent_id: str, at: float, kind: str, text: str) -> None:
        """One line of an agent's events."""
        with self._lock:
            self._events.append((agent_id, at, kind, self._redact(text)))

    def spend(self, agent_id: str, root_id: str, at: float, cost_usd: float, tokens: int) -> None:
        """One spend sample."""
        with self._lock:
            self._spend.append(SpendSample(agent_id, root_id, at, cost_usd, tokens))

    def network(self, context_id: str, change: NetworkChange) -> None:
        """One line of a session's history; a switch of many agents becomes one write."""
        by, words = self._redact([change.by, change.words])
        with self._lock:
            self._network.append((context_id, replace(change, by=by, words=words)))

    def egress(self, record: EgressRecord) -> None:
        """One request of Envoy's access log."""
        with self._lock:
            self._egress.append(self._clean(record))

    def _clean(self, record: EgressRecord) -> EgressRecord:
        texts = {f.name: text for f in fields(record) if type(text := getattr(record, f.name)) is str}
        clean = self._redact(texts)
        return record if clean == texts else replace(record, **clean)

    def job(self, job: Job) -> None:
        """Any other write, in order."""
        self._jobs.put(job)

    def flush(self) -> None:
        """Queues the collected writes; called a few times a second and at the end."""
        waiting = (self._dirty, self._books, self._day, self._events, self._egress, self._spend, self._network, self._seal.waits)
        for job, is_due in ((self._write, any(waiting)), (self._pay, bool(self.waiting))):
            if is_due:
                self._jobs.put(job)
        self._noted.look()

    def then(self, job: Callable[[bool], object]) -> None:
        """Flushes, and calls ``job(ok)`` in the scribe's thread: whether everything collected so far is on disk."""
        self._jobs.put(lambda: job(self._write_and_say()))

    def _write_and_say(self) -> bool:
        try:
            self._write()
        except _TROUBLE as error:
            self._show(error)
            return False
        return True

    def _write(self) -> None:
        """One batch; what the disk refuses goes back to be written later, so that nothing known is forgotten."""
        with self._lock:
            agents, self._dirty = self._dirty, {}
            events, self._events = self._events, []
            egress, self._egress = self._egress, []
            spend, self._spend = self._spend, []
            network, self._network = self._network, []
            books, self._books = self._books, Books()
            day, self._day = self._day, None
        books.agents = agents
        if day is not None:
            books.day = json.dumps(asdict(day))
        try:
            self.ledger.keep_books(books, time.time())
            agents, books = {}, Books()
            if spend:
                self.ledger.add_spends(spend)
                spend = []
            if network:
                self.ledger.keep_network_changes(network)
                network = []
            if events:
                self.ledger.add_events(events)
                events = []
            if egress:
                self._seal.add(egress, self.ledger.add_egress(egress))
                egress = []
            if (entry := self._seal.due()) is not None:
                self.waiting.owe(entry)  # paid with the next flush: an audit that refuses holds up no ledger
        finally:
            with self._lock:
                self._dirty = agents | self._dirty
                books.agents = {}
                books.take_in(self._books)
                self._books = books
                self._spend = spend + self._spend
                self._network = (network + self._network)[-KEEP_LINES:]
                self._events = (events + self._events)[-KEEP_LINES:]
                self._egress = (egress + self._egress)[-KEEP_LINES:]

    def close(self) -> None:
        """Writes all that is queued, then ends the thread."""
        self._jobs.put(self._last_try)
        self.flush()
        for job in (self._seal_rest, self._noted.write, None):
            self._jobs.put(job)
        self._thread.join(20)

    def complete_egress(self) -> None:
        """Queued before anything else of a start: requests that the supervisor before kept and had not sealed into the audit."""
        self._jobs.put(self._seal_left_over)

    def _seal_left_over(self) -> None:
        if (entry := left_over(self.ledger, self.audit)) is not None:
            self._owe(entry)

    def _last_try(self) -> None:
        self._pay_at = 0.0

    def _seal_rest(self) -> None:
        if (entry := self._seal.due(last=True)) is not None:
            self._owe(entry)

    def settle(self, timeout_s: float = 10.0) -> bool:
        """Blocks until everything queued so far is written. Call from a thread."""
        self.flush()
        done = threading.Event()
        self._jobs.put(done.set)
        return done.wait(timeout_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except _TROUBLE as error:
                self._show(error)

    def _show(self, error: Exception) -> None:
        log.error("a record could not be written: %s", error)
        self._on_trouble(f"a record could not be written: {error}")
