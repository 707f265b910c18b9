"""Put LangGraph under Watchfloor: each tool call is checked first. A call that needs a person becomes an ``interrupt()``.

The process may end meanwhile. It runs in an agent, with ``client.py`` beside it. A resume value is never read: after it the supervisor is
asked again, with exactly the call that would be made now. An approval is used once, by this agent, for exactly that call.

Agents have this folder on their path, so a module called langgraph would hide the real one.

    gate = Gate()

    graph.add_node("tools", ToolNode(tools, wrap_tool_call=gate.tool_call, awrap_tool_call=gate.atool_call))
    graph.add_conditional_edges("model", fan_out)      # one task a call: a resume repeats no other one
    watch(graph.compile(checkpointer=...), config)     # in any process of the agent, until nothing waits
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.graph import END
from langgraph.types import Command, Send, interrupt

if __package__:
    from console.integrations.client import Agent, Refused
else:  # copied, or found by $WATCHFLOOR_TOYS
    from client import Agent, Refused  # type: ignore[import-not-found, no-redef]

MARK = "watchfloor"
AGAIN_S = 0.2
_APPROVAL = re.compile(r"q-[0-9a-f]{1,32}\Z")

Says = Callable[[Mapping[str, Any]], tuple[str, str]]
"""From a call's arguments: the tool and the argument that Watchfloor judges."""


class CallDenied(Exception):
    """The call does not happen; the words, with the rule, are for the model."""


