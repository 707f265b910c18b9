"""Fields of a message, and what a line may hold."""

from __future__ import annotations

import json
from typing import Any

from console.domain.guard import LINE_LIMIT
from console.domain.kill import StepName, StepStatus
from console.killswitch.guard.freeze import MOST_HOLDS
from console.killswitch.guard.operations import MOST_AT_ONCE, MOST_READERS, _fit
from console.killswitch.store.journal import read_journal
from tests.fakes.guard_room import Room, fill


def test_a_status_is_cut_to_a_line() -> None:
    answer: dict[str, Any] = {
        "frozen": {f"a{n}": ["operator"] * 8 for n in range(500)},
        "kills": ["k" * 22] * 100,
        "notices": ["n" * 300] * 9,
        "holds": [{"h": "x" * 40}] * 30,
    }
    assert len(json.dumps(_fit(answer))) < LINE_LIMIT


def test_all_pieces_of_a_receipt_are_of_one_text(room: Room) -> None:
    """The receipt goes on changing while it is read: its time runs, a late disk decides a step."""
    kill = room.guard.press("all", "r" * 500, "who")
    words = [f"{n}: " + "x" * 200 for n in range(20)]
    kill.excluded += words
    text, rounds, offset = "", 0, 0
    while True:
        piece = room.ask("receipt", "operator", kill_id=kill.order.kill_id, offset=offset)
        kill.note(StepName.LATCH, StepStatus.FAILED, "y" * (7 * rounds))
        text, rounds = text + piece["text"], rounds + 1
        if piece["next"] is None:
            break
        offset = piece["next"]
    assert rounds > 2 and json.loads(text)["excluded"] == words


def test_receipts_being_read_stay_bounded(room: Room) -> None:
    for _ in range(3 * MOST_READERS):
        room.ask("receipt", "operator", kill_id=room.guard.press(["ghost"], "", "").order.kill_id, offset=0)
    assert len(room.desk._reading) == MOST_READERS


def test_a_storm_of_presses_strikes_every_time_and_starts_no_threads_without_end(room: Room) -> None:
    held = room.agent("one")
    ids = {room.ask("press", "operator", scope="all", by=f"p{n}")["kill_id"] for n in range(MOST_AT_ONCE)}
    threads = len(room.threads)
    assert held.leaf is not None
    fill(held.leaf.path, 1)
    newest = room.ask("press", "operator", scope="all", by="late")["kill_id"]
    assert newest in ids and len(room.threads) == threads and not held.is_populated()
    room.clerk.work()
    (line,) = [line for line in read_journal(room.guard.journal.path) if line.get("joined")]
    assert line["by"] == "late" and line["kill_id"] == newest
    assert room.ask("press", "operator", scope=["ghost"])["kind"] == "Conflict"
    assert room.ask("press", "operator", scope=["one", "ghost"])["ok"]  # whoever is known is killed, storm or not
    room.run_threads()
    assert room.ask("press", "operator", scope=["ghost"])["ok"] and room.ask("press", "operator", scope="all")["kill_id"] not in ids


def test_holds_stay_bounded_and_a_press_needs_none(room: Room) -> None:
    for _ in range(MOST_HOLDS):
        assert room.ask("hold", "operator")["ok"]
    assert room.ask("hold", "operator")["kind"] == "Conflict" and room.ask("press", "operator", scope="all")["ok"]
