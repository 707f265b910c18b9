"""Claude Code sessions of this host and of our own agents: ``sessions/<pid>.json`` of a home, and the notes of their sub-agents.

The record format is internal to Claude Code and may change: every field is optional, unknown ones are ignored. A record whose process is
gone, or is not what it says, is *stale*: it is counted in the report's reason and is no sighting.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from console.domain.agent import Sighting, SourceReport
from console.sources.claude_code.program import CLAUDE
from console.sources.claude_code.records import Records, Session
from console.sources.claude_code.rows import Proven, Rows
from console.sources.claude_code.transcripts import FOLDERS
from console.sources.home_dirs import OwnHome, is_below
from console.sources.interface import MAX_SIGHTINGS, ONLY_OURS, SAYS_OF_A_ROW, UNVERIFIED, Confinement, Pids
from console.sources.processes import ProcessTable
from console.sources.programs import Programs
from console.sources.spend.of_session import NOT_READ, SessionSpend
from console.sources.text import plain

_SEEN_ONLY = "Seen through its session file: Watchfloor shows it and has no control over it."
_OURS = "Its session is seen too, through the files of its home."

Found = tuple[Sighting, Session, Path]
"""A sighting, what it was made from, and the folder ``.claude`` it is of."""
_NOBODY: list[Session | str] = []


@dataclass(slots=True)
class _Gathered:
    """The sessions of one look."""

    recorded: list[tuple[Path, list[Session | str] | str]]
    """Of each folder: what is recorded in it, or why that cannot be read."""
    found: dict[str, Found] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    proven: dict[str, Proven] = field(default_factory=dict)

    def is_of(self, other: _Gathered) -> bool:
        """Whether nothing is recorded now that was not then; most looks find that."""
        pairs = zip(self.recorded, other.recorded, strict=False)
        return len(self.recorded) == len(other.recorded) and all(a[0] == b[0] and a[1] is b[1] for a, b in pairs)


class ClaudeCodeSource:
    """Looks at the session records and proves each against its process."""

    name = "claude_code"
    can_see = (
        "Live sessions, what each says of itself, its sub-agents at any depth, tokens and cost after the fact, all from the program's own "
        "files. Not sessions whose home is not on this host, nor a call before it is made."
    )
    can_stop = "Nothing by itself: adopt a session first, or start it with watchfloor run. A sub-agent stops with its session, never alone."

    def __init__(
        self,
        root: Path | None = None,
        pids: Pids = "all",
        table: ProcessTable | None = None,
        spend: SessionSpend | None = None,
        programs: Programs | None = None,
        own: Callable[[], list[OwnHome]] = list,
        outside: bool = True,
    ) -> None:
        self._confinement = Confinement(root, pids, outside)
        self._table = table or ProcessTable()
        fresh = spend.fresh if spend is not None else None
        self._records = Records(self._table, self._confinement, programs or Programs((CLAUDE,), self._table), fresh)
        self._spend, self._own = spend, own
        self._rows = Rows(self.name, spend) if spend is not None else None
        self._made: dict[int, tuple[Session, Sighting]] = {}
        """For as long as the session is the same."""
        self._gathered = _Gathered([])
        self._watched: list[Path] = []

    def folders(self) -> list[Path]:
        """Where sessions are recorded, and where those that run write."""
        return self._watched

    def look(self) -> SourceReport:
        """Every session of the homes we look in. Never raises."""
        if not self._table.mounted():
            return SourceReport(self.name, False, "Not available, because /proc is not mounted: no session could be verified.")
        places = list(self._places())
        self._records.begin()
        now = _Gathered([(folder, self._recorded(folder, own)) for folder, own in places])
        troubles = [said for _, said in now.recorded if isinstance(said, str)]
        if troubles and len(troubles) == len(places):
            return SourceReport(self.name, False, f"Not available, because no session folder can be read: {'; '.join(troubles[:3])}.")
        if not now.is_of(self._gathered):
            self._gather(now)
        shown, written = self._with_subagents()
        if written is not None:
            self._watched = list(dict.fromkeys((*(folder for folder, _ in places), *written)))  # at once: a thread that watches reads it
        if self._spend is not None and self._spend.problem not in ("", NOT_READ) and self._gathered.found:
            troubles.append(f"what they spent: {self._spend.problem}")
        return self._report([folder for folder, own in places if own is None], shown, self._gathered.stale, troubles)

    def _recorded(self, folder: Path, own: OwnHome | None) -> list[Session | str] | str:
        try:
            return self._records.of(folder, own)
        except FileNotFoundError:
            return _NOBODY  # this person does not use Claude Code
        except OSError as error:
            return f"{plain(str(folder))}: {error.strerror or 'cannot be read'}"

    def _gather(self, now: _Gathered) -> None:
        for folder, recorded in now.recorded:
            for seen in recorded if isinstance(recorded, list) else ():
                if isinstance(seen, str):
                    now.stale.append(seen)
                    continue
                shown = self._as_sighting(seen)
                if seen.process is not None or shown.key not in now.found:  # a verified one outranks another of its key
                    now.found[shown.key] = (shown, seen, folder.parent)
        projects = {folder.parent: folder.parent / "projects" for folder, _ in now.recorded}
        for key, (shown, session, home) in now.found.items():
            if shown.process is not None or shown.agent_id:
                now.proven[key] = Proven(shown, session.owner, projects[home])
        self._made = {id(session): (session, shown) for shown, session, _ in now.found.values()}
        self._gathered = now

    def _with_subagents(self) -> tuple[list[Sighting], list[Path] | None]:
        """Sessions that were proven to run, each with its sub-agents and what each used, then those that were not. And where they write."""
        found, proven = self._gathered.found, self._gathered.proven
        if self._rows is None:
            return [seen for seen, _, _ in found.values()], []
        shown, written = self._rows.of(proven)
        return shown + [seen for key, (seen, _, _) in found.items() if key not in proven], written

    def _report(self, folders: list[Path], found: list[Sighting], stale: list[str], troubles: list[str]) -> SourceReport:
        where = ", ".join(plain(str(f)) for f in folders[:3]) + (f" and {len(folders) - 3} more" if len(folders) > 3 else "")
        words = f"Looks in {where}." if folders else ONLY_OURS
        if self._spend is not None and self._spend.reading:
            words += f" Still reads the history: {self._spend.reading}."
        if troubles:
            words += f" Could not read {'; '.join(troubles[:3])}."
        if stale:
            words += f" Stale session files left out: {len(stale)} ({'; '.join(stale[:3])})."
        if len(found) > MAX_SIGHTINGS:
            words += f" {len(found) - MAX_SIGHTINGS} more sessions are not shown."
        found.sort(key=lambda s: s.process is None and s.parent_key is None)  # stable: what runs first, sub-agents behind their session
        return SourceReport(self.name, True, words, tuple(found[:MAX_SIGHTINGS]))

    def _places(self) -> Iterator[tuple[Path, OwnHome | None]]:
        """(folder of records, whose of our agents' home it is)."""
        places = [home / ".claude" / "sessions" for home in self._confinement.homes()]
        named = os.environ.get("CLAUDE_CONFIG_DIR", "")
        if self._confinement.root is None and self._confinement.outside and named.startswith("/"):
            places.insert(0, Path(named) / "sessions")
        for place in dict.fromkeys(places):
            yield place, None
        for own in self._own():
            for config in FOLDERS:
                folder = own.path / config / "sessions"
                if is_below(own.path, folder):
                    yield folder, own

    def _as_sighting(self, seen: Session) -> Sighting:
        had = self._made.get(id(seen))
        return had[1] if had is not None and had[0] is seen else self._sighting(seen)

    def _sighting(self, seen: Session) -> Sighting:
        record = seen.record
        detail = _OURS if seen.agent_id else _SEEN_ONLY
        waiting, status = plain(record.get("waitingFor"), 80), plain(record.get("status"), 20)
        status = "running" if status in ("", *SAYS_OF_A_ROW) else status  # that it has ended is the kernel's to say
        # In a home of ours the number may be of another PID namespace: there its own agent tells two of the same number apart. Where it is
        # the kernel's own it stays as it was before it was adopted: by another name what it used would count once more.
        is_hosts = seen.process is not None and seen.process.pid == seen.number
        mark = f"{seen.agent_id}-{seen.number}" if seen.agent_id and not is_hosts else f"{seen.owner}-{seen.number}"
        return Sighting(
            source=self.name,
            key=f"{mark}-{seen.started or '0'}",
            name=plain(record.get("name"), 80) or f"claude {plain(record.get('version'), 20)}".strip(),
            process=seen.process,
            session=plain(record.get("sessionId"), 64),
            cwd=plain(record.get("cwd"), 500),
            seen_at=time.time(),
            status=status if seen.process or seen.agent_id else UNVERIFIED,
            detail=(f"Not verified: {seen.doubt}." if seen.doubt else detail)
            + (f" Waits for: {waiting}." if status == "waiting" and waiting else ""),
            agent_id=seen.agent_id,
        )
