"""The way back from a local kill: shown first, proven, recorded, and refused while anything speaks against it; with new secrets.

A kill wins over every release: the generation that was looked at must still be the current one when the guard lets go.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.api import rearm as rm
from console.credentials.rotation import unfinished
from console.credentials.tokens import Tokens
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, NotFound
from console.domain.headline import headline_of
from console.domain.kill import Outcome, Receipt, StepStatus, Target
from console.domain.process.failpoints import failpoint
from console.domain.verdict import verdict
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.store.atomic_file import Damaged, read_sealed
from console.remotekill.keys import load_keys
from console.remotekill.rearming import check_statement, statement
from console.services.fleet.core import Core, now
from console.services.observe.unknown_agents import MARK as UNACCOUNTED
from console.services.records.record_writer import Scribe
from console.services.routes.request_identity import Caller
from console.services.secrets.rotation_step import rotate_step
from console.services.secrets.rotator import Rotator
from console.services.stop.later_steps import RemoteChannel
from console.services.stop.service import StopDesk
from console.settings.places import Places

_KILL_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6,8}\Z")
LAST_KEY = "rearm.last"
"""Where the ledger keeps the kills of the last rearm: their agents may be started again."""
MOST_SHOWN = 50
KEPT_S = 3.0
"""How long a rearm's answer waits for the note of who may be started again."""


@dataclass(frozen=True, slots=True)
class RearmAsk:
    """What a person asks to rearm, and the proof that the person gives."""

    reason: str
    kill_id: str
    by: str
    """For the record: the kernel's word on the connection."""
    proof: rm.RearmProof
    caller: Caller

    def name(self) -> str:
        """For the guard's journal: the claimed name and the kernel's word."""
        claimed = self.proof.operator.encode("ascii", "replace").decode()[:60]
        return f"{claimed or 'unnamed'} (uid {self.caller.uid}, pid {self.caller.pid})"


