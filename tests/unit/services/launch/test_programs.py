"""Items become launches: judged as a whole before anything starts, refused with figures, never with an option out of a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console.api.agents.programs import ProgramItem, ProgramsBody
from console.domain.agent import AgentId, LaunchRequest
from console.domain.conversation import started_as
from console.domain.errors import Conflict, ConsoleError, Denied, Unavailable, UsageProblem
from console.egress.answers import Availability
from console.services.launch import programs
from console.services.launch.programs import Programs, memory_free_mib
from console.services.policy.dangerous_operations import DangerDesk
from console.sources.codex.stream import TRUSTED
from tests.fakes.patched import patch
from tests.fakes.program_stage import ID, Stage


def desk(stage: Stage) -> tuple[Programs, list[LaunchRequest]]:
    dangers = DangerDesk(stage.parts.places, stage.parts.scribe, stage.parts.notice)
    asked: list[LaunchRequest] = []

    async def ask_launch(request: LaunchRequest, by: str) -> AgentId:
        asked.append(request)
        if request.name == "broken":
            raise ConsoleError("The sandbox could not be built.", "doctor")
        stage.agent()
        return ID

    patch(stage.core, ask_launch=ask_launch)
    return Programs(
        stage.outlooks(), stage.parts.sandboxes, lambda: Availability(True, "a test"), dangers, stage.talk(), lambda _agent: ("", "a note")
    ), asked


def item(agent: Any = "claude-code", prompt: str = "do it", **more: Any) -> ProgramItem:
    return ProgramItem(agent=agent, prompt=prompt, **more)


async def test_a_prompt_is_one_word_and_the_programs_own_options_are_ours(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    one, _ = desk(stage)
    plan = await one.plan(item(prompt="--help; $(id)", model="m-1", env={"DISABLE_TELEMETRY": "0"}))
    started = started_as(plan.request.argv)
    assert started is not None and started.prompt == "--help; $(id)" and started.talks
    assert started.words[-2:] == ("--model", "m-1") and "stream-json" in started.words and "--help; $(id)" not in started.words
    assert dict(plan.request.env) == {"DISABLE_TELEMETRY": "0"} and plan.request.agent_type == "claude-code"
    once = started_as((await one.plan(item(once=True))).request.argv)
    assert once is not None and not once.talks and "--input-format" not in once.words


async def test_codex_is_told_of_another_model_api_where_its_types_environment_has_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://x/v1")
    one, _ = desk(Stage(tmp_path, environment={"codex": {}}))
    assert not [w for w in (await one.plan(item("codex"))).request.argv if "base_url" in w]
    one, _ = desk(Stage(tmp_path, **{"programs.models": {"codex": "gpt"}}))
    argv = (await one.plan(item("codex"))).request.argv
    assert [w for w in argv if "base_url" in w] and "model=gpt" in argv and "sandbox_mode=danger-full-access" in argv


@pytest.mark.parametrize(
    ("fields", "kind"),
    [({"model": "--x"}, UsageProblem), ({"limits": {"money": 1}}, UsageProblem), ({"limits": {"cost": float("nan")}}, UsageProblem)],
)
async def test_what_is_wrong_with_an_item_is_found_before_anything_starts(tmp_path: Path, fields: Any, kind: type[ConsoleError]) -> None:
    stage = Stage(tmp_path)
    one, asked = desk(stage)
    with pytest.raises(kind, match="Item 2"):
        await one.start(ProgramsBody(items=[item(), item(**fields)]), "operator:0")
    assert asked == []
    seen = await one.preview(ProgramsBody(items=[item(), item(**fields)]))
    assert not seen.items[0].why_not and seen.items[1].why_not and seen.items[1].exit_code == 2 and asked == []


async def test_one_that_breaks_at_its_start_is_told_and_the_others_run(tmp_path: Path) -> None:
    one, asked = desk(Stage(tmp_path))
    told = await one.start(ProgramsBody(items=[item(name="broken"), item()]), "operator:0")
    assert [bool(x.error) for x in told.items] == [True, False] and told.items[1].id == ID and told.items[1].notes == ["a note"]
    assert len(asked) == 2


async def test_a_program_whose_calls_of_servers_cannot_be_judged_is_not_started_with_a_list_of_them(tmp_path: Path) -> None:
    servers = {"docs": ["https://docs.example/mcp"]}
    one, asked = desk(Stage(tmp_path, **{"programs.mcp": {"gemini": servers, "codex": servers}}))
    with pytest.raises(UsageProblem, match="gemini gets no MCP servers, because Gemini CLI's question"):
        await one.start(ProgramsBody(items=[item("gemini")]), "operator:0")
    assert asked == []
    await one.plan(item("codex"))


async def test_short_memory_refuses_with_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, **{"programs.memory_free_min_mib": 300})
    one, asked = desk(stage)
    monkeypatch.setattr(programs, "memory_free_mib", lambda: 500)
    assert (await one.preview(ProgramsBody(items=[item()]))).items[0].why_not == ""
    with pytest.raises(Conflict, match=r"500 MiB are free, and 600 MiB are wanted for each of 2 at once|500 MiB.*300"):
        await one.start(ProgramsBody(items=[item(), item()]), "operator:0")
    assert asked == []
    monkeypatch.setattr(programs, "memory_free_mib", lambda: None)  # the kernel does not say: nothing to compare with
    await one.plan(item())


def test_memory_is_what_the_kernel_says(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    file.write_text("MemTotal: 9 kB\nMemAvailable:    2048000 kB\n")
    assert memory_free_mib(file) == 2000
    file.write_text("MemAvailable: x\n")
    assert memory_free_mib(file) is None and memory_free_mib(tmp_path / "none") is None
    assert (memory_free_mib() or 0) > 0


async def test_nobody_talks_into_gvisor_but_asks_once(tmp_path: Path) -> None:
    one, _ = desk(Stage(tmp_path))
    with pytest.raises(Unavailable, match="in gvisor is not available, because"):
        await one.plan(item(sandbox="gvisor"))
    assert (await one.plan(item(sandbox="gvisor", once=True))).request.sandbox == "gvisor"


async def test_refusals_of_the_host_and_of_the_session_come_beforehand(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    one, asked = desk(stage)

    stage.ports.refuses = Denied("The disk is full.", "")
    with pytest.raises(Denied, match="disk is full"):
        await one.start(ProgramsBody(items=[item()]), "operator:0")
    stage.program.unlink()
    with pytest.raises(Unavailable, match="not available, because"):
        await one.start(ProgramsBody(items=[item()]), "operator:0")
    assert asked == []
    view = one.view()
    assert all("not available, because" in p.why_not for p in view.programs) and {t.sandbox for t in view.templates} >= {
        "none",
        "bubblewrap",
    }


@pytest.mark.parametrize("hooks", [True, False])
async def test_codex_gets_the_option_that_trusts_our_hook_only_where_it_has_one(tmp_path: Path, *, hooks: bool) -> None:
    one, _ = desk(Stage(tmp_path, **{"programs.hooks": hooks}))
    talks, once = (await one.plan(item("codex"))).request.argv, (await one.plan(item("codex", once=True))).request.argv
    assert "app-server" in talks and not set(TRUSTED) & set(talks)
    assert "exec" in once and bool(set(TRUSTED) & set(once)) == hooks
    assert all(("features.hooks=true" in argv) == hooks for argv in (talks, once))
