"""Journal lines as audit entries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from console.killswitch.store.journal import Journal
from console.services.stop.journal_import import fold_journal, record_of


def test_a_press_is_told_with_who_what_and_why() -> None:
    record = record_of({"seq": 3, "at": 1.0, "kind": "press", "scope": "all", "by": "cli", "reason": "x\ny", "kill_id": "k"})
    assert record is not None
    assert (record.actor, record.kind, record.must) == ("guard", "guard.press", True)
    assert "reason x\ny" in record.what
    assert record.data["line"] == 3


def test_a_canary_is_nobodys_doing() -> None:
    assert record_of({"seq": 1, "kind": "press", "by": "canary"}) is None


def test_a_strange_line_still_makes_an_entry() -> None:
    record = record_of({"seq": 9, "kind": "x" * 200, "agents": [1, 2] * 5000})
    assert record is not None
    assert len(record.kind) <= 60
    assert len(record.what) <= 500


def test_an_amended_receipt_is_on_record_and_taken_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("press", kill_id="k1")
    journal.append("receipt_amended", kill_id="k1", verified_zero=True, reason="a: confirmed dead, 61 s after the kill")
    kinds: list[str] = []
    ledger = SimpleNamespace(kv_get=lambda key: None, kv_set=lambda key, value: None)
    scribe: Any = SimpleNamespace(
        ledger=ledger,
        record=lambda record: kinds.append(f"{record.kind} {record.data.get('seal_sha256', '')}".strip()),
        job=lambda job: job(),
    )
    places: Any = SimpleNamespace(guard_dir=tmp_path)

    async def run() -> str:
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def amend(kill_id: str) -> str:
            told.set_result(kill_id)
            return "5ea1"

        task = asyncio.create_task(fold_journal(places, scribe, amend))
        try:
            found = await asyncio.wait_for(told, 20)
            await asyncio.sleep(0)
            return found
        finally:
            task.cancel()

    assert asyncio.run(run()) == "k1" and kinds == ["guard.press", "guard.receipt_amended 5ea1"]
