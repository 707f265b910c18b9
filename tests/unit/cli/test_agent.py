"""One agent's environment for people: names and origins, secrets marked, hostile words escaped."""

from __future__ import annotations

from console.api.environment import EnvironmentView, VariableView
from console.cli.agent import environment_lines


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