class Rearming:
    """The un-kill of this host. ``remote``: the bucket whose orders hold it too; None: none is set."""

    __slots__ = ("_core", "_scribe", "_guard", "_places", "_stop", "_remote", "_tokens", "_rotator")

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        guard: GuardClient,
        places: Places,
        stop: StopDesk,
        *,
        remote: RemoteChannel | None,
        tokens: Tokens,
        rotator: Rotator,
    ) -> None:
        self._core, self._scribe, self._guard, self._places, self._stop = core, scribe, guard, places, stop
        self._remote, self._tokens, self._rotator = remote, tokens, rotator

    async def review(self) -> rm.RearmView:
        """Everything a person must see before a rearm. Reads only."""
        status = await asyncio.to_thread(self._guard.call, "status")
        how = dict(status.get("rearm") or {})
        state = how.get("passphrase") if how.get("passphrase") in ("set", "not_set", "broken") else "unknown"
        view = rm.RearmView(
            killed=bool(status.get("latched")),
            instance=self._places.instance_id,
            generation=int(status.get("generation", 0)),
            passphrase=state,  # type: ignore[arg-type]
            passphrase_why=str(how.get("why", "")),
            wait_s=float(how.get("wait_s", 0.0)),
            reset_while_killed=bool(how.get("reset_while_killed")),
            quorum=await asyncio.to_thread(_quorum, self._places.keys_dir),
        )
        if not view.killed:
            return view
        kills = await asyncio.to_thread(latched_kills, self._places.guard_dir, status)
        challenge = await asyncio.to_thread(self._guard.call, "challenge")
        view.kill_ids = kills
        view.kills = [killed_view(k, self._stop.receipt(k)) for k in kills[-MOST_SHOWN:]]
        view.nonce, view.to_type = str(challenge["nonce"]), str(challenge["to_type"])
        view.remote_latched = self._remote.latched() if self._remote is not None else []
        look = await self._look()
        remote = _remote_blockers(view.remote_latched, self._places)
        view.blockers = [str(error) for error in (*remote, *self._unknown_orders(), *self._blockers(kills, look))]
        return view

    async def rearm(self, ask: RearmAsk) -> str:
        """Releases a local kill: refused while a remote order still blocks, or while anything is not proven dead. Gives an amber note."""
        if not self._core.state.killed:
            raise Conflict("Nothing is killed: there is nothing to rearm.", "watchfloor status shows the state.")
        if any(r.scope == "all" and not r.complete for r in self._stop.receipts()):
            raise Conflict("The kill is still being carried out.", "Wait for its receipt, then rearm.")
        if self._stop.writing.locked():
            raise Conflict("The kill is being written to the bucket right now.", "Wait a moment, then rearm.")
        async with self._stop.turn, self._stop.writing:
            return await self._recorded(ask)

    async def _recorded(self, ask: RearmAsk) -> str:
        """Releases what was looked at; the amber note on how that was allowed, or "". Every refusal is on record with who asked."""
        try:
            return await self._unlatch(ask)
        except ConsoleError as error:
            data = {"operator": ask.proof.operator, "reason": ask.reason, "proof": _kind(ask), **ask.caller.as_data()}
            words = f"a rearm was refused: {error.what}"[:500]
            self._scribe.record(Record(ask.by, "kill.rearm_refused", words, verdict="refused", data=data, must=True))
            raise

    async def _unlatch(self, ask: RearmAsk) -> str:
        # 1. Nothing speaks against it: no remote order (the object is read again for this very question), the newest kill proven.
        if self._remote is not None:
            standing = await asyncio.to_thread(self._remote.standing)
            for error in _remote_blockers([order for order in (*self._remote.latched(), standing) if order], self._places):
                raise error
        # Pressed before that generation was read, so covered by it, even where the latch names no more.
        known = frozenset(self._core.state.latched)
        status = await asyncio.to_thread(self._guard.call, "status")
        generation = int(status["generation"])
        if ask.proof.generation is not None and ask.proof.generation != generation:
            words = f"Another kill came after you looked: generation {generation}, not {ask.proof.generation}."
            raise Conflict(words, "Look again, then rearm.")
        kills = await asyncio.to_thread(latched_kills, self._places.guard_dir, status)
        for error in self._blockers(kills, await self._look(), ask.kill_id):
            raise error
        # 2. Who asks is proven to the guard, for this generation alone.
        ticket, kind, note = await self._prove(ask, generation, kills)
        # 3. Writes still owed to the bucket are given up, and every secret of before is dead.
        await self._stop.cancel_remote()
        await self._new_secrets(kills)
        # 4. On record first, then released; a press in between wins.
        data = {"kills": kills, "operator": ask.proof.operator, "reason": ask.reason, "proof": kind, "note": note, **ask.caller.as_data()}
        record = Record(ask.by, "kill.rearm", f"rearm by {kind}: {ask.reason}"[:500], verdict="allow", data=data)
        await asyncio.to_thread(self._scribe.record_first, record)
        failpoint("rearm.recorded")
        reason = ask.reason.encode("ascii", "replace").decode()[:200]
        asked: dict[str, Any] = {"generation": generation, "kills": kills, "by": ask.name(), "reason": reason, "proof": ticket}
        answer = await asyncio.to_thread(self._guard.call, "unlatch", **asked)
        failpoint("rearm.unlatched")
        if self._remote is not None:
            self._remote.generation = 0
            self._remote.hosts = []
        self._core.post(e.Rearmed(*now(), ask.by, ask.reason, tuple({*kills, *known})))
        self._core.hub.publish("kill", {"state": "armed", "reason": ask.reason, "by": ask.by})
        await self._keep_last(kills[-MOST_SHOWN:])
        return str(answer.get("note", note))

    async def _keep_last(self, kills: list[str]) -> None:
        """Store the released kills, for the next question which agents may start again. A disk that hangs holds up no answer."""
        loop, is_over = asyncio.get_running_loop(), asyncio.Event()

        def keep() -> None:
            try:
                self._scribe.ledger.kv_set(LAST_KEY, json.dumps(kills))
            finally:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(is_over.set)

        self._scribe.job(keep)
        with suppress(TimeoutError):
            async with asyncio.timeout(KEPT_S):
                await is_over.wait()

    async def _prove(self, ask: RearmAsk, generation: int, kills: list[str]) -> tuple[str, str, str]:
        """(the guard's ticket, the kind of proof, an amber note). Denied when nothing that was shown is enough."""
        kind = _kind(ask)
        given: dict[str, Any] = {}
        if kind == "passphrase":
            given = {"passphrase": ask.proof.passphrase}
        elif kind.startswith("signature"):
            kids = await asyncio.to_thread(self._signed_by, ask, generation, kills)
            kind, given = f"signature of {', '.join(kids)}"[:200], {"nonce": ask.proof.nonce}
        elif kind == "typed id":
            _check_person(ask)
            given = {"kill_id": ask.kill_id}
        else:
            raise Denied(
                "A rearm takes the operator's passphrase, a signature by an operator key, or a person at a terminal.",
                "Give --passphrase-file or --passphrase-fd, --sign, or run it in a terminal; watchfloor secrets passphrase set makes one.",
            )
        word = {"typed id": "typed"}.get(kind, kind.split(" ", 1)[0])
        answer = await asyncio.to_thread(self._guard.call, "prove", kind=word, generation=generation, by=ask.name(), **given)
        return str(answer["proof"]), kind, str(answer.get("note", ""))

    def _signed_by(self, ask: RearmAsk, generation: int, kills: list[str]) -> list[str]:
        try:
            keys = load_keys(self._places.keys_dir)
        except NotFound as error:
            raise Denied("No operator keys are known here.", "watchfloor secrets keys init, or use the passphrase.") from error
        message = statement(instance=self._places.instance_id, generation=generation, kills=kills, nonce=ask.proof.nonce, reason=ask.reason)
        return check_statement(message, [s.as_data() for s in ask.proof.signatures], keys)

    async def _new_secrets(self, kills: list[str]) -> None:
        """A new epoch: no token of before counts. Where the kill's own rotation is not proven, it is done now. Conflict when it is not."""
        receipt = self._stop.receipt(_newest(kills))
        rotated = receipt is not None and receipt.rotation.is_ok
        await asyncio.to_thread(self._tokens.raise_epoch)
        if rotated and not unfinished(self._tokens):
            return
        step = await rotate_step(self._rotator, True, time.time())
        if step.status is not StepStatus.OK:
            raise Conflict(f"The rotation of the secrets is not confirmed: {step.detail[:200]}.", "Fix what is named, then rearm.")

    def _unknown_orders(self) -> list[ConsoleError]:
        try:
            if self._remote is not None:
                self._remote.check_known()
        except ConsoleError as error:
            return [error]
        return []

    async def _look(self) -> dict[str, Any]:
        """The guard's own look for whatever may still run; it waits for the engine."""
        return await asyncio.to_thread(self._guard.call, "doubts")

    def _blockers(self, kills: list[str], look: dict[str, Any], kill_id: str = "") -> list[ConsoleError]:
        """Return what forbids a rearm. It needs three things: no process of ours runs, the newest kill is the one that the person saw, and
        it is confirmed.

        A confirmed newest kill covers the older ones, because it killed whatever they had left. The order is the latch's own; wall clocks
        decide nothing. Marks such as ``latch-unreadable`` have no receipt. For these, and where the registry was lost (no kill is confirmed
        then), only the guard's own check counts.
        """
        found: list[ConsoleError] = [Conflict(str(words), "") for words in look.get("doubts", ())]
        newest = _newest(kills)
        if not newest:
            return found
        if kill_id and kill_id != newest:
            found.append(Conflict(f"The kill to release is {newest}, not {kill_id[:64]!r}.", "Look at its receipt, then type its id."))
        receipt = self._stop.receipt(newest)
        if receipt is None or not receipt.complete:
            found.append(Conflict(f"The receipt of {newest} is not complete yet.", "Wait for it, or kill again; then rearm."))
        elif not _is_over(receipt) and not (look.get("incomplete") and _lacks_only_the_registry(receipt)):
            found.append(
                Conflict(
                    f"The kill {newest} is not over. {headline_of(receipt)}", "watchfloor receipt show lists what is left; kill again."
                )
            )
        return found


