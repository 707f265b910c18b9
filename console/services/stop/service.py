"""A stop from the press to the finished receipt. The guard kills and proves; here follow rotation, remote write and evidence.

Nothing here is waited for by the kill: every step below starts after the guard's SIGKILL went out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from console.domain.agent import AgentId, AgentState
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, ExitCode, TimedOut
from console.domain.kill import PROOF, Outcome, Receipt, Step, StepName, StepStatus, Target, worst_outcomes
from console.domain.ladder import Reach, Scope
from console.domain.process.durable import make_folder
from console.domain.verdict import judged, verdict
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kill.receipt import new_kill_id
from console.services.daemons.service import DaemonService
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.observe.unknown_agents import beside, counted, kept
from console.services.persistence.scan import Hunt
from console.services.records.receipt_seal import Sealer, digest_of, keep_receipt
from console.services.records.record_writer import Scribe
from console.services.stop.later_steps import Followed, LaterStep, RemoteStep, came_to
from console.services.stop.line import StopLine, read_receipt_file
from console.services.stop.self_test import BY as CANARY
from console.settings.places import Places

log = logging.getLogger(__name__)
GUARD_RECEIPT_S = 20.0
STARTING_ROUNDS = 200
CHUNK = 128
"""Agents of one line to the guard for what is no kill; it holds 4 KiB."""
ZERO_S = 30.0
"""Longest time in seconds that a caller of a kill waits."""
HALT_REST_S = 10.0
"""Longest rest between two tries of a budget's halt."""
RETRY_S = (2.0, 5.0, 15.0, 60.0)
ANSWER_S = 0.05
"""Between zero and the work that follows it. That work computes: on a busy machine the answer to the caller would come after it."""


