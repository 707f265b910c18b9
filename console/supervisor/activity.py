"""The activity of agents: what their own files and our machinery say they did, collected in a thread of its own and kept.

Nothing waits for it: events are handed over and written soon; files of those who live are looked at a few times a second.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.audit.record import Record
from console.domain import command as c
from console.domain import event as e
from console.domain.activity import TEXT_KEPT, Entry, Kind, Window
from console.domain.agent import AgentId, Sighting, SourceReport
from console.domain.conversation import started_as
from console.domain.errors import ConsoleError, NotFound, Unavailable
from console.domain.network import EgressRecord
from console.enforcement.sightings import observed_id
from console.ledger.activity import ActivityStore, Bounds
from console.sources import claude_activity, codex_activity
from console.sources.activity_files import AgentFiles, Whereabouts, whereabouts
from console.sources.rates import RateBook
from console.sources.stream_activity import entries_of_stream, entries_of_told
from console.supervisor.activity_own import Said, of_egress, of_record, of_step
from console.supervisor.core import Core

log = logging.getLogger(__name__)
PERIOD_S, REST_MAX_S = 0.4, 0.7
PASS_S = 0.25
"""Longest time of one look at files; the next goes on. With the rest, at most a quarter of one core, and only while there is a backlog."""
WAITING_MAX = 20_000
"""Entries that wait to be written; what comes beyond is counted and said."""
LINGER_S = 20.0
"""How long the files of one who ended, or was looked at, are still followed."""
TOLD_MAX = 500
_WINDOW = TEXT_KEPT + 65_536
_MARGIN = 8192
_FUTURE_S = 60.0
_FOLLOWED = (claude_activity.SOURCE, codex_activity.SOURCE)
_TROUBLE = (ConsoleError, OSError, ValueError, ArithmeticError, LookupError, TypeError, RuntimeError, MemoryError)


Followed = tuple[str, Whereabouts]
"""(agent id, where its files are); one agent may have had several sessions."""
Changed = dict[str, tuple[int, int]]
"""Agent id -> (the newest number, how many are new)."""
_ALWAYS = float("inf")
_PLACES_MAX = 20


class ActivityDesk:
    """One per supervisor. What comes in is taken from any thread and never blocks; what is asked for blocks."""

    def __init__(self, file: Path, bounds: Bounds, core: Core, redact: Callable[[str], str], root: Path | None, homes: Path) -> None:
        """``root``: the one home in which others are looked for, None: any. ``homes``: the workspaces of agents of ours."""
        self._core, self._redact, self._root, self._homes = core, redact, root, homes
        self._bounds, self._file = bounds, file
        self._run_id, self._count = secrets.token_hex(4), 0
        self._lock = threading.Lock()
        self._waiting: deque[Said] = deque()
        self._lost: dict[str, int] = {}
        self._children: set[str] = set()
        self._streams: dict[str, int] = {}
        self._wanted: dict[Followed, float] = {}
        """Until when, in monotonic seconds; for ever while it is seen."""
        self._files: dict[Followed, AgentFiles] = {}
        self._rates = RateBook()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = ""
        """Why nothing is kept at present, or empty."""
        self.store: ActivityStore | None = None
        try:
            self.store = ActivityStore(file, bounds)
            self.problem = self.store.lost
        except ConsoleError as error:
            self.problem = str(error)

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
        if isinstance(step, e.Sighted):
            self._sighted(step.reports)
        elif isinstance(step, e.UsageReported) and self._is_program(step.agent_id):
            return  # its stream has told each answer
        elif isinstance(step, c.ShowAgent):
            if step.agent.agent_id in self._children:
                return  # an agent is shown at every change; it is its parent's child once
            self._children.add(step.agent.agent_id)
        for agent_id, entry in of_step(step, self._fresh()):
            self._put(agent_id, entry)

    def _is_program(self, agent_id: AgentId) -> bool:
        agent = self._core.state.agents.get(agent_id)
        return agent is not None and started_as(agent.argv) is not None

    def recorded(self, record: Record) -> None:
        """An audit record is on disk."""
        for agent_id, entry in of_record(record):
            self._put(agent_id, entry)

    def egress(self, record: EgressRecord) -> None:
        """A request through Envoy."""
        self._put(*of_egress(record, self._fresh()))

    def on_event(self, agent_id: str, event: dict[str, Any]) -> None:
        """One event of a started program: as ``program_stream`` tells it (``kind``), or a line of its own stream."""
        number = self._streams[agent_id] = self._streams.get(agent_id, 0) + 1
        if "kind" in event:
            for entry in entries_of_told(event, time.time()):
                self._put(agent_id, entry)
            return
        for entry in entries_of_stream(event, number, time.time()):
            self._put(agent_id, replace(entry, source_id=f"{self._run_id}:{entry.source_id}"))

    def _fresh(self) -> str:
        self._count += 1
        return f"{self._run_id}:{self._count}"

    def _put(self, agent_id: str, entry: Entry) -> None:
        size = len(entry.text)
        if size > _WINDOW:
            entry = replace(entry, text=entry.text[:_WINDOW], left_out=size - _WINDOW)
        entry = replace(entry, at=entry.at or time.time())
        with self._lock:
            if len(self._waiting) >= WAITING_MAX:
                self._lost[agent_id] = self._lost.get(agent_id, 0) + 1
            else:
                self._waiting.append((agent_id, entry))

    def _sighted(self, reports: Sequence[SourceReport]) -> None:
        """Whose files are to be followed: those of who is seen now, and for a while of who was."""
        tick, wanted = time.monotonic(), dict(self._wanted)
        for report in reports:
            if report.source not in _FOLLOWED or not report.available:
                continue
            seen = {(agent_id, where) for agent_id, where in self._whereabouts(report) if agent_id not in self._streams}
            for one, until in self._wanted.items():
                if one[1].source == report.source and one not in seen and until == _ALWAYS:
                    wanted[one] = tick + LINGER_S
            wanted |= dict.fromkeys(seen, _ALWAYS)
        self._wanted = {one: until for one, until in wanted.items() if until > tick and one[0] not in self._streams}

    def _whereabouts(self, report: SourceReport) -> Iterator[Followed]:
        for sighting in report.sightings:
            agent_id, owner = self._row_of(sighting), sighting.key.partition("-")[0]
            sub = _sub_of(sighting, report)
            if agent_id is None or sub is None or not sighting.session:
                continue
            top = self._core.state.agents.get(AgentId(sighting.agent_id))
            if top is not None:
                home = str(self._homes / top.context_id)
                yield agent_id, Whereabouts(report.source, -1, sighting.session, sighting.cwd, sub, home)
            elif owner.isascii() and owner.isdigit() and len(owner) <= 10:
                yield agent_id, Whereabouts(report.source, int(owner), sighting.session, sighting.cwd, sub)

    def _row_of(self, sighting: Sighting) -> AgentId | None:
        state = self._core.state
        found = state.rows.get(f"{sighting.source}\0{sighting.key}") or observed_id(sighting)
        return found if found in state.agents else None

    # --- what is asked for

    def window(
        self, agent_id: str, *, before: int | None, after: int | None, limit: int, query: str = "", kinds: Sequence[str] = ()
    ) -> Window:
        """A page of an agent's feed. Blocks. Raises Unavailable when nothing can be kept."""
        self._look_again(agent_id)
        return self._store().window(agent_id, before=before, after=after, limit=limit, query=query, kinds=kinds)

    def one(self, agent_id: str, seq: int) -> Any:
        """One entry with all that is kept of it. Blocks. Raises NotFound."""
        kept = self._store().one(agent_id, seq)
        if kept is None:
            raise NotFound(f"There is no entry {seq} of this agent.", "It may have been dropped: the oldest go first.")
        return kept

    def words(self, agent_id: str) -> str:
        """What a person should know of where this feed comes from, or empty. Blocks for some looks at files."""
        said = [self.problem]
        files = self._store().files(agent_id)
        if files and not any(Path(path).is_file() for path in files):
            said.append("Kept here: the program's own file is gone.")
        followed = [one for (i, _), one in list(self._files.items()) if i == agent_id]
        said += dict.fromkeys(f"Its own file is not read: {one.problem}." for one in followed if one.problem)
        if any(one.backlog for one in followed):
            said.append("Its history is still being read.")
        return " ".join(word for word in said if word)

    def _store(self) -> ActivityStore:
        if self.store is None:
            raise Unavailable(f"Activity is not available, because {self.problem}", "Mend it and start the supervisor again.")
        return self.store

    def _look_again(self, agent_id: str) -> None:
        """One that is looked at is followed for a while, though it ended."""
        if agent_id in self._streams or any(i == agent_id and until == _ALWAYS for (i, _), until in self._wanted.items()):
            return
        until = time.monotonic() + LINGER_S
        self._wanted = self._wanted | {(agent_id, where): until for where in self._places(agent_id)}

    def _places(self, agent_id: str) -> list[Whereabouts]:
        found = (whereabouts(text) for text in self._store().place(agent_id).splitlines())
        return [where for where in found if where is not None]

    # --- the thread

    def _run(self) -> None:
        rest = 0.0
        while not self._ended.wait(rest):
            began = time.monotonic()
            self._turn()
            rest = min(REST_MAX_S, max(PERIOD_S, 3 * (time.monotonic() - began)))
        self._turn()

    def _turn(self) -> None:
        try:
            self._tell(self._write_waiting())
            self._tell(self._read_files())
            self.problem = self.store.lost if self.store is not None else self.problem
        except _TROUBLE as error:
            if str(error) != self.problem:
                log.error("activity could not be kept", exc_info=error)
            self.problem = str(error) or repr(error)

    def _write_waiting(self) -> Changed:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            lost, self._lost = self._lost, {}
        for agent_id, many in lost.items():
            text = f"{many:,} entries are missing here: they came faster than they can be kept."
            waiting.append((agent_id, Entry(Kind.ERROR, self._fresh(), time.time(), text, who="watchfloor", failed=True)))
        by_agent: dict[str, list[Entry]] = {}
        for agent_id, entry in waiting:
            by_agent.setdefault(agent_id, []).append(entry)
        changed: Changed = {}
        for agent_id, entries in list(by_agent.items()):
            try:
                added, newest = self._store().add(agent_id, [self._clean(entry) for entry in entries])
            except ConsoleError:
                with self._lock:  # tried again, in order, before what came since
                    self._waiting.extendleft(reversed([(i, entry) for i, several in by_agent.items() for entry in several]))
                raise
            del by_agent[agent_id]
            if added:
                changed[agent_id] = (newest, added)
        return changed

    def _read_files(self) -> Changed:
        wanted, tick = self._wanted, time.monotonic()
        for one in [i for i in self._files if wanted.get(i, 0.0) <= tick]:
            del self._files[one]
        changed: Changed = {}
        # Those who go on come before those whose long history is read for the first time.
        for one in sorted(wanted, key=self._turn_of):
            if time.monotonic() - tick > PASS_S and changed:
                break
            newest, added = self._read_one(one)
            if added:
                changed[one[0]] = (newest, added + changed.get(one[0], (0, 0))[1])
        return changed

    def _turn_of(self, one: Followed) -> tuple[bool, float]:
        files = self._files.get(one)
        return (files.backlog, files.read_at) if files is not None else (False, 0.0)

    def _read_one(self, one: Followed) -> tuple[int, int]:
        """(the newest number, how many are new)."""
        files = self._files.get(one)
        if files is None:
            files = self._files[one] = self._files_of(*one)
        newest, many = 0, 0
        if not files.has_news():
            return newest, many
        try:
            for batch in files.read():
                added, newest = self._store().add(one[0], self._dated(batch.entries), batch.place, again=batch.again)
                many += added
        except BaseException:
            del self._files[one]  # what was read and not kept is read again, from where the store knows
            raise
        return newest, many

    def _files_of(self, agent_id: str, where: Whereabouts) -> AgentFiles:
        store, known = self._store(), self._places(agent_id)
        if where not in known:
            store.set_place(agent_id, "\n".join(w.as_json() for w in [*known, where][-_PLACES_MAX:]))

        def has_row(sub: str) -> bool:
            return any((w.session, w.sub, w.uid, w.home) == (where.session, sub, where.uid, where.home) for _, w in self._wanted)

        return AgentFiles(where, self._root, self._rates.price, store.files(agent_id), has_row)

    def _dated(self, entries: Iterable[Entry]) -> list[Entry]:
        """Clean, and with a moment: one that says none has the one before it, none lies in the future."""
        now, last, out = time.time(), 0.0, []
        for entry in entries:
            last = min(entry.at, now) if entry.at and entry.at < now + _FUTURE_S else (now if entry.at else last or now)
            out.append(replace(self._clean(entry), at=last))
        return out

    def _clean(self, entry: Entry) -> Entry:
        """Known secrets are taken out of the whole before anything is cut, so that none is kept in half."""
        text = self._redact(entry.text[:_WINDOW])
        if len(entry.text) > _WINDOW:
            text = text[: max(0, min(TEXT_KEPT, len(text) - _MARGIN))]
        kept = text[:TEXT_KEPT]
        return replace(
            entry,
            text=kept,
            left_out=entry.left_out + max(0, len(entry.text) - len(kept)) if len(entry.text) > TEXT_KEPT else entry.left_out,
            who=self._redact(entry.who[:_MARGIN]),
            tool=self._redact(entry.tool[:_MARGIN]),
            ref=self._redact(entry.ref[:_MARGIN]),
            pair=self._redact(entry.pair[:_MARGIN]),
        )

    def _tell(self, changed: Changed) -> None:
        loop = self._core.loop
        if changed and loop is not None and not loop.is_closed():
            first = dict(sorted(changed.items())[:TOLD_MAX])
            loop.call_soon_threadsafe(self._core.hub.publish, "activity", {"agents": first, "more": len(changed) > TOLD_MAX})


def _sub_of(sighting: Sighting, report: SourceReport) -> str | None:
    """A sub-agent's id within its Claude Code session; empty: it is no sub-agent; None: its session is not in the report."""
    if sighting.parent_key is None or report.source != claude_activity.SOURCE:
        return ""
    tops = (s.key for s in report.sightings if s.parent_key is None and sighting.key.startswith(f"{s.key}-"))
    top = max(tops, key=len, default=None)
    return None if top is None else sighting.key.removeprefix(f"{top}-")
