"""The evidence of a kill: a case folder with what the dead had running, open, asked for, fetched, printed and changed.

It begins when SIGKILL is out, takes its process part from the witness's last look, ends at a bound, and deletes nothing. Each part is
written as far as it came; the manifest names every file with its hash, and what was cut off or failed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from console.domain.agent import Agent, AgentId
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.domain.guard import KILL_LIMIT_S
from console.domain.kill import Step, StepName, StepStatus
from console.domain.process.durable import make_folder
from console.domain.words import counted
from console.ledger.store import Ledger
from console.services.evidence.changes import Looker
from console.services.evidence.process_snapshot import AgentSeen
from console.services.evidence.snapshot_cache import Witness
from console.services.fleet.core import Core
from console.settings.options import EvidenceOptions
from console.settings.places import Places

log = logging.getLogger(__name__)
SCHEMA = "watchfloor-case/1"
EGRESS = 200
EGRESS_ONE_BY_ONE = 50
"""With more targets than this, the newest records of all agents are sifted instead of asking for each."""
EGRESS_SIFTED = 2000
TAIL_BYTES = 16 * 1024
ARGUMENT = 4000
"""Characters kept of what a permission was asked for."""
CLOSING = 0.1
"""Part of the bound kept for the manifest."""
DISK_S = 5.0
"""A disk that has not answered this long after the bound is not waited for."""
_FOLDERS = 20


@dataclass(frozen=True, slots=True)
class Matter:
    """What is known at the moment of the kill, taken on the loop's thread; nothing of it changes later."""

    kill_id: str
    targets: tuple[Agent, ...]
    agents: tuple[Agent, ...]
    """The tree as it is now: all that lived, targets or not."""
    pids: dict[str, int]
    seen: dict[str, AgentSeen]
    asked: tuple[e.PermissionAsked, ...]


@dataclass(slots=True)
class Case:
    """A case folder being written; not one file of it is ever replaced."""

    folder: Path
    until: float
    """CLOCK_MONOTONIC seconds."""
    counts: dict[str, int] = field(default_factory=dict)
    cut: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    redact: Callable[[Any], Any] = lambda data: data
    """Takes known secrets out of what is written."""

    def is_over(self) -> bool:
        """Whether the bound is reached."""
        return time.monotonic() >= self.until

    def put(self, name: str, content: object) -> None:
        """One part as a file of its own. Raises OSError."""
        # To plain data first: what is no text yet becomes one, and then holds no secret.
        content = self.redact(json.loads(json.dumps(content, default=str)))
        data = json.dumps(content, default=str, indent=1, ensure_ascii=True).encode() + b"\n"
        self.files.append({"name": name, "size": len(data), "sha256": _write(self.folder / name, data)})

    def sync(self) -> None:
        """Everything written so far is on the disk when this returns. Raises OSError."""
        for name in [f["name"] for f in self.files] + ["."]:
            _sync(self.folder / name)
        _sync(self.folder.parent)


@dataclass(frozen=True, slots=True)
class Collected:
    """What the step says."""

    manifest_sha256: str
    counts: dict[str, int]
    cut: tuple[str, ...]
    """Parts that the bound ended."""
    failed: tuple[str, ...]
    """Parts that could not be collected, with why."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence step of every kill."""

    core: Core
    witness: Witness
    places: Places
    ledger: Ledger
    options: EvidenceOptions
    redact: Callable[[Any], Any]
    """Takes known secrets out of what is written."""

    async def step(self, kill_id: str, targets: set[AgentId], pressed: float, zero: asyncio.Event | None = None) -> Step:
        """Collects in a thread. ``ok`` when the manifest is on disk, also when the bound cut something; never waits for a hung disk.

        ``zero``: what is known is taken at once; it is written once the caller of the kill has its answer, or ``KILL_LIMIT_S`` are over.
        """
        matter = matter_of(self.core, self.witness, kill_id, targets)
        if zero is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(KILL_LIMIT_S):
                    await zero.wait()
        options, began = self.options, time.monotonic()
        task = asyncio.create_task(asyncio.to_thread(collect, matter, self.places, self.ledger, options, began, self.redact))
        task.add_done_callback(_seen_to)
        await asyncio.wait([task], timeout=options.bound_s + DISK_S)
        ms = round((time.time() - pressed) * 1000, 1)
        if not task.done():
            words = f"the disk has not answered for {options.bound_s + DISK_S:g} s; it goes on"
            return Step(StepName.EVIDENCE, StepStatus.UNKNOWN, ms, words)
        try:
            got = task.result()
        except (OSError, ValueError) as error:
            return Step(StepName.EVIDENCE, StepStatus.FAILED, ms, f"nothing was collected: {getattr(error, 'strerror', None) or error}")
        return Step(StepName.EVIDENCE, StepStatus.FAILED if got.failed else StepStatus.OK, ms, words_of(got, options.bound_s))


