"""What programs write, read within bounds whatever they write, and charged once over a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.domain.conversation import Program
from console.domain.spend import Answer
from console.services.conversation.output_reader import MOST_EVENTS, Batch, Follower, Following
from tests.fakes.instance import until

ID = AgentId("a-1")
MIB = 1 << 20


class Rates:
    """A dollar for a thousand tokens of output; ``odd`` has no price."""

    version = "test"

    def price(self, answer: Answer) -> int | None:
        return None if answer.model == "odd" else answer.tokens.output * 10**6


def following(path: Path, most: int = 256 * MIB) -> Following:
    rates: Any = Rates()
    return Following(ID, Program.CLAUDE_CODE, path, most, rates)


def answer(name: str, output: int = 10, model: str = "m") -> bytes:
    message = {"id": name, "model": model, "usage": {"output_tokens": output}, "content": [{"type": "text", "text": name}]}
    return json.dumps({"type": "assistant", "message": message}).encode() + b"\n"


def texts(batch: Batch) -> list[str]:
    return [str(e.get("text", "")) for e in batch.events if e["kind"] != "usage"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_whole_lines_are_told_once_with_their_offset_and_what_they_cost(out: Path) -> None:
    one = following(out)
    assert one.look().is_empty()
    out.write_bytes(answer("a") + answer("b")[:20])
    batch = one.look()
    assert (texts(batch), batch.answers, batch.tokens, batch.usd) == (["a"], 1, 10, 0.01)
    assert {e["offset"] for e in batch.events} == {len(answer("a"))}
    with out.open("ab") as file:
        file.write(answer("b")[20:] + answer("a"))
    batch = one.look()
    assert (texts(batch), batch.answers, batch.usd) == (["b", "a"], 1, 0.01)
    with out.open("ab") as file:
        file.write(b"last words without an end")
    assert texts(one.look(last=True)) == ["last words without an end"]


def test_a_line_of_100_mb_is_passed_over_in_bounded_pieces_and_what_follows_is_heard(out: Path) -> None:
    one = following(out)
    with out.open("wb") as file:
        for _ in range(100):
            file.write(b'{"type": "' + b"x" * MIB)
        file.write(b"\n" + answer("a"))
    heard: list[Batch] = []
    for _ in range(110):
        began = one._lines.offset
        heard.append(one.look())
        assert one._lines.offset - began <= MIB
    assert [t for b in heard for t in texts(b)] == ["1 lines were too long to be read", "a"]


def test_more_events_than_can_be_told_are_counted_and_their_usage_counts(out: Path) -> None:
    out.write_bytes(b"".join(answer(f"n{n}", 1) for n in range(3 * MOST_EVENTS)))
    one, told, used = following(out), 0, 0
    for _ in range(5):
        batch = one.look()
        assert len(batch.events) <= MOST_EVENTS + 1
        told, used = told + len(batch.events), used + batch.answers
    assert used == 3 * MOST_EVENTS and told < 3 * MOST_EVENTS


def test_failed_calls_are_counted_since_the_last_that_did_not_fail(out: Path) -> None:
    def result(failed: bool) -> bytes:
        block = {"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": failed}
        return json.dumps({"type": "user", "message": {"content": [block]}}).encode() + b"\n"

    out.write_bytes(answer("a"))
    one = following(out)
    assert one.look().errors is None
    with out.open("ab") as file:
        file.write(result(True) + result(False) + result(True) + result(True))
    batch = one.look()
    assert (batch.errors, batch.recovered) == (2, True)


def test_at_its_bound_it_is_deaf_and_a_model_without_a_price_makes_it_blind_once(out: Path) -> None:
    out.write_bytes(answer("a", model="odd"))
    one = following(out, most=len(answer("a", model="odd")) + 5)
    batch = one.look()
    assert "no price is known for odd" in batch.blind and not batch.deaf
    assert [e["cost_usd"] for e in batch.events if e["kind"] == "usage"] == [None]
    with out.open("ab") as file:
        file.write(answer("b", model="odd"))
    batch = one.look()
    assert batch.deaf and "not heard any more" in batch.blind
    assert one.look().blind == ""


def test_after_a_restart_nothing_is_told_twice_nothing_is_answered_twice_and_what_was_missed_is_charged(out: Path) -> None:
    ask = json.dumps({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool"}}).encode() + b"\n"
    before = answer("a", 10) + ask
    out.write_bytes(before + answer("a", 30) + answer("b", 5))
    one = following(out)
    one.silent_until, one.charged = len(before), (10, 0.01, 1)
    batch = one.look()
    assert texts(batch) == ["a", "b"] and batch.reply == []
    assert (batch.tokens, batch.answers, round(batch.usd, 9)) == (25, 1, 0.025)
    assert one.look().is_empty()
    with out.open("ab") as file:
        file.write(answer("c", 1))
    assert one.look().tokens == 1


def test_the_thread_follows_tells_in_order_and_ends(out: Path) -> None:
    heard: list[Batch] = []
    follower = Follower(heard.append)
    follower._rates = Rates()  # type: ignore[assignment]
    one = following(out)
    follower.add(one)
    out.write_bytes(answer("a"))
    until(lambda: heard)
    assert texts(heard[0]) == ["a"] and follower.of(ID) is one
    with out.open("ab") as file:
        file.write(answer("b"))
    last = follower.finish(ID)
    assert last is not None and [t for b in (*heard[1:], last) for t in texts(b)] == ["b"]
    assert follower.finish(ID) is None and follower.of(ID) is None
    follower.stop()
    assert follower._thread is not None and not follower._thread.is_alive()


def test_one_that_cannot_be_read_is_blind_and_takes_nobody_along(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Batch] = []
    follower = Follower(heard.append)
    follower._rates = Rates()  # type: ignore[assignment]
    broken = Following(AgentId("b-1"), Program.CLAUDE_CODE, tmp_path / "broken", 256 * MIB)

    def hear(_line: bytes) -> Any:
        raise OverflowError("a mistake")

    monkeypatch.setattr(broken.stream, "hear", hear)
    broken.path.write_bytes(answer("x"))
    follower.add(broken)
    until(lambda: any(batch.agent_id == "b-1" for batch in heard))
    out.write_bytes(answer("a"))
    follower.add(following(out))
    until(lambda: any(batch.agent_id == ID and batch.usd for batch in heard))
    follower.stop()
    (batch,) = [batch for batch in heard if batch.agent_id == "b-1" and batch.blind]
    assert batch.deaf and "cannot be read (OverflowError)" in batch.blind and "cannot be read" in texts(batch)[-1]
