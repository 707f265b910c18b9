"""The hunt for what could bring an agent back: a signed baseline before a session's first agent runs, and a look after each kill.

Every look runs in a daemon thread of its own, one at a time, within a time limit: a disk that hangs holds up neither the loop nor a kill.
What could not be looked at is said, and makes the step unknown; nothing that is found is touched or run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import pwd
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.credentials.host_key import ensure_host_key
from console.domain.agent import Agent, AgentId
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, TimedOut, Unavailable
from console.domain.ids import ControlLevel
from console.domain.kill import Receipt, Step
from console.enforcement.state import EngineState
from console.rollback.persistence import baseline
from console.rollback.persistence.differ import Wrote, bounded, report
from console.rollback.persistence.findings import QUARANTINE, Report, Root, Snapshot, Where, Writers
from console.rollback.persistence.places import on_path
from console.rollback.persistence.reader import Bounds, Reader
from console.settings.options import Options
from console.settings.places import Places

log = logging.getLogger(__name__)
SCHEMA = "watchfloor-persistence/1"
PER_SESSION_S = 0.05
MOST_S = 15.0
DISK_S = 3.0
"""A thread that has not come back this long after its bound is not waited for."""
SETTLE_S = 1.0
"""Sessions that end within this time are looked at together."""
REPORTS = 200
KEPT_FINDINGS = 20_000
KEPT_BYTES = 32 << 20
"""Findings in a case folder, of all sessions of a kill; what is beyond is counted there."""
NAMED = 4
"""Findings named in the receipt; all are in the case folder."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Words:
    """What the second look says of the hunt."""

    text: str
    doubtful: bool


def writers_of(state: EngineState, options: Options, context_id: str) -> Writers:
    """Return the accounts under which the agents of a session ran, and whether one of them saw the host's files."""
    root = os.geteuid() == 0
    uid, gid = (options.agents.uid, options.agents.gid) if root else (os.geteuid(), os.getegid())
    levels = {a.control_level for a in state.agents.values() if a.context_id == context_id}
    return Writers(context_id, uid, gid, bool(levels - {ControlLevel.CONTAINED}))


