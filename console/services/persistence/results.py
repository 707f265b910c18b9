"""What the hunts after earlier kills found, as the case folders keep it: a supervisor that was started since knows it too."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

from console.rollback.persistence.findings import Change, Finding, Report
from console.settings.places import Places

log = logging.getLogger(__name__)
CASES = 20
"""The newest kills that are looked at."""
FILE_BYTES = 64 << 20
"""No file of ours is larger; one that is, is not read."""
DISK_S = 5.0


class Kept:
    """The newest stored reports. They are read once, at the first question."""

    __slots__ = ("_places", "_task")

    def __init__(self, places: Places) -> None:
        self._places = places
        self._task: asyncio.Task[dict[str, Report]] | None = None

    async def into(self, reports: dict[str, Report]) -> None:
        """Adds the newest report of each session of which there is none. What cannot be read, or not in time, stays unknown."""
        if self._task is None:
            self._task = asyncio.create_task(asyncio.to_thread(kept_reports, self._places.state_dir / "cases"))
        await asyncio.wait([self._task], timeout=DISK_S)
        if self._task.done():
            for context_id, report in self._task.result().items():
                reports.setdefault(context_id, report)


def kept_reports(cases: Path) -> dict[str, Report]:
    """The newest report of each session in the newest case folders. A file that cannot be read is passed over, and logged."""
    found: dict[str, Report] = {}
    try:
        folders = sorted((f for f in cases.iterdir() if f.is_dir() and not f.is_symlink()), key=lambda f: f.name, reverse=True)[:CASES]
        files = [f for folder in folders for f in folder.glob("persistence*.json")]
    except FileNotFoundError:
        return found  # nobody was killed yet
    except OSError as error:
        log.error("the findings of earlier persistence checks cannot be listed", exc_info=error)
        return found
    for file in files:
        try:
            reports = [_report_from(raw) for raw in json.loads(_read(file))["sessions"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            log.error("%s cannot be read", file, exc_info=error)
            continue
        for report in reports:
            known = found.get(report.context_id)
            if known is None or known.looked_at < report.looked_at:
                found[report.context_id] = report
    return found


def _read(file: Path) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > FILE_BYTES:
            raise ValueError(f"{file.name} is no file of ours")
        return opened.read(FILE_BYTES)


def _report_from(raw: dict[str, Any]) -> Report:
    """The inverse of ``Report.as_json``. Raises KeyError, TypeError or ValueError on anything else."""
    findings = tuple(Finding(**{**one, "change": Change(one["change"])}) for one in raw["findings"])
    lists = {name: tuple(str(word) for word in raw[name]) for name in ("doubts", "not_looked")}
    looked_at, context_id = float(raw["looked_at"]), str(raw["context_id"])
    return Report(**{**raw, **lists, "findings": findings, "looked_at": looked_at, "context_id": context_id})
