"""Folds the guard's journal into the audit: what the guard did while no supervisor ran is in the chain too, in its own words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from console.domain.engine.command import Record
from console.killswitch.store.journal import read_journal
from console.services.fleet.core import wait_beat
from console.services.records.record_writer import Scribe
from console.services.stop.self_test import BY as CANARY
from console.settings.places import Places

KEY = "guard.journal.folded"
PAUSE_S = 1.0


def record_of(line: dict[str, Any]) -> Record | None:
    """Return the audit entry of one journal line; None for a self-test of the kill switch, which no person or agent caused."""
    if line.get("by") == CANARY:
        return None
    told = {k: str(v)[:500] for k, v in line.items() if k not in ("seq", "at", "kind")}
    words = ", ".join(f"{k} {v}" for k, v in told.items() if v and k in ("scope", "kill_id", "cause", "by", "reason", "agents"))
    return Record(
        "guard", f"guard.{line.get('kind', 'unknown')}"[:60], words[:500] or "no detail", data={"line": line["seq"], **told}, must=True
    )


def _read(path: Path, after: int) -> list[dict[str, Any]]:
    return list(read_journal(path, after))


async def fold_journal(places: Places, scribe: Scribe, amend: Callable[[str], Awaitable[str]]) -> None:
    """Once a second, for ever; what was folded is remembered in the ledger, so that a restart neither repeats nor skips.

    ``amend``: told the kill of every receipt that the guard amended; the new seal of the receipt goes on record with the guard's line.
    """
    path = places.guard_dir / "journal.jsonl"
    done = int(await asyncio.to_thread(scribe.ledger.kv_get, KEY) or 0)
    size = -1
    while True:
        # The journal is append-only, so an unchanged size spares reading it every second.
        now_size = path.stat().st_size if path.exists() else 0
        if now_size != size:
            size = now_size
            for line in await asyncio.to_thread(_read, path, done):
                seal = await amend(str(line.get("kill_id"))) if line.get("kind") == "receipt_amended" else ""
                if (record := record_of(line)) is not None:
                    scribe.record(replace(record, data={**record.data, "seal_sha256": seal}) if seal else record)
                done = max(done, int(line["seq"]))
            # Queued behind the records: a crash in between repeats a line, while the other order would lose one.
            scribe.job(partial(scribe.ledger.kv_set, KEY, str(done)))
        await wait_beat(PAUSE_S)
