"""What a program could do at worst, said before it starts: files, hosts, scopes, data class, cost."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from console.api.agents.programs import ReachView
from console.domain.agent import LaunchRequest, SandboxKind
from console.domain.conversation import started_as
from console.domain.network import LOOSEST, MODEL, NetworkMode, Sensitivity, higher, narrow, stricter_mode
from console.domain.words import counted
from console.ledger.store import Ledger
from console.sandbox.programs import Found
from console.services.fleet.core import Core
from console.services.launch.environments import wanted_of
from console.services.launch.type_sources import TypeSources
from console.settings.options import Options
from console.settings.places import Places
from console.sources.kind import Servers
from console.sources.kinds import STARTS

NAMED = 20
"""Hosts named; all are counted."""
_NO_KEY = "no key for its model, and no login of yours: it waits for one and answers nothing"
"""A started program has a home of its own, in which no person has logged in."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What will hold, and what it amounts to."""

    mode: NetworkMode
    enforced: bool
    level: Sensitivity
    reach: list[ReachView]


@dataclass(frozen=True, slots=True)
class Outlooks:
    """What a launch could do, as the engine would start it now."""

    core: Core
    ledger: Ledger
    places: Places
    options: Options
    sources: TypeSources

    def of_program(self, request: LaunchRequest, found: Found, told: str, model: str, why_open: str = "") -> Outlook:
        """Of one program. ``why_open``: why it is not contained, though no person chose that. Blocks for a moment."""
        seen = self.of(request, _program(found, told, model, _doubt(request, told), judged=self.options.programs.hooks))
        servers = self.options.programs.mcp.get(found.program, {})
        held = [ReachView(what="sandbox", words=why_open, amber=True)] if why_open else []
        return replace(seen, reach=[*seen.reach[:1], *held, *seen.reach[1:], self._secrets(request, found.program), *_servers(servers)])

    def of(self, request: LaunchRequest, program: ReachView) -> Outlook:
        """Of any command; ``program``: the line that says which. Blocks for a moment."""
        state = self.core.state
        context_level, context_mode = state.context(request.context_id or "")
        level = higher(request.sensitivity, context_level)
        mode = stricter_mode(stricter_mode(request.network_mode or LOOSEST, context_mode), state.modes.of(level))
        # Without root nobody makes a network namespace for a plain process here; FULL shares the machine's network.
        enforced = mode.is_restricted and (request.sandbox is not SandboxKind.NONE or os.geteuid() == 0)
        reach = [
            program,
            self._files(request),
            self._hosts(mode, request, level, enforced=enforced),
            self._scopes(request),
            _data(level, context_level),
            _cost(request),
        ]
        return Outlook(mode, enforced, level, reach)

    def _files(self, request: LaunchRequest) -> ReachView:
        below = self.places.workspaces_dir
        own = f"its workspace ({f'{below}/{request.context_id}' if request.context_id else f'a new one below {below}'}), reads and writes"
        match request.sandbox:
            case SandboxKind.NONE if os.geteuid() == 0:
                words = (
                    f"{own}; reads and writes whatever uid {self.options.agents.uid} may on this machine, but for Watchfloor's own state"
                )
                return ReachView(what="files", words=words, amber=True)
            case SandboxKind.NONE:
                return ReachView(what="files", words=f"{own}; reads and writes whatever you may on this machine", amber=True)
            case SandboxKind.BUBBLEWRAP:
                return ReachView(
                    what="files", words=f"{own}; reads this machine's programs (/usr, /bin, /lib) and the program itself; nothing else"
                )
            case _:
                return ReachView(what="files", words=f"{own}; reads its image and the program itself; nothing else")

    def _hosts(self, mode: NetworkMode, request: LaunchRequest, level: Sensitivity, *, enforced: bool) -> ReachView:
        if mode.is_closed and enforced:
            return ReachView(what="hosts", words="NONE: no host, and so no model either: it cannot answer", amber=True)
        if mode.has_portal and enforced:
            reached = narrow(self.ledger.allowlist(), self.sources.destinations(request), level).entries
            own = [entry.host for entry in reached if entry.entry_id == MODEL]
            names = [f"{entry.host}:{entry.port}" for entry in reached if entry.entry_id != MODEL]
            listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
            nothing = "" if own else ", so no host and no model: watchfloor allowlist add HOST --owner NAME --reason WHY"
            words = f"{counted(len(names), 'allowlist entry', 'allowlist entries')}" + (f": {listed}" if names else nothing)
            model = f"its model at {', '.join(own)}, and " if own else ""
            return ReachView(what="hosts", words=f"PROXIED: {model}{words}", amber=not names and not own)
        asked = "" if not mode.is_restricted else f"{mode} was asked for and cannot be enforced here; "
        return ReachView(what="hosts", words=f"{asked}FULL: every host that this machine reaches, its own services included", amber=True)

    def _scopes(self, request: LaunchRequest) -> ReachView:
        state, spawn = self.core.state, self.core.state.spawn
        beside = [i for i in state.live if request.context_id and state.agents[i].context_id == request.context_id]
        whom = f"session {request.context_id}" + (f", whose workspace it shares with {counted(len(beside), 'agent')}" if beside else "")
        whom = whom if request.context_id else "a session of its own"
        granted = self.options.agents.scopes if request.scopes is None else request.scopes
        kinds = f"kinds of effects: {', '.join(granted)}" if granted else "no kind of effect is granted: every checked call is denied"
        words = f"{whom}; {kinds}; may ask for {spawn.max_children} children, {spawn.max_depth} deep at most"
        return ReachView(what="scopes", words=words, amber=bool(beside))

    def _secrets(self, request: LaunchRequest, program: str) -> ReachView:
        wanted = wanted_of(self.options, request.agent_type, program)
        keys = wanted.secrets if wanted is not None else []
        if there := [name for name in keys if name in os.environ]:
            return ReachView(what="secrets", words=f"it gets {', '.join(there)}, which every program that it starts can read")
        why = (
            f"the supervisor's environment has none of {', '.join(keys)}. Export one, and start the supervisor again"
            if keys
            else "the setting environment names no secret for its type"
        )
        return ReachView(what="secrets", words=f"{_NO_KEY}: {why}", amber=True)


