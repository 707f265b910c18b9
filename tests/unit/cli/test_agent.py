"""One agent's environment for people: names and origins, secrets marked, hostile words escaped."""

from __future__ import annotations

import pytest

from console.api.environment import EnvironmentView, VariableView
from console.api.messages import AgentDetailView, AgentView
from console.cli.agents.agent import environment_lines, show
from console.domain.conversation import Program, command_line


def shown(seen: AgentDetailView, capsys: pytest.CaptureFixture[str]) -> str:
    show(seen, "FULL", "managed", "$1.50; 1.5/1 $")
    return capsys.readouterr().out


def test_why_it_stopped_what_it_used_and_what_is_not_possible_now_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    agent = AgentView(
        id="a-1",
        name="big",
        state="halted",
        state_reason="agent limit cost_usd: 1.5 of 1",
        metered="after the fact",
        overshoot=0.5003,
        overshoot_limit="cost_usd",
        pid=12,
        ended_at=1.0,
        unlinked="its parent \x1b[31mis not here",
    )
    said = shown(
        AgentDetailView(agent=agent, argv=["sleep", "9"], can={"freeze": "it has ended", "kill": "it has ended", "say": ""}), capsys
    )
    assert "halted: cost $1.50 of $1.00 (agent limit); managed" in said and "metered after the fact; passed its cost_usd by 0.5003" in said
    assert "not now: freeze, kill: it has ended" in said and "say" not in said and "process" not in said
    assert "not linked to a parent: its parent \\e[31mis not here" in said and "command: sleep 9" in said
    frozen = shown(AgentDetailView(agent=AgentView(id="a-1", state="frozen", causes=["operator"], pid=12)), capsys)
    assert "frozen (operator); managed" in frozen and "process 12" in frozen


def test_a_started_program_is_shown_by_its_prompt_and_words_and_not_by_the_shell_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [*command_line(Program.CODEX, "tidy \x1b[2Jup", "/usr/bin/codex", ("exec", "--json"), talks=False)]
    said = shown(AgentDetailView(agent=AgentView(id="a-1"), argv=argv), capsys)
    assert "program: codex, --once\nprompt: tidy \\e[2Jup\ncommand: /usr/bin/codex exec --json\n" in said and "CODEX_HOME" not in said


def test_names_are_grouped_by_where_they_come_from_and_secrets_are_marked() -> None:
    view = EnvironmentView(
        agent_type="bot",
        variables=[
            VariableView(name="PATH", origin="default"),
            VariableView(name="BOT_KEY", origin="type", secret=True),
            VariableView(name="AGENT_AUTH_TOKEN", origin="watchfloor", secret=True),
        ],
        left_out=["ABSENT is not in the supervisor's \x1b[31menvironment"],
    )
    assert environment_lines(view) == [
        "environment of type bot, by name:",
        "  every agent's: PATH",
        "  its type's: BOT_KEY (SECRET)",
        "  Watchfloor's own: AGENT_AUTH_TOKEN (SECRET)",
        "  left out: ABSENT is not in the supervisor's \\e[31menvironment",
    ]


def test_what_is_not_known_is_said() -> None:
    assert environment_lines(None) == ["environment: not known"]


def test_however_many_there_are_the_line_ends() -> None:
    many = [VariableView(name=f"V{n}", origin="launch") for n in range(150)]
    assert environment_lines(EnvironmentView(variables=many))[1].endswith("V99 and 50 more")