class StopDesk:
    """Presses the guard, follows its receipts, finishes them."""

    __slots__ = (
        "_later", "_receipts", "_following", "_at_zero", "orders", "_begun", "turn", "writing", "_sealer", "_core", "_scribe", "_guard",
        "_places", "_notice", "_line", "_daemons", "_hunt", "_redact", "_evidence", "_remote", "_bucket"
    )  # fmt: skip

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        guard: GuardClient,
        places: Places,
        notice: Notice,
        line: StopLine,
        evidence: LaterStep,
        *,
        daemons: DaemonService,
        hunt: Hunt,
        remote: RemoteStep,
        later: Sequence[LaterStep] = (),
        redact: Callable[[Any], Any],
    ) -> None:
        """``evidence`` makes the case folder of a kill; ``later``: further steps of its receipt; ``redact``: takes secrets out of it."""
        self._core, self._scribe, self._guard, self._places, self._notice = core, scribe, guard, places, notice
        self._line, self._daemons, self._hunt, self._redact = line, daemons, hunt, redact
        self._evidence, self._remote, self._bucket = evidence, remote, remote.channel
        self._later = (evidence, *later, remote)
        self._receipts: dict[str, Receipt] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self._at_zero: dict[str, asyncio.Event] = {}
        """Of each kill that is followed: set once the guard has judged zero and that is known here."""
        self.orders: dict[str, str] = {}
        """Which remote order each kill obeyed; empty: none."""
        self._begun: set[str] = set()
        self.turn = asyncio.Lock()
        """Obeying a remote order and rearming take turns."""
        self.writing = remote.writing
        make_folder(places.receipts_dir)
        self._sealer = Sealer(places, scribe.audit, notice)

    # --- pressing

    async def press(self, ids: list[AgentId] | None, reason: str, by: str, order: str = "") -> str:
        """Presses the guard (None: everything, latched); returns the kill id once the first SIGKILL wave went out."""
        scope: str | list[str] = "all" if ids is None else [str(i) for i in ids]
        kill_id = await self._line.order(scope, reason, by, order, new_kill_id())
        self.began(kill_id, ids, reason, by, order)
        return kill_id

    async def kill(self, members: Callable[[], list[AgentId]], reason: str, by: str, scope: Scope | None = None) -> Receipt:
        """Kill the agents that ``members`` names, and ask again until none of them is left unkilled. Returns the receipt when all are dead.

        ``scope``: the session or host that is meant. Until all are dead nothing starts in it. Later steps follow on the stream of events.
        """
        core = self._core
        wide = scope if scope is not None and scope.reach in (Reach.SESSION, Reach.HOST) else None
        # Marked first: from now on nothing starts below them, or in the scope, and launches under way give up.
        core.post(e.StopAsked(*now(), tuple(members()), wide))
        pressed: set[AgentId] = set()
        try:
            presses = await self._press_all(members, pressed, reason, by)
            # Of several (some were starting) no stream of one receipt tells the end: they are answered whole.
            ask = self.zero if len(presses) == 1 else self.wait
            receipts = await asyncio.gather(*(ask(kill_id, ZERO_S) for kill_id in presses))
        finally:
            core.post(e.StopOver(*now(), wide, tuple(core.state.killing & set(members()) - pressed)))
        if not receipts:
            raise Conflict("There is nothing to kill: it has ended, or it is only observed.", "watchfloor fleet shows its state.")
        still_open = [i for i in members() if i not in pressed]
        return receipts[0] if len(receipts) == 1 and not still_open else together(receipts, still_open)

    async def _press_all(self, members: Callable[[], list[AgentId]], pressed: set[AgentId], reason: str, by: str) -> list[str]:
        """One order for all that run; one more for those that were starting, as soon as they can be killed."""
        core, kill_ids = self._core, []
        for _ in range(STARTING_ROUNDS):
            left = [i for i in members() if i not in pressed]
            if unmarked := [i for i in left if i not in core.state.killing]:
                core.post(e.StopAsked(*now(), tuple(unmarked)))
            if ready := [i for i in left if core.state.agents[i].state is not AgentState.STARTING]:
                pressed.update(ready)
                kill_ids.append(await self.press(ready, reason, by))
            if len(left) == len(ready):
                break
            await asyncio.sleep(0.05)
        return kill_ids

    async def halt(self, ids: tuple[AgentId, ...], reason: str) -> None:
        """Carry out a budget's halt: the guard kills and confirms. A failure is shown and tried again until the guard has it or all have
        ended."""
        # One id for all tries: the guard carries an order out once, however often it comes (decision 0004).
        kill_id, tried = new_kill_id(), 0
        while not await self._halted(kill_id, ids, reason):
            tried += 1
            # An overspent agent goes on spending until the guard answers, so the tries begin close together.
            await asyncio.sleep(min(0.5 * tried, HALT_REST_S))

    async def _halted(self, kill_id: str, all_ids: tuple[AgentId, ...], reason: str) -> bool:
        """Return whether the guard has the order, or no agent is left to halt."""
        if not (ids := [i for i in all_ids if i in self._core.state.live]):
            return True
        try:
            self.began(await self._line.halt([str(i) for i in ids], reason, kill_id), ids, reason, "budget", "")
        except ConsoleError as error:
            self._notice(f"a budget halt did not reach the guard: {error}", "red")
            return False
        return True

    def began(self, kill_id: str, ids: list[AgentId] | None, reason: str, by: str, order: str) -> None:
        """Follow a kill, whichever process began it. A second call for the same kill does nothing."""
        if kill_id in self._begun:
            return
        self._begun.add(kill_id)
        self.orders[kill_id] = order
        self._core.post(e.KillStarted(*now(), kill_id, None if ids is None else tuple(ids), reason, by))
        self._core.hub.publish("kill", {"state": "killing", "kill_id": kill_id, "reason": reason, "by": by})
        self._at_zero[kill_id] = asyncio.Event()
        self._following[kill_id] = asyncio.get_running_loop().create_task(self._follow(kill_id, ids, reason, by, order))

    # --- receipts

    def load(self) -> list[str]:
        """Reads the receipts on disk; returns kill ids of the guard's that were never finished here."""
        read = map(read_receipt_file, sorted(self._places.receipts_dir.glob("*.json")))
        self._receipts |= {receipt.kill_id: receipt for receipt in read if receipt is not None}
        done = {kill_id for kill_id, receipt in self._receipts.items() if receipt.complete}
        # The guard writes its own receipt; one that is not complete here is of a kill whose supervisor was down or died.
        unfinished = [p.stem for p in sorted((self._places.guard_dir / "receipts").glob("*.json")) if p.stem not in done]
        self._begun.update(self._receipts.keys() - set(unfinished))
        return unfinished

    def finish(self, kill_id: str, latched: Collection[str] = ()) -> None:
        """A press that ran without a supervisor, or whose supervisor died: its receipt is finished now.

        ``latched``: the kills the guard holds. A kill of everything that is not among them was rearmed since: it is only written up.
        """
        if (receipt := read_receipt_file(self._line.file_of(kill_id))) is None:
            self._notice(f"the guard's receipt {kill_id} is not readable", "red")
            return
        if receipt.by == CANARY:
            return
        # Following it would mark everything killed again, although a human has rearmed since.
        if receipt.scope == "all" and kill_id not in latched:
            self._amended(kill_id, self._put(_merged(beside(receipt, kept(self._receipts.get(kill_id))), {}, complete=True)))
            self._begun.add(kill_id)
            return
        ids = None if receipt.scope == "all" else [AgentId(i) for i in receipt.scope.split(",")]
        self.began(kill_id, ids, receipt.reason, receipt.by, receipt.order)

    def receipts(self) -> list[Receipt]:
        """All of them, newest first."""
        return sorted(self._receipts.values(), key=lambda r: -r.pressed_at)

    def receipt(self, kill_id: str) -> Receipt | None:
        """One, as far as it is."""
        return self._receipts.get(kill_id)

    async def wait(self, kill_id: str, timeout_s: float) -> Receipt:
        """Waits until the receipt is complete; after ``timeout_s`` what there is, its open steps ``unknown``."""
        task = self._following.get(kill_id)
        if task is not None:
            await asyncio.wait([task], timeout=timeout_s)
        receipt = self._receipts.get(kill_id)
        if receipt is None:
            raise TimedOut("The guard's receipt is not there yet; nothing is known.", f"watchfloor receipt show {kill_id}")
        return receipt

    async def zero(self, kill_id: str, timeout_s: float) -> Receipt:
        """The receipt once zero is judged: its later steps are pending. After ``timeout_s`` what there is."""
        at_zero = self._at_zero.get(kill_id)
        if at_zero is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await at_zero.wait()
        return await self.wait(kill_id, 0.0 if at_zero is not None else timeout_s)

    def _put(self, receipt: Receipt, made: tuple[bytes, bytes] | None = None) -> str:
        """Keeps it and shows it; once complete it is sealed: then the SHA-256 of its seal, else ''. ``made``: its two files."""
        self._receipts[receipt.kill_id] = receipt
        body, folder, kill_id = receipt.as_json(), self._places.receipts_dir, receipt.kill_id
        if made is None and receipt.complete:
            made = self._bytes(body)
        # An open one is made into a file by the thread that writes it: the loop, which has callers to answer, does not wait for that.
        self._scribe.job(lambda: keep_receipt(folder, kill_id, *(made or self._bytes(body))))
        state = "killed" if receipt.complete and receipt.scope == "all" else "killing"
        self._core.hub.publish("kill", {"state": state, "kill_id": kill_id, "receipt": body})
        return digest_of(made[1]) if made else ""

    def _bytes(self, body: dict[str, Any]) -> tuple[bytes, bytes]:
        """(the plain file, the sealed one or nothing)."""
        data = json.dumps(self._redact(body), default=str).encode()
        return data, self._sealer.seal(data) if body["complete"] else b""

    def _amended(self, kill_id: str, seal: str) -> None:
        """A receipt changed without a new judgement of the guard's: its new seal is on record as well."""
        if seal:
            words, data = f"{kill_id}: the receipt was amended and sealed again", {"kill_id": kill_id, "seal_sha256": seal}
            self._scribe.record(Record("supervisor", "receipt.sealed", words, data=data, must=True))

    # --- following one kill

    async def _follow(self, kill_id: str, ids: list[AgentId] | None, reason: str, by: str, order: str) -> None:
        at_zero = self._at_zero[kill_id]
        kill = Followed(kill_id, ids, reason, by, order, time.time(), asyncio.Event())
        first = asyncio.create_task(self._line.first_until(at_zero))
        try:
            await self._see_through(kill, at_zero)
        finally:
            at_zero.set()  # whatever went wrong: no caller and no step is left waiting
            kill.answered.set()
            del self._at_zero[kill_id]
            await first

    async def _see_through(self, kill: Followed, at_zero: asyncio.Event) -> None:
        kill_id, ids = kill.kill_id, kill.ids
        steps: dict[StepName, Step] = {}
        tasks = {one.name: asyncio.create_task(one.run(kill)) for one in self._later if not one.after_zero}
        local = await self._line.wait(kill_id, lambda receipt: receipt.zero, GUARD_RECEIPT_S)
        if local is None:
            local = Receipt(kill_id, self._places.instance_id, "all" if ids is None else "", kill.reason, kill.by, kill.pressed, kill.order)
        self._daemons.follow(local)
        kill, local = replace(kill, pressed=local.pressed_at), await counted(self._core, self._guard, local)
        self._receipts[kill_id] = merged = _merged(local, steps, complete=False)
        self._core.post(e.KillJudged(*now(), local))
        at_zero.set()
        await asyncio.sleep(ANSWER_S)
        kill.answered.set()
        self._put(merged)
        tasks |= {one.name: asyncio.create_task(one.run(kill)) for one in self._later if one.after_zero}
        dead = {t.agent_id for t in local.targets}.union(ids or ())
        hunt = asyncio.create_task(self._hunt.after_kill(kill_id, dead, tasks[self._evidence.name]))
        for one in self._later:
            await asyncio.wait([tasks[one.name]])
            steps[one.name] = came_to(one, kill, tasks[one.name])
            self._put(_merged(local, steps, complete=False))
        looked = await self._line.wait(kill_id, lambda receipt: receipt.second_look, GUARD_RECEIPT_S)
        local = beside(looked or local, kept(local))
        await hunt
        final = self._hunt.into(_merged(local, steps, complete=True))
        made = await asyncio.to_thread(lambda: self._bytes(final.as_json()))
        self._core.post(e.KillJudged(*now(), final, self._put(final, made)))
        self._daemons.show(final, None)
        if ids is None:
            await self.answer(kill.order, final)
        if final.remote.status is StepStatus.FAILED:
            asyncio.get_running_loop().create_task(self._retry(kill_id))
        self._amended(kill_id, await self.amend(kill_id))  # what was amended in the meantime

    async def answer(self, order: str, receipt: Receipt) -> None:
        """This host's answer for the other consoles, under the generation that was obeyed or written."""
        bucket = self._bucket
        if bucket is None or not (order or bucket.generation):
            return
        if trouble := await asyncio.to_thread(bucket.answer_order, order or f"{bucket.generation}:", receipt):
            self._notice(f"this host's receipt was not written to the bucket: {trouble}")

    async def _retry(self, kill_id: str) -> None:
        """The remote write again and again until it is read back, for as long as the latch holds."""
        for attempt in range(10_000):
            await asyncio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            if not self._core.state.killed or await self._retry_once(kill_id):
                return

    async def _retry_once(self, kill_id: str) -> bool:
        receipt = self._receipts[kill_id]
        if receipt.remote.status is not StepStatus.FAILED:
            return True
        step = await self._remote.run(Followed(kill_id, None, receipt.reason, receipt.by, "", receipt.pressed_at, asyncio.Event()))
        if step.is_ok:
            step = replace(step, detail=f"{step.detail}, after a retry")
        self._amended(kill_id, self._put(self._receipts[kill_id].with_step(step)))
        if step.status is StepStatus.OK:
            await self.answer("", self._receipts[kill_id])
        return step.status is StepStatus.OK

    async def retry_remote(self) -> None:
        """A person asks for the retry now."""
        failed = (receipt for receipt in self.receipts() if receipt.remote.status is StepStatus.FAILED)
        if (receipt := next(failed, None)) is not None:
            await self._retry_once(receipt.kill_id)

    async def amend(self, kill_id: str) -> str:
        """Takes over and seals what the guard amended in a receipt that was finished here. The seal's SHA-256 unless it is on record."""
        local, known = await self._line.read(kill_id), self._receipts.get(kill_id)
        if local is None or known is None or not known.complete:
            return ""  # still being followed: the guard's file is read once more at its end
        if local.second_look.ms is None and known.second_look.ms is not None:
            return ""  # a full disk keeps an older file than what the guard said from memory; its newer one comes with the next amendment
        local = beside(local, kept(known))
        final = self._hunt.into(_merged(local, {s.name: s for s in known.steps if s.name not in PROOF}, complete=True))
        self._daemons.show(final, known)
        if (final.amended, final.targets, final.verified_zero) != (known.amended, known.targets, known.verified_zero):
            self._core.post(e.KillJudged(*now(), final, self._put(final)))
            return ""
        return self._put(final) if (final.returns, final.not_watched) != (known.returns, known.not_watched) else ""

    async def cancel_remote(self) -> None:
        """A rearm: every write of a kill that is still owed to the bucket is given up, durably, before anything is released."""
        for receipt in self.receipts():
            owed = receipt.remote
            if receipt.scope == "all" and owed in receipt.steps and owed.status not in (StepStatus.OK, StepStatus.SKIPPED):
                given_up = replace(owed, status=StepStatus.SKIPPED, detail=f"given up by a rearm ({owed.detail})")
                await self._replace(receipt.with_step(given_up))

    async def correct(self, kill_id: str, step: Step) -> None:
        """One step of a finished receipt turned out otherwise later; when it was decided first stays."""
        receipt = self._receipts.get(kill_id)
        if receipt is not None and receipt.complete:
            await self._replace(receipt.with_step(replace(step, ms=receipt.step(step.name).ms)))

    async def _replace(self, receipt: Receipt) -> None:
        """Seal the receipt again and store it. The window is not shown a kill that is already over."""
        self._receipts[receipt.kill_id] = receipt
        data, sealed = self._bytes(receipt.as_json())
        await asyncio.to_thread(keep_receipt, self._places.receipts_dir, receipt.kill_id, data, sealed)
        self._amended(receipt.kill_id, digest_of(sealed))

    async def settled(self) -> None:
        """Returns once no kill is followed any more."""
        while under_way := [task for task in self._following.values() if not task.done()]:
            await asyncio.wait(under_way)

    async def note_on_latch(self, words: str) -> None:
        """Something that a reader of the receipt of the kill that holds now must know: it is in its latch step, sealed again."""
        receipt = next((r for r in self.receipts() if r.scope == "all" and r.complete), None)
        if receipt is None:
            return
        latch = replace(receipt.latch, detail=f"{receipt.latch.detail}; {words}"[:1000])
        self._amended(receipt.kill_id, self._put(receipt.with_step(latch)))


