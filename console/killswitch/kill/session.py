"""A kill, from the first SIGKILL to the second look. The same code runs in the guard and without one.

Order:

1. Every cgroup and pidfd gets its kill.
2. The engine is told as well, in threads of its own.
3. The kernel confirms that all are dead, or the kill is repeated every 50 ms, 5 s at most.
4. A second look at +500 ms looks for what came back or got away.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from console.domain.guard import KILL_LIMIT_S, SECOND_LOOK_S
from console.domain.kill import Daemon, Outcome, Receipt, Return, Step, StepName, StepStatus, Survivor, Suspect, Unwatched, worst_of
from console.domain.process.failpoints import failpoint
from console.domain.verdict import Verdict, verdict
from console.domain.words import counted
from console.killswitch.kernel.cgroups import Refused
from console.killswitch.kernel.engine import EngineSilent, Running
from console.killswitch.kernel.faults import FAULTS, note_fault
from console.killswitch.kill.outside import Outside
from console.killswitch.kill.second_look import SecondLook
from console.killswitch.kill.targets import AFTER_MS, Aim, favoured, strike_descendants, strike_leaderless, thaw_v1, watch
from console.killswitch.kill.targets import Field as Field
from console.killswitch.kill.targets import Order as Order

# Measured: 452 of 452 kills by cgroup reach zero without a second strike, so a faster repeat only takes time from the dying.
REPEAT_S = 0.05
PAUSE = 9
"""A repeat is followed by a pause of so many times its own length: a kill that takes the processors keeps the dying from them."""
LAST_LOOK_S = 2.0
MOST_AMENDED = 50
# Measured: 20 containers take an engine 4.7 s one after another and about 2 s from a pool. The kernel's way needs none of it.
ENGINE_THREADS = 8
# A disk that hangs must not keep a console waiting for a kill that the kernel has confirmed.
DISK_S = 2.0
_CAME_TO = {
    Outcome.PROVEN_ZERO: "confirmed dead",
    Outcome.BEST_EFFORT: "gone as far as can be seen (best effort)",
    Outcome.NOT_PROVEN: "NOT confirmed dead",
    Outcome.DYING: "NOT confirmed dead",
}
FAILED_AT = "The guard failed at this; see guard.log."


@dataclass(slots=True)
class KillSession:
    """One kill being carried out. ``strike`` then ``run``; neither raises."""

    order: Order
    field_: Field
    aims: list[Aim]
    add_aims: Callable[[], None] = lambda: None
    """Add the targets that take time to find, on the kill's own thread."""
    name_left: Callable[[], None] = lambda: None
    """Write down the observed agents that were not stopped, once no caller waits for a confirmation any more."""
    on_zero: Callable[[], None] = lambda: None
    on_done: Callable[[], None] = lambda: None
    outside: Outside | None = None
    """What it may leave with programs outside; None: nothing is said of them."""
    unrecorded: str = ""
    """Why connections of its targets are not recorded at all."""
    limit_s: float = KILL_LIMIT_S
    t0: float = field(default_factory=time.monotonic)
    pressed_at: float = field(default_factory=time.time)
    heard_at: float = 0.0
    """CLOCK_MONOTONIC: when the press reached the guard; 0: with ``t0``."""
    first_ms: float | None = None
    """Milliseconds from ``heard_at`` until the first SIGKILL was sent to a process that was there."""
    steps: dict[StepName, Step] = field(default_factory=dict)
    phase: str = "killing"
    amended: list[str] = field(default_factory=list)
    second_look: SecondLook = field(init=False)
    excluded: list[str] = field(default_factory=list)
    suspects: tuple[Suspect, ...] = ()
    """What adoptions of targets left outside, as it is after the kill."""
    incomplete: str = ""
    """Why there may be agents that no target stands for, found out after the kill had begun; zero is unknown then."""
    only_seen: int | None = None
    survivors: tuple[Survivor, ...] = ()
    daemons: list[Daemon] = field(default_factory=list)
    returns: list[Return] = field(default_factory=list)
    not_watched: list[Unwatched] = field(default_factory=list)
    watch_until: float = 0.0
    judged: Verdict | None = None
    """Of the last receipt, once the kill is over: consoles ask for it many times a second."""
    began_ticks: int = 0
    """When it was pressed, as field 22 of /proc/PID/stat counts."""
    finished: threading.Event = field(default_factory=threading.Event)
    _listed: list[Running] | None = None
    _done_at: float = 0.0
    _ms_done: float = 0.0

    def __post_init__(self) -> None:
        self.second_look = SecondLook(self)

    def ms(self) -> float:
        """Milliseconds since the press."""
        return round((time.monotonic() - self.t0) * 1000, 3)

    @property
    def is_done(self) -> bool:
        """Nothing more is looked for, and the receipt is on disk (a disk that hangs is waited for 2 s)."""
        return self.finished.is_set() or (self.phase == "done" and time.monotonic() - self._done_at > DISK_S)

    @property
    def is_canary(self) -> bool:
        """The supervisor's own trial of the kill (services/stop/self_test.py), and nothing else."""
        return self.order.by == "canary" and len(self.aims) == 1 and self.aims[0].agent_id.startswith("canary-")

    def note(self, name: StepName, status: StepStatus, detail: str) -> None:
        """Decides a step; its time is that of the first look that decided it so."""
        before = self.steps.get(name)
        ms = before.ms if before is not None and before.status is status else self.ms()
        self.steps[name] = Step(name, status, ms, detail)
        failpoint(f"kill.{name}")

    def strike(self) -> None:
        """One recursive write kills every leaf of ours when everything is meant; then each container and pidfd.

        Each target is checked just before it is written to: the first write waits for no check but its own.
        """
        tree, covered = self.field_.tree, False
        mount, below = (tree.mount, tree.agents.path) if tree else (None, None)
        if tree is not None and self.order.is_all:
            try:
                tree.agents.check(tree.mount, tree.root)
                self._goes_out(tree.agents.is_populated)
                covered = tree.agents.kill() == "sent"
            except (Refused, OSError) as error:
                self.excluded.append(f"The agents' cgroup was not killed as a whole: {error}")
        spared = functools.cache(self.field_.spared)  # looked up once for all of them, when the first needs it
        for aim in self.aims:
            aim.strike(mount, below, spare_leaf=covered, spared=spared, sending=self._goes_out)
            if covered and aim.held is not None and aim.held.leaf is not None:
                aim.writes["cgroup.kill on agents"] = "sent"

    def add(self, aims: list[Aim]) -> None:
        """More targets, found after the first wave: struck now, and proven with the others."""
        found = {aim.agent_id for aim in aims}  # an agent that was named, and that only the list of observed agents knows
        self.aims = [aim for aim in self.aims if aim.held is not None or aim.agent_id not in found] + aims
        mount, below = (self.field_.tree.mount, self.field_.tree.agents.path) if self.field_.tree else (None, None)
        for aim in aims:
            aim.strike(mount, below, spared=self.field_.spared, sending=self._goes_out)
        strike_descendants(aims, self.field_.spared, self._goes_out)
        self.note(StepName.SIGNAL, *_signalled(self.aims, self.first_ms, bool(self.heard_at)))

    def _goes_out(self, is_there: Callable[[], bool]) -> None:
        if self.first_ms is None and is_there():
            self.first_ms = round((time.monotonic() - (self.heard_at or self.t0)) * 1000, 3)
            if self.outside is not None:  # beside the write that follows, and never before it
                self.outside.begin()

    def run(self) -> None:
        """Everything after the first wave."""
        try:
            self._tell_engine()
            strike_descendants(self.aims, self.field_.spared, self._goes_out)
            self.note(StepName.SIGNAL, *_signalled(self.aims, self.first_ms, bool(self.heard_at)))
            self.add_aims()
            with favoured(self.field_.tree, self.aims):
                self._prove()
            if self.outside is not None:
                self.outside.seek([a.agent_id for a in self.aims if a.held is not None], self.field_.spared)
            self.phase = "second_look"
            self.on_zero()
            time.sleep(max(0.0, self.t0 + SECOND_LOOK_S - time.monotonic()))
            self.second_look.look()
            self.judge_zero()
            self.note(StepName.SECOND_LOOK, *self.second_look.verdict())
            self.name_left()
        except FAULTS as fault:
            note_fault("kill", fault)
            self._judge_after(fault)
        finally:  # a fault in here proves nothing, and leaves nobody waiting
            if StepName.SECOND_LOOK not in self.steps:
                self.second_look.broke(FAILED_AT)  # whatever is proven later, this was not looked at
            for name in (StepName.ZERO, StepName.SECOND_LOOK):
                if name not in self.steps:
                    self.note(name, StepStatus.UNKNOWN, FAILED_AT)
            if self.outside is not None:
                self.outside.close()
            self.phase, self._done_at, self._ms_done = "done", time.monotonic(), self.ms()
            try:
                self.on_done()
            finally:
                self.finished.set()

    def _judge_after(self, fault: BaseException) -> None:
        """What was open at a fault is not proven, and whatever had been decided before it counts no more than what is seen now."""
        self.excluded.append(f"{FAILED_AT} {type(fault).__name__}: {fault}"[:300])
        for aim in self.aims:
            aim.give_up(self.ms())
        if StepName.ZERO in self.steps:
            self.judge_zero()
        self.second_look.broke(FAILED_AT)
        self.note(StepName.SECOND_LOOK, StepStatus.UNKNOWN, FAILED_AT)

    def _prove(self) -> None:
        deadline, unknown = self.t0 + self.limit_s, [aim for aim in self.aims if aim.is_unknown]
        left = [aim for aim in self.aims if not aim.is_unknown and not aim.settle(self.ms())]
        (poll, by_fd), again = watch(left), time.monotonic() + REPEAT_S
        while left and time.monotonic() < deadline:
            ready = poll.poll(max(1.0, (again - time.monotonic()) * 1000))
            woken = [by_fd[fd][0] for fd, _ in ready]
            done = {id(aim) for aim in (woken or left) if aim.settle(self.ms())}
            for fd, _ in ready:
                if not by_fd[fd][1]():  # a dead pidfd or a removed group would wake us for ever
                    poll.unregister(fd)
            left = [aim for aim in left if id(aim) not in done]
            if (began := time.monotonic()) >= again:
                self._strike_again(left)
                again = min(deadline, _next_repeat(began, left))
        for aim in (*left, *unknown):
            aim.give_up(self.ms())
        self.judge_zero()

    def _strike_again(self, left: list[Aim]) -> None:
        tree, spared = self.field_.tree, functools.cache(self.field_.spared)
        mount, below = (tree.mount, tree.agents.path) if tree else (None, None)
        for aim in left:
            aim.strike(mount, below, spared=spared)
            if self.ms() > AFTER_MS and (found := strike_leaderless(aim.held, mount, below, spared)):
                aim.writes["pidfd SIGKILL to members that cgroup.kill does not end"] = f"sent to {found}"
            if self.ms() > AFTER_MS and (found := thaw_v1(aim.held, tree.mounts if tree else None, spared)):
                aim.writes["freezer of cgroup v1"] = f"thawed {counted(found, 'process', 'processes')}"
            if aim.is_pending_container and self._listed is not None:
                aim.engine_says_gone = all(c.agent_id != aim.agent_id for c in self._listed)
        strike_descendants(left, spared)

    def judge_zero(self) -> None:
        self.survivors = tuple(s for aim in self.aims for s in aim.survivors()) + tuple(self.second_look.left_alone)
        agents = list(worst_of((aim.agent_id, aim.outcome) for aim in self.aims).values())  # one may be held twice, and is one agent
        unproven = [outcome for outcome in agents if outcome in (Outcome.NOT_PROVEN, Outcome.DYING)]
        if unproven:
            self.note(StepName.ZERO, StepStatus.FAILED, f"{len(unproven)} of {len(agents)} agents are not confirmed dead")
        elif missing := self.field_.incomplete or self.incomplete:
            self.note(StepName.ZERO, StepStatus.UNKNOWN, missing)
        else:
            best = agents.count(Outcome.BEST_EFFORT)
            self.note(
                StepName.ZERO,
                StepStatus.OK,
                f"{counted(len(agents) - best, 'agent')} confirmed dead" + (f", {best} best effort" if best else ""),
            )

    def _tell_engine(self) -> None:
        """Ask the engine to kill too: that keeps a restart policy from bringing containers back. The kill does not wait for it."""
        engine = self.field_.engine
        if engine is None:
            return
        queue = [aim for aim in self.aims if aim.container_id]

        def work() -> None:
            while queue:
                try:
                    aim = queue.pop()
                except IndexError:
                    return
                aim.engine_answer = engine.kill(aim.container_id)
                engine.unpause(aim.container_id)  # what its freezer holds does not die (only one of v1); else it says 409
                engine.forbid_restart(aim.container_id)

        def ask() -> None:
            with contextlib.suppress(EngineSilent):
                self._listed = engine.running()

        jobs: list[Callable[[], None]] = [work] * min(len(queue), ENGINE_THREADS)
        if any(aim.is_pending_container for aim in self.aims):
            jobs.append(ask)
        for job in jobs:
            with contextlib.suppress(RuntimeError):  # no thread to be had: the kernel's way does not need it
                threading.Thread(target=job, name="engine-kill", daemon=True).start()

    def settle_again(self, aims: list[Aim]) -> None:
        """Strikes these until they are zero, 2 s at most; what is left is given up."""
        deadline = time.monotonic() + LAST_LOOK_S
        left = [aim for aim in aims if not aim.settle(self.ms())]
        while any(not aim.is_unknown for aim in left) and time.monotonic() < deadline:
            self._strike_again(left)
            time.sleep(REPEAT_S)
            left = [aim for aim in left if not aim.settle(self.ms())]
        for aim in left:
            aim.give_up(self.ms())

    def in_scope(self, agent_id: str) -> bool:
        return self.order.is_all or any(a.agent_id == agent_id for a in self.aims)

    def open_aims(self) -> list[Aim]:
        """Targets that the receipt calls not proven and that can still be looked at."""
        return [a for a in self.aims if a.outcome in (Outcome.NOT_PROVEN, Outcome.DYING) and not a.is_unknown]

    def look_later(self) -> list[str]:
        """One look at the open targets; those that are dead by now are proven in the receipt, which says when. Gives the words of it."""
        return self._amend([a for a in self.open_aims() if a.prove_late(self.ms())], "{} after the receipt was given")

    def take_back(self, aim: Aim) -> list[str]:
        """A container that started after the kill and was struck: a target of its own from now on."""
        self.aims = [*(a for a in self.aims if not (a.came_back and a.container_id == aim.container_id)), aim]
        self.settle_again([aim])
        return self._amend([aim], "started after the kill and was killed again: {}")

    def _amend(self, aims: list[Aim], what: str) -> list[str]:
        """``what`` says of each what it came to, at the {}."""
        if not aims:
            return []
        words = [f"{aim.name()}: {what.format(_CAME_TO[aim.outcome])}, {self.ms() / 1000:.1f} s after the kill" for aim in aims]
        self.amended = [*self.amended, *words][-MOST_AMENDED:]
        self.judge_zero()
        self.note(StepName.SECOND_LOOK, *self.second_look.verdict())
        return words

    def receipt(self) -> Receipt:
        """The local part: ``complete`` once the second look is over (rotation, remote and evidence are the supervisor's)."""
        targets = tuple(aim.target() for aim in self.aims)
        local = Receipt(
            kill_id=self.order.kill_id,
            instance_id=self.field_.instance_id,
            scope=self.order.scope,
            reason=self.order.reason,
            by=self.order.by,
            pressed_at=self.pressed_at,
            order=self.order.remote_order,
            survivors=self.survivors,
            steps=tuple(self.steps[name] for name in StepName if name in self.steps),
            targets=targets,
            excluded=tuple(self.excluded),
            suspects=self.suspects,
            only_seen=self.only_seen,
            ms_total=self._ms_done or self.ms(),
            complete=self.phase == "done",
            amended=tuple(self.amended),
            returns=tuple(self.returns),
            watch_until=self.watch_until,
            not_watched=tuple(self.not_watched),
            daemons=tuple(self.daemons),
        )
        if self.unrecorded:
            local = replace(local, connections_state="not recorded", connections_detail=self.unrecorded)
        whole = self.outside.into(local) if self.outside is not None else local
        found = verdict(whole)
        self.judged = found if whole.complete else None
        return replace(whole, verified_zero=found.verified_zero)


def _signalled(aims: list[Aim], first_ms: float | None, is_by_guard: bool) -> tuple[StepStatus, str]:
    refused = sum(1 for a in aims for w in a.writes.values() if w.startswith(("refused", "failed")))
    words = f"{counted(len({aim.agent_id for aim in aims}), 'agent')} signalled" + (
        f", {refused} writes refused or failed" if refused else ""
    )
    if first_ms is not None:
        words += f"; the first {first_ms} ms after the kill {'reached the guard' if is_by_guard else 'began'}"
    return StepStatus.FAILED if refused else StepStatus.OK, words


def zero_ms(kill: KillSession) -> float | None:
    """Milliseconds from the press to the decision about zero, or until now."""
    zero = kill.steps.get(StepName.ZERO)
    return zero.ms if zero is not None else kill.ms()


def _next_repeat(began: float, left: list[Aim]) -> float:
    """When to strike again after the repeat that began then. What no kernel object holds goes on forking meanwhile: it gets no pause."""
    # Repeats without a pause keep two busy processors from the processes that are dying, and delay the zero that they wait for.
    now, pause = time.monotonic(), 0 if any(aim.is_best_effort for aim in left) else PAUSE
    return max(began + REPEAT_S, now + pause * (now - began))
