"""Books are kept whole or not at all; limits and their history; what cannot be read is used up, never fresh."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.exc import SQLAlchemyError

from console.domain.budget import Halt, Limits, Usage
from console.domain.errors import ConsoleError
from console.domain.process import failpoints
from console.ledger.budgets import DAY, Books, KeptReservation, KeptUsage, LimitChange
from console.ledger.store import Ledger
from tests.unit.ledger.test_agents import agent, edit

HOSTILE = "/home/<b>x</b>\ud800\n"


def kept(number: str = "a1.k") -> KeptReservation:
    return KeptReservation(number, "a1", Usage(tokens=5, cost_usd=0.25), 99.5, "boot", HOSTILE)


def test_books_come_back(ledger: Ledger) -> None:
    node = ("project", HOSTILE)
    one = agent("a1", project=HOSTILE, halt=Halt("session", "c1", "cost_usd", 1.0, 1.2, 1.5))
    ledger.keep_books(
        Books(
            {"a1": one},
            {node: KeptUsage(Usage(tokens=7), 12.5, "boot")},
            {"a1.k": kept()},
            {("agent", "a1", "tokens"): 75},
            '{"date": "x"}',
        ),
        1000.0,
    )
    assert ledger.agents() == [one]
    assert ledger.budget_usage() == {node: KeptUsage(Usage(tokens=7), 12.5, "boot")}
    assert ledger.reservations() == [kept()]
    assert ledger.budget_warned() == {("agent", "a1", "tokens"): 75}
    assert ledger.kv_get(DAY) == '{"date": "x"}'
    ledger.keep_books(Books(held={"a1.k": None}, warned={("agent", "a1", "tokens"): 90}), 1001.0)
    assert ledger.reservations() == [] and ledger.budget_warned()[("agent", "a1", "tokens")] == 90
    assert not Books() and Books(held={"x": None})


def test_a_charge_and_the_reservation_it_settles_are_one_transaction(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.keep_books(Books({"a1": agent()}, held={"a1.k": kept()}), 1.0)

    def full(name: str) -> None:
        if name == "ledger.commit":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("console.ledger.database.failpoint", full)
    with pytest.raises((ConsoleError, SQLAlchemyError)):
        ledger.keep_books(Books({"a1": agent("a1", usage=Usage(tokens=99))}, held={"a1.k": None}), 2.0)
    monkeypatch.setattr("console.ledger.database.failpoint", failpoints.failpoint)
    assert ledger.reservations() == [kept()]
    assert [found.usage.tokens for found in ledger.agents()] == [2]


def test_the_newer_word_holds_when_books_are_put_together() -> None:
    older = Books({}, {("day", "d"): KeptUsage(Usage(tokens=1), 1.0, "b")}, {"x": kept("x"), "y": kept("y")}, {("a", "b", "c"): 75}, "1")
    newer = Books({}, {("day", "d"): KeptUsage(Usage(tokens=2), 2.0, "b")}, {"x": None}, {}, None)
    older.take_in(newer)
    assert older.usage[("day", "d")].usage.tokens == 2 and older.held == {"x": None, "y": kept("y")}
    assert older.warned == {("a", "b", "c"): 75} and older.day == "1"


def test_limits_and_every_change_of_them(ledger: Ledger) -> None:
    first = LimitChange(1.0, "project", HOSTILE, "cost_usd", None, 5.0, "operator:0", "begin")
    second = LimitChange(2.0, "project", HOSTILE, "cost_usd", 5.0, 9.0, "operator:0", HOSTILE)
    ledger.change_limits("project", HOSTILE, Limits(cost_usd=5.0), [first])
    ledger.change_limits("project", HOSTILE, Limits(cost_usd=9.0), [second])
    ledger.change_limits("agent", "a1", Limits(tokens=1), [LimitChange(3.0, "agent", "a1", "tokens", None, 1.0, "operator:0", "x")])
    assert ledger.budget_limits() == {("project", HOSTILE): Limits(cost_usd=9.0)}
    lower, day = {("project", HOSTILE): Limits(cost_usd=1.0)}, {("day", ""): Limits(tokens=5)}
    books = Books(limits={("project", HOSTILE): Limits(), **day})
    books.take_in(Books(limits=lower))
    ledger.keep_books(books, 3.0)
    assert ledger.budget_limits() == lower | day
    assert ledger.budget_changes("project", HOSTILE) == ([second, first], 2)
    assert [c.scope for c in ledger.budget_changes(limit=1)[0]] == ["agent"] and ledger.budget_changes(limit=1)[1] == 3


def test_no_change_is_ever_edited_away(ledger: Ledger, tmp_path: Path) -> None:
    ledger.change_limits("day", "", Limits(cost_usd=5.0), [LimitChange(1.0, "day", "", "cost_usd", None, 5.0, "o", "r")])
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        edit(tmp_path / "ledger.db", "DELETE FROM budget_changes")


def test_what_cannot_be_read_is_used_up_and_caps_nothing_away(ledger: Ledger, tmp_path: Path) -> None:
    ledger.change_limits("session", "c", Limits(cost_usd=5.0), [])
    ledger.keep_books(Books(usage={("session", "c"): KeptUsage(Usage(), 0.0, "b")}), 1.0)
    edit(tmp_path / "ledger.db", "UPDATE budget_limits SET limits = 'x'")
    edit(tmp_path / "ledger.db", "UPDATE budget_usage SET usage = '['")
    assert ledger.budget_limits()[("session", "c")].cost_usd == 0.0
    assert ledger.budget_usage()[("session", "c")].usage.cost_usd > 1e6
