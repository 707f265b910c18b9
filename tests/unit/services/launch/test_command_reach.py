"""Any command's worst case is said as a launch of it would be judged."""

from __future__ import annotations

from pathlib import Path

from console.api.messages import LaunchBody
from console.domain.agent import LaunchRequest
from console.sandbox.interface import Availability
from console.services.launch.command_reach import as_command, preview_command
from tests.fakes.program_stage import Stage


async def test_a_commands_worst_case_is_said_and_nothing_is_started(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    seen = await preview_command(
        stage.outlooks(), stage.parts.sandboxes, LaunchBody(argv=["sh", "-c", "true"], limits={"cost": 2.0}, scopes=["READ_FS"])
    )
    lines = {line.what: line for line in seen.reach}
    assert not seen.why_not and seen.agent == "command" and seen.cost_cap_usd == 2.0 and not stage.core.state.agents
    assert lines["program"].words == "sh -c true" and not lines["program"].amber and lines["files"].amber
    assert "kinds of effects: READ_FS;" in lines["scopes"].words and "2.00 USD" in lines["cost"].words and "secrets" not in lines
    nothing = await preview_command(stage.outlooks(), stage.parts.sandboxes, LaunchBody(argv=["/no/such", "x"], scopes=[]))
    lines = {line.what: line for line in nothing.reach}
    assert lines["program"].amber and "no kind of effect is granted" in lines["scopes"].words
    unknown = await preview_command(stage.outlooks(), stage.parts.sandboxes, LaunchBody(argv=["no-such-program-here"]))
    assert unknown.reach[0].amber and "usual folders" in unknown.reach[0].words
    assert "servers" not in lines
    known = await preview_command(stage.outlooks(), stage.parts.sandboxes, LaunchBody(argv=["gemini", "-p", "x"]))
    (servers,) = [line for line in known.reach if line.what == "servers"]
    assert servers.amber and "programs.mcp holds for run --agent alone" in servers.words


def test_a_known_program_that_is_started_as_a_command_is_said_to_have_no_terminal() -> None:
    told, servers = as_command(LaunchRequest(("claude",)))
    assert told == "it has no terminal and no input; run --agent claude-code -- PROMPT tells it what to do" and servers
    assert as_command(LaunchRequest(("aider",)))[0] == "", "it cannot be started by its name"
    assert as_command(LaunchRequest(("sleep", "9"))) == ("", "")


async def test_a_refusal_is_told_with_its_remedy(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    seen = await preview_command(stage.outlooks(), stage.parts.sandboxes, LaunchBody(argv=["sh"], limits={"money": 1.0}))
    assert "no limit 'money'" in seen.why_not and seen.remedy and seen.exit_code == 2
    box = type("Box", (), {"available": lambda self: Availability(False, "no daemon answers", "start it")})()
    stage.parts.sandboxes = dict.fromkeys(stage.parts.sandboxes, box)
    seen = await preview_command(stage.outlooks(), stage.parts.sandboxes, LaunchBody(argv=["sh"], sandbox="docker"))
    assert "docker is not available, because no daemon answers" in seen.why_not and seen.remedy == "start it"
