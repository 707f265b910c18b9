"""Started programs while they run: what they write is followed, told and charged; what operators say is recorded, then written to them.

``Conversations.listeners`` is the seam for whoever keeps the whole feed: each is called on the loop's thread as ``on_event(agent_id,
event)`` with the events of ``console.sources.program_stream``, and ``at`` (seconds since the epoch), ``offset`` (of the line behind it in
the agent's output) and ``n`` (its place in the line): after a crash of the supervisor the last two seconds may be told twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from console.domain import event as e
from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.budget import first_breach
from console.domain.command import Record
from console.domain.conversation import checked_text, started_as, why_silent
from console.domain.errors import ConsoleError, Denied, TimedOut
from console.sources.program_stream import Event, encoded
from console.supervisor.core import now
from console.supervisor.listening import Batch, Follower, Following
from console.supervisor.parts import Parts
from console.supervisor.program_files import find_program
from console.supervisor.talk_channel import Channel

CONFIRM_S = 10.0
"""How long an interrupt waits for the program's own word."""
NOTED = 40
"""Events of one look that go into the agent's list of recent events."""
_NOTE_TEXT = 500
Listener = Callable[[AgentId, Event], None]
Freeze = Callable[[AgentId, str], Awaitable[None]]


async def _no_freeze(_agent_id: AgentId, _why: str) -> None:
    """Until compose says how."""