class Gate:
    """Asks before each call. ``says`` names the calls that are commands, paths or addresses, for example
    ``{"run": lambda args: ("shell", args["command"])}``; all others are judged by their own name and canonical arguments."""

    def __init__(self, agent: Agent | None = None, says: Mapping[str, Says] | None = None, patience_s: float = 30.0) -> None:
        """``patience_s``: how long a supervisor that is not there is waited for; after that the call is denied."""
        self._agent, self._says, self._patience_s = agent or Agent(), says or {}, patience_s
        self._unread = ""

    def check(self, tool: str, argument: str = "", *, call_id: str = "", **more: str) -> str:
        """Returns when the call is allowed, once. Raises CallDenied; interrupts the graph while a human is asked. One check a task.

        What is returned are notices that the agent should read: put them into its context, as ``tool_call`` does.
        """
        body = _body(tool, argument, call_id, more)
        while not isinstance(waits := self._ask(body), str):
            interrupt(waits)  # whatever it is resumed with is not read
        return waits

    async def acheck(self, tool: str, argument: str = "", *, call_id: str = "", **more: str) -> str:
        """The same in an asynchronous node."""
        body = _body(tool, argument, call_id, more)
        while not isinstance(waits := await asyncio.to_thread(self._ask, body), str):
            interrupt(waits)
        return waits

    def tool_call(self, request: Any, execute: Callable[[Any], Any]) -> Any:
        """For ``ToolNode(wrap_tool_call=...)``: a denied call becomes a tool message for the model."""
        try:
            notices = self.check(**self._said(request.tool_call))
        except CallDenied as error:
            return _denied(request.tool_call, error)
        return self._with(execute(request), notices)

    async def atool_call(self, request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        """For ``ToolNode(awrap_tool_call=...)``."""
        try:
            notices = await self.acheck(**self._said(request.tool_call))
        except CallDenied as error:
            return _denied(request.tool_call, error)
        return self._with(await execute(request), notices)

    def _with(self, result: Any, notices: str) -> Any:
        """A tool's message with notices behind it, so that the model reads both; another result leaves them to the next message."""
        notices, self._unread = "\n".join(one for one in (self._unread, notices) if one), ""
        if not notices:
            return result
        if not isinstance(result, ToolMessage):
            self._unread = notices
            return result
        content: Any = f"{result.content}\n\n{notices}"
        if not isinstance(result.content, str):
            content = [*result.content, {"type": "text", "text": notices}]
        return result.model_copy(update={"content": content})

    def _said(self, call: Mapping[str, Any]) -> dict[str, Any]:
        name, detail = str(call["name"]), json.dumps(call["args"], sort_keys=True, separators=(",", ":"), default=str)
        # Arguments nobody translated must not be taken for the path or the command of a tool of Watchfloor's that has the same name.
        tool, argument = self._says[name](call["args"]) if name in self._says else (f"{name} call"[:100], detail)
        return {"tool": tool, "argument": argument, "detail": detail, "call_id": str(call.get("id") or "")}

    def _ask(self, body: Mapping[str, Any]) -> dict[str, Any] | str:
        """Notices for the agent, mostly none: allowed. Otherwise what is waited for. Raises CallDenied."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                answer = self._agent.call("POST", "/v1/permission", {**body, "wait_s": 0})
                break
            except Refused as error:
                if error.status or time.monotonic() > until:
                    raise CallDenied(f"Watchfloor could not be asked: {error}") from None
                time.sleep(AGAIN_S)
        notices = str(answer.get("notices") or "")
        if answer.get("verdict") == "allow":
            return notices
        if answer.get("verdict") == "ask" and answer.get("approval_id"):
            shown = ("approval_id", "digest", "rule", "reason")
            return {MARK: {name: answer.get(name) for name in shown} | {"tool": body["tool"], "argument": body["argument"]}}
        raise CallDenied(f"Watchfloor: {answer.get('rule', '')}: {answer.get('reason', '')}" + (f"\n{notices}" if notices else ""))


def fan_out(state: Mapping[str, Any]) -> list[Send] | str:
    """A conditional edge from the model: each of its calls becomes a task of node ``tools``; none: the end."""
    calls = getattr(state["messages"][-1], "tool_calls", None) or []
    return [Send("tools", [call]) for call in calls] or END


def waiting(snapshot: Any) -> dict[str, str]:
    """The interrupts of ours in a graph's state, and the approval that each names (anybody who can write the checkpoint may have)."""
    found = {}
    for one in snapshot.interrupts:
        asked = one.value.get(MARK) if isinstance(one.value, dict) else None
        name = asked.get("approval_id") if isinstance(asked, dict) else None
        if isinstance(name, str) and _APPROVAL.match(name):
            found[one.id] = name
    return found


def watch(graph: Any, config: Any, agent: Agent | None = None, every_s: float = 0.5) -> Any:
    """Resume a graph after each decision, until nothing of ours waits. Returns the last state. Raises Refused when it is killed."""
    asked = agent or Agent()
    while waits := waiting(snapshot := graph.get_state(config)):
        if ready := _ready(waits, asked):
            graph.invoke(Command(resume=ready), config)
        else:
            time.sleep(every_s)
    return snapshot


async def awatch(graph: Any, config: Any, agent: Agent | None = None, every_s: float = 0.5) -> Any:
    """The same for an asynchronous checkpointer."""
    asked = agent or Agent()
    while waits := waiting(snapshot := await graph.aget_state(config)):
        if ready := await asyncio.to_thread(_ready, waits, asked):
            await graph.ainvoke(Command(resume=ready), config)
        else:
            await asyncio.sleep(every_s)
    return snapshot


def _ready(waits: Mapping[str, str], agent: Agent) -> dict[str, str]:
    """Return the interrupts that wait no more: decided, over, or never this agent's. Asking the supervisor again tells which."""
    ready = {}
    for interrupt_id, name in waits.items():
        try:
            over = agent.asked(name)["state"] != "waiting"
        except Refused as error:
            if error.status not in (0, 404, 429):
                raise
            over = error.status == 404  # of an agent that ended: it is asked anew
        if over:
            ready[interrupt_id] = name
    return ready


def _body(tool: str, argument: str, call_id: str, more: Mapping[str, str]) -> dict[str, Any]:
    """The name of the call is the same each time its task runs again, and another for each task and thread."""
    own = get_config().get("configurable", {})
    task = "" if call_id else own.get("checkpoint_ns", "")
    text = json.dumps([own.get("thread_id", ""), task, call_id], default=str)
    return {"tool": tool, "argument": argument, "call_id": hashlib.sha256(text.encode()).hexdigest(), **more}


def _denied(call: Mapping[str, Any], error: CallDenied) -> ToolMessage:
    return ToolMessage(content=str(error), name=str(call["name"]), tool_call_id=str(call.get("id") or ""), status="error")
