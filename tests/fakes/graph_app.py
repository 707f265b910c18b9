"""A LangGraph application as an agent runs it: each step in a process of its own that ends, with only the checkpointer between them.

``python3 graph_app.py PACKAGES POSTGRES`` does what N.json says, in order, and prints ``done N RESULT``, then ``ended N``. The model is a
script.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), sys.argv[1]]

from langchain_core.messages import AIMessage, HumanMessage  # noqa: E402
from langgraph.checkpoint.postgres import PostgresSaver  # noqa: E402
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: E402
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: E402
from langgraph.graph import START, MessagesState, StateGraph  # noqa: E402
from langgraph.prebuilt import ToolNode  # noqa: E402
from langgraph.types import Command  # noqa: E402

from console.integrations.langgraph_gate import Gate, awatch, fan_out, waiting, watch  # noqa: E402

RAN = Path("ran.txt")


def launch(what: str) -> str:
    """Launches it."""
    with RAN.open("a") as file:
        file.write(f"launch {what}\n")
    return f"launched {what}"


def run(command: str) -> str:
    """Runs it; here it only says so."""
    with RAN.open("a") as file:
        file.write(f"run {command}\n")
    return f"ran {command}"


def model(state: MessagesState) -> dict[str, Any]:
    """Asks for the calls of the plan, then ends."""
    last = state["messages"][-1]
    calls = json.loads(str(last.content)) if isinstance(last, HumanMessage) else []
    return {"messages": [AIMessage(content="", tool_calls=[{"type": "tool_call", **call} for call in calls])]}


def built(saver: Any) -> Any:
    gate = Gate(says={"run": lambda args: ("shell", args["command"])}, patience_s=5)
    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([launch, run], wrap_tool_call=gate.tool_call, awrap_tool_call=gate.atool_call))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", fan_out)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def result(snapshot: Any) -> dict[str, Any]:
    said = [[m.tool_call_id, m.status, m.content] for m in snapshot.values.get("messages", []) if m.type == "tool"]
    ran = RAN.read_text().splitlines() if RAN.exists() else []
    return {"waits": [one.value for one in snapshot.interrupts], "said": said, "ran": ran}


def step(graph: Any, what: dict[str, Any], config: Any) -> Any:
    match what["do"]:
        case "start":
            graph.invoke({"messages": [HumanMessage(json.dumps(what["plan"]))]}, config)
        case "forge":
            graph.invoke(Command(resume=dict.fromkeys(waiting(graph.get_state(config)), what["with"])), config)
        case "change":  # whoever can write the checkpoint changes what was asked
            last = graph.get_state(config).values["messages"][-1]
            calls = [{**call, "args": what["args"]} for call in last.tool_calls]
            graph.update_state(config, {"messages": [AIMessage(content="", id=last.id, tool_calls=calls)]}, as_node="model")
            graph.invoke(None, config)
        case "replay":  # from before its tools ran
            old = next(s for s in graph.get_state_history(config) if s.next == ("tools",))
            graph.invoke(None, old.config)
        case "watch":
            return watch(graph, config, every_s=0.1)
    return graph.get_state(config)


async def astep(graph: Any, what: dict[str, Any], config: Any) -> Any:
    if what["do"] == "start":
        await graph.ainvoke({"messages": [HumanMessage(json.dumps(what["plan"]))]}, config)
        return await graph.aget_state(config)
    return await awatch(graph, config, every_s=0.1)


async def awork(what: dict[str, Any], postgres: str, config: Any) -> Any:
    made: Any = AsyncSqliteSaver.from_conn_string("graph.db")
    if what["saver"] == "apostgres":
        made = AsyncPostgresSaver.from_conn_string(postgres)
    async with made as saver:
        await saver.setup()
        return await astep(built(saver), what, config)


def work(what: dict[str, Any], postgres: str) -> dict[str, Any]:
    config = {"configurable": {"thread_id": what["thread"]}}
    if what["saver"].startswith("a"):
        return result(asyncio.run(awork(what, postgres, config)))
    made: Any = SqliteSaver.from_conn_string("graph.db") if what["saver"] == "sqlite" else PostgresSaver.from_conn_string(postgres)
    with made as saver:
        saver.setup()
        return result(step(built(saver), what, config))


def main() -> None:
    """One process for each step: what it had in memory is gone with it."""
    number = 0
    print("ready", flush=True)
    while True:
        file = Path(f"{number}.json")
        if not file.exists():
            time.sleep(0.05)
            continue
        if (child := os.fork()) == 0:
            try:
                said = json.dumps(work(json.loads(file.read_text()), sys.argv[2]))
            except BaseException as error:  # noqa: BLE001 - the test is told of whatever it is
                said = json.dumps({"error": f"{type(error).__name__}: {error}"})
            print("done", number, said, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("ended", number, flush=True)
        number += 1


if __name__ == "__main__":
    main()
