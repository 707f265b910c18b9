"""Freeze and thaw, the hold, the heartbeat's and the lease's timers, the soft stop.

What freezes acts first and is recorded when it can be; what thaws is recorded first, or it does not happen. What only a container engine
can freeze is asked in a thread of its own, again and again, until the engine confirms it. Until then it counts as not confirmed,
everywhere: an engine may not answer, or say yes and freeze nothing.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Iterable

from console.domain.errors import Conflict, Denied, NotFound, NotRecorded
from console.domain.guard import HELD_GRACE_S, HOLD_S
from console.domain.ids import ControlLevel
from console.killswitch.guard.state import Guard, monotonic
from console.killswitch.kill.receipt import new_kill_id
from console.killswitch.store.causes import Hold, Wish, boottime, fulfil, set_frozen, why_not_frozen
from console.killswitch.store.registry import Held

FIRST_S = 0.1
LONGEST_S = 5.0
"""Between two times of asking."""
ASKED = "asked the engine"
NOT_YET = "the engine was asked to pause it and has not said that it is paused"


class Pausing:
    """One thread per container asks, one thing at a time: whatever order the wishes came in, the last one is what it ends with."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._changed = threading.Condition(guard.lock)
        self._wishes: dict[str, int] = {}
        """Per container: how often its freeze was changed since its thread was started."""
        self.unconfirmed: dict[str, str] = {}
        """Agents that are to be frozen and of which the engine has not said so: why."""

    def ask(self, held: Held) -> str:
        """Does not wait. ASKED, or why not."""
        agent_id = held.entry.agent_id
        with self._changed:
            self._tell(held, NOT_YET)
            self._wishes[agent_id] = self._wishes.get(agent_id, 0) + 1
            self._changed.notify_all()
            if self._wishes[agent_id] > 1:
                return ASKED
            try:
                threading.Thread(target=self._until_it_is_so, args=(held,), name="engine-pause", daemon=True).start()
            except RuntimeError as error:
                del self._wishes[agent_id]
                self._tell(held, f"the engine could not be asked: {error}")
                return f"failed: the engine could not be asked: {error}"
        return ASKED

    def _is_wanted(self, held: Held) -> bool:
        """Frozen: there is a cause, and no kill (what a freezer holds does not die)."""
        guard = self._guard
        return bool(guard.causes.of(held.entry.agent_id)) and not (held.entry.killed or guard.latch.state.latched)

    def _until_it_is_so(self, held: Held) -> None:
        agent_id, pause_s = held.entry.agent_id, FIRST_S
        while True:
            with self._changed:
                asked, on = self._wishes[agent_id], self._is_wanted(held)
            answer = set_frozen(held, on, self._guard.engine)
            with self._changed:
                is_gone = not held.is_populated() or self._guard.registry.held.get(agent_id) is not held
                is_so = answer in ("sent", "gone") and on == self._is_wanted(held)  # a kill changes the wish and asks nobody
                self._tell(held, "" if is_gone or is_so else answer)
                if self._wishes[agent_id] != asked:
                    pause_s = FIRST_S
                elif is_gone or is_so:
                    del self._wishes[agent_id]
                    return
                else:
                    self._changed.wait(pause_s)
                    pause_s = min(pause_s * 2, LONGEST_S)

    def _tell(self, held: Held, words: str) -> None:
        agent_id, on = held.entry.agent_id, self._is_wanted(held)
        if words and on:
            self.unconfirmed[agent_id] = words[:200]
        else:
            self.unconfirmed.pop(agent_id, None)
        if words and words != NOT_YET:
            done = "paused" if on else "unpaused"
            self._guard.notices[f"pause-{agent_id}"] = f"Agent {agent_id} could not be {done} yet: {words[:200]}. It is asked again."
        elif not words:
            self._guard.notices.pop(f"pause-{agent_id}", None)


PLANNED_RESTART_S = 120.0
LONGEST_LEASE_S = 3600.0
MOST_HOLDS = 64
"""Abandoned ones included; a press needs none."""


