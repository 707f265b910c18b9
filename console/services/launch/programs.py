"""Starting a program: an item becomes a launch request, judged as a whole and shown with its worst-case reach before anything starts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from console.api.agents import programs as pm
from console.domain.agent import AgentId, ContextId, LaunchRequest, SandboxKind
from console.domain.conversation import Program, checked_model, checked_text, command_line
from console.domain.errors import Conflict, ConsoleError, Unavailable, UsageProblem
from console.domain.network import NetworkMode, Sensitivity
from console.egress.answers import Availability
from console.sandbox.interface import Sandbox
from console.sandbox.programs import Found, version
from console.services.budgets import measurable
from console.services.conversation.messaging import Conversations
from console.services.conversation.program_files import agents_user, find_program
from console.services.launch.containing import AUTO, held
from console.services.launch.environments import wanted_of
from console.services.launch.program_reach import Outlook, Outlooks
from console.services.policy.dangerous_operations import DangerDesk
from console.services.routes.launch_body import limits_from
from console.sources.kind import Wanted
from console.sources.kinds import STARTS

MEMINFO = Path("/proc/meminfo")
Words = Callable[[AgentId], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Plan:
    """One item, judged."""

    request: LaunchRequest
    found: Found
    version: str
    model: str
    outlook: Outlook


class Programs:
    """The operator's side of starting programs."""

    __slots__ = ("_core", "_options", "_places", "_outlooks", "_sandboxes", "_proxy", "_dangers", "_talk", "_said")

    def __init__(
        self,
        outlooks: Outlooks,
        sandboxes: Mapping[SandboxKind, Sandbox],
        proxy: Callable[[], Availability],
        dangers: DangerDesk,
        talk: Conversations,
        words: Words,
    ) -> None:
        """``proxy``: whether a PROXIED network works here; ``words``: what a launch came to."""
        self._core, self._options, self._places, self._outlooks = outlooks.core, outlooks.options, outlooks.places, outlooks
        self._sandboxes, self._proxy, self._dangers, self._talk, self._said = sandboxes, proxy, dangers, talk, words

    async def preview(self, body: pm.ProgramsBody) -> pm.ProgramPreviews:
        """What each item would start, or why it would be refused; nothing is started."""
        return pm.ProgramPreviews(items=[await self._previewed(item, len(body.items)) for item in body.items])

    async def _previewed(self, item: pm.ProgramItem, together: int) -> pm.ProgramPreview:
        try:
            plan = await self.plan(item, together)
        except ConsoleError as error:
            return pm.ProgramPreview(agent=item.agent, why_not=error.what, remedy=error.remedy, exit_code=int(error.exit_code))
        return pm.ProgramPreview(
            agent=item.agent,
            path=str(plan.found.path),
            version=plan.version,
            model=plan.model,
            network_mode=plan.outlook.mode.value,
            network_enforced=plan.outlook.enforced,
            sensitivity=plan.outlook.level.value,
            cost_cap_usd=plan.request.limits.cost_usd,
            reach=plan.outlook.reach,
            dangers=[one.line() for one in await asyncio.to_thread(self._dangers.of_launch, plan.request)],
        )

    async def start(self, body: pm.ProgramsBody, by: str) -> pm.ProgramsStarted:
        """Starts all; raises for the first item that is refused beforehand, and then none has started."""
        plans = []
        for number, item in enumerate(body.items, 1):
            try:
                plan = await self.plan(item, len(body.items), body.dangerous_ok)
                await self._dangers.check(plan.request)
                plans.append(plan)
            except ConsoleError as error:
                if len(body.items) > 1:
                    error.what = f"Item {number}: {error.what}"
                raise
        return pm.ProgramsStarted(items=[await self._started(plan, by) for plan in plans])

    async def _started(self, plan: Plan, by: str) -> pm.StartedView:
        try:
            await asyncio.to_thread(self._check_memory, 1)
            agent_id = await self._core.ask_launch(plan.request, by)
        except ConsoleError as error:
            return pm.StartedView(error=error.what, remedy=error.remedy, exit_code=int(error.exit_code))
        agent = self._core.state.agents[agent_id]
        said = (agent.network_note, *self._said(agent_id))
        return pm.StartedView(
            id=agent_id,
            control_level=agent.control_level,
            network_mode=agent.network_mode,
            network_enforced=agent.network_enforced,
            notes=[words for words in said if words],
            reach=plan.outlook.reach,
        )

    async def plan(self, item: pm.ProgramItem, together: int = 1, dangerous_ok: str = "") -> Plan:
        """Judges one item. Raises what it would be refused with."""
        core, program = self._core, Program(item.agent)
        prompt = checked_text(item.prompt)
        model = checked_model(item.model or self._options.programs.models.get(item.agent, ""))
        limits, tree_limits = limits_from(item.limits), limits_from(item.tree_limits)
        uid, gid = agents_user(self._options)
        found = await asyncio.to_thread(find_program, self._options, self._places, program, uid, gid)
        if item.sandbox != AUTO:
            await self._check_sandbox(SandboxKind(item.sandbox), once=item.once)
        await asyncio.to_thread(self._check_memory, together)
        kind, why = item.agent_type or item.agent, STARTS[program.value].no_servers
        if why and self._options.programs.mcp.get(program.value):
            raise UsageProblem(f"{program} gets no MCP servers, because {why}.", f"Take {program} out of the setting programs.mcp.")
        request = LaunchRequest(
            argv=command_line(program, prompt, str(found.path), self._words(program, model, kind, once=item.once), talks=not item.once),
            name=item.name or item.agent,
            context_id=ContextId(item.context_id) if item.context_id else None,
            sandbox=SandboxKind.NONE if item.sandbox == AUTO else SandboxKind(item.sandbox),
            sensitivity=Sensitivity(item.sensitivity),
            network_mode=NetworkMode(item.network_mode) if item.network_mode else None,
            limits=limits,
            tree_limits=tree_limits,
            env=tuple(item.env.items()),
            agent_type=kind,
            project=item.project,
            scopes=None if item.scopes is None else tuple(item.scopes),
            dangerous_ok=dangerous_ok,
            dry_run=item.dry_run,
            unmeasured=item.unmeasured,
        )
        doubt = ""
        if item.sandbox == AUTO:
            known = await asyncio.to_thread(
                held, request, self._options, self._sandboxes[SandboxKind.BUBBLEWRAP], self._proxy, self._outlooks.ledger.allowlist
            )
            request, doubt = replace(request, sandbox=known.sandbox, network_mode=known.mode), known.doubt
        request.check()
        measurable.check(request, await asyncio.to_thread(measurable.why_unpriced, request, program.value, model))
        shaped = core.admitted(request)
        told = await asyncio.to_thread(version, found, uid, gid, may_ask=not core.state.killed)
        outlook = await asyncio.to_thread(self._outlooks.of_program, shaped, found, told, model, doubt)
        return Plan(request, found, told, model, outlook)

    async def _check_sandbox(self, sandbox: SandboxKind, *, once: bool) -> None:
        """Raises Unavailable where a program cannot run in it here, or cannot be talked to."""
        if sandbox is SandboxKind.GVISOR and not once:
            why = "its sandbox does not show it a FIFO of this host"
            raise Unavailable(f"Talking to a program in gvisor is not available, because {why}.", "Use --once, or --sandbox docker.")
        available = await asyncio.to_thread(self._sandboxes[sandbox].available)
        if not available.ok:
            raise Unavailable(f"Sandbox {sandbox} is not available, because {available.reason}.", available.remedy)

    def _words(self, program: Program, model: str, kind: str, *, once: bool) -> tuple[str, ...]:
        named = wanted_of(self._options, kind, program.value)
        base = os.environ.get("OPENAI_BASE_URL", "") if named is not None and "OPENAI_BASE_URL" in named.names else ""
        return STARTS[program.value].words(Wanted(model, once, self._options.programs.hooks, base))

    def _check_memory(self, together: int) -> None:
        """Raises Conflict, with the figures, when memory is short."""
        least, free = self._options.programs.memory_free_min_mib, memory_free_mib()
        if free is None or free >= least * together:
            return
        for_all = f" for each of {together} at once" if together > 1 else ""
        raise Conflict(
            f"Memory is short: {free:,} MiB are free, and {least:,} MiB are wanted{for_all}.",
            "End some agents, or lower the setting programs.memory_free_min_mib.",
        )

    def view(self) -> pm.ProgramsView:
        """What can be started here. Blocks."""
        uid, gid = agents_user(self._options)
        programs = []
        for program in Program:
            try:
                found = find_program(self._options, self._places, program, uid, gid)
            except ConsoleError as error:
                programs.append(pm.ProgramView(agent=program.value, why_not=error.what))
                continue
            told = version(found, uid, gid, may_ask=not self._core.state.killed)
            programs.append(pm.ProgramView(agent=program.value, path=str(found.path), version=told, note=found.note))
        least = self._options.programs.memory_free_min_mib
        return pm.ProgramsView(programs=programs, templates=list(TEMPLATES), memory_free_mib=memory_free_mib(), memory_free_min_mib=least)

    async def say(self, agent_id: str, body: pm.SayBody, by: str) -> pm.SaidView:
        """A message. Raises Unconfirmed when it names dangerous operations."""
        known, text = self._core.agent_or_404(agent_id), body.text
        await self._dangers.weigh_text(known, text, by, body.dangerous_ok)
        await self._talk.say(known, text, by)
        return pm.SaidView(id=known, done="said")

    async def interrupt(self, agent_id: str, by: str) -> pm.SaidView:
        """The end of its present turn."""
        known: AgentId = self._core.agent_or_404(agent_id)
        await self._talk.interrupt(known, by)
        return pm.SaidView(id=known, done="interrupted")


def memory_free_mib(meminfo: Path = MEMINFO) -> int | None:
    """What the kernel says could be had without swapping (proc(5), MemAvailable), in MiB; None: it does not say."""
    try:
        for line in meminfo.read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) >> 10
    except (OSError, ValueError, IndexError):
        return None
    return None


TEMPLATES = (
    pm.TemplateView(
        name="careful",
        words="In a sandbox of its own: reaches its workspace, its model and the allowlist, a dollar at most.",
        sandbox="bubblewrap",
        sensitivity="INTERNAL",
        network_mode="PROXIED",
        limits={"cost": 1.0, "wall": 3600.0},
    ),
    pm.TemplateView(
        name="container",
        words="In a container: the image's files, its model and the allowlist, five dollars and four hours at most.",
        sandbox="docker",
        sensitivity="INTERNAL",
        network_mode="PROXIED",
        limits={"cost": 5.0, "wall": 14400.0},
    ),
    pm.TemplateView(
        name="open",
        words="On this host with its whole network; only its processes and its limits are controlled.",
        sandbox="none",
        sensitivity="PUBLIC",
        network_mode=None,
        limits={"cost": 1.0, "wall": 3600.0},
    ),
)