class Hunt:
    """Baselines and persistence checks of one instance. On the loop's thread; reads and writes run in threads."""

    __slots__ = (
        "_hide", "_wrote", "_folder", "_begun", "_words", "_ended", "_settling", "_turn", "_thread", "reports", "_places", "_options",
        "_state", "_record", "_notice"
    )  # fmt: skip

    def __init__(
        self,
        places: Places,
        options: Options,
        state: Callable[[], EngineState],
        record: Callable[[Record], None],
        notice: Callable[[str], None],
        hide: Callable[[str], str] = str,
        wrote: Wrote = lambda _before, _now: False,
    ) -> None:
        """``hide`` takes the secrets out that this instance knows; what looks like one is masked besides. ``wrote`` knows our own files."""
        self._hide, self._wrote = hide, wrote
        self._places, self._options, self._state = places, options, state
        self._record, self._notice = record, notice
        self._folder = places.state_dir / "baselines"
        self._begun: dict[str, asyncio.Task[None]] = {}
        self._words: dict[str, _Words] = {}
        self._ended: set[str] = set()
        self._settling: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._thread: threading.Thread | None = None
        self.reports: dict[str, Report] = {}
        """The latest of each session."""

    # --- the baseline

    async def begin(self, agent: Agent) -> None:
        """Returns once the session has its baseline, or it is known that it will have none. Before its first agent runs."""
        task = self._begun.get(agent.context_id)
        if task is None:
            # A baseline after agents have run would make what they left the measure.
            ran = any(a.process is not None for a in self._state().agents.values() if a.context_id == agent.context_id)
            task = asyncio.get_running_loop().create_task(self._begin(agent.context_id, ran))
            self._begun[agent.context_id] = task
        await asyncio.wait([task])

    async def _begin(self, context_id: str, ran: bool) -> None:
        # One that is there stays, whatever it holds: what a session's agents left would otherwise become the measure.
        if os.path.lexists(baseline.place_of(self._folder, context_id)):
            return
        if ran:
            self._notice(f"session {context_id} has no baseline: agents ran in it before; what it left is listed as unverified")
            return
        try:
            digest, taken = await self._in_thread(lambda: self._take(context_id), self._options.persistence.bound_s)
        except (ConsoleError, OSError, ValueError) as error:
            self._notice(f"session {context_id} has no baseline: {error}")
            return
        words = f"{context_id}: {len(taken.entries)} places as they were before its first agent"
        data = {"context": context_id, "sha256": digest, "whole": all(r.whole for r in taken.roots)}
        self._record(Record("supervisor", "persistence.baseline", words, data=data))

    def _take(self, context_id: str) -> tuple[str, Snapshot]:
        key = ensure_host_key(self._places.keys_dir)
        roots, _ = host_roots(self._places, self._options)
        bounds = Bounds(time.monotonic() + self._options.persistence.bound_s)
        taken = Reader(bounds).take((session_root(self._places, context_id), *roots))
        return baseline.save(self._folder, context_id, taken, key.sign), taken

    # --- a look

    async def look(self, context_ids: Iterable[str]) -> list[Report]:
        """What differs from the baseline of each of these sessions. Raises TimedOut, ConsoleError, OSError."""
        sessions = {i: writers_of(self._state(), self._options, i) for i in dict.fromkeys(context_ids)}
        limit = min(MOST_S, self._options.persistence.bound_s + PER_SESSION_S * len(sessions))
        found = await self._in_thread(lambda: self._look(sessions, limit), limit)
        for one in found:
            self.reports.pop(one.context_id, None)
            self.reports[one.context_id] = one
        while len(self.reports) > REPORTS:
            del self.reports[next(iter(self.reports))]
        return found

    def _look(self, sessions: dict[str, Writers], limit: float) -> list[Report]:
        reader = Reader(Bounds(time.monotonic() + limit))
        roots, not_looked = host_roots(self._places, self._options)
        host = reader.take(roots)
        found = []
        for context_id, who in sessions.items():
            own = reader.take((session_root(self._places, context_id),))
            before, doubts = self._before(context_id)
            now = replace(own, roots=(*own.roots, *host.roots), entries=(*own.entries, *host.entries))
            found.append(report(context_id, before, now, who, doubts, not_looked, self._hide, self._wrote))
        return found

    def _before(self, context_id: str) -> tuple[Snapshot | None, tuple[str, ...]]:
        """(the baseline, why there is none to be believed)."""
        try:
            key = ensure_host_key(self._places.keys_dir)
            loaded = baseline.load(self._folder, context_id, lambda data, signature: _is_ours(key, data, signature))
        except ConsoleError as error:
            return None, (str(error),)
        return (loaded[0], ()) if loaded is not None else (None, ())

    async def _in_thread(self, job: Callable[[], T], limit: float) -> T:
        """``job`` in a daemon thread, one at a time. Raises TimedOut when it, or the one before it, does not come back;
        Unavailable when what lies there could not be read, and what ``job`` raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            outcome = _outcome(job)
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, *outcome)

        try:
            async with asyncio.timeout(limit + DISK_S):
                async with self._turn:
                    if self._thread is not None and self._thread.is_alive():
                        self._thread.join(0.05)  # it has answered, and is about to end; or it hangs
                        if self._thread.is_alive():
                            raise TimedOut("The look before has not come back.", "Look at the disk.")
                    self._thread = threading.Thread(target=run, name="hunt", daemon=True)
                    self._thread.start()
                    return await future
        except TimeoutError as error:
            raise TimedOut(f"The look did not come back within {limit + DISK_S:g} s.", "Look at the disk.") from error

    # --- after a kill

    async def after_kill(self, kill_id: str, agent_ids: Iterable[str], evidence: asyncio.Task[Step]) -> None:
        """Looks at the sessions of the dead, and keeps what the receipt's second look shall say. ``evidence`` makes the case folder."""
        agents = [a for i in agent_ids if (a := self._state().agents.get(AgentId(i))) is not None]
        sessions = [a.context_id for a in agents if a.control_level is not ControlLevel.OBSERVED]
        if not sessions:
            return
        try:
            found = await self.look(sessions)
        except (ConsoleError, OSError, ValueError) as error:
            log.error("the persistence check after %s failed", kill_id, exc_info=error)
            self._words[kill_id] = _Words(f"places that start things: unknown, because {error}", True)
            return
        self._words[kill_id] = words_of(found)
        await asyncio.wait([evidence])
        await self._keep(kill_id, found)

    async def _keep(self, kill_id: str, found: list[Report]) -> None:
        """persistence.json in the case folder; the receipt, which is sealed, carries its hash."""
        said = self._words[kill_id]
        try:
            name, digest = await self._in_thread(
                lambda: _write_case(self._places.state_dir, kill_id, found), self._options.persistence.bound_s
            )
            text = f"{said.text}; {name} sha256 {digest}"
            self._words[kill_id] = replace(said, text=text)
        except (ConsoleError, OSError) as error:
            self._words[kill_id] = _Words(f"{said.text}; not kept in the case folder: {error}", True)

    def into(self, receipt: Receipt) -> Receipt:
        """The receipt with what the persistence check after its kill came to; what it cannot tell is a later step that is not done."""
        said = self._words.get(receipt.kill_id)
        if said is None:
            return receipt
        told = receipt.with_step(_said(receipt.second_look, said))
        return replace(told, persistence="unknown" if said.doubtful else "")

    # --- after a session

    def ended(self, context_id: str) -> None:
        """An agent of this session is gone; when no other lives, the session is looked at soon."""
        if context_id not in self._begun:
            return
        self._ended.add(context_id)
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        while self._ended:
            await asyncio.sleep(SETTLE_S)
            state, ended = self._state(), self._ended
            self._ended = set()
            busy = {state.agents[i].context_id for i in state.live | state.killing if i in state.agents}
            over = [i for i in sorted(ended - busy) if not self._is_fresh(i)]
            if not over:
                continue
            try:
                found = await self.look(over)
            except (ConsoleError, OSError, ValueError) as error:
                self._notice(f"what {len(over)} ended sessions left could not be looked at: {error}")
                continue
            for one in found:
                self._say(one)

    def _is_fresh(self, context_id: str) -> bool:
        """Whether it was looked at since its last agent ended."""
        known = self.reports.get(context_id)
        ends = [a.ended_at or 0.0 for a in self._state().agents.values() if a.context_id == context_id]
        return known is not None and known.looked_at >= max(ends, default=0.0)

    def _say(self, one: Report) -> None:
        if not one.findings and not one.doubts:
            return
        said = words_of([one])
        data = {"context": one.context_id, "findings": len(one.findings) + one.left_out, "outside": one.outside, "unknown": said.doubtful}
        self._record(Record("supervisor", "persistence.found", f"{one.context_id} ended: {said.text}", verdict="not_proven", data=data))
        if one.outside or one.doubts:
            self._notice(f"session {one.context_id} ended: {said.text}")


