"""Rollouts as the real program wrote them, as older versions did, and as nobody should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from console.domain.spend import Answer, Tokens
from console.sources.codex.transcripts import Thread, answers
from console.sources.reading import Reading

REAL = (Path(__file__).parents[3] / "data" / "codex" / "rollout.jsonl").read_bytes()
BORN = "2026-11-21T20:33:00Z"


def line(kind: str, at: str = "2026-11-21T20:33:04Z", **payload: Any) -> bytes:
    return json.dumps({"timestamp": at, "type": kind, "payload": payload}).encode() + b"\n"


def step(total: int, last: int, at: str = "2026-11-21T20:33:05Z") -> bytes:
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": {"input_tokens": last, "output_tokens": 1}}
    return line("event_msg", at, type="token_count", info=info)


def read(data: bytes, state: Thread | None = None) -> tuple[list[Answer], Reading]:
    seen = Reading()
    return list(answers(data, state or Thread(), seen)), seen


def test_the_real_program_names_each_answer() -> None:
    found, seen = read(REAL)
    assert [(a.answer_id, a.tokens, a.model) for a in found] == [
        (f"resp_fake{n} 904 4096 0", Tokens(904, 4096, 0, 0, 120), "gpt-5.1-codex") for n in (1, 2)
    ]
    assert {a.agent for a in found} == {""} and seen.odd == 0


def test_reading_on_later_gives_what_reading_at_once_gives() -> None:
    lines = REAL.splitlines(keepends=True)
    whole = read(REAL)[0]
    for cut in range(len(lines)):
        first = Thread()
        before = read(b"".join(lines[:cut]), first)[0]
        kept = Thread(**json.loads(json.dumps(first.kept())))
        assert before + read(b"".join(lines[cut:]), kept)[0] == whole


def test_older_versions_write_running_totals_whose_steps_count_once() -> None:
    data = line("session_meta", id="t1", timestamp=BORN) + line("turn_context", model="gpt-5") + step(10, 9) + step(10, 9) + step(25, 14)
    data += line("event_msg", type="token_count", info=None)
    found, seen = read(data)
    assert [(a.answer_id, a.tokens.plain) for a in found] == [("t1:10", 9), ("t1:25", 14)] and seen.odd == 0


def test_a_sub_agents_copy_of_its_parents_lines_is_not_counted_again() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "t0"}}}
    meta = line("session_meta", id="t1", session_id="t0", timestamp=BORN, source=source)
    before = "2026-11-21T20:00:00Z"
    copied = line("turn_context", before, model="gpt-5") + step(100, 99, before)
    copied += line("token_usage_record", before, thread_id="t0", response_id="r0", usage={"input_tokens": 5})
    own = (
        line("turn_context", model="gpt-5")
        + step(130, 29)
        + line("token_usage_record", thread_id="t1", response_id="r1", usage={"input_tokens": 7})
    )
    found, _ = read(meta + copied + own)
    assert [(a.answer_id, a.session, a.agent) for a in found] == [("t1:130", "t0", "t1"), ("r1 7 0 0", "t0", "t1")]


def test_an_id_that_a_gateway_repeats_hides_no_answer() -> None:
    data = b"".join(line("token_usage_record", thread_id="", response_id="same", usage={"input_tokens": n}) for n in (5, 9, 9))
    assert len({a.answer_id for a in read(data)[0]}) == 2


def test_broken_lines_and_counts_cost_nothing_but_themselves() -> None:
    record: dict[str, Any] = {"thread_id": "", "response_id": "r"}
    bad = [{"input_tokens": -1}, {"input_tokens": "9"}, {"input_tokens": 1, "cached_input_tokens": 5}, {"input_tokens": 10**20}, None]
    data = b'"token_count"\n{"payload": 1, "type": "turn_context"}\n' + b"".join(line("token_usage_record", **record, usage=u) for u in bad)
    data += line("token_usage_record", thread_id="", response_id="", usage={}) + line(
        "token_usage_record", **record, usage={"output_tokens": 3}
    )
    found, seen = read(data)
    assert [a.tokens.output for a in found] == [3] and seen.odd == 8
