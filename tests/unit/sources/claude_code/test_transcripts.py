"""Transcripts as the real program wrote them, and as nobody should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.domain.spend import Answer, Tokens
from console.sources.claude_code.transcripts import answers
from console.sources.reading import Reading, at_of

REAL = Path(__file__).parents[3] / "data" / "claude-code" / "projects-tree" / "-home-dev-proj"
USAGE: dict[str, Any] = {"input_tokens": 1, "output_tokens": 2}


def line(**more: Any) -> bytes:
    message = {"id": "m1", "model": "claude-sonnet-4-5", "usage": USAGE} | more.pop("message", {})
    return (
        json.dumps({"type": "assistant", "timestamp": "2026-11-21T20:28:05Z", "sessionId": "s1", "message": message} | more).encode()
        + b"\n"
    )


def read(data: bytes) -> tuple[list[Answer], Reading]:
    seen = Reading()
    return list(answers(data, "by-name", "", seen)), seen


def test_the_real_program_repeats_an_answer_for_each_block() -> None:
    main, seen = read(next(REAL.glob("*.jsonl")).read_bytes())
    assert (len(main), len({a.answer_id for a in main}), seen.odd) == (6, 5, 0)
    assert main[0].tokens == Tokens(12, 4096, 2048, 0, 77) and main[0].project == "/home/dev/proj"
    sub, _ = read(next(REAL.glob("*/subagents/*.jsonl")).read_bytes())
    assert {a.agent for a in sub} == {"a66a62f654c274416"} and {a.session for a in sub} == {main[0].session}


def test_an_id_that_a_gateway_repeats_hides_no_answer() -> None:
    with_requests = line(requestId="r1") + line(requestId="r1") + line(requestId="r2")
    assert len({a.answer_id for a in read(with_requests)[0]}) == 2
    without = line() + line(message={"usage": USAGE | {"output_tokens": 9}}) + line(message={"usage": USAGE | {"input_tokens": 5}})
    assert len({a.answer_id for a in read(without)[0]}) == 2, "blocks of one answer repeat its input"
    assert len({a.answer_id for a in read(line(requestId=7) + line(requestId=None))[0]}) == 1


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,", " : ")])
def test_spaces_between_the_words_change_nothing(separators: tuple[str, str]) -> None:
    spaced = json.dumps(json.loads(line()), separators=separators).encode()
    assert [a.tokens for a in read(spaced)[0]] == [Tokens(1, output=2)]


def test_cache_writes_of_an_hour_are_told_from_those_of_five_minutes() -> None:
    both = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70}
    for stated in (100, 0):  # older versions state the sum alone, or leave it out
        usage = {"input_tokens": 1, "cache_creation_input_tokens": stated, "cache_creation": both}
        assert read(line(message={"usage": usage}))[0][0].tokens == Tokens(1, 0, 30, 70)
    old = {"input_tokens": 1, "cache_creation_input_tokens": 100}
    assert read(line(message={"usage": old}))[0][0].tokens == Tokens(1, 0, 100, 0)


def test_what_is_no_answer_is_passed_over() -> None:
    data = line(type="user") + line(message={"model": "<synthetic>"}) + b'{"type":"assistant","toolUseResult":{"usage":{}}}\n'
    data += json.dumps({"type": "user", "message": {"content": line().decode()}}).encode() + b"\n"  # a transcript within a transcript
    found, seen = read(data)
    assert found == [] and seen.odd == 0


def test_fields_of_other_types_are_left_out_and_unknown_ones_ignored() -> None:
    found, seen = read(line(cwd=7, agentId=None, timestamp={"x": 1}, sessionId=["s"], brandNew=[1]))
    assert (found[0].project, found[0].agent, found[0].at, found[0].session, seen.odd) == ("", "", 0.0, "by-name", 0)


@pytest.mark.parametrize("count", [-5, 1.5, "12", True, 10**12, 10**400, [], float("nan"), float("inf")])
def test_counts_that_no_model_gives_are_said_and_never_guessed(count: object) -> None:
    found, seen = read(line(message={"usage": {"input_tokens": count, "output_tokens": 1}}) + line())
    assert (len(found), seen.odd) == (1, 1)


def test_broken_and_hostile_lines_cost_nothing_but_themselves() -> None:
    deep = b'{"message":' + b"[" * 100_000 + b'"input_tokens"' + b"]" * 100_000 + b"}\n"
    torn = b'{"output_tokens": \n' + deep + b'"output_tokens"\xff\xfe\n'
    data = torn + line(message={"id": "x" * 300}) + line(message={"id": ""}) + line()
    found, seen = read(data)
    assert (len(found), seen.odd) == (1, 5)
    hostile = read(line(cwd="/a\x1b[31m\n", sessionId="s\u202e\0"))[0][0]
    assert "\x1b" not in hostile.project and "\n" not in hostile.project and "\0" not in hostile.session


def test_invalid_text_in_a_field_loses_the_field_alone() -> None:
    found, seen = read(line(cwd="CWD").replace(b"CWD", b"\xff\xfe"))
    assert len(found) == 1 and seen.odd == 0 and found[0].tokens.output == 2


def test_what_the_program_itself_says_it_cost_is_kept() -> None:
    assert read(line(costUSD=0.25))[0][0].reported_nano == 250_000_000
    assert [read(line(costUSD=bad))[0][0].reported_nano for bad in (-1.0, 1e300, "1", 0)] == [None] * 4


@pytest.mark.parametrize(("text", "at"), [("2026-11-21T20:28:05.833Z", 1795292885.833), ("", 0), ("9999-99", 0), ("0001-01-01", 0)])
def test_times(text: str, at: float) -> None:
    assert at_of(text) == at
