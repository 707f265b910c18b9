"""An agent's environment on the wire: names and where each comes from. No value is ever in it."""

from __future__ import annotations

from typing import Literal

from console.api.message import View


class VariableView(View, kw_only=True):
    """One variable. ``secret``: it is one, or reads as one."""

    name: str
    origin: Literal["default", "type", "launch", "watchfloor"]
    secret: bool = False


class EnvironmentView(View, kw_only=True):
    """What an agent was started with."""

    agent_type: str = ""
    """Empty: none; it has what every agent has."""
    variables: list[VariableView] = []
    left_out: list[str] = []
    """What its type names and was not passed, with why."""
