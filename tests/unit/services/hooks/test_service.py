"""Whose a hook's call is: by the kernel's word on who asks, never by what it says."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any

import pytest

from console.domain.agent import AgentId, ProcessIdentity
from console.domain.calls.permission import Decision, Verdict
from console.domain.conversation import Program, command_line
from console.domain.engine import command as c
from console.domain.ids import ControlLevel
from console.enforcement.engine import Engine
from console.enforcement.state import EngineState, Seen
from console.killswitch.kernel import processes
from console.services.fleet.core import Core
from console.services.hooks import service
from console.services.hooks.calls import read_call
from console.services.hooks.service import HookDesk
from tests.fakes.core_ports import NoServices
from tests.fakes.playbook import Playbook

ME = ProcessIdentity(os.getpid(), processes.start_ticks(os.getpid()) or 0)
BASE = {"session_id": "s-1", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}


def call(**more: Any) -> Any:
    return read_call("claude-code", {**BASE, **more})


async def stays() -> bool:
    return False


@pytest.fixture
def state() -> EngineState:
    """A session that is only seen, with a sub-agent; and an agent of ours that names the same session."""
    book = Playbook().run("seen").run("part").run("own").run("inside")
    for name, seen, process, level in (
        ("seen", Seen(session="s-1"), ME, ControlLevel.OBSERVED),
        ("part", Seen(session="s-1", part="sub-1"), None, ControlLevel.OBSERVED),
        ("own", Seen(session="s-1"), ME, ControlLevel.MANAGED),
        ("inside", Seen(session="s-1", part="sub-1", inside=AgentId("own")), None, ControlLevel.OBSERVED),
    ):
        book.state.put(replace(book.agent(name), process=process, control_level=level))
        book.state.seen[AgentId(name)] = seen
    book.state.put(replace(book.agent("part"), parent_id=AgentId("seen")))
    return book.state


@pytest.fixture
def desk(state: EngineState, monkeypatch: pytest.MonkeyPatch) -> HookDesk:
    monkeypatch.setattr(service, "SIGHTED_S", 0.3)
    return HookDesk(Core(Engine(state), NoServices()))


async def test_the_process_that_asks_must_descend_from_the_sessions_own(desk: HookDesk, state: EngineState) -> None:
    assert await desk.of_seen(call(), os.getpid()) == (AgentId("seen"), "")
    nobody, why = await desk.of_seen(call(), 1)
    assert nobody is None and "no running session s-1" in why
    state.put(replace(state.agents[AgentId("seen")], process=ProcessIdentity(ME.pid, ME.start_ticks + 1)))
    assert (await desk.of_seen(call(), os.getpid()))[0] is None  # the pid was given to somebody else since
    state.put(replace(state.agents[AgentId("seen")], process=None))
    assert (await desk.of_seen(call(), os.getpid()))[0] is None


async def test_a_session_nobody_has_seen_yet_is_waited_for(desk: HookDesk, state: EngineState) -> None:
    seen = state.seen.pop(AgentId("seen"))
    task = asyncio.create_task(desk.of_seen(call(), os.getpid()))
    await asyncio.sleep(0)
    state.seen[AgentId("seen")] = seen
    assert await task == (AgentId("seen"), "")
    assert (await desk.of_seen(call(session_id="other"), os.getpid()))[0] is None


async def test_a_sub_agent_is_found_below_its_session_and_an_unknown_one_is_the_sessions(desk: HookDesk) -> None:
    assert (await desk.of_seen(call(agent_id="sub-1"), os.getpid()))[0] == "part"
    assert (await desk.of_seen(call(agent_id="sub-9"), os.getpid()))[0] == "seen"


async def test_a_sub_agent_of_codex_is_a_thread_of_its_own_below_its_session(desk: HookDesk, state: EngineState) -> None:
    state.seen[AgentId("part")] = Seen(session="thread-2")
    assert (await desk.of_seen(call(agent_id="thread-2"), os.getpid()))[0] == "part"
    state.put(replace(state.agents[AgentId("part")], parent_id=None))  # a thread of somebody else's
    assert (await desk.of_seen(call(agent_id="thread-2"), os.getpid()))[0] == "seen"


async def test_by_its_own_socket_an_agent_is_itself_whatever_it_says(desk: HookDesk) -> None:
    assert await desk.of_own(AgentId("own"), call()) == "own"
    assert await desk.of_own(AgentId("own"), call(agent_id="sub-1")) == "inside"
    assert await desk.of_own(AgentId("other"), call(agent_id="sub-1")) == "other"


async def test_nobody_is_allowed_anything_and_other_events_ask_nothing(desk: HookDesk) -> None:
    denied = await desk.ask(call(), None, stays, "it is nobody's")
    assert (denied.verdict, denied.reason) == ("deny", "it is nobody's")
    assert (await desk.ask(call(hook_event_name="Stop"), None, stays)).verdict == "allow"


async def test_nobody_makes_somebody_elses_session_look_enforced(desk: HookDesk) -> None:
    await desk.ask(call(), None, stays, "it is nobody's")  # any process of this account can name any session
    await desk.ask(call(hook_event_name="Stop"), None, stays)
    assert desk.view().programs == [] and desk.view().sessions == {}
    asked = asyncio.create_task(desk.ask(call(), AgentId("own"), stays))
    await asyncio.sleep(0)
    assert [(p.program, p.calls) for p in desk.view().programs] == [("claude-code", 1)] and list(desk.view().sessions) == ["s-1"]
    asked.cancel()


async def test_the_engines_word_is_the_answer_and_whoever_hangs_up_is_not_waited_for(
    state: EngineState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HUNG_UP_S", 0.01)
    seen: list[c.Command] = []
    core = Core(Engine(state), NoServices(seen.append))
    desk = HookDesk(core)
    asked = asyncio.create_task(desk.ask(call(), AgentId("own"), stays))
    while not core.answers:
        await asyncio.sleep(0)
    (request_id,) = core.answers
    assert core.asked[request_id].request.argument == "ls" and core.asked[request_id].agent_id == "own"
    core.settle_answer(request_id, Decision(Verdict.ALLOW, "shell(ls:*)", "allowed by rule"))
    assert (await asked).verdict == "allow"

    async def gone() -> bool:
        return True

    assert desk.words_of(AgentId("own")).startswith("enforced: 1 ")
    assert (await desk.ask(call(), AgentId("own"), gone)).rule == "asker"
    # A program whose hook's shell is killed goes on: that it may have is said, and counted.
    assert desk.view().agents["own"].broken_off == 1 and desk.words_of(AgentId("own")).startswith("not surely enforced: the hook of 1 ")


def test_a_known_program_that_was_started_as_a_command_is_shown_with_servers_that_no_list_holds(desk: HookDesk, state: EngineState) -> None:
    def words(source: str, name: str = "own") -> str:
        state.seen[AgentId(name)] = replace(state.seen[AgentId(name)], sources=(source, "processes"))
        return desk.words_of(AgentId(name))

    assert words("qwen").startswith("not checked: ") and words("qwen").endswith("Watchfloor cannot restrict them")
    assert words("claude_code").endswith("; run --agent claude-code restricts them")
    assert words("docker") == "" and words("gemini", "seen") == "", "nothing is promised of what Watchfloor did not start"
    argv = command_line(Program.CODEX, "p", "/usr/bin/codex", (), talks=True)
    state.put(replace(state.agents[AgentId("own")], argv=argv))
    assert "programs.mcp" not in words("codex"), "it gets the servers of its list and no others"


def test_what_is_remembered_of_sessions_is_bounded(desk: HookDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SESSIONS_MAX", 3)
    for number in range(9):
        desk._note(call(session_id=f"s-{number}"), AgentId(f"a-{number}"))
    assert list(desk.view().sessions) == ["s-6", "s-7", "s-8"]
    assert list(desk.view().agents) == ["a-6", "a-7", "a-8"]
