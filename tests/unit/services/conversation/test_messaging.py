"""Talking to a started program: recorded first, refused with why, confirmed by the program, and found again after a restart."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import AgentState, SandboxKind
from console.domain.budget import Usage
from console.domain.errors import Denied, NotRecorded, TimedOut, Unavailable, UsageProblem
from console.services.conversation import messaging
from console.services.conversation.messaging import Conversations
from console.services.conversation.output_dispatch import Listener
from tests.fakes.program_stage import ID, Stage


@contextmanager
def talking(stage: Stage, folder: Path, *listeners: Listener, **agent: Any) -> Iterator[Conversations]:
    """A program that was prepared and of which nothing runs."""
    talk = stage.talk(*listeners)
    try:
        talk.prepare(stage.agent(**agent), folder, os.geteuid(), os.getegid())
        yield talk
    finally:
        talk.end(ID)
        talk.close()


def waiting(folder: Path) -> list[dict[str, Any]]:
    """What the program would read."""
    fd = os.open(folder / "talk", os.O_RDONLY | os.O_NONBLOCK)
    try:
        return [json.loads(line) for line in os.read(fd, 1 << 20).splitlines()]
    finally:
        os.close(fd)


async def test_its_prompt_waits_for_it_and_a_message_is_on_record_before_it_is_written(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.listen()
    heard: list[Any] = []
    with talking(stage, tmp_path, lambda _agent, event: heard.append(event)) as talk:
        await talk.say(ID, "and now?", "operator:0")
        prompt, message = waiting(tmp_path)
        assert (prompt["message"]["content"], message["message"]["content"]) == ("the prompt", "and now?")
        (record,) = stage.scribe.records
        assert (record.kind, record.verdict, record.actor) == ("agent.message", "allow", "operator:0") and record.data["characters"] == 8
        assert [(event["role"], event["by"]) for event in heard] == [("operator", "launch"), ("operator", "operator:0")]
        stage.scribe.refuse = NotRecorded("full", "")
        with pytest.raises(NotRecorded):
            await talk.say(ID, "unrecorded", "operator:0")
        assert len(heard) == 2
    assert not (tmp_path / "talk").exists()


@pytest.mark.parametrize("talks", [True, False])
async def test_what_it_was_started_with_is_the_first_message_of_its_feed(tmp_path: Path, talks: bool) -> None:
    stage = Stage(tmp_path)
    heard: list[Any] = []
    talk = stage.talk(lambda agent_id, event: heard.append((agent_id, event["role"], event["text"])))
    try:
        talk.prepare(stage.agent(talks=talks), tmp_path, os.geteuid(), os.getegid())
        assert heard == [(ID, "operator", "the prompt")]
    finally:
        talk.end(ID)
        talk.close()


async def test_who_cannot_be_talked_to_is_refused_with_why_and_that_is_recorded(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.listen()
    with talking(stage, tmp_path, cost=1.0) as talk:
        state = stage.core.state
        stage.agent(cost=1.0, usage=Usage(cost_usd=1.0))
        with pytest.raises(Denied, match="over its budget"):
            await talk.say(ID, "x", "operator:0")
        stage.agent(cost=1.0)
        state.halting.add(ID)
        assert "over its budget" in talk.why_not(ID)
        state.halting.clear()
        state.killing.add(ID)
        with pytest.raises(Denied, match="being killed"):
            await talk.interrupt(ID, "operator:0")
        state.killing.clear()
        state.soft_stop = "the kill file is stale"
        assert "soft stop" in talk.why_not(ID)
        state.soft_stop = ""
        stage.agent(state=AgentState.FROZEN, causes=("operator",))
        with pytest.raises(Denied, match="frozen") as refused:
            await talk.say(ID, "x", "operator:0")
        assert f"watchfloor thaw {ID}" in refused.value.remedy
        stage.agent()
        assert talk.why_not(ID) == ""
        with pytest.raises(UsageProblem):
            await talk.say(ID, " ", "operator:0")
        assert {r.verdict for r in stage.scribe.records} == {"deny"} and len(stage.scribe.records) == 3


async def test_a_stop_that_comes_while_a_message_is_recorded_wins(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.listen()
    with talking(stage, tmp_path) as talk:
        keep = stage.scribe.record_first

        def stopped(record: Any) -> None:
            keep(record)
            stage.core.state.killing.add(ID)

        stage.scribe.record_first = stopped  # type: ignore[method-assign]
        with pytest.raises(Denied, match="being killed"):
            await talk.say(ID, "too late", "operator:0")
        assert [m["message"]["content"] for m in waiting(tmp_path)] == ["the prompt"]


async def test_an_interrupt_is_done_when_the_program_says_so_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path)
    stage.listen()
    with talking(stage, tmp_path) as talk:
        asked = asyncio.create_task(talk.interrupt(ID, "operator:0"))
        while not talk.hearing.waiting:
            await asyncio.sleep(0.01)
        (request_id,) = talk.hearing.waiting
        line = {"type": "control_response", "response": {"subtype": "success", "request_id": request_id}}
        (tmp_path / "output" / f"{ID}.log").write_text(json.dumps(line) + "\n")
        await asyncio.wait_for(asked, 60)
        monkeypatch.setattr(messaging, "CONFIRM_S", 0.05)
        with pytest.raises(TimedOut, match="did not say"):
            await talk.interrupt(ID, "operator:0")
        assert talk.hearing.waiting == {}


async def test_after_a_restart_its_way_in_is_found_or_that_it_is_gone_is_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.listen()
    talk = stage.talk()
    talk.prepare(stage.agent(), tmp_path, os.geteuid(), os.getegid())
    theirs = os.open(tmp_path / "talk", os.O_RDWR)
    talk.close()
    again = stage.talk()
    again.again(stage.core.state.agents[ID], tmp_path)
    await again.say(ID, "still there?", "operator:0")
    assert b"still there?" in os.read(theirs, 1 << 20)
    os.close(theirs)
    again.end(ID)
    third = stage.talk()
    third.again(stage.core.state.agents[ID], tmp_path)
    assert "cannot be opened" in stage.notices[-1]
    with pytest.raises(Denied):
        await third.say(ID, "anybody?", "operator:0")
    for one in (again, third):
        one.close()


async def test_its_last_words_are_charged_before_its_end(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.listen()
    with talking(stage, tmp_path) as talk:
        over = {"type": "result", "result": "All.", "total_cost_usd": 0.5, "is_error": False}
        (tmp_path / "output" / f"{ID}.log").write_text(json.dumps(over))
        await talk.drain(ID)
        assert stage.core.state.agents[ID].usage.cost_usd == 0.5
        await talk.drain(ID)
        assert stage.core.state.agents[ID].usage.cost_usd == 0.5


def test_other_agents_are_left_alone_and_a_program_that_may_not_start_does_not(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    talk = stage.talk()
    program = stage.agent()
    other = replace(program, argv=("sleep", "1"))
    assert talk.output_max(program) == 256 << 20 and talk.output_max(other) == 0
    assert talk.prepare(other, tmp_path, 0, 0) == ()
    stage.program.unlink()
    with pytest.raises(Unavailable):
        talk.prepare(program, tmp_path, os.geteuid(), os.getegid())
    assert not (tmp_path / "talk").exists()


def test_a_sandbox_is_shown_the_program_where_it_would_not_see_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    talk = stage.talk()
    binds = []
    for kind in (SandboxKind.NONE, SandboxKind.BUBBLEWRAP, SandboxKind.DOCKER):
        binds.append(talk.prepare(stage.agent(sandbox=kind, talks=False), tmp_path, os.geteuid(), os.getegid()))
        talk.end(ID)
    talk.close()
    real = stage.program.resolve()
    assert binds == [(), ((real, str(real)),), ((real, "/opt/watchfloor-programs/program"),)]
