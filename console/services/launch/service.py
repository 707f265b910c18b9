"""A launch, step by step, and everything that belongs to a running agent: its socket, its portal, the watch for its end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from console.credentials.tokens import Tokens
from console.domain.agent import Agent, AgentId, LaunchRequest, ProcessIdentity, SandboxKind
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, ConsoleError, Killed, Unavailable
from console.domain.ids import ControlLevel
from console.domain.network import Sensitivity
from console.domain.process.failpoints import failpoint
from console.domain.words import counted
from console.egress.service import Egress
from console.enforcement.state import EngineState
from console.killswitch.client.guard_client import GuardClient
from console.sandbox.containers.network_cut import namespaces_of
from console.sandbox.environment import put_author
from console.sandbox.interface import KILLED_EXIT_CODE, OUTPUT_BYTES, LaunchSpec, Prepared, Sandbox, Ticket
from console.sandbox.workspace.folder import open_workspace
from console.services.adoption.exit_check import until_empty
from console.services.budgets import measurable
from console.services.conversation.messaging import Conversations
from console.services.fleet.core import Core, now
from console.services.hooks.service import HookDesk
from console.services.launch.command_reach import as_command
from console.services.launch.effective_limits import Bounding
from console.services.launch.environments import Environments
from console.services.launch.tool_offers import offer_tools, withdraw_tools
from console.services.launch.type_sources import TypeSources, memory_of
from console.services.launch.venvs import FOLDER, ensure_venv, on_path
from console.services.network.isolation import PORTAL, Cutter, Running
from console.services.notices.shown import Notice
from console.services.persistence.scan import Hunt
from console.services.policy.dangerous_operations import DangerDesk
from console.services.records.record_writer import Scribe
from console.services.secrets.calls import secret_call
from console.services.sessions.workspaces import Contexts
from console.settings.options import Options
from console.settings.places import Places

log = logging.getLogger(__name__)
TOYS_IN_BOX = "/opt/watchfloor-toys"


def _toys(sandbox: SandboxKind, toys: Path) -> tuple[tuple[Path, str], ...]:
    """Our own agents and their client, where a sandbox does not show this machine's files."""
    return {SandboxKind.NONE: (), SandboxKind.BUBBLEWRAP: ((toys, str(toys)),)}.get(sandbox, ((toys, TOYS_IN_BOX),))


class AgentSockets(Protocol):
    """The sockets by which agents ask: one each, made before its agent runs."""

    async def open(self, agent_id: AgentId, owner_uid: int | None) -> Path: ...
    def confirm(self, agent_id: AgentId, container_id: str) -> None: ...
    async def close(self, *agent_ids: AgentId) -> None: ...


TOKEN_S = 900
"""Life of an agent's token, in seconds."""
JUDGED_S = 20.0
"""An end during a kill is left to its receipt for that long; without one it is looked into as any other end."""
TOGETHER_S = 0.05
"""Those that end within this time are released together; after a kill its caller has the answer by then."""
FORGET = 128
"""Agents of one line to the guard, which holds 4 KiB."""
MAX_OUTPUT = 64 * 1024
"""Bytes of one answer with what an agent wrote."""
SAID_MAX = 1000
"""Launches of which it is kept what they came to; the oldest go first."""


async def weigh(dangers: DangerDesk, request: LaunchRequest, by: str) -> None:
    """Refuses a limit that nothing would measure, and dangerous words that no operator confirmed."""
    # Beside the loop: the file of its program may lie where an agent decides how long a look takes.
    measurable.check(request, await asyncio.to_thread(measurable.why_unmeasured, request))
    await dangers.weigh(request, by)


def _stopped(state: EngineState, agent_id: AgentId) -> Killed | None:
    """The refusal that a stop is: also of a launch that broke in its middle, because the stop took its sandbox away. None: no stop."""
    was_stopped = state.killed or agent_id in state.killing or agent_id in state.halting
    return Killed("It was stopped while it started.", "") if was_stopped or not state.agents[agent_id].state.is_live else None


