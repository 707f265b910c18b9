"""Tell the guard which daemons run, ask daemons to drop killed sessions, and watch transcripts after a kill.

See docs/explanation/daemons.md.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import shlex
import signal
import stat
import subprocess
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.api.agents.daemons import DaemonView
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt
from console.killswitch.kill.respawners import words
from console.services.alerts.raised import Alerts
from console.services.daemons.facts import Asked, DaemonOf, Facts, look
from console.services.fleet.core import wait_beat
from console.sources.kinds import daemons_of

log = logging.getLogger(__name__)
LOOK_S = 2.0
GROWTH_S = 1.0
KEPT_S = 120.0
"""What was known of an agent is kept so long after it was last seen: a kill is followed up from it."""
MOST = 1000
DROPPED, AGAIN = "kill.session_dropped", "kill.session_again"
"""Kinds of records: what came of asking a daemon to drop a killed session, and one that runs again after its return watch."""
Tell = Callable[..., dict[str, Any]]


@dataclass(slots=True)
class _Known:
    """The last look that met an agent."""

    agent: Asked
    daemon: DaemonOf | None
    transcript: Path | None
    at: float


class DaemonService:
    """Of one supervisor."""

    __slots__ = (
        "_tasks",
        "_facts",
        "_known",
        "_followed",
        "_killed",
        "_told",
        "_telling",
        "_asked",
        "_tell",
        "_record",
        "_notice",
        "_alerts",
    )

    def __init__(
        self,
        asked: Callable[[], list[Asked]],
        tell: Tell,
        record: Callable[[str, str, str], None],
        notice: Callable[[str, str], None],
        alerts: Alerts,
    ) -> None:
        """``tell``: an operation of the guard. ``record``: its kind, a kill and words. ``notice``: words and ``red`` or ``amber``."""
        self._asked, self._tell, self._record, self._notice, self._alerts = asked, tell, record, notice, alerts
        self._tasks: set[asyncio.Task[None]] = set()
        self._facts = Facts()
        self._known: dict[str, _Known] = {}
        self._followed: set[str] = set()
        self._killed: dict[str, tuple[Receipt, Asked]] = {}
        """Sessions that a kill ended, by their ids: one that runs again after its return watch is said, and lives."""
        self._told: list[dict[str, Any]] | None = None
        """What the guard heard last; None: nothing is known to have reached it."""
        self._telling = asyncio.Lock()

    async def keep_telling(self) -> None:
        """Looks every two seconds, and tells the guard whatever changed. Forever."""
        while True:
            await self.tell()
            await wait_beat(LOOK_S)

    async def tell(self) -> None:
        """A look that begins now, told to the guard where it is news. A guard that does not answer is told at the next one."""
        async with self._telling:
            try:
                facts = await self.refresh()
                lines = facts.messages()
                if lines != self._told and (self._told is not None or facts.sessions or facts.jobs):
                    for line in lines:
                        await asyncio.to_thread(self._tell, "daemons", **line)
                    self._told = lines
            except ConsoleError as error:
                log.warning("the guard does not know the newest list of daemons: %s", error)
                self._told = None

    async def refresh(self) -> Facts:
        """A look that begins now."""
        asked = self._asked()[:MOST]
        facts = await asyncio.to_thread(look, asked)
        now, hosting = time.monotonic(), {a.agent_id: d for d in facts.daemons for a in d.agents}
        for agent in asked:
            had = self._known.get(agent.agent_id)
            is_same = had is not None and had.agent.session == agent.session and had.transcript is not None
            path = had.transcript if had is not None and is_same else await asyncio.to_thread(_transcript, agent)
            self._known[agent.agent_id] = _Known(agent, hosting.get(agent.agent_id), path, now)
        self._known = {agent_id: one for agent_id, one in self._known.items() if now - one.at < KEPT_S}
        self._facts = facts
        self._say_returned(asked)
        return facts

    def _say_returned(self, asked: Collection[Asked]) -> None:
        """A session that runs again after the return watch is a red notice and a record, once. It may be a person's own doing."""
        for agent in asked:
            receipt, had = self._killed.get(agent.session, (None, agent))
            if receipt is None or agent.process == had.process or time.time() < receipt.watch_until:
                continue  # while the watch lasts, the guard finds it and kills it
            del self._killed[agent.session]
            now = f"{agent.agent_id}, process {agent.process.pid}"
            said = f"the killed session of {had.agent_id} runs again after its return watch: {now}"
            self._record(AGAIN, receipt.kill_id, said)
            self._notice(f"kill {receipt.kill_id}: {said}; it was not stopped", "red")
            self._alerts.ran_again(receipt, agent.agent_id, agent.process.pid)

    def around(self, agents: Collection[str]) -> list[DaemonView]:
        """The daemons and shared jobs of these agents, as of the last look: before an adoption or a kill, for people."""
        found = []
        for one in self._facts.daemons:
            mine = [agent for agent in one.agents if agent.agent_id in agents]
            if mine:
                others = [agent.session for agent in one.agents if agent.agent_id not in agents] + one.others
                found.append(_view(one, mine, others))
        for agent, job in self._facts.jobs:
            if agent.agent_id in agents:
                name = f"{job.program}: {job.job}" if job.job else job.program
                plan = "a shared program: named, never frozen or signalled"
                pid = job.process.pid if job.process else 0
                found.append(DaemonView(name=name, pid=pid, agents=[agent.agent_id], plan=plan, command=" ".join(job.command)))
        return found

    def follow(self, receipt: Receipt) -> None:
        """Zero is decided and the daemons run again: what is done about them goes on by itself. Once for each kill."""
        if receipt.kill_id not in self._followed:
            self._followed.add(receipt.kill_id)
            task = asyncio.get_running_loop().create_task(self.after_zero(receipt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def show(self, receipt: Receipt, known: Receipt | None) -> None:
        """Red notices for what ran again, amber ones for what may have or was not watched. The guard's journal has the record."""
        for row in receipt.returns[len(known.returns) if known is not None else 0 :]:
            self._notice(f"return watch of {receipt.kill_id}: {words(row)}", "red" if row.certain else "amber")
            self._alerts.returned(receipt, row)
        for gap in receipt.not_watched[len(known.not_watched) if known is not None else 0 :]:
            self._notice(f"kill {receipt.kill_id}: {words(gap)}", "amber")

    async def after_zero(self, receipt: Receipt) -> None:
        """Each daemon drops its killed sessions, then transcripts are watched."""
        killed = [known for t in receipt.targets if (known := self._known.get(t.agent_id)) is not None]
        self._killed |= {one.agent.session: (receipt, one.agent) for one in killed if one.agent.session}
        while len(self._killed) > MOST:
            del self._killed[next(iter(self._killed))]
        jobs: list[Awaitable[None]] = [asyncio.to_thread(self._drop, receipt.kill_id, one) for one in killed if one.daemon is not None]
        await asyncio.gather(*jobs)
        await self._watch(receipt, killed)

    def _drop(self, kill_id: str, known: _Known) -> None:
        one = known.daemon
        command = one.command(known.agent) if one is not None else ()
        if one is None or not command or one.found.refused:
            return
        said = drop(command, one.found.uid, one.found.home)
        self._record(DROPPED, kill_id, f"{known.agent.agent_id}: {said}")

    async def _watch(self, receipt: Receipt, killed: list[_Known]) -> None:
        """A transcript that grows is shown: no process of it may be known."""
        sizes = {one.agent.agent_id: _size(one.transcript) for one in killed if one.transcript is not None}
        while sizes and time.time() < receipt.watch_until:
            await asyncio.sleep(GROWTH_S)
            for one in killed:
                before = sizes.get(one.agent.agent_id)
                if before is None or await asyncio.to_thread(_size, one.transcript) <= before:
                    continue
                del sizes[one.agent.agent_id]
                await self._tell_growth(receipt, one)

    async def _tell_growth(self, receipt: Receipt, one: _Known) -> None:
        seconds = int(time.time() - receipt.pressed_at)
        line = {"kill_id": receipt.kill_id, "agent_id": one.agent.agent_id, "session": one.agent.session[:80], "seconds": seconds}
        try:
            await asyncio.to_thread(self._tell, "returned", **line, why="its transcript grew after the kill")
        except ConsoleError as error:
            log.warning("the guard does not know that a transcript grew: %s", error)


def _transcript(agent: Asked) -> Path | None:
    for source in agent.sources:
        kind = daemons_of(source)
        if kind is not None and agent.session and (found := kind.transcript(agent.process, agent.session)) is not None:
            return found
    return None


def _size(path: Path | None) -> int:
    """Of an ordinary file; 0 when it is not there."""
    try:
        seen = path.lstat() if path is not None else None
    except OSError:
        return 0
    return seen.st_size if seen is not None and stat.S_ISREG(seen.st_mode) else 0


def _view(one: DaemonOf, mine: list[Asked], others: list[str]) -> DaemonView:
    found = one.found
    if any(agent.process == found.process for agent in mine):
        plan = "it is the agent's own process: a kill ends all sessions in it" + (", the other sessions too" if others else "")
    elif found.refused:
        plan = f"named only: {found.refused}"
    elif others:
        plan = "frozen until zero, then asked to drop the session; the others live on"
    else:
        plan = "killed: every session that it hosts is a target"
    return DaemonView(
        name=found.name,
        pid=found.process.pid,
        agents=[agent.agent_id for agent in mine],
        sessions=[agent.session for agent in mine],
        other_sessions=others,
        plan=plan,
        command="; ".join(" ".join(command) for agent in mine if (command := one.command(agent))),
    )


# --- The program's own command that drops one session, run as the session's account: never as root, and never by the guard.


DROP_S = 2.0
SAID = 200
PATH = "/usr/local/bin:/usr/bin:/bin"


def drop(command: Sequence[str], uid: int, home: Sequence[tuple[str, str]]) -> str:
    """Runs it: what came of it, in words for the record. Never raises; the answer makes no receipt better.

    Nothing of this process reaches it: no environment but where its program finds its folder, no descriptors, no terminal, no group.
    """
    shown = shlex.join(command)[:SAID]
    if uid <= 0:
        return f"not run: {shown} is never run as root"
    if os.geteuid() not in (0, uid):
        return f"not run: {shown} needs account {uid}"
    is_root = os.geteuid() == 0
    try:
        process = subprocess.Popen(
            list(command),
            env={**dict(home), "PATH": PATH},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            start_new_session=True,
            user=uid if is_root else None,
            group=_group(uid) if is_root else None,
            extra_groups=[] if is_root else None,
            umask=0o077,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return f"failed: {shown}: {error}"[: 2 * SAID]
    try:
        code = process.wait(DROP_S)
    except subprocess.TimeoutExpired:
        return f"failed: {shown} did not end within {DROP_S:g} s"
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session: nothing of it stays behind
        process.wait()
    return f"done: {shown}" if code == 0 else f"failed: {shown} ended with {code}"


def _group(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid
