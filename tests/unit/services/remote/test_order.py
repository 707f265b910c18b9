"""A remote order is pressed unless a kill that the latch holds now already answers it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.errors import TimedOut, Unreachable
from console.domain.kill import Receipt
from console.killswitch.store.atomic_file import seal
from console.remotekill.document import Order
from console.remotekill.machine import Latch
from console.services.remote.effects import obey

OLD, NEW = "20260101-000000-aaaaaaaa", "20260102-000000-bbbbbbbb"
ORDER = "7:" + "ab" * 32


class World:
    """A stop desk with receipts of its own, and a guard whose latch holds ``held``."""

    def __init__(self, folder: Path, *held: str, orders: dict[str, str] | None = None, alive: bool = False, own: bool = False) -> None:
        self.folder, self.held = folder, list(held)
        self.orders = orders or {}
        self.turn = asyncio.Lock()
        self.pressed: list[str] = []
        self.answered: list[str] = []
        self.remote: Any = SimpleNamespace(own_documents={"ab" * 32} if own else set())
        self.core: Any = SimpleNamespace(state=SimpleNamespace(live={"a"} if alive else set()))

    def call(self, op: str) -> dict[str, Any]:
        return {"latched": bool(self.held), "kills": self.held, "kills_n": len(self.held)}

    def receipts(self) -> list[Receipt]:
        return [Receipt(k, "i", "all", "r", "b", 2.0 if k == NEW else 1.0, complete=True) for k in (NEW, OLD)]

    async def press(self, ids: None, reason: str, by: str, order: str) -> None:
        self.pressed.append(order)

    async def answer(self, order: str, receipt: Receipt) -> None:
        self.answered.append(receipt.kill_id)

    def obey(self, remembered: bool = False) -> World:
        it: Any = self
        asyncio.run(obey(self.core, it, self.folder, self.remote, it, Latch(Order(ORDER), "why", remembered)))
        return self


@pytest.mark.parametrize("how", ["own", "remembered", "obeyed"])
def test_an_order_that_is_answered_is_not_pressed_again(tmp_path: Path, how: str) -> None:
    world = World(tmp_path, NEW, orders={NEW: ORDER} if how == "obeyed" else {}, own=how == "own").obey(how == "remembered")
    assert world.pressed == world.answered == []


@pytest.mark.parametrize("held", [(), ("latch-unreadable",), ("registry-unreadable",)])
@pytest.mark.parametrize("how", ["own", "remembered", "obeyed"])
def test_without_a_kill_in_the_latch_it_is_pressed_whatever_was_obeyed_before(tmp_path: Path, how: str, held: tuple[str, ...]) -> None:
    world = World(tmp_path, *held, orders={NEW: ORDER, OLD: ORDER} if how == "obeyed" else {}, own=how == "own").obey(how == "remembered")
    assert world.pressed == [ORDER] and world.answered == []


def test_an_order_whose_kill_was_rearmed_is_pressed_though_another_kill_holds(tmp_path: Path) -> None:
    assert World(tmp_path, "20260103-000000-cccccccc", orders={OLD: ORDER}).obey().pressed == [ORDER]


def test_where_nobody_lives_the_kill_that_holds_answers_and_an_older_one_never(tmp_path: Path) -> None:
    assert World(tmp_path, OLD, NEW).obey().answered == [NEW]
    assert World(tmp_path, NEW, alive=True).obey().pressed == [ORDER]
    world = World(tmp_path, OLD).obey()  # the newest receipt is of a kill that no latch holds
    assert (world.pressed, world.answered) == ([ORDER], [])


def test_a_latch_whose_list_cannot_be_read_is_pressed(tmp_path: Path) -> None:
    world = World(tmp_path, NEW)
    world.call = lambda op: {"latched": True, "kills": [NEW], "kills_n": 40}  # type: ignore[method-assign]
    assert world.obey(remembered=True).pressed == [ORDER]
    (tmp_path / "latch.json").write_bytes(seal({"latched": True, "generation": 40, "kills": [NEW, OLD], "why": ""}))
    assert World.obey(world, remembered=True).pressed == [ORDER]  # once


@pytest.mark.parametrize("silence", [TimedOut("no answer"), Unreachable("nobody there")])
def test_a_guard_that_does_not_answer_is_pressed_past(tmp_path: Path, silence: Exception) -> None:
    world = World(tmp_path, NEW, orders={NEW: ORDER})

    def call(op: str) -> dict[str, Any]:
        raise silence

    world.call = call  # type: ignore[method-assign]
    assert world.obey(True).pressed == [ORDER]