def matter_of(core: Core, witness: Witness, kill_id: str, targets: set[AgentId]) -> Matter:
    """References only: the values are frozen, so a thread can read them at leisure."""
    state = core.state
    return Matter(
        kill_id=kill_id,
        targets=tuple(state.agents[i] for i in sorted(targets) if i in state.agents),
        agents=tuple(state.agents[i] for i in sorted(state.live | state.killing | targets) if i in state.agents),
        pids={str(i): n for i, n in state.pids.items()},
        seen=witness.seen(),
        asked=_asked(core, targets),
    )


def _asked(core: Core, targets: set[AgentId]) -> tuple[e.PermissionAsked, ...]:
    """What waited when the kill came, which has taken it away by now, and what waits still."""
    taken = [e.PermissionAsked(a.asked_at, 0.0, a.agent_id, a.approval_id, a.request) for a in core.state.approvals.open_or_taken(targets)]
    known = {(one.agent_id, one.request) for one in taken}
    return (*taken, *(one for one in core.asked.values() if (one.agent_id, one.request) not in known))


def collect(
    matter: Matter, places: Places, ledger: Ledger, options: EvidenceOptions, began: float, redact: Callable[[Any], Any] = lambda data: data
) -> Collected:
    """Writes the case folder. Raises OSError or ValueError when not even a manifest could be written."""
    case = Case(_new_folder(places.state_dir / "cases", matter.kill_id), began + options.bound_s * (1 - CLOSING), redact=redact)
    # 1. What was taken already and costs nothing but the writing. 2. What has to be read, the quickest first.
    stages: tuple[tuple[str, Callable[[], object]], ...] = (
        ("snapshot", lambda: _snapshot(case, matter)),
        ("agents", lambda: _agents(case, matter)),
        ("approvals", lambda: _approvals(case, matter)),
        ("egress", lambda: _egress(case, matter, ledger)),
        ("outputs", lambda: _outputs(case, matter, places.output_dir)),
        ("workspaces", lambda: _workspaces(case, matter, places.workspaces_dir, options.files_max)),
    )
    for name, stage in stages:
        if case.is_over():
            case.cut.append({"part": name, "why": "not begun"})
            continue
        try:
            case.put(f"{name}.json", stage())
        except (ConsoleError, OSError, SQLAlchemyError) as error:
            log.error("evidence of %s: %s failed", matter.kill_id, name, exc_info=error)
            case.failed.append({"part": name, "why": str(getattr(error, "strerror", None) or error)[:500]})
    # 3. The manifest last: it vouches for what is there.
    digest = _close(case, matter, options, began)
    failed = tuple(f"{f['part']}: {f['why']}" for f in case.failed)
    return Collected(digest, case.counts, tuple(c["part"] for c in case.cut), failed)


_COUNTED = (
    ("agents", "agent", ""),
    ("processes", "process", "processes"),
    ("files", "open file", ""),
    ("sockets", "socket", ""),
    ("egress", "request", ""),
    ("approvals", "open approval", ""),
    ("changed", "changed file", ""),
)


def words_of(got: Collected, bound_s: float) -> str:
    """For the receipt: counts, the manifest's hash, what is missing."""
    n = got.counts
    said = [
        ", ".join(counted(n.get(name, 0), one, many) for name, one, many in _COUNTED),
    ]
    if n.get("unseen"):
        said.append(f"{counted(n['unseen'], 'agent')} whose processes were never read")
    if got.cut:
        said.append(f"cut at {bound_s:g} s: {', '.join(got.cut)}")
    if got.failed:
        said.append(f"failed: {'; '.join(got.failed)[:300]}")
    return "; ".join([*said, f"manifest sha256 {got.manifest_sha256}"])


# --- the parts


def _snapshot(case: Case, matter: Matter) -> object:
    """Processes, open files and sockets of the targets, as the witness last saw them."""
    found = {a.agent_id: matter.seen[a.agent_id] for a in matter.targets if a.agent_id in matter.seen}
    unseen = [a.agent_id for a in matter.targets if a.agent_id not in matter.seen and a.process is not None]
    every = [p for seen in found.values() for p in seen.processes]
    case.counts |= {
        "agents": len(matter.targets),
        "processes": len(every),
        "files": sum(len(p.files) for p in every),
        "sockets": sum(len(p.sockets) for p in every),
        "unseen": len(unseen),
    }
    return {"agents": {i: asdict(seen) for i, seen in found.items()}, "never_looked_at": unseen}


def _agents(_case: Case, matter: Matter) -> object:
    """The tree as it is now, parents named."""
    targets = {a.agent_id for a in matter.targets}
    return {"agents": [asdict(a) | {"pids": matter.pids.get(a.agent_id), "target": a.agent_id in targets} for a in matter.agents]}