class Launcher:
    """Starts agents and lets go of them; on the event loop's thread, blocking work in threads."""

    __slots__ = (
        "_look_at_guard", "running", "cutter", "bounding", "environments", "said", "_gate", "leaving", "_core", "_scribe", "_guard",
        "_places", "_options", "_sandboxes", "_notice", "_contexts", "_hunt", "_tokens", "_sockets", "hooks", "dangers", "sources",
        "talk"
    )  # fmt: skip

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        guard: GuardClient,
        places: Places,
        options: Options,
        sandboxes: Mapping[SandboxKind, Sandbox],
        egress: Egress,
        notice: Notice,
        *,
        contexts: Contexts,
        hunt: Hunt,
        tokens: Tokens,
        sockets: AgentSockets,
        hooks: HookDesk,
        dangers: DangerDesk,
        sources: TypeSources,
        talk: Conversations,
        look_at_guard: Callable[[], Awaitable[None]],
    ) -> None:
        self._core, self._scribe, self._guard, self._places, self._options = core, scribe, guard, places, options
        self._sandboxes, self._notice, self._contexts, self._hunt, self._tokens = sandboxes, notice, contexts, hunt, tokens
        self._sockets, self.hooks, self.dangers, self.sources, self.talk = sockets, hooks, dangers, sources, talk
        self._look_at_guard = look_at_guard
        self.running: dict[AgentId, Running] = {}
        self.cutter = Cutter(core, scribe, guard, egress, options.engine(), notice, self.running)
        self.bounding = Bounding(core, scribe, self.running)
        self.environments = Environments(options, scribe)
        self.said: dict[AgentId, str] = {}
        """What a launch came to besides its network: the tools it was offered, or why none."""
        self._gate = asyncio.Semaphore(8)
        self.leaving = Leaving(self, core, guard, egress, places, notice, contexts=contexts, hunt=hunt, tokens=tokens, sockets=sockets)

    async def start(self, command: c.StartAgent) -> None:
        """Carries out StartAgent; every way it can break ends with nothing of it running."""
        async with self._gate:
            try:
                await self._start(command)
            except (ConsoleError, OSError) as error:
                refusal = _stopped(self._core.state, command.agent.agent_id) or error
                if isinstance(refusal, OSError):
                    refusal = ConsoleError(f"The launch failed: {error}.", "watchfloor doctor shows what this host has.")
                await self._broke(command.agent.agent_id, refusal, str(error))
            except Exception as error:
                # A fault of ours: whoever asked is told, nothing counts as starting for ever, and the runner says it on every console.
                refusal = ConsoleError("The launch failed inside the supervisor.", "supervisor.log shows why.")
                await self._broke(command.agent.agent_id, refusal, f"inside the supervisor: {error!r}"[:300])
                raise

    async def _broke(self, agent_id: AgentId, error: ConsoleError, why: str) -> None:
        self.said.pop(agent_id, None)
        await asyncio.to_thread(withdraw_tools, self._places, agent_id)
        self._core.post(e.LaunchBroke(*now(), agent_id, why))
        self._core.settle_launch(agent_id, error)

    async def _start(self, command: c.StartAgent) -> None:
        agent = command.agent
        sandbox = self._sandboxes[agent.sandbox]
        # 1. The record first: no audit, no action (promise 5).
        what = f"launch {agent.agent_id} depth {agent.depth} sandbox {agent.sandbox} network {agent.effective_mode}"
        data = {"argv0": agent.argv[0][:200], "parent": agent.parent_id, "context": agent.context_id}
        data |= {"unmeasured": "accepted"} if command.request.unmeasured else {}
        record = c.Record(command.by, "launch", what, verdict="allow", agent_id=agent.agent_id, data=data)
        await asyncio.to_thread(self._scribe.record_first, record)
        # The session's ratchet outlives this process, whatever becomes of the agent (promise 4): others are switched by it already.
        await asyncio.to_thread(self._keep_ratchet, agent)
        failpoint("launch.recorded")
        available = await asyncio.to_thread(sandbox.available)
        if not available.ok:
            raise Unavailable(f"Sandbox {agent.sandbox} is not available, because {available.reason}.", available.remedy)
        # 2. Its own socket and workspace.
        spec = await self._spec(command)
        if FOLDER in spec.env["PATH"] and (why := await ensure_venv(sandbox, self._guard, agent, spec)):
            self._notice(f"{agent.agent_id}: {why}")
        # What the session is measured by later: taken while nothing of it runs, and beside what follows.
        baseline = asyncio.ensure_future(self._hunt.begin(agent))
        self._refuse_if_stopped(agent)
        # 3. The guard's ticket: leaf created, registry on disk. Refused while latched.
        kind = "container" if agent.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR) else "process"
        level = ControlLevel.MANAGED if agent.sandbox is SandboxKind.NONE else ControlLevel.CONTAINED
        answer = await asyncio.to_thread(
            self._guard.call,
            "ticket",
            agent_id=agent.agent_id,
            kind=kind,
            control_level=level.value,
            uid=spec.uid,
            **self.bounding.of_ticket(spec),
        )
        ticket = Ticket(str(answer.get("leaf", "")), tuple(answer.get("limit_leaves", ())), int(answer["generation"]))
        failpoint("launch.ticketed")
        # 4. The sandbox, with the agent's code still behind a gate.
        prepared = await asyncio.to_thread(sandbox.prepare, spec, ticket)
        try:
            failpoint("launch.prepared")
            if baseline is not None:
                await baseline
            self._refuse_if_stopped(agent)
            await self._confirm_and_go(agent, sandbox, prepared, ticket)
        except (ConsoleError, OSError):
            await asyncio.to_thread(sandbox.abort, prepared)
            raise

    async def _confirm_and_go(self, agent: Agent, sandbox: Sandbox, prepared: Prepared, ticket: Ticket) -> None:
        # 5. The guard holds it, by kernel identity; a press in between wins.
        fields: dict[str, Any] = {"container_id": prepared.container_id} if prepared.container_id else {}
        held = await asyncio.to_thread(
            self._guard.call,
            "confirm",
            agent_id=agent.agent_id,
            generation=ticket.generation,
            pid=prepared.pid,
            start_ticks=prepared.start_ticks,
            **fields,
        )
        failpoint("launch.confirmed")
        self._core.state.best_effort[agent.agent_id] = str(held.get("best_effort", ""))
        self._sockets.confirm(agent.agent_id, prepared.container_id)
        # 6. The portal, before any code of the agent's can take its port.
        note = " ".join(prepared.notes)  # whole sentences
        enforced = prepared.netns or (not agent.effective_mode.is_restricted and bool(prepared.container_id))
        if prepared.netns:
            note = "; ".join(filter(None, (await self.cutter.open_portal(agent.agent_id, prepared), note)))
        # 7. Go, if nobody stopped it and nothing became stricter meanwhile; from the ticket on, every press reaches it.
        self._refuse_if_stopped(agent)
        await asyncio.to_thread(sandbox.go, prepared)
        failpoint("launch.gone")
        self.bounding.keep(agent.agent_id, sandbox.hardening(agent.agent_id))
        self.running[agent.agent_id] = Running(sandbox, prepared)
        process = ProcessIdentity(prepared.pid, prepared.start_ticks)
        level = ControlLevel(prepared.control_level)
        enforced = enforced and self._core.state.agents[agent.agent_id].effective_mode is agent.effective_mode  # else it is switched next
        self._core.post(e.LaunchConfirmed(*now(), agent.agent_id, process, prepared.container_id, level, enforced, note))
        self.watch(agent.agent_id)
        await self._catch_up(agent)
        await self._core.saved()  # whoever asked is told once a restart would find it
        self._core.settle_launch(agent.agent_id, None)

    async def _catch_up(self, agent: Agent) -> None:
        """What changed about its network between the last look and the start."""
        current = self._core.state.agents[agent.agent_id]
        rose = current.sensitivity is not agent.sensitivity and current.network_mode.has_portal  # its portal is to know
        if current.network_mode is not agent.network_mode or rose:
            why = "its session became stricter while it started"
            await self.cutter.switch(c.SwitchNetwork(agent.agent_id, current.network_mode, why))
        if current.isolated and not agent.isolated:
            await self.cutter.cut(agent.agent_id)
        elif agent.isolated and not current.isolated:
            await self.cutter.give(agent.agent_id)

    def _refuse_if_stopped(self, agent: Agent) -> None:
        """A stop, or a stricter network, that came while this launch was under way."""
        if (stopped := _stopped(self._core.state, agent.agent_id)) is not None:
            raise stopped
        current = self._core.state.agents[agent.agent_id]
        if current.network_mode is not agent.network_mode or (current.isolated and not agent.isolated):
            raise Conflict("Its session became stricter while it started.", "Launch it again: it starts with what holds now.")

    def _keep_ratchet(self, agent: Agent) -> None:
        ledger, at = self._scribe.ledger, now()[0]
        if agent.sensitivity is not Sensitivity.PUBLIC:
            ledger.raise_sensitivity(agent.context_id, agent.sensitivity, "launch", agent.agent_id, at, cause="launch")
        if agent.network_mode.is_restricted:
            ledger.restrict_mode(agent.context_id, agent.network_mode, f"launch of {agent.agent_id}", at, cause="launch")

    async def _spec(self, command: c.StartAgent) -> LaunchSpec:
        agent = command.agent
        root = os.geteuid() == 0
        uid = self._options.agents.uid if root else os.geteuid()
        gid = self._options.agents.gid if root else os.getegid()
        await asyncio.to_thread(self._contexts.begin, agent)
        workspace = await asyncio.to_thread(open_workspace, self._places.workspaces_dir, agent.context_id, uid, gid)
        sock = await self._sockets.open(agent.agent_id, uid if root else None)
        program = self.talk.prepare(agent, sock.parent, uid, gid)
        toys = Path(__file__).resolve().parents[2] / "integrations"
        boxed = agent.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR)  # its files are an image's, so ours are bound in
        tools = await asyncio.to_thread(offer_tools, self._places, self._scribe, agent, workspace)
        # Kept beyond its end: one that ends at once does so before whoever launched it is answered.
        if command.request.unmeasured:
            self.talk.hearing.unmeasured.add(agent.agent_id)
        unmeasured = await asyncio.to_thread(measurable.note, command.request)
        without = await asyncio.to_thread(as_command, command.request)
        self.said[agent.agent_id] = "; ".join(filter(None, (tools.words, unmeasured, *without)))
        while len(self.said) > SAID_MAX:
            del self.said[next(iter(self.said))]
        token = await secret_call(self._tokens.issue, "agent-service", agent.agent_id, TOKEN_S, agent_id=agent.agent_id)
        own = {
            "WATCHFLOOR_AGENT_ID": agent.agent_id,
            "WATCHFLOOR_INSTANCE": self._places.instance_id,
            "WATCHFLOOR_AGENT_SOCKET": str(sock),
            "WATCHFLOOR_WORKSPACE": str(workspace),
            "WATCHFLOOR_TOYS": TOYS_IN_BOX if boxed else str(toys),
            "PATH": tools.path,
            "AGENT_AUTH_TOKEN": token,
            **await asyncio.to_thread(put_author, os.environ, sock.parent),
        }
        if agent.network_mode.has_portal:
            own |= {"HTTP_PROXY": PORTAL, "HTTPS_PROXY": PORTAL, "http_proxy": PORTAL, "https_proxy": PORTAL}
        sources = self.sources.of(command.request)
        own |= sources.variables() if sources is not None else {}
        if sources is not None and sources.package_managers.pip.enabled:
            own["PATH"] = on_path(own["PATH"], workspace)
        narrowing = await asyncio.to_thread(self.sources.destinations, command.request)
        if narrowing is not None:
            self.cutter.narrowings[agent.agent_id] = narrowing
        if narrowing is not None or command.request.agent_type or agent.parent_id is not None:
            kind = await asyncio.to_thread(self.sources.type_for, command.request)
            await asyncio.to_thread(self.sources.keep, agent.agent_id, narrowing, kind)
        self._places.output_dir.mkdir(exist_ok=True, mode=0o700)
        return LaunchSpec(
            agent_id=agent.agent_id,
            argv=agent.argv,
            env=await self.environments.make(agent, command.request, own),
            workspace=workspace,
            agent_socket=sock,
            output=self._places.output_dir / f"{agent.agent_id}.log",
            network_mode=agent.effective_mode,
            hide=self._places.hidden,
            uid=uid,
            gid=gid,
            pids_max=self._options.agents.pids_max,
            memory_max_bytes=memory_of(self._options, sources),
            cpus=self._options.agents.cpus,
            labels={"io.watchfloor.instance": self._places.instance_id, "io.watchfloor.agent": agent.agent_id},
            extra_binds=_toys(agent.sandbox, toys) + tools.binds + program,
            output_max_bytes=self.talk.output_max(agent) or OUTPUT_BYTES,
            user_namespaces=await asyncio.to_thread(self.sources.builds_own_sandbox, command.request),
        )

    def words(self, agent_id: AgentId) -> tuple[str, str]:
        """What its launch came to: the tools it was offered, and what its environment got besides the usual."""
        return self.said.get(agent_id, ""), self.environments.words(agent_id)

    def watch(self, agent_id: AgentId) -> None:
        """Has the loop told when the agent's first process is gone (pidfd_open(2): readable when it ends)."""
        running = self.running[agent_id]
        try:
            running.pidfd = os.pidfd_open(running.prepared.pid)
        except ProcessLookupError:
            asyncio.get_running_loop().create_task(self._ended(agent_id))
            return
        asyncio.get_running_loop().add_reader(running.pidfd, self._gone, agent_id)

    def _gone(self, agent_id: AgentId) -> None:
        running = self.running.get(agent_id)
        if running is not None:
            self.unwatch(running)
            asyncio.get_running_loop().create_task(self._ended(agent_id))

    def unwatch(self, running: Running) -> None:
        """Closes the pidfd that its end is told by."""
        if running.pidfd is not None:
            asyncio.get_running_loop().remove_reader(running.pidfd)
            os.close(running.pidfd)
            running.pidfd = None

    async def _ended(self, agent_id: AgentId) -> None:
        running = self.running.get(agent_id)
        if running is None or await self._is_judged(agent_id):
            return
        try:
            code = await asyncio.to_thread(running.sandbox.wait, running.prepared, 10.0)
        except ConsoleError:
            code = None  # something of it still runs: the guard's leaf says so too, and forget will refuse
        if code in (None, KILLED_EXIT_CODE):
            await self._was_it_a_kill(agent_id)
        if await self._is_judged(agent_id):
            return
        await until_empty(self._core, self._guard, self._scribe, self._notice, agent_id, lambda: agent_id in self.running)
        await self.talk.drain(agent_id)
        self._core.post(e.AgentExited(*now(), agent_id, code, await self.bounding.why(running)))

    async def _is_judged(self, agent_id: AgentId) -> bool:
        """Whether a kill's receipt has said that it ended: the guard, which looked at all of them at once, is asked for none of them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(JUDGED_S):
                await self._core.judged_by_kill(agent_id)
        return agent_id not in self._core.state.live

    async def _was_it_a_kill(self, agent_id: AgentId) -> None:
        """A press made on the guard itself is learnt before the exit is taken for the agent's own doing."""
        state = self._core.state
        for _ in range(15):
            if agent_id in state.killing or agent_id in state.halting or agent_id not in state.live:
                return
            with suppress(ConsoleError):
                await self._look_at_guard()
            if agent_id in state.killing or agent_id in state.halting or agent_id not in state.live:
                return
            await asyncio.sleep(0.1)

    def reattach(self, agent: Agent) -> None:
        """After a restart: holds a living agent again. Raises ConsoleError or OSError when it is gone."""
        assert agent.process is not None
        if (narrowing := self.sources.narrowing_of(agent.agent_id)) is not None:
            self.cutter.narrowings[agent.agent_id] = narrowing
        if words := self.sources.doubts(agent.agent_id):
            self._notice(words)
        sandbox = self._sandboxes[agent.sandbox]
        prepared = sandbox.reattach(agent.agent_id, agent.process.pid, agent.process.start_ticks, agent.container_id)
        netns, userns = namespaces_of(agent.process.pid)
        if agent.container_id and not agent.network_mode.is_restricted and not agent.cut_off:
            netns = False  # it has a bridge, or had one that can be given back
        self.running[agent.agent_id] = Running(sandbox, replace(prepared, netns=netns, userns=userns))


