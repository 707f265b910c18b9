"""The worst case in words: files, hosts, scopes, data, cost, secrets; wide things are amber."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import ContextId, LaunchRequest, SandboxKind
from console.domain.budget import Limits
from console.domain.conversation import Program, command_line
from console.domain.network import NetworkMode, Sensitivity
from console.sandbox.programs import Found
from console.services.launch.program_reach import Outlook
from tests.fakes.program_stage import Stage


def seen(stage: Stage, **request: Any) -> tuple[Outlook, dict[str, tuple[str, bool]]]:
    found = Found(Program.CODEX, stage.program, request.pop("note", ""))
    given = stage.outlooks().of_program(LaunchRequest(("x",), agent_type="codex", **request), found, "1.2.3", "gpt")
    return given, {line.what: (line.words, line.amber) for line in given.reach}


def test_the_widest_is_amber_in_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("OPENAI_API_KEY", "CODEX_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    given, lines = seen(Stage(tmp_path), note="best effort")
    assert given.mode is NetworkMode.FULL and not given.enforced
    assert f"its workspace (a new one below {tmp_path / 'state' / 'workspaces'})" in lines["files"][0]
    assert {what for what, (_, amber) in lines.items() if amber} == {"program", "files", "hosts", "cost", "secrets"}
    assert "every host" in lines["hosts"][0] and "no limit" in lines["cost"][0] and "it waits for one" in lines["secrets"][0]
    assert "has none of OPENAI_API_KEY, CODEX_API_KEY. Export one, and start the supervisor again" in lines["secrets"][0]


def test_a_program_whose_key_the_supervisor_does_not_have_is_said_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    _, lines = seen(Stage(tmp_path, environment={"codex": {"secrets": ["OPENAI_API_KEY"]}}))
    assert lines["secrets"][1] and "waits for one" in lines["secrets"][0] and "has none of OPENAI_API_KEY" in lines["secrets"][0]


def test_a_sandbox_a_cap_and_a_session_with_data_narrow_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    stage.agent()
    stage.core.state.raise_context(ContextId("c"), Sensitivity.SECRET, NetworkMode.NONE)
    limits = Limits(cost_usd=2.5, wall_s=60)
    given, lines = seen(stage, sandbox=SandboxKind.BUBBLEWRAP, context_id=ContextId("c"), limits=limits)
    assert (given.mode, given.enforced, given.level) == (NetworkMode.NONE, True, Sensitivity.SECRET)
    assert "cannot answer" in lines["hosts"][0] and "its session holds such data" in lines["data"][0]
    assert "shares with 1 agent;" in lines["scopes"][0] and "nothing else" in lines["files"][0]
    assert lines["cost"] == ("2.50 USD at most, and the answers under way when it is reached, 60 s at most", False)
    assert "OPENAI_API_KEY" in lines["secrets"][0]


def test_behind_the_allowlist_its_hosts_are_named_and_an_empty_one_is_said(tmp_path: Path) -> None:
    given, lines = seen(Stage(tmp_path), sandbox=SandboxKind.DOCKER, network_mode=NetworkMode.PROXIED)
    assert (
        given.enforced
        and lines["hosts"][1]
        and "0 allowlist entries, so no host and no model: watchfloor allowlist add" in lines["hosts"][0]
        and "its image" in lines["files"][0]
    )


def test_the_way_to_its_model_is_said_and_not_where_the_data_of_its_session_keeps_it_from_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    argv = command_line(Program.CODEX, "do it", str(stage.program), (), talks=True)

    def hosts(level: Sensitivity) -> tuple[str, bool]:
        asked = LaunchRequest(argv, sandbox=SandboxKind.BUBBLEWRAP, network_mode=NetworkMode.PROXIED, sensitivity=level)
        given = stage.outlooks().of_program(asked, Found(Program.CODEX, stage.program, ""), "0.169.3", "gpt")
        return next((line.words, line.amber) for line in given.reach if line.what == "hosts")

    assert hosts(Sensitivity.INTERNAL) == ("PROXIED: its model at api.openai.com, and 0 allowlist entries", False)
    words, amber = hosts(Sensitivity.CONFIDENTIAL)
    assert amber and "0 allowlist entries, so no host and no model" in words


@pytest.mark.parametrize(
    ("told", "talks", "hooks", "doubt"),
    [
        ("codex-cli 0.169.3", True, True, False),
        ("codex-cli 0.170.0", True, True, True),
        ("codex-cli 10.169.0", True, True, True),
        ("not known", True, True, True),
        ("codex-cli 0.170.0", False, True, False),
        ("codex-cli 0.170.0", True, False, False),
    ],
)
def test_a_codex_that_may_skip_our_hook_says_so_before_it_starts(tmp_path: Path, told: str, talks: bool, hooks: bool, doubt: bool) -> None:
    stage = Stage(tmp_path, **{"programs.hooks": hooks})
    argv = command_line(Program.CODEX, "do it", str(stage.program), ("app-server",), talks=talks)
    given = stage.outlooks().of_program(LaunchRequest(argv, agent_type="codex"), Found(Program.CODEX, stage.program, ""), told, "gpt")
    line = next(line for line in given.reach if line.what == "program")
    assert ("may skip the hook in silence" in line.words) == doubt and line.amber == (doubt or not hooks)


def test_mcp_servers_are_named_where_an_operator_allowed_them(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert "servers" not in seen(Stage(tmp_path / "other"))[1]
    stage = Stage(tmp_path, **{"programs.mcp": {"codex": {"docs": ["https://docs.example/mcp"]}, "claude-code": {"db": ["/opt/db"]}}})
    assert seen(stage)[1]["servers"] == ("MCP servers docs (programs.mcp); each gets what its calls say", True)
