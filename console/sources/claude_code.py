"""Claude Code sessions of this host: ``~/.claude/sessions/<pid>.json``, believed only as far as /proc bears them out.

The record format is internal to Claude Code and may change: every field is optional, unknown ones are ignored. The
``*.key`` files beside the records hold a secret and are never opened.
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
from console.sources.homes import ForeignFile, homes, read_foreign
from console.sources.interface import MAX_SIGHTINGS, STALE, UNVERIFIED, Confinement, plain
from console.sources.processes import ProcessTable

_RECORD = re.compile(r"^([1-9][0-9]{0,8})\.json\Z")
_CAP = 65_536
_ENTRIES_CAP = 10_000
_SCRIPTS = ("/@anthropic-ai/claude-code/cli.js", "/claude-code/cli.js")
_SEEN_ONLY = "Seen through its session file: Watchfloor shows it and has no control over it."


class ClaudeCodeSource:
    """Looks at the session records and proves each against its process."""

    name = "claude_code"

    def __init__(self, confinement: Confinement | None = None, table: ProcessTable | None = None) -> None:
        self._confinement = confinement or Confinement()
        self._table = table or ProcessTable()

    def look(self) -> SourceReport:
        """Every session of the homes we look in. Never raises."""
        if not self._table.mounted():
            return SourceReport(self.name, False, "Not available, because /proc is not mounted: no session could be verified.")
        folders = self._folders()
        found: dict[str, Sighting] = {}
        troubles: list[str] = []
        for folder in folders:
            try:
                for sighting in self._sessions(folder):
                    # A live sighting outranks a stale one of the same key.
                    if sighting.process is not None or sighting.key not in found:
                        found[sighting.key] = sighting
            except FileNotFoundError:
                continue  # this person does not use Claude Code
            except OSError as error:
                troubles.append(f"{plain(str(folder))}: {error.strerror or 'cannot be read'}")
        return self._report(folders, list(found.values()), troubles)

    def _report(self, folders: list[Path], found: list[Sighting], troubles: list[str]) -> SourceReport:
        if troubles and len(troubles) == len(folders):
            return SourceReport(self.name, False, f"Not available, because no session folder can be read: {'; '.join(troubles[:3])}.")
        where = ", ".join(plain(str(f)) for f in folders[:3]) + (f" and {len(folders) - 3} more" if len(folders) > 3 else "")
        words = f"Looks in {where}."
        if troubles:
            words += f" Could not read {'; '.join(troubles[:3])}."
        if len(found) > MAX_SIGHTINGS:
            words += f" {len(found) - MAX_SIGHTINGS} more sessions are not shown."
        found.sort(key=lambda s: (s.process is None, s.key))
        return SourceReport(self.name, True, words, tuple(found[:MAX_SIGHTINGS]))

    def _folders(self) -> list[Path]:
        places = [home / ".claude" / "sessions" for home in homes(self._confinement.root)]
        own = os.environ.get("CLAUDE_CONFIG_DIR", "")
        if self._confinement.root is None and own.startswith("/"):
            places.insert(0, Path(own) / "sessions")
        return list(dict.fromkeys(places))

    def _sessions(self, folder: Path) -> Iterator[Sighting]:
        with os.scandir(folder) as entries:
            names = [e.name for e in islice(entries, _ENTRIES_CAP) if _RECORD.match(e.name)]
        for name in names:
            try:
                file = read_foreign(folder / name, _CAP)
            except OSError:
                continue  # gone meanwhile, or a link, FIFO or device: not a session record
            sighting = self._judge(int(name.removesuffix(".json")), file)
            if sighting is not None:
                yield sighting

    def _judge(self, pid: int, file: ForeignFile) -> Sighting | None:
        record = _parse(file)
        if record is None or not self._confinement.admits(pid):
            return None
        started = plain(record.get("procStart"), 20)
        process, why = self._verify(pid, file.uid, record, started)
        status = plain(record.get("status"), 20) or "running"
        waiting = plain(record.get("waitingFor"), 80)
        if process is None:
            status = STALE if why.startswith("Stale") else UNVERIFIED
        elif status == "waiting" and waiting:
            status = f"waiting: {waiting}"
        session = plain(record.get("sessionId"), 64)
        version = plain(record.get("version"), 20)
        name = plain(record.get("name"), 80)
        return Sighting(
            source=self.name,
            key=f"{file.uid}-{pid}-{started or '0'}",
            name=name or f"claude {version}".strip(),
            process=process,
            session=session,
            cwd=plain(record.get("cwd"), 500),
            seen_at=time.time(),
            status=status,
            detail=why,
        )

    def _verify(self, pid: int, owner: int, record: dict[str, Any], started: str) -> tuple[ProcessIdentity | None, str]:
        """(identity, sentence). The identity is None unless every claim of the record agrees with the kernel."""
        # 1. The numbers must be ours: in another PID namespace the same number is another process.
        domain = re.search(r"pid:\[\d{1,20}\]\Z", plain(record.get("pidDomain"), 80))
        own = self._table.pid_namespace("self")
        if domain and own and domain[0] != own:
            return None, "Unverified: it runs in another PID namespace (a container?), where its number means another process."
        # 2. The process must exist, and the record must name the one its file name names.
        facts = self._table.facts(pid)
        if facts is None:
            return None, f"Stale: process {pid} is gone."
        if record.get("pid", pid) != pid:
            return None, "Stale: the record names another process than its file name."
        # 3. It must be the same process that was recorded, not a later one with its number.
        if not started:
            return None, "Unverified: the record has no start time, so the process cannot be told from a later one of the same number."
        if started != str(facts.identity.start_ticks):
            return None, f"Stale: process {pid} started at another time than the session (its number was used again)."
        # 4. Whoever wrote the record must be who runs the process: nobody can name another's process.
        if facts.uids != (owner, owner):
            return None, f"Stale: the session file belongs to uid {owner}, process {pid} runs as uid {facts.uids[1]}."
        # 5. It must be Claude Code at all.
        if not facts.runs("claude", _SCRIPTS):
            return None, f"Stale: process {pid} is not Claude Code."
        return facts.identity, _SEEN_ONLY


def _parse(file: ForeignFile) -> dict[str, Any] | None:
    if not file.whole:
        return None
    try:
        record = json.loads(file.data)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