def _kind(ask: RearmAsk) -> str:
    """The proof that was shown, if any."""
    if ask.proof.passphrase:
        return "passphrase"
    if ask.proof.signatures:
        return "signature"
    return "typed id" if ask.proof.via else "none"


def _check_person(ask: RearmAsk) -> None:
    """The typed id counts only from a terminal or the console."""
    if ask.proof.via == "terminal" and not ask.caller.has_terminal:
        raise Denied(
            "That did not come from a terminal.", "Run watchfloor rearm in one, or set a passphrase: watchfloor secrets passphrase set"
        )
    if not ask.kill_id:
        raise Denied("The id of the kill was not typed.", "Look at its receipt, then type its id.")


def _quorum(keys_dir: Path) -> int:
    with suppress(ConsoleError):
        return load_keys(keys_dir).quorum
    return 0


def _remote_blockers(orders: list[str], places: Places) -> list[ConsoleError]:
    if not orders:
        return []
    named = ", ".join(order.partition(":")[0][:24] for order in orders[:3])
    where = "" if places.is_default else f" --state-dir {shlex.quote(str(places.state_dir))}"
    what = f"New agents are blocked by remote order {named}."
    return [Conflict(what, f"End it first in a terminal: watchfloor remote release{where} --reason … (signed), then rearm.")]


