"""The gate of a LangGraph graph: an allow alone runs a tool, nobody there is a denial, and an unread argument is no path."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END
from langgraph.types import Send

from console.integrations import langgraph_gate
from console.integrations.client import Agent, Refused
from console.integrations.langgraph_gate import CallDenied, Gate, awatch, fan_out, waiting, watch
from tests.fakes.agent_socket import AgentSocket


@pytest.fixture(autouse=True)
def in_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_gate, "get_config", lambda: {"configurable": {"thread_id": "t", "checkpoint_ns": "tools:1"}})


def call(name: str, args: dict[str, Any]) -> Any:
    return SimpleNamespace(tool_call={"name": name, "args": args, "id": "c1", "type": "tool_call"})


def test_an_allow_runs_the_tool_and_arguments_nobody_translated_are_no_path(tmp_path: Path) -> None:
    with AgentSocket(tmp_path / "s") as door:
        gate = Gate(Agent(str(tmp_path / "s")), says={"run": lambda args: ("shell", args["command"])})
        assert gate.tool_call(call("write_file", {"b": 1, "a": "/etc/x"}), lambda _: "ran") == "ran"
        assert gate.tool_call(call("run", {"command": "ls"}), lambda _: "ran") == "ran"
        first, second = door.bodies("/v1/permission")
    assert (first["tool"], first["argument"], first["wait_s"]) == ("write_file call", '{"a":"/etc/x","b":1}', 0)
    assert (second["tool"], second["argument"], second["detail"]) == ("shell", "ls", '{"command":"ls"}')
    assert len(first["call_id"]) == 64 and first["call_id"] == second["call_id"]  # by thread and the model's own id


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"verdict": "deny", "rule": "r", "reason": "because"}),
        (200, {"verdict": "ask", "rule": "r", "reason": "because"}),
        (200, {"verdict": "ALLOW"}),
        (200, {}),
        (503, {"error": "killed", "remedy": ""}),
        (429, {"error": "too many", "remedy": ""}),
    ],
)
async def test_whatever_is_not_an_allow_is_told_to_the_model_and_runs_nothing(tmp_path: Path, answer: tuple[int, Any]) -> None:
    async def never(_: Any) -> Any:
        raise AssertionError("it ran")

    with AgentSocket(tmp_path / "s") as door:
        door.answers["/v1/permission"] = answer
        gate = Gate(Agent(str(tmp_path / "s")))
        told = gate.tool_call(call("launch", {}), lambda _: pytest.fail("it ran"))
        assert (told.status, told.tool_call_id) == ("error", "c1") and "Watchfloor" in told.content
        assert (await gate.atool_call(call("launch", {}), never)).status == "error"


async def test_notices_are_put_before_the_model_with_what_the_tool_said(tmp_path: Path) -> None:
    def message(content: Any) -> ToolMessage:
        return ToolMessage(content=content, tool_call_id="c1")

    with AgentSocket(tmp_path / "s") as door:
        door.answers["/v1/permission"] = (200, {"verdict": "allow", "rule": "r", "reason": "", "notices": "Network access is now NONE."})
        gate = Gate(Agent(str(tmp_path / "s")))
        assert gate.tool_call(call("launch", {}), lambda _: message("done")).content == "done\n\nNetwork access is now NONE."
        assert (
            gate.tool_call(call("launch", {}), lambda _: message([{"type": "text", "text": "done"}])).content[-1]["text"].endswith("NONE.")
        )
        assert gate.tool_call(call("launch", {}), lambda _: "a command") == "a command"
        door.answers["/v1/permission"] = (200, {"verdict": "allow", "rule": "r", "reason": ""})

        async def runs(_: Any) -> Any:
            return message("later")

        assert (await gate.atool_call(call("launch", {}), runs)).content == "later\n\nNetwork access is now NONE.", "kept for the next"
        assert gate.tool_call(call("launch", {}), lambda _: message("done")).content == "done"
        door.answers["/v1/permission"] = (200, {"verdict": "deny", "rule": "r", "reason": "no", "notices": "You are in dry-run."})
        assert gate.tool_call(call("launch", {}), lambda _: None).content.endswith("no\nYou are in dry-run.")


def test_nobody_there_is_a_denial(tmp_path: Path) -> None:
    with pytest.raises(CallDenied, match="could not be asked"):
        Gate(Agent(str(tmp_path / "nobody")), patience_s=0.3).check("launch")


def test_each_call_is_a_task_of_its_own() -> None:
    calls = [{"type": "tool_call", "name": "a", "args": {}, "id": str(i)} for i in range(2)]
    sent = fan_out({"messages": [AIMessage(content="", tool_calls=calls)]})
    assert isinstance(sent, list) and all(isinstance(one, Send) for one in sent) and [one.arg[0]["id"] for one in sent] == ["0", "1"]
    assert fan_out({"messages": [AIMessage(content="done")]}) == END


def snapshot(*values: Any) -> Any:
    return SimpleNamespace(interrupts=[SimpleNamespace(id=f"i{n}", value=value) for n, value in enumerate(values)])


def test_who_wrote_the_checkpoint_chooses_no_route() -> None:
    hostile = ["x", {"watchfloor": "q-1"}, {"watchfloor": {"approval_id": 7}}, {"watchfloor": {"approval_id": "q-1/../../v1/self"}}, None]
    hostile += [{"watchfloor": {"approval_id": "q-1\n"}}, {"other": {"approval_id": "q-1"}}]
    assert waiting(snapshot(*hostile)) == {}
    assert waiting(snapshot({"watchfloor": {"approval_id": "q-0a"}})) == {"i0": "q-0a"}


class Graph:
    """Waits until it is resumed."""

    def __init__(self) -> None:
        self.resumed: list[Any] = []

    def get_state(self, _config: Any) -> Any:
        return snapshot() if self.resumed else snapshot({"watchfloor": {"approval_id": "q-1"}})

    def invoke(self, command: Any, _config: Any) -> None:
        self.resumed.append(command.resume)

    async def aget_state(self, config: Any) -> Any:
        return self.get_state(config)

    async def ainvoke(self, command: Any, config: Any) -> None:
        self.invoke(command, config)


async def test_it_goes_on_once_it_is_decided_and_when_the_question_is_nobodys_any_more(tmp_path: Path) -> None:
    with AgentSocket(tmp_path / "s") as door:
        agent = Agent(str(tmp_path / "s"))
        for answer in ((200, {"state": "denied"}), (404, {"error": "no such request"})):
            door.answers["/v1/approvals/q-1"] = answer
            graph, other = Graph(), Graph()
            watch(graph, {}, agent)
            await awatch(other, {}, agent)
            assert graph.resumed == other.resumed == [{"i0": "q-1"}]
        door.answers["/v1/approvals/q-1"] = (503, {"error": "killed"})
        with pytest.raises(Refused):
            watch(Graph(), {}, agent)