_OLDER_GUARD = (
    "The guard that runs is of an older version: it looks at no connections and keeps no return watch. "
    "It ends some minutes after its last agent and the supervisor; the next one does both."
)


def _merged(local: Receipt, steps: dict[StepName, Step], *, complete: bool) -> Receipt:
    """The guard's part and ours, in the order of the step names; what is open is ``pending``, and ``unknown`` in a complete one."""
    have = {s.name: s for s in local.steps} | steps
    open_ = (StepStatus.UNKNOWN, "nothing is known") if complete else (StepStatus.PENDING, "not done yet")
    ordered = tuple(have.get(name, Step(name, open_[0], None, open_[1])) for name in dict.fromkeys((*StepName, *have)))
    last = max((s.ms for s in ordered if s.ms is not None), default=local.ms_total)
    # A canary of the armed light that flew at that moment is nobody's agent; one that is not proven dead stays in the list.
    targets = tuple(t for t in local.targets if t.outcome is not Outcome.PROVEN_ZERO or not t.agent_id.startswith(f"{CANARY}-"))
    merged = replace(local, steps=ordered, targets=targets, complete=complete, ms_total=max(local.ms_total, last))
    if complete and targets and local.connections_state == "none":  # never looked is not the same as none found
        merged = replace(merged, connections_state="not recorded", connections_detail=_OLDER_GUARD)
    return judged(merged)


