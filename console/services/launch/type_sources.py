"""What an agent's type has (``sources/TYPE.json`` of the state directory), turned into a stricter launch: never a looser one."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

from console.api.agents.agent_types import SourcesFileView, SourcesView
from console.api.policy import policy_data
from console.domain.agent import Agent, AgentId, LaunchRequest
from console.domain.conversation import started_as
from console.domain.errors import ConsoleError, Unavailable
from console.domain.ids import ControlLevel
from console.domain.network import EVERYTHING, LOOSEST, STRICTEST, Narrowing, NetworkMode, stricter_mode
from console.domain.process.environment import check_agent_type
from console.ledger.store import Ledger
from console.policy.rules.declared import Declared
from console.services.launch.containing import own_hosts
from console.services.launch.environments import is_damaged, stored
from console.settings.options import Options
from console.settings.places import Places
from console.settings.sources_file import AgentSources, load_sources

FILES_MAX = 500
SETTLED_NS = 3_000_000_000
_K = TypeVar("_K")
_V = TypeVar("_V")
KEPT_MAX = 4096
"""Agents, and types, of which is remembered what is on disk for good."""


def memory_of(options: Options, sources: AgentSources | None) -> int:
    """Bytes: the smaller of what any agent and what this type may use."""
    most = options.agents.memory_max_mib
    if sources is not None and sources.runtime.max_memory_mb is not None:
        most = min(most, sources.runtime.max_memory_mb)
    return most * 1024 * 1024


class TypeSources:
    """Read the files again for every launch, so that an edit holds for the next agent. A broken file refuses the launch."""

    __slots__ = ("_ledger", "_options", "_folder", "known", "_declared")

    def __init__(self, ledger: Ledger, places: Places, options: Options) -> None:
        self._ledger = ledger
        self._options = options
        self._folder = places.state_dir / "sources"
        self.known: dict[AgentId, str] = {}
        """Types of agents, as far as they were looked up."""
        self._declared: dict[str, tuple[tuple[int, ...], Declared | None]] = {}

    def of(self, request: LaunchRequest) -> AgentSources | None:
        """For a launch; None: its type has no file, or it has no type. Raises ConsoleError that names file, place and remedy."""
        parent, kind = request.parent_id, self.type_for(request)
        found = load_sources(self._folder, kind) if kind else None
        if parent is not None and found is None and self._is_narrowed(parent):
            file = self._folder / f"{kind}.json"
            raise Unavailable(f"{file} is gone, and {parent}, of that type, is narrowed by it: it starts nothing.", "Put the file back.")
        return found

    def destinations(self, request: LaunchRequest) -> Narrowing | None:
        """What a launch reaches of the allowlist, and its own model; None: all of the list, and no more. Raises as ``of``."""
        sources, own = self.of(request), own_hosts(request, self._options)
        narrowing = sources.narrowing() if sources is not None else None
        return replace(narrowing or Narrowing(only=(EVERYTHING,)), own=own) if own else narrowing

    def type_for(self, request: LaunchRequest) -> str:
        """The type that a launch gets: what an agent starts has its parent's. Raises ConsoleError when that cannot be read."""
        return self._type_of(request.parent_id) if request.parent_id is not None else request.agent_type

    def builds_own_sandbox(self, request: LaunchRequest) -> bool:
        """Whether what is started may create user namespaces. An agent cannot ask for it: of a child only the parent's type counts."""
        names = {self.type_for(request)}
        if request.parent_id is None:
            program = started_as(request.argv)
            names |= {program.program.value if program is not None else Path(request.argv[0]).name}
        return not names.isdisjoint(self._options.agents.own_sandbox)

    def keep(self, agent_id: AgentId, narrowing: Narrowing | None, kind: str = "") -> None:
        """On disk before it runs: what its type takes away from it holds for its whole life. Blocks. Raises NotRecorded."""
        self._ledger.kv_set(_key(agent_id), json.dumps(asdict(narrowing) if narrowing is not None else None))
        if kind:
            _room(self.known)[agent_id] = kind

    def _is_narrowed(self, agent_id: AgentId) -> bool:
        """Whether its type took anything from it when it was started; what cannot be read leaves it nothing."""
        text = self._ledger.kv_get(_key(agent_id))
        kept = _read(text) if text is not None else None
        return kept is not None and kept.takes_away

    def _type_of(self, agent_id: AgentId) -> str:
        """What an agent starts has its own type."""
        given = stored(self._ledger, agent_id)
        if given is not None:
            _room(self.known)[agent_id] = given.agent_type
            return given.agent_type
        if is_damaged(self._ledger, agent_id):
            raise ConsoleError(f"What type {agent_id} has cannot be read.", "Launch it as a root of its own, with its type.")
        return ""

    def shape(self, request: LaunchRequest) -> LaunchRequest:
        """The launch with the network mode and the wall time of its type, where those are stricter."""
        sources = self.of(request)
        if sources is None:
            return request
        mode = NetworkMode.PROXIED if sources.narrowing().only else STRICTEST
        asked = request.network_mode or LOOSEST
        wall, most = request.limits.wall_s, sources.runtime.max_execution_time_seconds
        if most is not None:
            wall = float(most) if wall is None else min(wall, float(most))
        return replace(request, network_mode=stricter_mode(asked, mode), limits=replace(request.limits, wall_s=wall))

    def type_of(self, agent: Agent) -> str:
        """Empty: it has none, or is only seen. Blocks. Raises ConsoleError."""
        if agent.control_level is ControlLevel.OBSERVED:
            return ""
        kind = self.known.get(agent.agent_id)
        if kind is None:  # it is on disk before an agent runs, and for its whole life
            kind = self._type_of(agent.agent_id)
        return kind

    def declared_of(self, agent: Agent) -> Declared | None:
        """What its type declares, as a policy joins it; None: it has no type, or is only seen. Blocks. Raises ConsoleError.

        The same object for as long as its file is the same.
        """
        kind = self.type_of(agent)
        if not kind:
            return None
        stamp = _stamp(f"{self._folder}/{check_agent_type(kind)}.json")
        before = self._declared.get(kind)
        if before is not None and before[0] == stamp:
            return before[1]
        read = load_sources(self._folder, kind)
        made = policy_data.declared(read) if read is not None else None
        if stamp:
            _room(self._declared)[kind] = (stamp, made)
        return made

    def narrowing_of(self, agent_id: AgentId) -> Narrowing | None:
        """For an agent of an earlier supervisor: as it was started, whatever became of the file. Unknown: it reaches nothing."""
        text = self._ledger.kv_get(_key(agent_id))
        if text is not None:
            return _read(text)
        try:  # started before that was kept
            kind = self._type_of(agent_id)
            sources = load_sources(self._folder, kind) if kind else None
        except ConsoleError:
            return Narrowing()
        return sources.narrowing() if sources is not None else Narrowing() if kind else None

    def doubts(self, agent_id: AgentId) -> str:
        """What people should know of its narrowing when it is followed again; empty: nothing."""
        try:
            kind = self._type_of(agent_id)
            gone = bool(kind) and load_sources(self._folder, kind) is None
        except ConsoleError as error:
            return f"{agent_id} keeps the destinations it was started with: {error.what}"
        if not gone:
            return ""
        if self._ledger.kv_get(_key(agent_id)) is None:
            return f"{agent_id} reaches nothing: what narrowed agents of type {kind} when it was started is not known"
        return f"sources/{kind}.json is gone; {agent_id} keeps the destinations it was started with" if self._is_narrowed(agent_id) else ""

    def view(self) -> SourcesView:
        """Every file: what it gives, or what is wrong with it."""
        try:
            names = sorted(path.stem for path in self._folder.glob("*.json"))[:FILES_MAX]
        except OSError:
            names = []
        return SourcesView(folder=str(self._folder), types=[self._file(name) for name in names])

    def _file(self, name: str) -> SourcesFileView:
        try:
            found = load_sources(self._folder, name)
        except ConsoleError as error:
            return SourcesFileView(agent_type=name, ok=False, error=error.what, remedy=error.remedy)
        if found is None:
            return SourcesFileView(agent_type=name, ok=False, error="it is gone", remedy="")
        return SourcesFileView(agent_type=name, ok=True, enforced=_enforced(found), not_enforced=found.not_enforced())


