"""Sums kept as answers come: the same as sums of all answers, whatever was written, grew, was priced or folded, and by whom."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from console.domain.spend import NANO, Answer, Tokens
from console.sources.spend import totals as spend_totals
from console.sources.spend.store import SpendStore
from console.sources.spend.totals import Whose

NOON = time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1))
MIDNIGHT = time.mktime((2026, 11, 21, 0, 0, 0, 0, 0, -1))
TODAY = "2026-11-21"
KEYS: list[Whose] = [(uid, "claude_code", f"s{n}") for uid in (0, 7) for n in range(4)]
DIRECT = f"""
  select agent, total(cost) / {NANO}.0, cast(total(tokens) as integer), sum(answers), sum(unpriced), max(at)
  from spent where uid = ? and source = ? and session = ? group by agent order by agent"""


def answer(chance: random.Random) -> tuple[Answer, int | None]:
    uid, source, session = chance.choice(KEYS)
    at = NOON + chance.choice((0, 60, MIDNIGHT - NOON, -DAY, -3 * DAY, 2 * DAY, -100 * DAY))
    made = Answer(
        source, f"m{chance.randrange(60)}", at, chance.choice("xy"), "",
        session, chance.choice(("", "sub")), "/p", Tokens(chance.choice((1, 500, 10**12))), uid=uid, ours=chance.random() < 0.3,
    )  # fmt: skip
    return made, chance.choice((None, 0, 5, 10**9, 10**14))


DAY = 86_400.0


def agrees(store: SpendStore) -> None:
    kept = store.by_agents(KEYS)
    for key, rows in zip(KEYS, kept, strict=True):
        direct = store._asked(DIRECT, key)
        assert [(*row[:5], row[6]) for row in sorted(rows)] == [tuple(row) for row in direct], key
    for ours in (False, True):
        by_day = [one for one in store._asked("select day, cost, unpriced from spent where ours = ?", (int(ours),)) if one[0] >= TODAY]
        direct_usd, direct_odd = sum(one[1] or 0 for one in by_day) / NANO, sum(one[2] for one in by_day)
        usd, odd = store.since_day(TODAY, MIDNIGHT, ours=ours)
        assert usd == pytest.approx(direct_usd, abs=1e-9) and odd == direct_odd


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_written_they_say_what_a_sum_of_all_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(spend_totals, "BULK", 30)
    monkeypatch.setattr("console.sources.spend.store.BULK", 30)
    chance = random.Random(seed)  # noqa: S311 - no secret
    one, other = SpendStore(tmp_path / "cost.db"), SpendStore(tmp_path / "cost.db")
    try:
        for _ in range(40):
            store = chance.choice((one, other))
            step = chance.randrange(10)
            if step < 7:
                with store.writing():
                    store.add([answer(chance) for _ in range(chance.choice((1, 3, 40)))], "t1")
            elif step == 7:
                for source, model in store.unpriced_models("t2"):
                    with store.writing():
                        for unpriced in store.kept(source, model):
                            store.set_price(unpriced, 11, "t2")
            elif step == 8:
                store.fold(NOON, keep_days=chance.choice((2, 50)))
                other.closed = one.closed = store.closed
            else:
                store.fold(NOON, keep_days=2, sums_max=10)
                other.closed = one.closed = store.closed
            agrees(chance.choice((one, other)))
    finally:
        one.close()
        other.close()


def test_asking_again_sums_nothing_anew(tmp_path: Path) -> None:
    store = SpendStore(tmp_path / "cost.db")
    chance = random.Random(1)  # noqa: S311 - no secret
    with store.writing():
        store.add([answer(chance) for _ in range(50)], "t1")
    agrees(store)
    asked: list[str] = []
    store._db.set_trace_callback(asked.append)
    store.by_agents(KEYS)
    store.since_day(TODAY, MIDNIGHT, ours=False)
    assert asked and not [query for query in asked if "spent" in query or "answers where" in query or "from answers" in query]
    store.close()


def test_a_new_day_forgets_the_one_before_and_an_earlier_one_is_summed_anew(tmp_path: Path) -> None:
    store = SpendStore(tmp_path / "cost.db")
    one = Answer("claude_code", "m", NOON, "x", "", "s", "", "/p", Tokens(1))
    with store.writing():
        store.add([(one, NANO), (one._replace(answer_id="n", at=NOON + DAY), 2 * NANO)], "t")
    assert store.since_day(TODAY, MIDNIGHT, ours=False)[0] == 3.0
    assert store.since_day("2026-11-22", MIDNIGHT + DAY, ours=False)[0] == 2.0
    assert store._asked("select day from sum_days") == [("2026-11-22",)]
    assert store.since_day(TODAY, MIDNIGHT, ours=False)[0] == 3.0, "a clock that was set back"
    store.close()


def test_sums_of_very_many_sessions_are_not_kept_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spend_totals, "SESSIONS_MAX", 5)
    store = SpendStore(tmp_path / "cost.db")
    for n in range(20):
        store.by_agents([(0, "claude_code", f"s{n}")])[0]
    assert store._asked("select count(*) from sum_sessions")[0][0] <= 5
    store.close()


def test_a_history_that_fails_half_way_leaves_sums_that_are_still_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.sources.spend.store.BULK", 1)
    store = SpendStore(tmp_path / "cost.db")
    chance = random.Random(2)  # noqa: S311 - no secret
    agrees(store)

    def broken() -> None:
        with store.writing():
            store.add([answer(chance) for _ in range(5)], "t1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    monkeypatch.undo()
    with store.writing():
        store.add([answer(chance) for _ in range(5)], "t1")
    agrees(store)
    store.close()


def test_the_model_is_that_of_the_last_answer(tmp_path: Path) -> None:
    store = SpendStore(tmp_path / "cost.db")
    one = Answer("claude_code", "m", NOON, "first", "", "s", "", "/p", Tokens(1))
    later, earlier = one._replace(answer_id="n", at=NOON + 5, model="later"), one._replace(answer_id="o", at=NOON - 5, model="earlier")
    for each in (one, later, earlier):
        store.by_agents([(-1, "claude_code", "s")])[0]
        with store.writing():
            store.add([(each, 1)], "t")
    assert store.by_agents([(-1, "claude_code", "s")])[0] == [("", 3 / NANO, 3, 3, 0, "later", NOON + 5)]
    store.close()