def _approvals(case: Case, matter: Matter) -> object:
    """Collect the approvals that the targets had asked for and that were still open."""
    targets = {a.agent_id for a in matter.targets}
    asked = [a for a in matter.asked if a.agent_id in targets]
    case.counts["approvals"] = len(asked)
    return {
        "open": [
            {"at": a.at, "agent_id": a.agent_id, "request_id": a.request_id,
             "tool": a.request.tool[:ARGUMENT], "argument": a.request.argument[:ARGUMENT]}
            for a in asked
        ]
    }  # fmt: skip


def _egress(case: Case, matter: Matter, ledger: Ledger) -> object:
    """The targets' last requests through Envoy, newest first."""
    targets = {str(a.agent_id) for a in matter.targets}
    if len(targets) > EGRESS_ONE_BY_ONE:
        rows = [r for r in ledger.egress(EGRESS_SIFTED) if r.record.agent_id in targets]
    else:
        rows = [r for i in sorted(targets) for r in ledger.egress(EGRESS, i)]
    records = sorted((r.record for r in rows), key=lambda r: -r.at)[:EGRESS]
    case.counts["egress"] = len(records)
    return {"newest_first": [asdict(r) for r in records]}


def _outputs(case: Case, matter: Matter, output_dir: Path) -> object:
    """The last lines each target printed."""
    found = {}
    for number, agent in enumerate(matter.targets):
        if case.is_over():
            case.cut.append({"part": "outputs", "why": f"{len(matter.targets) - number} agents not looked at"})
            break
        if (tail := _tail(output_dir / f"{agent.agent_id}.log")) is not None:
            found[agent.agent_id] = tail
    case.counts["outputs"] = len(found)
    return {"agents": found}


def _workspaces(case: Case, matter: Matter, workspaces_dir: Path, files_max: int) -> object:
    """Files changed since the first target of each session began; every session gets its share of the time that is left."""
    since: dict[str, float] = {}
    for agent in matter.targets:
        since[agent.context_id] = min(agent.started_at, since.get(agent.context_id, agent.started_at))
    found = []
    for number, (context_id, began) in enumerate(sorted(since.items(), key=lambda item: -item[1])):
        now = time.monotonic()
        until = now + (case.until - now) / (len(since) - number)
        changes = Looker(until, files_max).changed_since(workspaces_dir, context_id, began)
        if changes.cut:
            case.cut.append({"part": "workspaces", "why": f"{context_id}: {changes.cut}"})
        found.append(changes)
    case.counts["changed"] = sum(len(c.files) for c in found)
    case.cut = _once_each(case.cut)
    return {"workspaces": [asdict(c) for c in found]}


def _close(case: Case, matter: Matter, options: EvidenceOptions, began: float) -> str:
    """Syncs, writes the manifest, syncs that. The manifest's SHA-256. Raises OSError."""
    case.sync()
    manifest = {
        "schema": SCHEMA,
        "kill_id": matter.kill_id,
        "collected_at": time.time(),
        "bound_s": options.bound_s,
        "took_ms": round((time.monotonic() - began) * 1000, 1),
        "counts": case.counts,
        "files": list(case.files),
        "cut": case.cut,
        "failed": case.failed,
    }
    case.put("manifest.json", manifest)
    case.sync()
    return str(case.files[-1]["sha256"])


# --- the disk


def _new_folder(cases: Path, kill_id: str) -> Path:
    """``cases/<kill id>``, or with a number behind it when that is there: what was collected before is kept. Raises OSError, ValueError."""
    if not kill_id or not all(c.isascii() and (c.isalnum() or c in "-_") for c in kill_id) or len(kill_id) > 80:
        raise ValueError("not a kill's id")
    make_folder(cases)
    for number in range(1, _FOLDERS):
        folder = cases / (kill_id if number == 1 else f"{kill_id}.{number}")
        try:
            folder.mkdir(mode=0o700)
            return folder
        except FileExistsError:
            continue
    raise OSError(0, f"there are {_FOLDERS - 1} case folders of this kill already")


def _write(path: Path, data: bytes) -> str:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tail(path: Path) -> dict[str, object] | None:
    """The end of an output file; None when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        file.seek(max(0, size - TAIL_BYTES))
        return {"size": size, "tail": file.read(TAIL_BYTES).decode("utf-8", "backslashreplace")}


def _once_each(cut: list[dict[str, str]]) -> list[dict[str, str]]:
    """One entry per part, its reasons joined."""
    joined: dict[str, str] = {}
    for entry in cut:
        joined[entry["part"]] = "; ".join(w for w in (joined.get(entry["part"], ""), entry["why"]) if w)
    return [{"part": part, "why": why} for part, why in joined.items()]


def _seen_to(task: asyncio.Task[Collected]) -> None:
    """An end after the step was judged is logged, never lost."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("evidence could not be collected: %s", error)