class Freezing:
    """Everything that stops agents without killing them. Freezing calls are quick; thawing ones belong on the clerk's thread."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.heard_at = monotonic()
        self._heartbeat_until = self.heard_at + guard.config.heartbeat_s
        self.heartbeat_lost = False
        self.lease_over = False
        self.pausing = Pausing(guard)

    def restore(self) -> None:
        """Freezes every agent that has a cause on disk. Thaws nothing: what is frozen without a cause was frozen in the last
        moments of the guard before, and stays so until an operator thaws it."""
        guard = self._guard
        for cause, is_on in (("heartbeat", True), ("lease", True), ("soft_stop", bool(guard.causes.soft_stop))):
            if guard.causes.having(cause):
                self.heartbeat_lost |= cause == "heartbeat"
                self.lease_over |= cause == "lease"
            if cause == "soft_stop" and is_on:
                self.freeze(guard.known("all"), cause, "guard")
        if guard.config.lease and guard.causes.lease_until is None:
            guard.causes.lease_until = 0.0
        self._adopt_frozen()
        with guard.lock:
            self._apply([held for held in guard.registry.held.values() if guard.causes.of(held.entry.agent_id)])
        self._tell_holds()

    def _adopt_frozen(self) -> None:
        guard = self._guard
        with guard.lock:
            ids = [h.entry.agent_id for h in guard.registry.held.values() if h.is_held_frozen() and not guard.causes.of(h.entry.agent_id)]
            for agent_id in ids:
                guard.causes.add(agent_id, "operator")
        if ids:
            guard.notices["causes"] = (
                f"{len(ids)} agents were frozen and no record says why (the guard ended at once): they stay frozen until they are thawed."
            )
            self._record_freeze(sorted(ids), "operator", "guard")

    def freeze(self, agent_ids: Iterable[str], cause: str, by: str, uid: int | None = None) -> dict[str, str]:
        """Adds one cause to each agent and stops it; what each write said. Recorded afterwards. ``uid``: of an operator on guard.sock."""
        guard = self._guard
        with guard.lock:
            several = [held for agent_id in agent_ids if (held := guard.registry.held.get(agent_id)) is not None]
            for held in several:
                guard.causes.add(held.entry.agent_id, cause, uid)
            answers = self._apply(several)
        ids = sorted(answers)
        guard.clerk.do(lambda: self._record_freeze(ids, cause, by))
        return answers

    def _record_freeze(self, ids: list[str], cause: str, by: str) -> None:
        guard = self._guard
        guard.record("freeze", guard.causes.save, lambda: guard.journal.append("freeze", agents=ids[:200], n=len(ids), cause=cause, by=by))

    def thaw(self, agent_ids: Iterable[str], cause: str, by: str, uid: int | None = None) -> list[str]:
        """Takes one cause away, on disk first; those without any run again. NotRecorded when the disk refuses.

        ``uid``: an operator on guard.sock, who thaws what this account froze; Denied when it froze none of these.
        """
        guard = self._guard
        with guard.lock:
            frozen = [i for i in agent_ids if cause in guard.causes.of(i)]
            ids = [i for i in frozen if guard.causes.may_lift(i, cause, uid)]
        if frozen and not ids:
            raise Denied("Another account froze it.", "Thaw it through the supervisor (watchfloor thaw), which records who did.")
        if not ids:
            return []
        try:
            # Journal and causes are written before anything runs: after a power cut an agent is frozen too long, never too short.
            guard.journal.append("thaw", agents=ids[:200], n=len(ids), cause=cause, by=by)
            with guard.lock:
                before = {agent: (set(guard.causes.of(agent)), set(guard.causes.frozen_by.get(agent, ()))) for agent in ids}
                for agent_id in ids:
                    guard.causes.remove(agent_id, cause, uid)
            try:
                guard.causes.save()
            except OSError:
                with guard.lock:
                    for agent_id, (causes, uids) in before.items():
                        guard.causes.by_agent.setdefault(agent_id, set()).update(causes)
                        guard.causes.frozen_by.setdefault(agent_id, set()).update(uids)
                raise
        except OSError as error:
            guard.notices["thaw"] = f"A thaw was refused because it could not be recorded: {error.strerror or error}."
            raise NotRecorded(guard.notices["thaw"], "Make room on the disk; the agents stay frozen until then.") from error
        guard.notices.pop("thaw", None)
        with guard.lock:
            self._apply([held for agent_id in ids if (held := guard.registry.held.get(agent_id)) is not None])
        return ids

    def _apply(self, several: list[Held]) -> dict[str, str]:
        """Frozen if there is any cause, else running: by agent. Waiting for an engine happens in a thread of its own."""
        answers = {held.entry.agent_id: self.pausing.ask(held) for held in several if _only_by_engine(held)}
        guard, here = self._guard, [held for held in several if not _only_by_engine(held)]
        wishes = [Wish(held, bool(guard.causes.of(held.entry.agent_id)), _left_outside(guard, held)) for held in here]
        return answers | {w.held.entry.agent_id: said for w, said in zip(wishes, fulfil(wishes, None), strict=True)}

    def unconfirmed(self, agent_ids: Iterable[str]) -> dict[str, str]:
        """Return the agents with a cause to be frozen for which neither the kernel nor the engine confirms that all is stopped, and why."""
        guard, found = self._guard, {}
        with guard.lock:
            for agent_id in agent_ids:
                held = guard.registry.held.get(agent_id)
                if held is not None and guard.causes.of(agent_id):
                    found[agent_id] = self.pausing.unconfirmed.get(agent_id) or why_not_frozen(held, has_engine=guard.engine is not None)
        return {agent_id: why for agent_id, why in found.items() if why}

    def hold(self, by: str, held_s: float = 0.0) -> Hold:
        """Freezes everything now, and kills when the hold is over; ``held_s`` of it passed before a busy console handled the press.

        Raises Conflict when there are too many holds already.
        """
        if len(self._guard.causes.holds) >= MOST_HOLDS:
            raise Conflict("Too many holds are open.", "Release a hold (watchfloor status lists them), or kill.")
        ids = self._guard.known("all")
        hold = Hold(f"h-{secrets.token_hex(4)}", new_kill_id(), by, ids, monotonic() + max(HELD_GRACE_S, HOLD_S - max(held_s, 0.0)))
        self._guard.causes.holds[hold.hold_id] = hold
        self.freeze(ids, "hold", by)
        return hold

    def stop_clock(self, hold_id: str) -> None:
        """Stop the clock of a hold that is released in time: it kills nothing, however slow the disk is. Frozen until the thaw is
        recorded."""
        hold = self._guard.causes.holds.get(hold_id)
        if hold is not None and hold.deadline is not None:
            hold.deadline, hold.why = None, "letting go is being recorded"

    def let_go(self, hold_id: str, by: str) -> list[str]:
        """Thaws what this hold froze, and nothing that another hold still holds. NotFound when it is over (or killed)."""
        holds = self._guard.causes.holds
        hold = holds.get(hold_id)
        if hold is None:
            raise NotFound("There is no such hold: it was released, or it ended in a kill.", "watchfloor status shows which.")
        self.stop_clock(hold_id)
        # Two people may hold at once; the first to let go must not thaw what the second still holds.
        others = {agent for other in holds.values() if other is not hold for agent in other.agents}
        holds.pop(hold_id, None)
        try:
            thawed = self.thaw([a for a in self._guard.causes.having("hold") if a not in others], "hold", by)
            if not thawed:
                self._save_holds()
        except NotRecorded:
            holds[hold_id] = hold
            hold.why = "letting go could not be recorded"
            raise
        finally:
            self._tell_holds()
        begun = {agent for other in list(holds.values()) for agent in other.agents}
        if begun.intersection(thawed):  # somebody held while this was being recorded
            self.freeze(begun.intersection(thawed), "hold", by)
        return thawed

    def _save_holds(self) -> None:
        """That a hold is over lets agents start, so it is on disk first. NotRecorded otherwise."""
        try:
            self._guard.causes.save()
        except OSError as error:
            raise NotRecorded("Letting go could not be recorded.", "Make room on the disk; nothing starts until then.") from error

    def is_held(self, hold_id: str) -> bool:
        """Whether this hold goes on: neither let go nor abandoned nor over."""
        hold = self._guard.causes.holds.get(hold_id)
        return hold is not None and hold.deadline is not None

    def peer_vanished(self, hold_id: str) -> None:
        """Keep everything frozen, and show a notice."""
        hold = self._guard.causes.holds.get(hold_id)
        if hold is not None and hold.deadline is not None:
            hold.deadline, hold.why = None, "the one who held vanished"
            self._guard.clerk.do(lambda: self._record_vanished(hold))
            self._tell_holds()

    def _record_vanished(self, hold: Hold) -> None:
        guard = self._guard
        guard.record("hold", guard.causes.save, lambda: guard.journal.append("hold_abandoned", hold_id=hold.hold_id, by=hold.by))

    def _tell_holds(self) -> None:
        guard = self._guard
        for key in [k for k in guard.notices if k.startswith("hold-")]:
            del guard.notices[key]
        for hold in guard.causes.holds.values():
            if hold.deadline is None:
                guard.notices[f"hold-{hold.hold_id}"] = (
                    f"Frozen by a hold that was neither released nor finished ({hold.why}): release {hold.hold_id}, or kill."
                )

    def fire_holds(self) -> None:
        """A hold whose time is over is a press on everything."""
        for hold in list(self._guard.causes.holds.values()):
            if hold.deadline is not None and monotonic() >= hold.deadline:
                del self._guard.causes.holds[hold.hold_id]
                self._guard.press("all", "Panic button held; no reason given", hold.by, kill_id=hold.kill_id)
                self._guard.clerk.do(self._record_holds)

    def _record_holds(self) -> None:
        self._guard.record("hold", self._guard.causes.save)

    def next_timer(self) -> float:
        """Return the seconds until a hold fires or the heartbeat or lease runs out, whichever comes first; infinite without any of them."""
        deadlines = [h.deadline for h in list(self._guard.causes.holds.values()) if h.deadline is not None]
        deadlines += [] if self.heartbeat_lost else [self._heartbeat_until]
        left = None if self.lease_over else self.lease_left()
        return max(0.0, min([deadline - monotonic() for deadline in deadlines] + ([] if left is None else [left]), default=math.inf))

    def heartbeat(self, planned_restart_s: float | None = None) -> None:
        """The supervisor lives (and, with a planned restart, will be away that long, 120 s at most)."""
        self.heard_at = monotonic()
        away = min(max(planned_restart_s or 0.0, 0.0), PLANNED_RESTART_S)
        self._heartbeat_until = self.heard_at + max(self._guard.config.heartbeat_s, away)
        if self.heartbeat_lost:
            self.heartbeat_lost = False
            self._guard.notices.pop("heartbeat", None)
            self._guard.clerk.do(lambda: self._thaw_quietly("heartbeat"))

    def lease(self, seconds: float | None, heard_s: float = 0.0) -> None:
        """The remote channel was read well: agents may run that long since it was said, ``heard_s`` ago.

        None ends leasing (journalled first).
        """
        guard = self._guard
        if seconds is None:
            try:
                guard.journal.append("lease_off")
            except OSError as error:
                raise NotRecorded("Ending the lease could not be recorded.", "Make room on the disk.") from error
            guard.causes.lease_until = None
        else:
            guard.causes.lease_until = lease_end(seconds) - heard_s
        guard.record("lease", guard.causes.save)
        if self.lease_over and (guard.causes.lease_until is None or guard.causes.lease_until > boottime()):
            self.lease_over = False
            guard.notices.pop("lease", None)
            self._thaw_quietly("lease")

    def soft_stop(self, on: bool, why: str) -> None:
        """Freeze, no launches, no egress (relays are killed), because the kill channel cannot be trusted."""
        guard = self._guard
        if on:
            stop_softly(guard, self, why)
            guard.record("soft_stop", guard.causes.save)  # before it is answered: nobody says it twice
            return
        was, guard.causes.soft_stop = guard.causes.soft_stop, ""
        try:
            self.thaw(guard.causes.having("soft_stop"), "soft_stop", "supervisor")
            guard.causes.save()
        except (NotRecorded, OSError):
            guard.causes.soft_stop = was
            raise

    def _thaw_quietly(self, cause: str) -> None:
        """Unless it is missing again by now, or turns out to be once the disk has taken the thaw."""
        guard = self._guard
        if self._is_missing(cause):
            return
        try:
            self.thaw(guard.causes.having(cause), cause, "guard")
        except NotRecorded:  # the notice is set; the next heartbeat or lease tries again
            self.heartbeat_lost |= cause == "heartbeat"
            self.lease_over |= cause == "lease"
            return
        if self._is_missing(cause):
            self.freeze(guard.known("all"), cause, "guard")

    def _is_missing(self, cause: str) -> bool:
        return self.heartbeat_lost if cause == "heartbeat" else self.lease_over

    def check_timers(self) -> None:
        """Freezes when the supervisor's heartbeat or the remote channel's lease ran out."""
        guard = self._guard
        if not self.heartbeat_lost and monotonic() > self._heartbeat_until:
            self.heartbeat_lost = True
            guard.notices["heartbeat"] = "The supervisor is silent: its agents are frozen until it is back."
            self.freeze(guard.known("all"), "heartbeat", "guard")
        until = guard.causes.lease_until
        if not self.lease_over and until is not None and boottime() > until:
            self.lease_over = True
            guard.notices["lease"] = "The lease of the remote kill channel ran out: agents are frozen until it is read well again."
            self.freeze(guard.known("all"), "lease", "guard")

    def lease_left(self) -> float | None:
        until = self._guard.causes.lease_until
        return None if until is None else round(max(0.0, until - boottime()), 3)

    def why_nothing_starts(self) -> str:
        """Empty when launches are allowed as far as freezing goes."""
        if self._guard.causes.soft_stop:
            return f"Soft stop: {self._guard.causes.soft_stop.rstrip('.')}."
        if self._guard.causes.holds:
            return "The panic button is held, or a hold was never released: nothing starts."
        if self.heartbeat_lost:
            return "The supervisor's heartbeat is missing: nothing starts."
        left = self.lease_left()
        return "There is no valid lease of the remote kill channel: nothing starts." if left == 0.0 else ""


def lease_end(seconds: float) -> float:
    """When a lease that begins now ends, in seconds since boot."""
    return boottime() + min(max(seconds, 0.0), LONGEST_LEASE_S)


def stop_softly(guard: Guard, freezing: Freezing, why: str) -> None:
    """Freezes all that this stop has not frozen yet, and cuts the egress; it waits for no disk."""
    guard.causes.soft_stop = why[:300] or "soft stop"
    if late := [agent_id for agent_id in guard.known("all") if "soft_stop" not in guard.causes.of(agent_id)]:
        freezing.freeze(late, "soft_stop", "supervisor")
    if guard.tree is not None:
        guard.tree.relays.kill()


def _only_by_engine(held: Held) -> bool:
    return bool(held.entry.container_id) and (held.container is None or not held.container.can_freeze)


def _left_outside(guard: Guard, held: Held) -> frozenset[int]:
    """Consoles and panic buttons that descend from an agent which was adopted: they were not moved, and are not stopped one by one."""
    return guard.connected() if held.entry.control_level == ControlLevel.ADOPTED else frozenset()


def check_cause(cause: str, allowed: tuple[str, ...]) -> str:
    """A cause that this door may set or lift. Conflict otherwise."""
    if cause not in allowed:
        raise Conflict(f"Cause {cause[:30]!r} cannot be set or lifted here.", f"Use one of: {', '.join(allowed)}.")
    return cause
