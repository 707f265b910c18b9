"""Where what a program wrote goes: to listeners, to its recent events, to its budget; and what freezes it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.domain.budget import Limits
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.enforcement.charging import nodes_of
from console.services.conversation.output_dispatch import NOTED, Answer, Freeze, Hearing, Listener, in_words, kept_key
from console.services.conversation.output_reader import Batch
from console.sources.activity.stream import entries_of_told
from tests.fakes.program_stage import ID, Stage, unasked


def hearing(stage: Stage, *listeners: Listener, freeze: Freeze = unasked) -> tuple[Hearing, list[Any]]:
    answered: list[Any] = []
    it = stage.parts
    answer: Answer = lambda agent_id, reply: answered.append((agent_id, reply))  # noqa: E731
    return Hearing(it.core, it.scribe, it.notice, answer, freeze, listeners), answered


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "message", "role": "assistant", "text": text, "at": 1.0, "offset": 5, "n": 0, **more}


def test_a_batch_is_told_noted_charged_answered_and_kept(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.agent()
    heard: list[Any] = []
    one, answered = hearing(stage, lambda agent_id, event: heard.append((agent_id, event["text"])))
    one.heard(Batch(ID, [said("hi")], answers=1, tokens=7, usd=0.25, tool_calls=2, action="Bash ls", reply=[{"x": 1}], offset=5))
    agent = stage.core.state.agents[ID]
    assert (agent.usage.iterations, agent.usage.tokens, agent.usage.tool_calls, agent.usage.cost_usd) == (1, 7, 2, 0.25)
    assert stage.core.meters.spent_today(time.time()) == 0.25 and stage.scribe.spent == [(ID, 0.25, 7)]
    assert agent.last_action == "Bash ls" and heard == [(ID, "hi")] and answered == [(ID, [{"x": 1}])]
    assert stage.scribe.events == [("message", "assistant: hi")] and stage.scribe.kept == {kept_key(ID): "5"}
    one.heard(Batch(AgentId("nobody"), [said("x")]))
    assert len(heard) == 1


def test_two_messages_of_an_operator_are_two_in_the_feed(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.agent()
    heard: list[Any] = []
    one, _ = hearing(stage, lambda _agent, event: heard.append(event))
    for text in ("go", "on"):
        one.tell(ID, {"kind": "message", "role": "operator", "text": text, "parent": "", "by": "operator:0"})
    names = [entry.source_id for event in heard for entry in entries_of_told(event)]
    assert len(set(names)) == len(names) == 2


def test_a_flood_reaches_listeners_whole_and_recent_events_in_part(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.agent()
    heard: list[Any] = []
    one, _ = hearing(stage, lambda _agent, event: heard.append(event))
    one.heard(Batch(ID, [said(f"{n}" * 2000) for n in range(500)]))
    assert len(heard) == 500 and len(stage.scribe.events) == NOTED and all(len(text) <= 500 for _, text in stage.scribe.events)


async def test_what_cannot_be_seen_freezes_where_it_matters_and_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    frozen: list[str] = []

    async def freeze(_agent_id: AgentId, why: str) -> None:
        frozen.append(why)
        if len(frozen) == 2:
            raise ConsoleError("the guard is away", "")

    one, _ = hearing(stage, freeze=freeze)
    stage.agent()
    one.heard(Batch(ID, blind="no price"))
    await asyncio.sleep(0)
    assert frozen == []  # no cap on money: it is said in its events, and goes on
    stage.agent(cost=1.0)
    one.heard(Batch(ID, blind="no price"))
    one.heard(Batch(ID, blind="no price"))
    await asyncio.sleep(0)
    assert frozen == ["no price"] and "is being frozen: no price" in stage.notices[0]
    one.heard(Batch(ID, blind="too much", deaf=True))  # whoever thawed it then could not know of this
    await asyncio.sleep(0)
    assert frozen == ["no price", "too much"] and "could not be frozen" in stage.notices[-1]
    one.heard(Batch(ID, blind="too much", deaf=True))
    await asyncio.sleep(0)
    assert len(frozen) == 2
    one.forget(ID)
    stage.agent()
    one.heard(Batch(ID, blind="no price"))
    await asyncio.sleep(0)
    assert len(frozen) == 2


@pytest.mark.parametrize("scope", ["session", "project", "day"])
async def test_a_cap_on_money_that_others_share_is_one_too(tmp_path: Path, scope: str) -> None:
    stage = Stage(tmp_path)
    agent = stage.agent()
    state, frozen = stage.core.state, list[str]()
    state.budget.day = replace(state.budget.day, date="2026-01-01")
    node = next(one for one in nodes_of(state, agent) if one[0] == scope)
    state.budget.limits[(node[0], "" if scope == "day" else node[1])] = Limits(cost_usd=5.0)

    async def freeze(_agent_id: AgentId, why: str) -> None:
        frozen.append(why)

    one, _ = hearing(stage, freeze=freeze)
    one.heard(Batch(ID, blind="no price"))
    await asyncio.sleep(0)
    assert frozen == ["no price"]


async def test_what_it_used_is_charged_whatever_becomes_of_the_telling(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.agent()

    def breaks(_agent_id: AgentId, _event: Any) -> None:
        raise KeyError("a mistake")

    one, _ = hearing(stage, breaks)
    with pytest.raises(KeyError):
        one.heard(Batch(ID, [said("hi")], usd=0.25))
    assert stage.core.state.agents[ID].usage.cost_usd == 0.25


async def test_a_confirmation_reaches_who_waits_for_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.agent()
    stage.listen()
    one, _ = hearing(stage)
    waits = one.waiting["r"] = asyncio.get_running_loop().create_future()
    control = {"kind": "control", "id": "r", "ok": False, "text": "", "at": 1.0, "offset": 1, "n": 0}
    one.from_thread(Batch(ID, [control, control]))
    assert await asyncio.wait_for(waits, 20) is False


def test_failed_calls_in_a_row_add_up_and_a_usage_says_nothing_of_them(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.agent()
    one, _ = hearing(stage)
    for batch in (Batch(ID, errors=2), Batch(ID, tokens=5), Batch(ID, errors=1)):
        one.heard(batch)
    assert stage.core.state.agents[ID].usage.consecutive_errors == 3
    one.heard(Batch(ID, errors=1, recovered=True))
    assert stage.core.state.agents[ID].usage.consecutive_errors == 1
    one.heard(Batch(ID, errors=0, recovered=True))
    assert stage.core.state.agents[ID].usage.consecutive_errors == 0


def test_every_kind_has_words_or_none() -> None:
    events: list[dict[str, Any]] = [
        {"kind": "tool_call", "tool": "Bash", "arguments": "ls"},
        {"kind": "tool_result", "text": "x", "error": True},
        {"kind": "turn", "ok": False, "text": "why"},
        {"kind": "subagent", "what": "started", "text": "count"},
        {"kind": "session", "program": "codex", "version": "1", "model": "m"},
        {"kind": "asked", "what": "can_use_tool", "text": "t"},
        {"kind": "trouble", "text": "t"},
        {"kind": "usage", "tokens": 1},
    ]
    words = [in_words(one) for one in events]
    assert words[0] == "Bash ls" and words[1] == "failed: x" and words[2] == "turn broken off: why" and words[-1] == ""
    assert all(words[:-1]) and isinstance(e.UsageReported, type)