# --- Several receipts of one request as one answer.


WORST_FIRST = (StepStatus.FAILED, StepStatus.UNKNOWN, StepStatus.PENDING, StepStatus.SKIPPED, StepStatus.OK)
DETAIL_LENGTH = 2000
"""Letters of the joined words of one step; the worst come first."""
_STATES = ("not recorded", "pending", "none", "recorded")


def proven_dead(receipts: Iterable[Receipt]) -> frozenset[AgentId]:
    """Return the agents whose end the receipts confirm. One unconfirmed target in any receipt is enough to leave an agent out (promise
    1)."""
    proven: set[str] = set()
    doubted: set[str] = set()
    for receipt in receipts:
        for agent_id, outcome in worst_outcomes(receipt.targets).items():
            (proven if outcome is Outcome.PROVEN_ZERO else doubted).add(agent_id)
    return frozenset(map(AgentId, proven - doubted))


def ends(receipts: Collection[Receipt]) -> tuple[frozenset[AgentId], frozenset[AgentId]]:
    """(agents whose end complete receipts confirm, agents in a complete receipt that is not proven).

    The kernel's word on one agent is not enough where the second look failed, or where a killed session ran again.
    """
    complete = [receipt for receipt in receipts if receipt.complete]
    open_ones = (receipt for receipt in complete if verdict(receipt).exit_code is ExitCode.NOT_PROVEN)
    doubted = frozenset(AgentId(target.agent_id) for receipt in open_ones for target in receipt.targets)
    return proven_dead(complete) - doubted, doubted