def _room(kept: dict[_K, _V]) -> dict[_K, _V]:
    while len(kept) >= KEPT_MAX:
        kept.pop(next(iter(kept)), None)
    return kept


def _stamp(path: str) -> tuple[int, ...]:
    """Tells one version of a file from another without reading it; empty: it cannot be told (it changed just now, and clocks tick)."""
    try:
        seen = os.stat(path)  # noqa: PTH116 - in every judgement
    except OSError:
        return ()
    if not 0 < seen.st_ctime_ns < time.time_ns() - SETTLED_NS:
        return ()
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _key(agent_id: str) -> str:
    return f"narrowing.{agent_id}"


def _read(text: str) -> Narrowing | None:
    """What was kept; damaged: nothing can be reached."""
    try:
        data = json.loads(text)
        if data is None:
            return None
        paths = tuple((str(host), str(path)) for host, path in data["blocked_paths"])
        own = tuple(map(str, data.get("own", ())))
        return Narrowing(tuple(map(str, data["only"])), tuple(map(str, data["never"])), paths, int(data["most_bytes"]), own)
    except (ValueError, KeyError, TypeError):
        return Narrowing()


def _enforced(sources: AgentSources) -> list[str]:
    narrowing, runtime = sources.narrowing(), sources.runtime
    hosts = ", ".join(narrowing.only)
    said = [f"network: {f'PROXIED, of the allowlist only {hosts}' if hosts else 'NONE'}"]
    said += [f"never: {', '.join(narrowing.never)}"] if narrowing.never else []
    said += [f"{name}={value}" for name, value in sorted(sources.variables().items())]
    blocked = [
        n for m in (sources.package_managers.pip, sources.package_managers.npm, sources.package_managers.conda) for n in m.blocked_packages
    ]
    said += [f"blocked packages at plain http registries: {', '.join(blocked)}"] if blocked else []
    said += [f"one connection carries at most {narrowing.most_bytes >> 20} MiB one way"] if narrowing.most_bytes else []
    said += [f"wall time {runtime.max_execution_time_seconds} s"] if runtime.max_execution_time_seconds else []
    said += [f"memory {runtime.max_memory_mb} MiB"] if runtime.max_memory_mb else []
    return said