class Conversations:
    """Every started program of this supervisor; on the loop's thread, but for the following."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.listeners: list[Listener] = []
        self.freeze: Freeze = _no_freeze
        self._channels: dict[AgentId, Channel] = {}
        self._follower = Follower(self._from_thread)
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._frozen_for: set[AgentId] = set()

    # --- a program's life

    def prepare(self, agent: Agent, folder: Path, uid: int, gid: int) -> tuple[tuple[Path, str], ...]:
        """Before it starts: the way in, with its first words in it; gives what its sandbox must show of the program.

        Raises Unavailable when the program may not be started (any more), OSError.
        """
        started = started_as(agent.argv)
        if started is None:
            return ()
        found = find_program(self._parts, started.program, uid, gid, named=started.path)
        following = Following(agent.agent_id, started.program, self._output(agent.agent_id), self.output_max(agent))
        if started.talks:
            channel = self._channels[agent.agent_id] = Channel(folder)
            channel.make(uid, gid)
            channel.write(encoded(following.stream.begin(started.prompt)))
        self._follower.add(following)
        boxed = agent.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR)
        return () if agent.sandbox is SandboxKind.NONE else (found.bind(boxed),)

    def output_max(self, agent: Agent) -> int:
        """Bytes of output that are kept of it; 0: as of any agent."""
        return self._parts.options.programs.output_max_mib << 20 if started_as(agent.argv) is not None else 0

    def again(self, agent: Agent, folder: Path) -> None:
        """After a restart of the supervisor: what it wrote before is read again in silence, what it used since is charged."""
        started = started_as(agent.argv)
        if started is None:
            return
        kept = self._parts.scribe.ledger.kv_get(_key(agent.agent_id)) or "0"
        following = Following(agent.agent_id, started.program, self._output(agent.agent_id), self.output_max(agent))
        following.silent_until = int(kept) if kept.isascii() and kept.isdigit() and len(kept) < 16 else 0
        following.charged = (agent.usage.tokens, agent.usage.cost_usd, agent.usage.iterations)
        if started.talks:
            channel = self._channels[agent.agent_id] = Channel(folder)
            try:
                channel.open()
            except OSError as error:
                self._parts.notice(f"nobody can talk to {agent.agent_id} any more: its input cannot be opened: {error.strerror}")
        self._follower.add(following)

    async def drain(self, agent_id: AgentId) -> None:
        """Its first process is gone: what it wrote last is told and charged before its end is."""
        batch = await asyncio.to_thread(self._follower.finish, agent_id)
        if batch is not None:
            self._heard(batch)

    def end(self, agent_id: AgentId) -> None:
        """Lets go of an agent that has ended."""
        self._follower.drop(agent_id)
        self._frozen_for.discard(agent_id)
        channel = self._channels.pop(agent_id, None)
        if channel is not None:
            channel.close(remove=True)
            self._parts.scribe.job(lambda: self._parts.scribe.ledger.kv_set(_key(agent_id), "0"))

    def close(self) -> None:
        """The supervisor ends, the programs go on."""
        self._follower.stop()
        for channel in self._channels.values():
            channel.close()

    # --- talking

    def why_not(self, agent_id: AgentId) -> str:
        """Why nobody can talk to it now, or nothing."""
        state = self._parts.core.state
        agent = state.agents[agent_id]
        root = state.agents.get(agent.root_id, agent)
        tree = state.tree_usage.get(agent.root_id, agent.usage)
        over = agent_id in state.halting or first_breach(agent.usage, agent.limits, "agent") or first_breach(tree, root.tree_limits, "tree")
        if state.soft_stop and agent.state.is_live:
            return f"soft stop: {state.soft_stop[:200]}"
        return why_silent(agent, stopping=agent_id in state.killing, over_budget=bool(over))

    async def say(self, agent_id: AgentId, text: str, by: str) -> None:
        """Tells it something: on record first. Raises Denied with why not, Conflict, NotRecorded, UsageProblem."""
        text = checked_text(text)
        self._check(agent_id, "message", by)
        digest = hashlib.sha256(text.encode()).hexdigest()
        data = {"characters": len(text), "sha256": digest}
        record = Record(by, "agent.message", f"to {agent_id}: {text[:300]}", verdict="allow", agent_id=agent_id, data=data)
        await asyncio.to_thread(self._parts.scribe.record_first, record)
        channel = self._check(agent_id, "message", by)  # a stop may have come while it was recorded
        channel.write(encoded(self._following(agent_id).stream.message(text)))
        self._tell(
            agent_id, {"kind": "message", "role": "operator", "text": text, "parent": "", "by": by, "at": time.time(), "offset": 0, "n": 0}
        )

    async def interrupt(self, agent_id: AgentId, by: str) -> None:
        """Ends its present turn, and waits for its word on that. Raises Denied, Conflict, TimedOut when it says nothing."""
        self._check(agent_id, "interrupt", by)
        record = Record(by, "agent.interrupt", f"the turn of {agent_id}", verdict="allow", agent_id=agent_id)
        await asyncio.to_thread(self._parts.scribe.record_first, record)
        channel = self._check(agent_id, "interrupt", by)
        request_id = f"wf-{secrets.token_hex(6)}"
        future = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        try:
            channel.write(encoded(self._following(agent_id).stream.interrupt(request_id)))
            async with asyncio.timeout(CONFIRM_S):
                confirmed = await future
        except TimeoutError as error:
            raise TimedOut(f"{agent_id} did not say that its turn ended.", "watchfloor freeze stops it for certain.") from error
        finally:
            self._waiting.pop(request_id, None)
        if not confirmed:
            raise Denied(f"{agent_id} refused the interrupt.", "There may be no turn under way; watchfloor freeze stops it for certain.")

    def _check(self, agent_id: AgentId, what: str, by: str) -> Channel:
        why = self.why_not(agent_id)
        channel = self._channels.get(agent_id)
        if not why and (channel is None or self._follower.of(agent_id) is None):
            why = "the channel to it is gone"
        if why or channel is None:
            self._parts.scribe.record(Record(by, f"agent.{what}", f"to {agent_id}: refused: {why}", verdict="deny", agent_id=agent_id))
            raise Denied(f"{agent_id} gets no {what}: {why}.", "watchfloor fleet shows its state.")
        return channel

    def _following(self, agent_id: AgentId) -> Following:
        found = self._follower.of(agent_id)
        assert found is not None  # _check has seen it, and nothing was awaited since
        return found

    # --- listening

    def _from_thread(self, batch: Batch) -> None:
        loop = self._parts.core.loop
        if loop is not None and not loop.is_closed():
            with suppress(RuntimeError):  # closed in this very moment
                loop.call_soon_threadsafe(self._heard, batch)

    def _heard(self, batch: Batch) -> None:
        """On the loop's thread: tells, charges, answers."""
        agent_id = batch.agent_id
        agent = self._parts.core.state.agents.get(agent_id)
        if agent is None:
            return
        for event in batch.events:
            if event["kind"] == "control" and (future := self._waiting.get(event["id"])) is not None and not future.done():
                future.set_result(event["ok"])
            self._listen(agent_id, event)
        for event in batch.events[-NOTED:]:
            self._note(agent_id, event)
        if batch.tokens or batch.usd or batch.answers or batch.tool_calls or batch.action:
            used = {"iterations": batch.answers, "tokens": batch.tokens, "tool_calls": batch.tool_calls, "cost_usd": batch.usd}
            self._parts.core.post(e.UsageReported(*now(), agent_id, action=batch.action, **used))  # type: ignore[arg-type]
        channel = self._channels.get(agent_id)
        if batch.reply and channel is not None:
            with suppress(ConsoleError):  # it asks faster than it reads: it goes without an answer
                channel.write(encoded(batch.reply))
        if batch.offset:
            self._parts.scribe.job(lambda: self._parts.scribe.ledger.kv_set(_key(agent_id), str(batch.offset)))
        if batch.blind and agent_id not in self._frozen_for and self._is_capped(agent, batch):
            self._frozen_for.add(agent_id)
            self._parts.notice(f"{agent_id} is frozen: {batch.blind}", "red")
            asyncio.get_running_loop().create_task(self._freeze(agent_id, batch.blind))

    def _is_capped(self, agent: Agent, batch: Batch) -> bool:
        """Whether it matters that its spend cannot be seen: without a price, only where there is a cap on money."""
        root = self._parts.core.state.agents.get(agent.root_id, agent)
        return batch.deaf or agent.limits.cost_usd is not None or root.tree_limits.cost_usd is not None

    async def _freeze(self, agent_id: AgentId, why: str) -> None:
        try:
            await self.freeze(agent_id, why)
        except ConsoleError as error:
            self._parts.notice(f"{agent_id} could not be frozen ({why}): {error.what}", "red")

    def _tell(self, agent_id: AgentId, event: Event) -> None:
        self._listen(agent_id, event)
        self._note(agent_id, event)

    def _listen(self, agent_id: AgentId, event: Event) -> None:
        for listener in self.listeners:
            listener(agent_id, event)

    def _note(self, agent_id: AgentId, event: Event) -> None:
        """One line among the agent's recent events."""
        if words := _words(event):
            self._parts.scribe.event(agent_id, event.get("at", time.time()), event["kind"], words[:_NOTE_TEXT])

    def _output(self, agent_id: AgentId) -> Path:
        return self._parts.places.output_dir / f"{agent_id}.log"


def _words(event: Event) -> str:
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


def _key(agent_id: AgentId) -> str:
    return f"talk.{agent_id}"