class Leaving:
    """Release what ended agents held: portal, socket, leaf, sandbox, token.

    Agents that end meanwhile wait for the next round. So a kill of hundreds writes the guard's registry and the revoked tokens once, not
    hundreds of times.
    """

    __slots__ = (
        "_waiting", "_is_busy", "_launcher", "_core", "_guard", "_egress", "_notice", "_places", "_contexts", "_hunt", "_tokens",
        "_sockets"
    )  # fmt: skip

    def __init__(
        self,
        launcher: Launcher,
        core: Core,
        guard: GuardClient,
        egress: Egress,
        places: Places,
        notice: Notice,
        *,
        contexts: Contexts,
        hunt: Hunt,
        tokens: Tokens,
        sockets: AgentSockets,
    ) -> None:
        self._launcher, self._core, self._guard, self._egress, self._notice = launcher, core, guard, egress, notice
        self._places, self._contexts, self._hunt, self._tokens, self._sockets = places, contexts, hunt, tokens, sockets
        self._waiting: dict[AgentId, None] = {}
        self._is_busy = False

    async def add(self, agent_id: AgentId) -> None:
        """Returns at once when a round is under way: that task releases it as well."""
        self._waiting[agent_id] = None
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._waiting:
                await asyncio.sleep(TOGETHER_S)
                batch, self._waiting = list(self._waiting), {}
                await self._release(batch)
        finally:
            self._is_busy = False

    async def _release(self, batch: list[AgentId]) -> None:
        launcher = self._launcher
        held = [running for i in batch if (running := launcher.running.pop(i, None)) is not None]
        for running in held:
            launcher.unwatch(running)
        for agent_id in batch:
            launcher.talk.end(agent_id)
        await self._sockets.close(*batch)
        for agent_id in set(batch) & set(self._egress.attached()):
            with suppress(ConsoleError, OSError):
                await asyncio.to_thread(self._egress.detach, agent_id)
        # Descriptors first: what they belong to has ended, whatever the disk and the guard say next.
        await asyncio.gather(*(asyncio.to_thread(_release_sandbox, r) for r in held if r.prepared.container_id))
        await asyncio.to_thread(_release_sandboxes, [r for r in held if not r.prepared.container_id])
        with suppress(ConsoleError):  # its end is on disk first: a restart would find one of whom the guard knows nothing any more
            await self._core.saved()
        for start in range(0, len(batch), FORGET):
            with suppress(ConsoleError):
                await asyncio.to_thread(self._guard.call, "forget", scope=[str(i) for i in batch[start : start + FORGET]])
        for agent_id in batch:
            launcher.cutter.forget(agent_id)
        try:
            await secret_call(self._tokens.revoke, *batch)
        except ConsoleError as error:  # their sockets are gone, and they end within minutes by themselves
            words = f"the tokens of {counted(len(batch), 'agent')} that ended ({batch[0]}) could not be revoked: {error}"
            self._notice(words)
        await asyncio.to_thread(self._clear, batch)  # last of all: nothing of them is in a workspace any more
        for agent_id in batch:
            self._hunt.ended(self._core.state.agents[agent_id].context_id)

    def _clear(self, batch: list[AgentId]) -> None:
        for agent_id in batch:
            withdraw_tools(self._places, agent_id)
            self._contexts.end(agent_id)


def _release_sandboxes(held: list[Running]) -> None:
    for running in held:
        _release_sandbox(running)


def _release_sandbox(running: Running) -> None:
    with suppress(ConsoleError, OSError):
        running.sandbox.release(running.prepared)


def read_output(folder: Path, agent_id: AgentId, offset: int) -> tuple[bytes, int]:
    """(bytes from ``offset``, total size) of what the agent wrote. Blocks."""
    try:
        with (folder / f"{agent_id}.log").open("rb") as out:
            total = os.fstat(out.fileno()).st_size
            out.seek(min(offset, total))
            return out.read(MAX_OUTPUT), total
    except FileNotFoundError:
        return b"", 0
