"""Claude Code sessions of this host: ``~/.claude/sessions/<pid>.json``, believed only as far as /proc bears them out.

The record format is internal to Claude Code and may change: every field is optional, unknown ones are ignored. The
``*.key`` files beside the records hold a secret and are never opened. A record whose process is gone, or is not what it
says, is *stale*: it is counted in the report's reason and is no sighting.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from console.domain.agent import ProcessIdentity, Sighting, SourceReport
from console.sources.claude_subagents import Tree, sightings, subagents
from console.sources.homes import ForeignFile, homes, read_foreign
from console.sources.interface import MAX_SIGHTINGS, UNVERIFIED, Confinement, Pids, plain
from console.sources.processes import ProcessTable
from console.sources.session_spend import SessionSpend

_RECORD = re.compile(r"^([1-9][0-9]{0,8})\.json\Z")
_CAP = 65_536
_ENTRIES_CAP = 10_000
_SCRIPTS = ("/@anthropic-ai/claude-code/cli.js", "/claude-code/cli.js")
_SEEN_ONLY = "Seen through its session file: Watchfloor shows it and has no control over it."


class ClaudeCodeSource:
    """Looks at the session records and proves each against its process."""

    name = "claude_code"

    def __init__(
        self, root: Path | None = None, pids: Pids = "all", table: ProcessTable | None = None, spend: SessionSpend | None = None
    ) -> None:
        self._confinement = Confinement(root, pids)
        self._table = table or ProcessTable()
        self._spend = spend
        self._trees: dict[str, Tree] = {}
        """By session, for as long as it is seen."""

    def look(self) -> SourceReport:
        """Every session of the homes we look in. Never raises."""
        if not self._table.mounted():
            return SourceReport(self.name, False, "Not available, because /proc is not mounted: no session could be verified.")
        folders = self._folders()
        found: dict[str, Sighting] = {}
        homes_of: dict[str, Path] = {}
        stale: list[str] = []
        troubles: list[str] = []
        for folder in folders:
            try:
                for seen in self._sessions(folder):
                    if isinstance(seen, str):
                        stale.append(seen)
                    elif seen.process is not None or seen.key not in found:  # a verified one outranks another of its key
                        found[seen.key] = seen
                        homes_of[seen.key] = folder.parent
            except FileNotFoundError:
                continue  # this person does not use Claude Code
            except OSError as error:
                troubles.append(f"{plain(str(folder))}: {error.strerror or 'cannot be read'}")
        if troubles and len(troubles) == len(folders):
            return SourceReport(self.name, False, f"Not available, because no session folder can be read: {'; '.join(troubles[:3])}.")
        shown = self._with_subagents(found, homes_of)
        if self._spend is not None and self._spend.problem and found:
            troubles.append(f"what they spent: {self._spend.problem}")
        return self._report(folders, shown, stale, troubles)

    def _with_subagents(self, found: dict[str, Sighting], homes_of: dict[str, Path]) -> list[Sighting]:
        """Sessions that were proven to run, each with its sub-agents and what each used; those that were not, alone."""
        shown: list[Sighting] = []
        self._trees = {key: self._trees.get(key) or Tree() for key in found}
        for key, seen in found.items():
            if seen.process is None or self._spend is None:
                shown.append(seen)
                continue
            spent = self._spend.of(int(key.partition("-")[0]), self.name, seen.session)
            shown += sightings(seen, subagents(homes_of[key] / "projects", seen.cwd, seen.session), spent, self._trees[key])
        return shown

    def _report(self, folders: list[Path], found: list[Sighting], stale: list[str], troubles: list[str]) -> SourceReport:
        where = ", ".join(plain(str(f)) for f in folders[:3]) + (f" and {len(folders) - 3} more" if len(folders) > 3 else "")
        words = f"Looks in {where}."
        if troubles:
            words += f" Could not read {'; '.join(troubles[:3])}."
        if stale:
            words += f" Stale session files left out: {len(stale)} ({'; '.join(stale[:3])})."
        if len(found) > MAX_SIGHTINGS:
            words += f" {len(found) - MAX_SIGHTINGS} more sessions are not shown."
        found.sort(key=lambda s: s.process is None and s.parent_key is None)  # stable: what runs first, sub-agents behind their session
        return SourceReport(self.name, True, words, tuple(found[:MAX_SIGHTINGS]))

    def _folders(self) -> list[Path]:
        places = [home / ".claude" / "sessions" for home in homes(self._confinement.root)]
        own = os.environ.get("CLAUDE_CONFIG_DIR", "")
        if self._confinement.root is None and own.startswith("/"):
            places.insert(0, Path(own) / "sessions")
        return list(dict.fromkeys(places))

    def _sessions(self, folder: Path) -> Iterator[Sighting | str]:
        """A sighting, or why a record is stale."""
        with os.scandir(folder) as entries:
            names = [e.name for e in islice(entries, _ENTRIES_CAP) if _RECORD.match(e.name)]
        for name in names:
            try:
                file = read_foreign(folder / name, _CAP)
            except OSError:
                continue  # gone meanwhile, or a link, FIFO or device: not a session record
            pid = int(name.removesuffix(".json"))
            record = _parse(file)
            if record is not None and self._confinement.admits(pid):
                yield self._judge(pid, file.uid, record)

    def _judge(self, pid: int, owner: int, record: dict[str, Any]) -> Sighting | str:
        started = plain(record.get("procStart"), 20)
        try:
            process, detail = self._verify(pid, owner, record, started), _SEEN_ONLY
        except _Stale as why:
            return str(why)
        except _Unverified as why:
            process, detail = None, f"Not verified: {why}."
        waiting = plain(record.get("waitingFor"), 80)
        status = plain(record.get("status"), 20) or "running"
        return Sighting(
            source=self.name,
            key=f"{owner}-{pid}-{started or '0'}",
            name=plain(record.get("name"), 80) or f"claude {plain(record.get('version'), 20)}".strip(),
            process=process,
            session=plain(record.get("sessionId"), 64),
            cwd=plain(record.get("cwd"), 500),
            seen_at=time.time(),
            status=status if process else UNVERIFIED,
            detail=detail + (f" Waits for: {waiting}." if status == "waiting" and waiting else ""),
        )

    def _verify(self, pid: int, owner: int, record: dict[str, Any], started: str) -> ProcessIdentity:
        """The process that every claim of the record and the kernel agree on; raises _Stale or _Unverified with why."""
        # 1. The numbers must be ours: in another PID namespace the same number is another process.
        domain = re.search(r"pid:\[\d{1,20}\]\Z", plain(record.get("pidDomain"), 80))
        own = self._table.pid_namespace("self")
        if domain and own and domain[0] != own:
            raise _Unverified("it runs in another PID namespace (a container?), where its number means another process")
        # 2. The process must exist, and the record must name the one its file name names.
        facts = self._table.facts(pid)
        if facts is None:
            raise _Stale(f"process {pid} is gone")
        if record.get("pid", pid) != pid:
            raise _Stale(f"{pid}.json names another process")
        # 3. It must be the same process that was recorded, not a later one with its number.
        if started and started != str(facts.identity.start_ticks):
            raise _Stale(f"process {pid} started at another time than the session")
        # 4. Whoever wrote the record must be who runs the process: nobody can name another's process.
        if facts.uids != (owner, owner):
            raise _Stale(f"{pid}.json belongs to uid {owner}, process {pid} runs as uid {facts.uids[1]}")
        # 5. It must be Claude Code at all.
        if not facts.runs("claude", _SCRIPTS):
            raise _Stale(f"process {pid} is not Claude Code")
        if not started:
            raise _Unverified("the record has no start time, so the process cannot be told from a later one of the same number")
        return facts.identity


class _Stale(Exception):
    """The record speaks of no process that runs."""


class _Unverified(Exception):
    """It may run, but what runs could not be proven."""


def _parse(file: ForeignFile) -> dict[str, Any] | None:
    if not file.whole:
        return None
    try:
        record = json.loads(file.data)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