def _outcome(job: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """What ``job`` came to, or how it failed."""
    try:
        return job(), None
    except (ConsoleError, OSError, ValueError) as error:
        return None, error
    except (RecursionError, MemoryError) as error:
        # Something an agent wrote: to whoever asked, it is a place that could not be looked at, not a fault that ends him.
        what = f"Something there could not be read: {type(error).__name__}."
        return None, Unavailable(what, "Look at the session's files by hand.")


def words_of(found: list[Report]) -> _Words:
    """For the receipt and the audit: how many, the first few, and every doubt."""
    every = [f for r in found for f in r.findings]
    every.sort(key=lambda f: f.root.startswith("session:"))
    count, outside = len(every) + sum(r.left_out for r in found), sum(r.outside for r in found)
    said = [f"places that start things: {'nothing changed' if not count else f'{count} changed'} since the baseline"]
    if count:
        said[0] += f", {outside} of them outside the workspaces"
        said += [f"{f.change} {f.path[-120:]} ({f.kind}; runs: {f.runs})" for f in every[:NAMED]]
        said += [f"and {count - NAMED} more"] if count > NAMED else []
        said.append(QUARANTINE)
    doubts = list(dict.fromkeys(d for r in found for d in r.doubts))
    if doubts:
        said[0] = said[0].replace("nothing changed", "nothing seen to have changed")
        said.append(f"unknown: {'; '.join(doubts)[:300]}")
    left = list(dict.fromkeys(n.split(" ", 2)[1] for r in found for n in r.not_looked))
    if left:
        said.append(f"not looked at, because this instance has a state directory of its own: {', '.join(left)}")
    return _Words("; ".join(said), bool(doubts))


def _said(step: Step, said: _Words) -> Step:
    """The step speaks of processes that were back: what may start an agent again changes its words, never its status."""
    return replace(step, detail="; ".join(w for w in (step.detail, said.text) if w))


def _is_ours(key: Ed25519PrivateKey, data: bytes, signature: bytes) -> bool:
    try:
        key.public_key().verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _write_case(state_dir: Path, kill_id: str, found: list[Report]) -> tuple[str, str]:
    """(name, SHA-256) of the findings in the case folder. Raises OSError."""
    sessions = [r.as_json() for r in bounded(found, KEPT_FINDINGS, KEPT_BYTES)]
    body = {"schema": SCHEMA, "kill_id": kill_id, "quarantine": QUARANTINE, "sessions": sessions}
    data = json.dumps(body, indent=1, ensure_ascii=True).encode() + b"\n"
    return _write(state_dir / "cases", kill_id, data), hashlib.sha256(data).hexdigest()


def _write(cases: Path, kill_id: str, data: bytes) -> str:
    """A new file in the newest case folder of this kill; nothing there is ever replaced. Its name. Raises OSError."""
    folders = [f for n in range(20, 1, -1) if (f := cases / f"{kill_id}.{n}").is_dir()]
    folder = folders[0] if folders else cases / kill_id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(1, 100):
        name = "persistence.json" if number == 1 else f"persistence.{number}.json"
        try:
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        return name
    raise OSError(0, "there are 99 such files of this kill already")


# --- Where one instance looks for what could bring an agent back: its own workspaces; the machine's places only where discovery may go
# too.


HOMES = 20
_FIRST_PERSON, _LAST_PERSON = 1000, 60_000
"""Uids of people's accounts (login.defs(5), UID_MIN and UID_MAX)."""
_CONFINED = "is not looked at: this instance has a state directory of its own; name a folder in the setting"


def host_roots(places: Places, options: Options) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """(homes and system to look in, what is not looked at and why). As for sources: confined with --state-dir, unless a folder is named."""
    given = options.persistence
    roots: list[Root] = []
    left: list[str] = []
    if given.home or options.discover_root:
        roots.append(_home(given.home or options.discover_root))
    elif places.is_default:
        roots += [_home(home) for home in _homes()]
    else:
        left.append(f"the home {_CONFINED} persistence.home")
    if given.system or places.is_default:
        roots.append(Root("system", Where.SYSTEM, given.system or "/"))
    else:
        left.append(f"the system {_CONFINED} persistence.system")
    return tuple(roots), tuple(left)


def session_root(places: Places, context_id: str) -> Root:
    """The workspace of a session."""
    return Root(f"session:{context_id}", Where.WORKSPACE, str(places.workspaces_dir / context_id))


def _home(home: str) -> Root:
    return Root(f"home:{home}", Where.HOME, home, on_path(os.environ.get("PATH", "").split(os.pathsep), home))


def _homes() -> list[str]:
    """Our own; as root those of people's accounts too."""
    found = [str(Path.home())]
    if os.geteuid() == 0:
        found += [a.pw_dir for a in pwd.getpwall() if _FIRST_PERSON <= a.pw_uid < _LAST_PERSON and Path(a.pw_dir).is_dir()]
    return [h for h in dict.fromkeys(found) if h.startswith("/") and h != "/"][:HOMES]
