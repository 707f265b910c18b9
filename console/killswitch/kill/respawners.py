"""What could start a killed session again, joined for one guard (or one kill without a guard): daemons, their freeze, the return watch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.domain.guard import text, whole
from console.domain.kill import Return, Unwatched
from console.domain.verdict import judged, not_watched_words
from console.killswitch.kernel import processes
from console.killswitch.kill.daemons import KNOWN_FILE, Holds, Known, KnownSession, Struck
from console.killswitch.kill.receipt import read_receipt, write_receipt
from console.killswitch.kill.return_watch import MOST, ReturnWatch, Watched
from console.killswitch.kill.scan import Registered
from console.killswitch.kill.session import KillSession

MOST_TOLD = 4 * MOST
MOST_KILLED = 1000
"""Agents whose sessions are remembered after their kill."""


class Respawners:
    """Of one guard. ``amended`` is told a kill that is in memory, with the words of what changed in its receipt."""

    def __init__(
        self,
        instance_id: str,
        guard_dir: Path,
        watch_s: float,
        journal: Callable[..., object],
        amended: Callable[[KillSession, list[str]], None],
        kills: dict[str, KillSession],
        spared: Callable[[], frozenset[int]],
        registered: Callable[[], list[Registered]],
    ) -> None:
        self._guard_dir, self._watch_s, self._journal, self._amended, self._kills = guard_dir, watch_s, journal, amended, kills
        self._spared = spared
        self._sessions: dict[str, tuple[KnownSession, ...]] = {}
        """Of kills under way."""
        self._killed: dict[str, tuple[KnownSession, ...]] = {}
        """By agent, what it ran when it was killed last: one that is killed again, by a budget and then by a person, is told no more."""
        self.known = Known(guard_dir / KNOWN_FILE)
        self._holds = Holds(guard_dir, journal)
        self.watch = ReturnWatch(instance_id, guard_dir, self._returned, spared, registered)

    def move_to(self, folder: Path) -> None:
        """Keeps what it watches and has frozen in another folder from now on."""
        self._guard_dir = folder
        for store in (self.known, self._holds, self.watch):
            store.path = folder / store.path.name

    def take_over(self) -> None:
        """What the guard before this one left: a frozen daemon goes on, a watch is carried to its end."""
        self.known.load()
        self._holds.recover()
        self.watch.resume()

    def begin(self, kill: KillSession, agents: Collection[str]) -> Struck:
        """The moment of a kill: daemons are struck in a thread of their own, and from now on what begins is a candidate."""
        struck = Struck(kill.order.kill_id, agents, self.known.told, self._holds, self._spared)
        struck.start()
        # As it was told at the kill: a second later the supervisor tells of the living alone.
        self._sessions[kill.order.kill_id] = tuple(one for agent_id in agents for one in self._sessions_of(agent_id))
        kill.began_ticks = processes.ticks_now() + 1  # what began in this very tick may have been there before
        if self._watch_s > 0 and not kill.is_canary:
            kill.watch_until = kill.pressed_at + self._watch_s
            if self._sessions[kill.order.kill_id]:  # a marker alone is inherited, and needs no look at what ran before
                with suppress(RuntimeError):  # no thread to be had: what runs at the first look counts as running at the kill
                    threading.Thread(target=self.watch.mark, name="return-watch-mark", daemon=True).start()
        return struck

    def _sessions_of(self, agent_id: str) -> tuple[KnownSession, ...]:
        found = tuple(self.known.sessions_of((agent_id,))) or self._killed.get(agent_id, ())
        if found:
            self._killed.pop(agent_id, None)  # the last one killed is the last one forgotten
            self._killed[agent_id] = found
            while len(self._killed) > MOST_KILLED:
                del self._killed[next(iter(self._killed))]
        return found

    def follow(self, kill: KillSession, *, here: bool = True) -> list[Callable[[], object]]:
        """The kill is over: it is watched. Gives what is to be written to disk for the next guard, which watches it unless ``here``."""
        if not kill.watch_until:
            self._sessions.pop(kill.order.kill_id, None)
            return []
        agents = tuple(dict.fromkeys(aim.agent_id for aim in kill.aims))
        sessions = self._sessions.pop(kill.order.kill_id, ())
        one = Watched(kill.order.kill_id, kill.watch_until, kill.pressed_at, kill.began_ticks, agents, sessions)
        if not here:
            self.watch.resume(run=False)
        self.watch.follow(one, run=here)
        return [self.watch.save]

    def launched(self, agent_id: str) -> list[Callable[[], object]]:
        """An agent is launched under this id. Gives what is to be written to disk."""
        self._killed.pop(agent_id, None)
        return [self.watch.save] if self.watch.launched_again(agent_id) else []

    def hear_return(self, message: dict[str, Any]) -> dict[str, Any]:
        """The supervisor saw a transcript grow: shown, never killed. UsageProblem for what cannot be read."""
        agent_id, session = text(message, "agent_id", limit=63), text(message, "session", "", 80)
        why, seconds = text(message, "why", "", 300), float(whole(message, "seconds", 0))
        row = Return(agent_id, session, 0, 0, 0, "", "", seconds, "transcript", certain=False, killed=False, proven=False, why=why)
        self._returned(text(message, "kill_id", limit=60), row)
        return {}

    def _returned(self, kill_id: str, row: Return | Unwatched) -> None:
        kill = self._kills.get(kill_id)
        if kill is None:
            self._amend_file(kill_id, row)
        elif len(rows := kill.not_watched if isinstance(row, Unwatched) else kill.returns) < MOST_TOLD:
            rows.append(row)  # type: ignore[arg-type]  # the list of its own kind
            self._amended(kill, [words(row)])

    def _amend_file(self, kill_id: str, row: Return | Unwatched) -> None:
        """Of a kill that a guard before this one carried out."""
        receipt = read_receipt(self._guard_dir, kill_id)
        if receipt is None or len(receipt.returns) + len(receipt.not_watched) >= MOST_TOLD:
            return
        if isinstance(row, Unwatched):
            receipt = judged(replace(receipt, not_watched=(*receipt.not_watched, row)))
        else:
            receipt = judged(replace(receipt, returns=(*receipt.returns, row)))
        write_receipt(self._guard_dir, receipt)
        self._journal("receipt_amended", kill_id=kill_id, verified_zero=receipt.verified_zero, reason=words(row))


def words(row: Return | Unwatched) -> str:
    """For journal, audit and notice; nothing in it is a program's own text."""
    if isinstance(row, Unwatched):
        return not_watched_words([row])
    if row.by == "transcript":
        return f"{row.agent_id}: its transcript grew {row.seconds:.0f} s after the kill; no process of it is known"
    what = f"process {row.pid} (parent {row.parent}), {row.seconds:.1f} s after the kill, by {row.by}"
    if not row.certain:
        return f"{row.agent_id}: {what}, may belong to it; shown only"
    if row.killed and row.proven:
        return f"{row.agent_id} ran again: {what}; killed, confirmed dead"
    return f"{row.agent_id} ran again: {what}; {'killed, not confirmed dead' if row.killed else 'NOT killed'}"
