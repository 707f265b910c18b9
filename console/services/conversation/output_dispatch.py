"""Pass on what started programs wrote: to listeners, to the agent's recent events, to its budget, and back to it as an answer.

A listener of ``Hearing`` gets the whole feed: it is called on the loop's thread as ``on_event(agent_id, event)``. The events are those of
``sources/activity/program_stream``, with these keys:

* ``at``: seconds since the epoch.
* ``offset``: of the line behind the event, in the agent's output.
* ``n``: the event's place in its line.

After a crash of the supervisor the last two seconds may be passed on twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from console.domain.agent import Agent, AgentId
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.enforcement.charging import limits_at, nodes_of
from console.services.conversation.output_reader import Batch
from console.services.fleet.core import Core, now
from console.services.fleet.spent import tell_spend
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.sources.activity.program_stream import Event

NOTED = 40
"""Events of one look that go into the agent's list of recent events."""
_NOTE_TEXT = 500
Listener = Callable[[AgentId, Event], None]
Freeze = Callable[[AgentId, str], Awaitable[None]]
Answer = Callable[[AgentId, list[dict[str, Any]]], None]


class Hearing:
    """On the loop's thread, but for ``from_thread``."""

    __slots__ = ("waiting", "_frozen_for", "unmeasured", "_core", "_scribe", "_notice", "_answer", "_stop", "_listeners")

    def __init__(self, core: Core, scribe: Scribe, notice: Notice, answer: Answer, freeze: Freeze, listeners: Sequence[Listener]) -> None:
        """``answer`` writes to a program what its own lines asked for; ``freeze`` stops one whose spend cannot be seen."""
        self._core, self._scribe, self._notice = core, scribe, notice
        self._answer, self._stop, self._listeners = answer, freeze, tuple(listeners)
        self.waiting: dict[str, asyncio.Future[bool]] = {}
        """Requests of ours that a program is to confirm."""
        self._frozen_for: set[tuple[AgentId, bool]] = set()
        self.unmeasured: set[AgentId] = set()
        """Agents whose own limit on cost an operator accepted though it may not be measured; after a restart they are frozen again."""

    def from_thread(self, batch: Batch) -> None:
        """The same as ``heard``, from any thread."""
        loop = self._core.loop
        if loop is not None and not loop.is_closed():
            with suppress(RuntimeError):  # closed in this very moment
                loop.call_soon_threadsafe(self.heard, batch)

    def heard(self, batch: Batch) -> None:
        """Tells, charges, answers."""
        agent_id = batch.agent_id
        agent = self._core.state.agents.get(agent_id)
        if agent is None:
            return
        # First: no mistake of whoever is told may keep a cap from being reached.
        self._charge(batch)
        if batch.blind:
            self._blind(agent, batch)
        for event in batch.events:
            if event["kind"] == "control" and (future := self.waiting.get(event["id"])) is not None and not future.done():
                future.set_result(event["ok"])
            self._listen(agent_id, event)
        for event in batch.events[-NOTED:]:
            self._note(agent_id, event)
        if batch.reply:
            self._answer(agent_id, batch.reply)
        if batch.offset:
            self._scribe.job(lambda: self._scribe.ledger.kv_set(kept_key(agent_id), str(batch.offset)))

    def _blind(self, agent: Agent, batch: Batch) -> None:
        """Once for each: a model without a price, and nothing being heard any more, which a person who thawed it could not know."""
        cause = (agent.agent_id, batch.deaf)
        if cause in self._frozen_for or not self._matters(agent, batch):
            return
        self._frozen_for.add(cause)
        self._notice(f"{agent.agent_id} is being frozen: {batch.blind}", "red")
        asyncio.get_running_loop().create_task(self._freeze(agent.agent_id, batch.blind))

    def _charge(self, batch: Batch) -> None:
        post, agent_id = self._core.post, batch.agent_id
        if batch.recovered and batch.errors:
            post(e.UsageReported(*now(), agent_id))
        if batch.tokens or batch.usd or batch.answers or batch.tool_calls or batch.action or batch.errors is not None:
            used = {"iterations": batch.answers, "tokens": batch.tokens, "tool_calls": batch.tool_calls, "errors": batch.errors}
            post(e.UsageReported(*now(), agent_id, cost_usd=batch.usd, action=batch.action, **used))  # type: ignore[arg-type]
        tell_spend(self._core, self._scribe, agent_id, now()[0], batch.usd, batch.tokens)

    def tell(self, agent_id: AgentId, event: Event) -> None:
        """An event of ours: what an operator said."""
        event = event | {"at": time.time()}  # no place in its output: one that all share would make every message the same one
        self._listen(agent_id, event)
        self._note(agent_id, event)

    def forget(self, agent_id: AgentId) -> None:
        """It has ended."""
        self.unmeasured.discard(agent_id)
        self._frozen_for -= {(agent_id, True), (agent_id, False)}

    def _matters(self, agent: Agent, batch: Batch) -> bool:
        """Whether it matters that its spend cannot be seen: without a price, only where a cap on money counts it, its own or another's."""
        state, accepted = self._core.state, agent.agent_id in self.unmeasured
        own = {("agent", agent.agent_id), ("tree", agent.agent_id)} if accepted else set()
        return batch.deaf or any(limits_at(state, node).cost_usd is not None for node in nodes_of(state, agent) if node not in own)

    async def _freeze(self, agent_id: AgentId, why: str) -> None:
        try:
            await self._stop(agent_id, why)
        except ConsoleError as error:
            self._notice(f"{agent_id} could not be frozen ({why}): {error.what}", "red")

    def _listen(self, agent_id: AgentId, event: Event) -> None:
        for listener in self._listeners:
            listener(agent_id, event)

    def _note(self, agent_id: AgentId, event: Event) -> None:
        """One line among the agent's recent events."""
        if words := in_words(event):
            self._scribe.event(agent_id, event["at"], event["kind"], words[:_NOTE_TEXT])


def in_words(event: Event) -> str:
    """One line for a person; empty: nothing to read."""
    match event["kind"]:
        case "message":
            return f"{event['role']}: {event['text']}"
        case "tool_call":
            return f"{event['tool']} {event['arguments']}"
        case "tool_result":
            return f"{'failed' if event['error'] else 'done'}: {event['text']}"
        case "turn":
            return f"turn {'over' if event['ok'] else 'broken off'}: {event['text']}"
        case "subagent":
            return f"sub-agent {event['what']}: {event['text']}"
        case "session":
            return f"{event['program']} {event['version']}, model {event['model']}"
        case "asked":
            return f"asked for {event['what']}, and was refused: {event['text']}"
        case "output" | "trouble":
            return str(event["text"])
        case _:
            return ""


def kept_key(agent_id: AgentId) -> str:
    """Where the ledger keeps how far an agent's output was told."""
    return f"talk.{agent_id}"
