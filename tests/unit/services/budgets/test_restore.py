"""What is read at start-up: limits of the settings, what was charged, the open day; damage is never a fresh budget."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.agent import AgentId
from console.domain.budget import Day, Limits, Usage
from console.domain.errors import ConsoleError
from console.ledger.budgets import DAY, Books, KeptUsage
from console.ledger.spending import SpendSample
from console.ledger.store import Ledger
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.restore import boot_id, kept_budget, recall_burn
from console.settings.options import Options, load_options
from tests.fakes.playbook import Playbook


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "ledger.db")
    yield opened
    opened.close()


def test_what_was_kept_comes_back_with_the_limits_of_the_settings(ledger: Ledger) -> None:
    options = Options.read({"budgets": {"day": {"cost": 600}, "types": {"bot": {"tokens": 5}}, "agent": {}}})
    ledger.add_spends([SpendSample("a", "a", time.time(), 0.5, 1)])
    ledger.keep_books(Books(usage={("session", "s"): KeptUsage(Usage(tokens=3), 1.0, "b")}, day=json.dumps(["no day"])), 1.0)
    kept = kept_budget(ledger, options, time.time())
    assert kept.defaults == {"day": Limits(cost_usd=600.0), "type:bot": Limits(tokens=5)}
    assert kept.usage == {("session", "s"): (Usage(tokens=3), 1.0, "b")} and kept.boot_id == boot_id() != ""
    assert kept.day == Day() and kept.today_usd == 0.5
    ledger.kv_set(DAY, json.dumps({"date": "2026-11-22", "ends_boot": 5.0, "boot_id": "b", "metered_usd": 0.25}))
    assert kept_budget(ledger, options, 0.0).day == Day("2026-11-22", 5.0, "b", 0.25)
    for damaged in ("", "{", "[]", '{"date": "x", "ends_boot": 1, "boot_id": "b", "metered_usd": 0}', '{"date": "2026-11-22"}'):
        ledger.kv_set(DAY, damaged)
        assert kept_budget(ledger, options, 0.0).day == Day()


@pytest.mark.parametrize(
    "text", ['{"day": {"price": 1}}', '{"agent": {"cost": -1}}', '{"types": {"A b": {}}}', '{"types": {"b": {"cost": 1e999}}}']
)
def test_settings_that_are_no_limits_start_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(f'{{"budgets": {text}}}')
    with pytest.raises(ConsoleError, match=r"budgets|Number out of range"):
        load_options(tmp_path / "settings.json")


def test_the_last_hour_is_drawn_again_and_rates_begin_anew() -> None:
    book, burn = Playbook().run("a"), BurnBook(10_000.0)
    samples = [
        SpendSample("a", "a", 5000.0 - 600, 0.5, 10),
        SpendSample("gone", "gone", 4999.0, 9.0, 1),
        SpendSample("a", "a", 9e9, 1.0, 1),
    ]
    recall_burn(burn, book.state, samples, 5000.0, 10_000.0)
    minutes = burn.minutes(("tree", "a"), "cost_usd", 10_000.0)
    assert sum(minutes) == 0.5 and minutes[-11] == 0.5 and burn.known_min(None, 10_000.0) == 0.0
    assert AgentId("a") in book.state.agents