def _doubt(request: LaunchRequest, told: str) -> str:
    """Why this version of the program may skip our hook, or empty."""
    started = started_as(request.argv)
    return STARTS[started.program.value].doubt(told, started.talks) if started is not None else ""


def _program(found: Found, told: str, model: str, doubt: str, *, judged: bool) -> ReachView:
    chosen = f"model {model}" if model else "the model that it chooses itself"
    note = f"; {found.note}" if found.note else ""
    asks = "each tool call is checked by the rules, and waits for you where they ask" if judged else "it calls tools without asking"
    doubt = f"; {doubt}" if doubt and judged else ""
    words = f"{found.path} ({told}), {chosen}; {asks}{doubt}; its other bounds are below{note}"
    return ReachView(what="program", words=words, amber=bool(found.note or doubt) or not judged)


def _servers(servers: Servers) -> list[ReachView]:
    names = ", ".join([*servers][:NAMED])
    return (
        [ReachView(what="servers", words=f"MCP servers {names} (programs.mcp); each gets what its calls say", amber=True)] if names else []
    )


def _data(level: Sensitivity, context_level: Sensitivity) -> ReachView:
    why = " (its session holds such data)" if level is context_level and level is not Sensitivity.PUBLIC else ""
    return ReachView(what="data", words=f"{level}{why}", amber=level.level >= Sensitivity.CONFIDENTIAL.level)


def _cost(request: LaunchRequest) -> ReachView:
    cap, caps = request.limits.cost_usd, request.limits
    if cap is None:
        return ReachView(what="cost", words="no limit: it may spend without end (--limit cost=USD)", amber=True)
    wall = f", {caps.wall_s:g} s at most" if caps.wall_s is not None else ""
    return ReachView(what="cost", words=f"{cap:.2f} USD at most, and the answers under way when it is reached{wall}")
