"""Many agents counted in one answer: every one of them once, in lines that fit, and none of it keeps a press waiting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.guard import LINE_LIMIT, decode, encode
from console.killswitch.guard import operations
from console.killswitch.guard.operations import counts
from tests.fakes.guard_room import Room


def take_in(room: Room, names: list[str]) -> None:
    for number, name in enumerate(names):
        given = room.launches.ticket(name, "process", "managed")
        (Path(given["leaf"]) / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in range(100, 100 + number % 4)))


def all_pages(room: Room) -> list[dict[str, Any]]:
    pages, after = [], ""
    while True:
        answer = counts(room.guard.registry, after)
        assert len(encode({"ok": True, **answer})) <= LINE_LIMIT
        pages.append(decode(encode(answer)))
        if answer["next"] is None:
            return pages
        assert answer["next"] > after
        after = answer["next"]


def test_each_is_counted_once_over_as_many_answers_as_it_takes(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "TURN_S", 60.0)
    names = sorted(f"a-{n:04x}" for n in range(230))
    take_in(room, names)
    pages = all_pages(room)
    assert [len(p["counts"]) for p in pages] == [100, 100, 30]
    found = {name: count for page in pages for name, count in page["counts"].items()}
    assert list(found) == names and [found[n] for n in names] == [n % 4 for n in range(230)]
    assert found == {name: room.launches.procs(name)["count"] for name in names}


def test_nobody_is_one_empty_answer(room: Room) -> None:
    assert counts(room.guard.registry, "") == {"counts": {}, "best_effort": {}, "next": None}


def test_long_names_and_hostile_doubts_fit_into_a_line_and_lose_nobody(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "TURN_S", 60.0)
    names = sorted(f"{'n' * 59}{n:04d}" for n in range(120))
    take_in(room, names)
    for name in names[:40]:
        room.guard.registry.held[name].doubt = '"\U0001f600\n' * 2000
    held = room.guard.registry.held[names[50]]
    held.entry = replace(held.entry, loose="not all of it could be moved")
    pages = all_pages(room)
    assert [name for page in pages for name in page["counts"]] == names
    doubts = {name: why for page in pages for name, why in page["best_effort"].items()}
    assert sorted(doubts) == sorted([*names[:40], names[50]]) and doubts[names[50]] == "not all of it could be moved"
    assert all(doubts[name].startswith('"\U0001f600') for name in names[:40])


def test_an_answer_that_takes_its_time_is_cut_short_and_goes_on(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "TURN_S", -1.0)
    take_in(room, ["a", "b", "c"])
    assert [list(p["counts"]) for p in all_pages(room)] == [["a"], ["b"], ["c"]]


def test_it_is_the_supervisors_alone(room: Room) -> None:
    assert "counts" in room.desk.supervisor_ops and "counts" not in room.desk.ops