def together(receipts: list[Receipt], open_ids: list[AgentId]) -> Receipt:
    """One answer for several presses of one request: of everything the worst; whatever is still open makes it unproven."""
    still = tuple(Target(i, "unknown", Outcome.NOT_PROVEN, None, {"why": "It was still starting and was not stopped."}) for i in open_ids)
    every = replace(
        receipts[0],
        scope=",".join(r.scope for r in receipts),
        targets=(*(t for r in receipts for t in r.targets), *still),
        survivors=tuple(s for r in receipts for s in r.survivors),
        steps=tuple(_worst(name, receipts) for name in StepName),
        complete=all(r.complete for r in receipts),
        ms_total=max(r.ms_total for r in receipts),
        watch_until=max(r.watch_until for r in receipts),
        connections_state=next((state for state in _STATES if any(r.connections_state == state for r in receipts)), _STATES[0]),
        excluded=_each(r.excluded for r in receipts),
        amended=_each(r.amended for r in receipts),
        returns=_each(r.returns for r in receipts),
        not_watched=_each(r.not_watched for r in receipts),
        connections=_each(r.connections for r in receipts),
        connections_detail="; ".join(_each((r.connections_detail,) for r in receipts if r.connections_detail)),
        uncovered=_each(r.uncovered for r in receipts),
        suspects=_each(r.suspects for r in receipts),
        daemons=_each(r.daemons for r in receipts),
    )
    return judged(every)


_Row = TypeVar("_Row")


def _each(lists: Iterable[tuple[_Row, ...]]) -> tuple[_Row, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys(row for rows in lists for row in rows))


def _worst(name: StepName, receipts: list[Receipt]) -> Step:
    """One step over all of them: the worst status, the latest moment, what each had to say, the worst first."""
    found = [_step(name, r) for r in receipts]
    found.sort(key=lambda step: WORST_FIRST.index(step.status))
    known = [step.ms for step in found if step.ms is not None]
    words = "; ".join(dict.fromkeys(step.detail for step in found if step.detail))
    if len(words) > DETAIL_LENGTH:
        words = f"{words[: DETAIL_LENGTH - 1]}…"
    return Step(name, found[0].status, max(known, default=None), words)


def _step(name: StepName, receipt: Receipt) -> Step:
    """What a receipt does not mention is not known."""
    missing = Step(name, StepStatus.UNKNOWN, None, f"the receipt {receipt.kill_id} says nothing about it")
    return next((step for step in receipt.steps if step.name is name), missing)
