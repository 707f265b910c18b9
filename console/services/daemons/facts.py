"""One look at what could start each agent again, as the guard is told it and as people are shown it. Blocks; never raises."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from console.domain.agent import AgentId, ProcessIdentity
from console.sources.daemons import processes as p
from console.sources.daemons.interface import Daemons, FoundDaemon, SharedJob
from console.sources.daemons.processes import Processes
from console.sources.daemons.shared import shared_jobs
from console.sources.kinds import daemons_of

LINE = 3000
"""Bytes of one line to the guard, which holds 4 KiB."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An agent that a kill may name."""

    agent_id: AgentId
    sources: tuple[str, ...]
    session: str
    process: ProcessIdentity
    cwd: str


@dataclass(slots=True)
class DaemonOf:
    """A daemon with the agents whose sessions it hosts."""

    found: FoundDaemon
    kind: Daemons
    agents: list[Asked] = field(default_factory=list)

    def command(self, agent: Asked) -> tuple[str, ...]:
        """The program's own command that drops the agent's session; empty: none."""
        return self.kind.drop(self.found, agent.session)

    @property
    def others(self) -> list[str]:
        """Sessions of nobody that was asked for."""
        mine = [agent.session for agent in self.agents]
        return [h.session for h in self.found.hosted if not any(_is_of(h.session, session) for session in mine)]


@dataclass(slots=True)
class Facts:
    """Of one look."""

    daemons: list[DaemonOf] = field(default_factory=list)
    jobs: list[tuple[Asked, SharedJob]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)

    def messages(self) -> list[dict[str, Any]]:
        """What the guard is told, in lines that it takes."""
        items = [("sessions", one) for one in self.sessions]
        items += [("daemons", _told(one)) for one in self.daemons]
        items += [("jobs", _told_job(agent, job)) for agent, job in self.jobs]
        lines = list(_packed(items))
        return [line | {"more": n > 0, "last": n == len(lines) - 1} for n, line in enumerate(lines)]


def look(agents: Iterable[Asked]) -> Facts:
    """What could start these again, by the kernel's word of this moment."""
    facts, processes = Facts(), Processes()
    by_daemon: dict[ProcessIdentity, DaemonOf] = {}
    for agent in agents:
        line = processes.line(agent.process)
        if not line:
            continue
        facts.jobs += [(agent, job) for job in shared_jobs(line)]
        for kind in dict.fromkeys(kind for source in agent.sources if (kind := daemons_of(source)) is not None):
            found = kind.find(line, processes)
            if found is not None:
                one = by_daemon.setdefault(found.process, DaemonOf(found, kind))
                one.agents.append(agent)
            facts.sessions.append(_session(agent, kind, found))
    facts.daemons = list(by_daemon.values())
    return facts


def _session(agent: Asked, kind: Daemons, found: FoundDaemon | None) -> dict[str, Any]:
    runs_itself = "/" + kind.kind in p.exe(agent.process.pid) or (found is not None and found.process == agent.process)
    uid = p.account(agent.process.pid) if runs_itself else None  # a launch of ours has another account inside than its keeper
    hosted = next((h for h in found.hosted if _is_of(h.session, agent.session)), None) if found is not None else None
    return {
        "agent_id": agent.agent_id,
        "kind": kind.kind,
        "session": agent.session[:80],
        "uid": -1 if uid is None else uid,
        "exe": p.exe(agent.process.pid)[:500],
        "cwd": agent.cwd[:1000],
        "words": list(kind.resume_words),
        "variables": list(kind.variables),
        "sign": hosted.sign if hosted is not None else "",
        "daemon": found.process.pid if found is not None else 0,
        "daemon_ticks": found.process.start_ticks if found is not None else 0,
    }


def _is_of(hosted: str, session: str) -> bool:
    """Whether a hosted session, of which the kind may know only the first letters, is this one."""
    return bool(hosted) and session.startswith(hosted)


def _told(one: DaemonOf) -> dict[str, Any]:
    found = one.found
    whose = {h.child: agent for h in found.hosted for agent in one.agents if h.child and _is_of(h.session, agent.session)}
    is_agent = next((agent.agent_id for agent in one.agents if agent.process == found.process), "")
    children = [(h.child, whose.get(h.child)) for h in found.hosted if h.child is not None] + [(child, None) for child in found.unknown]
    return {
        "kind": found.kind,
        "name": found.name,
        "pid": found.process.pid,
        "start_ticks": found.process.start_ticks,
        "exe": found.exe[:500],
        "uid": found.uid,
        "refused": found.refused[:500],
        "agents": [agent.agent_id for agent in one.agents],
        "sessions": [agent.session[:80] for agent in one.agents],
        "commands": [shlex.join(one.command(agent))[:500] for agent in one.agents],
        "others": one.others[:20],
        "hosts": [[child.pid, child.start_ticks, agent.agent_id if agent else ""] for child, agent in children[:30]],
        "idle": [[idle.child.pid, idle.child.start_ticks, idle.sign] for idle in found.idle[:5]],
        "is_agent": is_agent,
    }


def _told_job(agent: Asked, job: SharedJob) -> dict[str, Any]:
    process = job.process
    told = {k: v for k, v in asdict(job).items() if k in ("program", "job", "uid")}
    where = {"pid": process.pid if process else 0, "start_ticks": process.start_ticks if process else 0, "exe": job.exe[:500]}
    return told | where | {"agent_id": agent.agent_id, "command": shlex.join(job.command)[:500]}


def _packed(items: list[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Lines of as many items as one may hold; at least one line, which says that there is nothing."""
    line: dict[str, Any] = {}
    room = LINE
    for name, item in items:
        size = len(repr(item)) + 10
        if line and size > room:
            yield line
            line, room = {}, LINE
        line.setdefault(name, []).append(item)
        room -= size
    yield line
