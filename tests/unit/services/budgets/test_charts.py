"""The charts: what agents reported and what transcripts say, by day and model, and what has no price beside them."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from console.domain.spend import Answer, Tokens
from console.ledger.spending import SpendSample
from console.ledger.store import Ledger
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.charts import MODELS, OTHERS, REPORTED, SLICE_S, Charts, _length, _midnight
from console.sources.spend.store import SpendStore

NOON = time.mktime((2026, 11, 22, 12, 0, 0, 0, 0, -1))


def charts(tmp_path: Path, ledger: Ledger) -> Charts:
    places: Any = SimpleNamespace(state_dir=tmp_path, is_default=False)
    options: Any = SimpleNamespace(discover_root="")
    core: Any = None
    scribe: Any = SimpleNamespace(ledger=ledger)
    return Charts(core, scribe, BurnBook(), places, options)


def test_today_in_slices_and_seven_days_by_model(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    day = 86_400
    samples = [(NOON - 8 * day, 5.0), (NOON - 6 * day, 1.0), (NOON - 3600, 2.0), (NOON - 3600 + 10, 1.0), (NOON - 1, 4.0)]
    ledger.add_spends([SpendSample("a", "a", at, cost, 100) for at, cost in samples])
    seen = charts(tmp_path, ledger)._read(NOON)
    assert [(m.day, m.model, m.cost_usd, m.tokens) for m in seen.models] == [
        ("2026-11-16", REPORTED, 1.0, 100),
        ("2026-11-22", REPORTED, 7.0, 300),
    ]
    assert seen.burn.since == _midnight(NOON) and len(seen.burn.usd_per_h) == 12 * 3600 / SLICE_S + 1
    assert seen.burn.usd_per_h[44] == 12.0 and seen.burn.usd_per_h[47] == 16.0, "dollars an hour"
    assert seen.models_note.startswith("transcripts were not read") and not (tmp_path / "cost.db").exists()
    ledger.close()


def test_what_a_started_program_was_charged_and_its_transcripts_say_counts_once_by_its_model(tmp_path: Path) -> None:
    def answer(number: int, *, ours: bool) -> Answer:
        return Answer("claude_code", f"m{number}", NOON - 60, "claude-x", "", f"s{number}", "", "/p", Tokens(10), ours=ours)

    store, ledger = SpendStore(tmp_path / "cost.db"), Ledger(tmp_path / "ledger.db")
    with store.writing():
        store.add([(answer(1, ours=True), 2 * 10**9), (answer(2, ours=False), 10**9)], "t")
    store.close()
    ledger.add_spends([SpendSample("started", "started", NOON - 59, 2.0, 10), SpendSample("other", "other", NOON - 58, 0.5, 5)])
    seen = charts(tmp_path, ledger)._read(NOON)
    assert [(m.model, m.cost_usd, m.tokens) for m in seen.models] == [("claude-x", 3.0, 20), (REPORTED, 0.5, 5)]
    assert sum(seen.burn.usd_per_h) * SLICE_S / 3600 == 3.5
    ledger.add_spends([SpendSample("late", "late", NOON - 30, 0.25, 1)])
    assert sum(m.cost_usd for m in charts(tmp_path, ledger)._read(NOON).models) == 3.75
    ledger.close()


def test_what_is_not_known_of_a_window_is_said_with_why(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    windows = charts(tmp_path, ledger)._read(NOON).windows
    where_they_run = charts(tmp_path, ledger)._read(NOON, {"claude-code", "gemini"}).windows
    ledger.close()
    assert {(w.program, w.window) for w in windows} == {("Codex", w) for w in ("5 h", "week")}
    assert {w.program for w in where_they_run} == {"Claude", "Codex"}, "no file tells Claude's: named where it runs; Gemini CLI has none"
    assert all(w.share is None and w.why_not.startswith("not available, because ") for w in (*windows, *where_they_run))


def test_lengths() -> None:
    assert [_length(x) for x in (299, 300, 10_079, 10_080, 1440, 2880, 0)] == ["5 h", "5 h", "week", "week", "1 d", "2 d", "not named"]


def test_a_transcript_that_names_thousands_of_models_and_days_to_come_hides_none_that_cost_something(tmp_path: Path) -> None:
    def answer(number: int, at: float, model: str) -> Answer:
        return Answer("claude_code", f"m{number}", at, model, "", "s", "", "/p", Tokens(1))

    made_up = [answer(n, NOON - 60 + (n + 1) * 86_400 * (n % 2), f"made-up-{n}") for n in range(2000)]
    store, ledger = SpendStore(tmp_path / "cost.db"), Ledger(tmp_path / "ledger.db")
    with store.writing():
        store.add([(one, None) for one in made_up] + [(answer(-1, NOON - 60, "claude-x"), 10**9)], "t")
    store.close()
    models = charts(tmp_path, ledger)._read(NOON).models
    ledger.close()
    assert len(models) == MODELS + 1 and {one.day for one in models} == {"2026-11-22"}
    assert (models[0].model, models[0].cost_usd) == ("claude-x", 1.0)
    (others,) = (one for one in models if one.model == OTHERS)
    assert sum(one.unpriced for one in models) == 1000 and others.unpriced == 1000 - (MODELS - 1)
