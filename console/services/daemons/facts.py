"""One look at what could start each agent again, as the guard is told it and as people are shown it. Blocks; never raises."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from console.domain.agent import AgentId, ProcessIdentity
from console.sources.daemons import processes as p
from console.sources.daemons.interface import Daemons, FoundDaemon, Hosted, SharedJob
from console.sources.daemons.processes import Processes
from console.sources.daemons.shared import shared_jobs
from console.sources.kinds import daemons_of

LINE = 3000
"""Bytes of one line to the guard, which holds 4 KiB."""
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""As every kind with daemons writes its ids. An agent writes its own into a file: any other word would fit what others start."""


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
    """Each with its session as far as it is proven."""

    def command(self, agent: Asked) -> tuple[str, ...]:
        """The program's own command that drops the agent's session; empty: none, or which session it is is not proven."""
        session = next((one.session for one in self.agents if one.agent_id == agent.agent_id), "")
        return self.kind.drop(self.found, session) if session else ()

    @property
    def others(self) -> list[str]:
        """Return the daemon's sessions that belong to none of the agents asked about."""
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
            hosted = _hosted(found, line) if found is not None else None
            proven = replace(agent, session=_proven(agent.session, found, hosted))
            if found is not None:
                by_daemon.setdefault(found.process, DaemonOf(found, kind)).agents.append(proven)
            facts.sessions.append(_session(proven, kind, found, hosted, processes))
    facts.daemons = list(by_daemon.values())
    return facts


def _hosted(found: FoundDaemon, line: Sequence[ProcessIdentity]) -> Hosted | None:
    """The session that the daemon hosts in a child above the agent's process: what only that child shows to be its own."""
    # Sockets of a daemon may show only eight letters of an id: two sessions with the same letters prove neither.
    whose = Counter(h.session for h in found.hosted)
    return next((h for h in found.hosted if h.child in line and whose[h.session] == 1), None)


def _proven(session: str, found: FoundDaemon | None, hosted: Hosted | None) -> str:
    """The session's id as far as it can be believed; empty: not at all. An agent that names another's session gets only itself killed."""
    if not _SESSION.match(session):
        return ""
    if hosted is not None:
        return session if _is_of(hosted.session, session) else ""
    is_anothers = found is not None and any(h.child is not None and _is_of(h.session, session) for h in found.hosted)
    return "" if is_anothers else session


def _account(agent: Asked, kind: Daemons, found: FoundDaemon | None, processes: Processes) -> int:
    """That the session runs under; -1: not known. A launch of ours has a keeper, and below it another account."""
    pid = agent.process.pid
    own = p.account(pid)
    runs_itself = "/" + kind.kind in p.exe(pid) or (found is not None and found.process == agent.process)
    if own is not None and (runs_itself or own != os.geteuid()):
        return own
    inside = {uid for one in processes.below(pid) if (uid := p.account(one)) is not None} - {own}
    return inside.pop() if len(inside) == 1 else own if own is not None and not inside else -1


def _session(agent: Asked, kind: Daemons, found: FoundDaemon | None, hosted: Hosted | None, processes: Processes) -> dict[str, Any]:
    return {
        "agent_id": agent.agent_id,
        "kind": kind.kind,
        "session": agent.session[:80],
        "uid": _account(agent, kind, found, processes),
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
    # A child without a target keeps its daemon alive at a kill, so unknown children are told as well.
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
        "is_process_of": [agent.agent_id for agent in one.agents if agent.process == found.process],
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
