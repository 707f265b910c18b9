"""The client that agents copy: standard library alone, every outcome a dict or Refused."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.integrations import client
from console.integrations.client import Agent, Refused
from tests.fakes.agent_socket import AgentSocket


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentSocket]:
    with AgentSocket(tmp_path / "a.sock") as running:
        yield running


@pytest.fixture
def agent(server: AgentSocket) -> Agent:
    return Agent(str(server.path))


def test_every_verb_is_one_route(agent: Agent, server: AgentSocket) -> None:
    assert agent.spawn(["python3", "x.py"], name="n", limits={"cost_usd": 1.0})["id"] == "child-1"
    agent.usage(iterations=1, cost_usd=0.5, action="a")
    assert agent.permission("write_file", "a.txt")["verdict"] == "allow"
    agent.private_data("patients", "SECRET", "import")
    assert agent.notices(after=3)["next"] == 7
    assert agent.me()["id"] == "me-1"
    assert server.asked == [
        ("POST", "/v1/spawn", {"argv": ["python3", "x.py"], "name": "n", "limits": {"cost_usd": 1.0}}),
        ("POST", "/v1/usage", {"iterations": 1, "cost_usd": 0.5, "action": "a"}),
        ("POST", "/v1/permission", {"tool": "write_file", "argument": "a.txt"}),
        ("POST", "/v1/private-data", {"dataset": "patients", "sensitivity": "SECRET", "source": "import"}),
        ("GET", "/v1/notices?after=3", None),
        ("GET", "/v1/self", None),
    ]


def test_an_empty_report_is_a_report(agent: Agent, server: AgentSocket) -> None:
    agent.usage()
    assert server.asked == [("POST", "/v1/usage", {})]


def test_a_refusal_carries_status_and_words(agent: Agent, server: AgentSocket) -> None:
    server.answers["/v1/spawn"] = (403, {"error": "Depth 4 is over the limit of 3.", "remedy": "Work higher up."})
    with pytest.raises(Refused, match=r"403: Depth 4 is over the limit of 3\. Work higher up\.") as caught:
        agent.spawn(["x"])
    assert caught.value.status == 403


@pytest.mark.parametrize("text", [b"not json", b"\xff"])
def test_an_answer_that_cannot_be_read_is_no_answer(agent: Agent, server: AgentSocket, text: bytes) -> None:
    server.answers["/v1/self"] = (200, text)
    with pytest.raises(Refused) as caught:
        agent.me()
    assert caught.value.status == 0


def test_without_a_supervisor_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no supervisor at"):
        Agent(str(tmp_path / "none.sock")).usage(iterations=1)


def test_it_stands_alone_without_site_packages_and_project(server: AgentSocket, tmp_path: Path) -> None:
    copied = shutil.copy(client.__file__, tmp_path / "client.py")
    told = subprocess.run(
        [sys.executable, "-I", "-S", copied],
        env={**os.environ, "WATCHFLOOR_AGENT_SOCKET": str(server.path)},
        cwd="/",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(told.stdout) == {"id": "me-1"}


def test_it_imports_the_standard_library_alone() -> None:
    tree = ast.parse(Path(client.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