def _is_over(receipt: Receipt) -> bool:
    """Every target has ended, best effort ones as far as can be seen. What the second look left open the guard looks at again now."""
    return receipt.zero.is_ok and _have_ended(receipt.targets) and all(r.proven for r in receipt.returns if r.certain)


def _lacks_only_the_registry(receipt: Receipt) -> bool:
    """All that was known has ended; that there was no more could not be proven."""
    known = tuple(t for t in receipt.targets if not t.evidence.get(UNACCOUNTED))
    return _have_ended(known) and receipt.zero.status is StepStatus.UNKNOWN


def _have_ended(targets: tuple[Target, ...]) -> bool:
    return all(t.outcome in (Outcome.PROVEN_ZERO, Outcome.BEST_EFFORT) for t in targets)


def _newest(kills: list[str]) -> str:
    """The latch's last kill that has a receipt, or nothing."""
    return next((k for k in reversed(kills) if _KILL_ID.match(k)), "")


def killed_view(kill_id: str, receipt: Receipt | None) -> rm.KilledView:
    """One kill in the words of its receipt."""
    if receipt is None:
        return rm.KilledView(kill_id=kill_id, has_receipt=False)
    bad, found = [s for s in receipt.steps if s.status is not StepStatus.OK], verdict(receipt)
    return rm.KilledView(
        kill_id=kill_id,
        reason=receipt.reason[:1000],
        by=receipt.by[:200],
        order=receipt.order[:200],
        pressed_at=receipt.pressed_at,
        complete=receipt.complete,
        verified_zero=found.verified_zero,
        exit_code=int(found.exit_code),
        headline=headline_of(receipt, time.time()),
        targets=len(receipt.targets),
        proven=sum(t.outcome is Outcome.PROVEN_ZERO for t in receipt.targets),
        best_effort=[t.agent_id for t in receipt.targets if t.outcome is Outcome.BEST_EFFORT][:MOST_SHOWN],
        survivors=[f"{s.agent_id} pid {s.pid} {s.state} {s.wchan}".strip()[:300] for s in receipt.survivors[:MOST_SHOWN]],
        bad_steps=[f"{s.name}: {s.status}, {s.detail}"[:300] for s in bad[:MOST_SHOWN]],
    )


def latched_kills(guard_dir: Path, status: dict[str, Any]) -> list[str]:
    """Every kill the latch holds. The guard shortens its status to one line of 4 KiB; then the latch on disk has them all."""
    kills = [str(k) for k in status.get("kills", [])]
    if int(status.get("kills_n", len(kills))) <= len(kills):
        return kills
    try:
        return [str(k) for k in (read_sealed(guard_dir / "latch.json") or {})["kills"]]
    except (Damaged, OSError, KeyError, TypeError) as error:
        raise Conflict("The latch on disk cannot be read.", "Fix the state directory; it stays killed until then.") from error
