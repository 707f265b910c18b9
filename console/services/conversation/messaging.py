"""Started programs while they run: what they write is followed, and what operators say is recorded first, then written to them."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.conversation import Program, checked_text, started_as, what_helps, why_silent
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, Denied, TimedOut
from console.enforcement.charging import nodes_of
from console.enforcement.limiting import spent_out
from console.services.conversation.output_dispatch import Freeze, Hearing, Listener, kept_key
from console.services.conversation.output_reader import Follower, Following
from console.services.conversation.program_files import find_program
from console.services.conversation.stdin_channel import Channel
from console.services.fleet.core import Core
from console.services.hooks.program_hooks import furnish
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.settings.options import Options
from console.settings.places import Places
from console.sources.activity.program_stream import encoded

CONFIRM_S = 10.0
"""How long an interrupt waits for the program's own word."""


class Conversations:
    """Every started program of this supervisor; on the loop's thread, but for the following."""

    __slots__ = ("_channels", "hearing", "_follower", "_core", "_scribe", "_places", "_options", "_notice")

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        places: Places,
        options: Options,
        notice: Notice,
        *,
        freeze: Freeze,
        listeners: Sequence[Listener],
    ) -> None:
        """``freeze`` stops a program whose spend cannot be seen; ``listeners`` are told the whole feed."""
        self._core, self._scribe, self._places, self._options, self._notice = core, scribe, places, options, notice
        self._channels: dict[AgentId, Channel] = {}
        self.hearing = Hearing(core, scribe, notice, self._answer, freeze, listeners)
        self._follower = Follower(self.hearing.from_thread)

    # --- a program's life

    def prepare(self, agent: Agent, folder: Path, uid: int, gid: int) -> tuple[tuple[Path, str], ...]:
        """Before it starts: the way in, with its first words in it; gives what its sandbox must show of the program.

        Raises Unavailable when the program may not be started (any more), OSError.
        """
        started = started_as(agent.argv)
        if started is None:
            return ()
        found = find_program(self._options, self._places, started.program, uid, gid, named=started.path)
        boxed = agent.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR)
        servers = self._options.programs.mcp.get(started.program.value, {})
        furnish(started, folder, folder / "agent.sock", self._options.approvals.ttl_s, servers, boxed=boxed)
        following = self._followed(agent, started.program)
        if started.talks:
            channel = self._channels[agent.agent_id] = Channel(folder)
            channel.make(uid, gid)
            channel.write(encoded(following.stream.begin(started.prompt)))
        self._follower.add(following)
        self.hearing.tell(agent.agent_id, {"kind": "message", "role": "operator", "text": started.prompt, "parent": "", "by": "launch"})
        return () if agent.sandbox is SandboxKind.NONE else found.binds(boxed)

    def output_max(self, agent: Agent) -> int:
        """Bytes of output that are kept of it; 0: as of any agent."""
        return self._options.programs.output_max_mib << 20 if started_as(agent.argv) is not None else 0

    def again(self, agent: Agent, folder: Path) -> None:
        """After a restart of the supervisor: what it wrote before is read again in silence, what it used since is charged."""
        started = started_as(agent.argv)
        if started is None:
            return
        kept = self._scribe.ledger.kv_get(kept_key(agent.agent_id)) or "0"
        following = self._followed(agent, started.program)
        following.silent_until = int(kept) if kept.isascii() and kept.isdigit() and len(kept) < 16 else 0
        following.charged = (agent.usage.tokens, agent.usage.cost_usd, agent.usage.iterations)
        if started.talks:
            channel = self._channels[agent.agent_id] = Channel(folder)
            channel.ended_by = self._scribe.ledger.kv_get(ended_key(agent.agent_id)) or ""
            try:
                if channel.ended_by:
                    channel.finish()
                else:
                    channel.open()
            except OSError as error:
                self._notice(f"{agent.agent_id} takes no messages any more: its input cannot be opened: {error.strerror}")
        self._follower.add(following)

    def _followed(self, agent: Agent, program: Program) -> Following:
        return Following(agent.agent_id, program, self._places.output_dir / f"{agent.agent_id}.log", self.output_max(agent))

    async def drain(self, agent_id: AgentId) -> None:
        """Its first process is gone: what it wrote last is told and charged before its end is."""
        batch = await asyncio.to_thread(self._follower.finish, agent_id)
        if batch is not None:
            self.hearing.heard(batch)

    def end(self, agent_id: AgentId) -> None:
        """Lets go of an agent that has ended."""
        self._follower.drop(agent_id)
        self.hearing.forget(agent_id)
        channel = self._channels.pop(agent_id, None)
        if channel is not None:
            channel.close(remove=True)
            if channel.ended_by:
                self._scribe.job(lambda: self._scribe.ledger.kv_set(ended_key(agent_id), ""))
            self._scribe.job(lambda: self._scribe.ledger.kv_set(kept_key(agent_id), "0"))

    def close(self) -> None:
        """The supervisor ends, the programs go on."""
        self._follower.stop()
        for channel in self._channels.values():
            channel.close()

    # --- talking

    def channel_of(self, agent_id: AgentId) -> Channel | None:
        """The way in to it."""
        return self._channels.get(agent_id)

    def why_not(self, agent_id: AgentId, *, to_end: bool = False) -> str:
        """Return why the agent takes no messages now, or empty. ``to_end``: why it cannot be asked to end; that may be asked again."""
        state = self._core.state
        agent = state.agents[agent_id]
        breach = spent_out(state, nodes_of(state, agent)) if agent.state.is_live else None
        if state.soft_stop and agent.state.is_live:
            return f"soft stop: {state.soft_stop[:200]}"
        over = breach.words() if breach is not None else agent.state_reason or "it is being halted" if agent_id in state.halting else ""
        return why_silent(agent, stopping=agent_id in state.killing, over_budget=over) or self._lost(agent_id, to_end=to_end)

    def _lost(self, agent_id: AgentId, *, to_end: bool) -> str:
        channel = self._channels.get(agent_id)
        if channel is not None and channel.ended_by:
            return "" if to_end else f"its input was ended by {channel.ended_by[:100]}: no more comes to it"
        reached = channel is not None and channel.is_open and self._follower.of(agent_id) is not None
        return "" if reached else "the channel to it is gone"

    async def say(self, agent_id: AgentId, text: str, by: str) -> None:
        """Tells it something: on record first. Raises Denied with why not, Conflict, NotRecorded, UsageProblem."""
        text = checked_text(text)
        self._check(agent_id, "message", by)
        digest = hashlib.sha256(text.encode()).hexdigest()
        data = {"characters": len(text), "sha256": digest}
        record = Record(by, "agent.message", f"to {agent_id}: {text[:300]}", verdict="allow", agent_id=agent_id, data=data)
        await asyncio.to_thread(self._scribe.record_first, record)
        await asyncio.to_thread(self._follower.look, agent_id)  # whether a turn is under way decides how it is said
        told = self._core.untold.take(agent_id)
        words = await asyncio.to_thread(self._following(agent_id).message, f"{told}\n\n{text}" if told else text)
        self._check(agent_id, "message", by).write(encoded(words))  # a stop may have come while it was recorded
        self.hearing.tell(agent_id, {"kind": "message", "role": "operator", "text": text, "parent": "", "by": by})

    async def interrupt(self, agent_id: AgentId, by: str) -> None:
        """Ends its present turn, and waits for its word on that. Raises Denied, Conflict, TimedOut when it says nothing."""
        self._check(agent_id, "interrupt", by)
        record = Record(by, "agent.interrupt", f"the turn of {agent_id}", verdict="allow", agent_id=agent_id)
        await asyncio.to_thread(self._scribe.record_first, record)
        request_id = f"wf-{secrets.token_hex(6)}"
        await asyncio.to_thread(self._follower.look, agent_id)
        words = await asyncio.to_thread(self._following(agent_id).interrupt, request_id)
        future = self.hearing.waiting[request_id] = asyncio.get_running_loop().create_future()
        try:
            self._check(agent_id, "interrupt", by).write(encoded(words))
            async with asyncio.timeout(CONFIRM_S):
                confirmed = await future
        except TimeoutError as error:
            raise TimedOut(f"{agent_id} did not say that its turn ended.", "watchfloor freeze stops it for certain.") from error
        finally:
            self.hearing.waiting.pop(request_id, None)
        if not confirmed:
            raise Denied(f"{agent_id} refused the interrupt.", "There may be no turn under way; watchfloor freeze stops it for certain.")

    def _check(self, agent_id: AgentId, what: str, by: str) -> Channel:
        why = self.why_not(agent_id)
        channel = self._channels.get(agent_id)
        if why or channel is None:
            self._scribe.record(Record(by, f"agent.{what}", f"to {agent_id}: refused: {why}", verdict="deny", agent_id=agent_id))
            agent = self._core.state.agents[agent_id]
            raise Denied(f"{agent_id} gets no {what}: {why}.", what_helps(agent, over_budget="over its budget" in why))
        return channel

    def is_busy(self, agent_id: AgentId) -> bool:
        """Whether the end of its input would break something off. Blocks for a moment."""
        self._follower.look(agent_id)
        following = self._follower.of(agent_id)
        return following is not None and following.is_busy()

    def _following(self, agent_id: AgentId) -> Following:
        found = self._follower.of(agent_id)
        if found is None:
            raise Denied(f"{agent_id} has just ended.", "watchfloor fleet shows its state.")
        return found

    def _answer(self, agent_id: AgentId, reply: list[dict[str, Any]]) -> None:
        channel = self._channels.get(agent_id)
        if channel is not None:
            with suppress(ConsoleError):  # it asks faster than it reads: it goes without an answer
                channel.write(encoded(reply))


def ended_key(agent_id: AgentId) -> str:
    """Where the ledger keeps who asked an agent to end."""
    return f"talk.ended.{agent_id}"
