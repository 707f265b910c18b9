"""``watchfloor agent-type list``: what agent types have, and who looks for agents."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.agents.agent_types import SourcesView
from console.api.messages import SourceView
from console.cli.agents import agent_type

OTLP = SourceView(source="otlp", available=True, state="listening", sees=2, reason="Listens on \x1b[31mhttp://127.0.0.1:4318\nevil")


@pytest.mark.parametrize("as_json", [False, True])
def test_who_looks_for_agents_and_how_each_fares_is_shown(as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    client = SimpleNamespace(sources=lambda: SourcesView(folder="/f"), status=lambda: SimpleNamespace(sources=[OTLP]))
    monkeypatch.setattr(agent_type, "connect", lambda _state_dir: nullcontext(client))
    assert agent_type.sources(as_json=as_json) == 0
    said = capsys.readouterr().out
    if as_json:
        told = json.loads(said)
        assert told["schema_version"] and told["discovery"][0]["state"] == "listening" and told["types"] == []
    else:
        assert "otlp: listening, 2 seen. Listens on" in said and "\x1b" not in said and "\nevil" not in said
