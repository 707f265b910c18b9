"""``watchfloor remote watch``: poll the bucket for a host whose supervisor is away. It stops, and answers for the host; it never loosens.

Lease, heartbeat and soft stop belong to the process that holds the instance's lock. So watch renews none of them and lifts nothing. Without
a supervisor the guard freezes its agents by itself, and a kill in the bucket still reaches them through here.
"""

from __future__ import annotations

import argparse
import json
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, assert_never

from console.domain.errors import Conflict, ConsoleError, Denied, ExitCode, NotFound, Unavailable
from console.domain.kill import Receipt, has_receipt
from console.domain.process.ending import INTERRUPTED
from console.domain.verdict import verdict, worst
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.client.kill import place_order
from console.killswitch.kernel.peers import inside_an_agent
from console.killswitch.kill.receipt import read_receipt
from console.killswitch.store.atomic_file import Damaged, read_sealed
from console.remotekill.machine import Alarm, Effect, Latch, LeaseRenewed, LiftSoftStop, Mode, Released, SoftStop
from console.remotekill.state_file import hold_state
from console.services.remote.service import RemoteDesk
from console.settings.layers import in_force
from console.settings.options import Options
from console.settings.places import Places

LOOK_S = 0.2
RECEIPT_S = 20.0
NOTE = "watch only stops: it renews no lease and lifts nothing; without a supervisor the guard freezes its agents by itself"


def watch_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``watch`` takes."""
    parser.add_argument("--once", action="store_true", help="one poll, with all that follows from it, then end")
    parser.add_argument("--standby", action="store_true", help="wait while a supervisor polls, and take over whenever none does")


def watch(places: Places | None, given: argparse.Namespace) -> int:
    """Polls until a signal, a supervisor, or --once ends it. Exit codes: see docs/how-to/remote-kill.md."""
    if places is None:
        raise NotFound("There is no instance here; nothing was ever started in it.", "Name its folder with --state-dir.")
    if inside_an_agent():
        raise Denied("An agent has no say here.", "")
    options = in_force(places).options
    if not options.remote.bucket:
        raise Unavailable("Remote kill is not configured: no bucket is set.", "Start the supervisor once with --remote-bucket NAME.")
    end = threading.Event()
    with _signals(end) as caught:
        code = _turns(places, options, given, end)
    return INTERRUPTED if signal.SIGINT in caught else code


def _turns(places: Places, options: Options, given: argparse.Namespace, end: threading.Event) -> int:
    say = Teller(as_json=given.json)
    while not end.is_set():
        if why := _who_polls(places):
            if not given.standby:
                raise Conflict(
                    f"{why}: a second poller would only get in its way.", "watchfloor status shows what it sees; --standby waits."
                )
            end.wait(LOOK_S)
            continue
        code = Watch(places, options, say).run(end, once=given.once)
        if given.once or not given.standby:
            return code
    return 0


def _who_polls(places: Places) -> str:
    """Who polls for this instance already, or nothing."""
    if _supervisor_listens(places):
        return "A supervisor runs and polls"
    turn = hold_state(places.state_dir / "remote-state.json")
    if turn is None:
        return "Another process polls with this state"
    turn.close()
    return ""


def _supervisor_listens(places: Places) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(places.operator_sock))
        except OSError:
            return False
    return True


@contextmanager
def _signals(end: threading.Event) -> Iterator[set[int]]:
    """SIGTERM and SIGINT set ``end``; the set holds those that came."""
    caught: set[int] = set()

    def take(number: int, _frame: object) -> None:
        caught.add(number)
        end.set()

    before = {number: signal.signal(number, take) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Teller:
    """One line per event, on stdout; a reader that went away stops nothing."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = threading.Lock()

    def __call__(self, event: str, **facts: Any) -> None:
        """``event`` and its facts; text in them is hostile and is written escaped."""
        line = {"schema_version": 1, "event": event, "at": round(time.time(), 3), **facts}
        if self._as_json:
            text = json.dumps(line, default=str)
        else:
            shown = (f"{name} {ascii(v) if isinstance(v, str) else v}" for name, v in facts.items() if v not in ("", None, []))
            text = " ".join([time.strftime("%H:%M:%S"), event.replace("_", " "), *shown])
        with self._lock:
            try:
                print(text, flush=True)
            except (OSError, ValueError):
                pass


@dataclass
class Obeyed:
    """One order and the kill that obeys it."""

    order: str
    kill_id: str
    since: float = field(default_factory=time.monotonic)
    receipt: Receipt | None = None
    answered: bool = False
    again_at: float = 0.0


class Watch:
    """Poll for one turn: from the moment no other process polls to the end, or to a supervisor's return."""

    def __init__(self, places: Places, options: Options, say: Callable[..., None]) -> None:
        self._places, self._options, self._say = places, options, say
        state_file = places.state_dir / "remote-state.json"
        self._desk = RemoteDesk(options.remote, places.keys_dir, state_file, options.host(), bool(options.remote.endpoint))
        self._guard = GuardClient(places.guard_sock, timeout_s=2.0)
        self._new: queue.SimpleQueue[Obeyed] = queue.SimpleQueue()
        self._obeyed: dict[str, Obeyed] = {}
        self._told = -1

    def run(self, end: threading.Event, *, once: bool) -> int:
        """Polls; returns the exit code of what is known at the end."""
        self._say("started", bucket=self._options.remote.bucket, fleet=self._options.remote.fleet, host=self._options.host(), note=NOTE)
        self._desk.start(self._take, float(self._status().get("lease_left_s") or 0.0))
        keys_at = time.monotonic()
        try:
            while not end.wait(LOOK_S):
                if time.monotonic() - keys_at > 2.0:
                    self._desk.reload_keys()
                    keys_at = time.monotonic()
                if once:
                    if self._polled():
                        return self._last(end)
                    continue
                self._look()
                if _supervisor_listens(self._places):
                    self._say("ended", why="a supervisor runs again and polls")
                    return 0
            self._say("ended", why="asked to end")
            return 0
        finally:
            self._desk.stop(8.0)
            self._guard.close()

    def _polled(self) -> bool:
        poller = self._desk.poller
        return poller is not None and poller.status().polls > 0

    def _last(self, end: threading.Event) -> int:
        """After one poll: what follows from it is seen to its end."""
        poller = self._desk.poller
        assert poller is not None
        poller.stop(15.0)
        until = time.monotonic() + RECEIPT_S
        self._look()
        while self._owes_now() and time.monotonic() < until and not end.wait(LOOK_S):
            self._look()
        return int(self._code())

    # --- what the poller tells (its thread)

    def _take(self, effect: Effect) -> None:
        match effect:
            case Latch(order, reason, remembered):
                self._obey(str(order), reason, remembered)
            case SoftStop(why):
                self._say("soft_stop", why=why, note="the guard's own lease and heartbeat freeze the agents")
            case LiftSoftStop():
                self._say("soft_stop_over")
            case LeaseRenewed():
                pass
            case Alarm(text):
                self._say("alarm", text=text)
            case Released(orders, remembered):
                if not remembered:
                    self._say(
                        "released", orders=[str(o) for o in orders], note="this host stays killed until rearm, which takes a supervisor"
                    )
            case _:
                assert_never(effect)

    def _obey(self, order: str, reason: str, remembered: bool) -> None:
        """Presses, unless this very order was obeyed and its latch still holds. ConsoleError: it is told again."""
        known, held = self._kill_of(order), self._held()
        if known in held:
            self._new.put(Obeyed(order, known))
            return
        if remembered and held:  # obeyed by a kill that was pressed for another reason: what that one proved counts
            proof = read_receipt(self._places.guard_dir, held[-1])
            if proof is not None and proof.complete and proof.scope == "all":
                self._new.put(Obeyed(order, proof.kill_id))
                return
        places, why = self._places, reason or "remote order"
        done = place_order(places.state_dir, places.run_dir, places.instance_id, "all", why, "remote", order=order)
        kill_id = done if isinstance(done, str) else done.kill_id
        self._new.put(Obeyed(order, kill_id))
        self._say("kill", order=order, kill_id=kill_id, reason=reason)

    def _kill_of(self, order: str) -> str:
        """The kill that obeyed this order, by the receipts on disk, or nothing."""
        for path in sorted((self._places.guard_dir / "receipts").glob("*.json"), reverse=True):
            receipt = read_receipt(self._places.guard_dir, path.stem)
            if receipt is not None and receipt.order == order and receipt.scope == "all":
                return receipt.kill_id
        return ""

    def _held(self) -> list[str]:
        """Return the kills in the latch, oldest first, from the guard, else from the disk.

        What cannot be read counts as not latched, so that it is killed again. So does a mark such as ``latch-unreadable``: no kill is
        confirmed under it.
        """
        status = self._status()
        kills = list(status.get("kills", ())) if status.get("latched") else []
        if "error" in status or int(status.get("kills_n", 0)) > len(kills):
            try:
                body = read_sealed(self._places.guard_dir / "latch.json") or {}
            except (Damaged, OSError):
                return []
            kills = list(body.get("kills", ())) if body.get("latched") is True else []
        return [str(kill_id) for kill_id in kills if has_receipt(str(kill_id))]

    def _status(self) -> dict[str, Any]:
        try:
            return self._guard.status()
        except ConsoleError as error:
            return {"error": str(error)}

    # --- what the loop does (the main thread)

    def _look(self) -> None:
        while not self._new.empty():
            obeyed = self._new.get()
            self._obeyed.setdefault(obeyed.order, obeyed)
        for obeyed in self._obeyed.values():
            self._answer(obeyed)
        self._tell_poll()

    def _answer(self, obeyed: Obeyed) -> None:
        """This host's receipt, once the kill is judged; tried again until it is read back."""
        now = time.monotonic()
        if obeyed.answered or now < obeyed.again_at:
            return
        receipt = read_receipt(self._places.guard_dir, obeyed.kill_id)
        if receipt is None or (not receipt.complete and now - obeyed.since < RECEIPT_S):
            return
        trouble = self._desk.answer_order(obeyed.order, receipt)
        first, obeyed.receipt, obeyed.answered = obeyed.receipt is None, receipt, not trouble
        obeyed.again_at = now + self._options.remote.poll_s
        if first or obeyed.answered:
            zero = verdict(receipt).verified_zero
            facts = {"order": obeyed.order, "kill_id": obeyed.kill_id, "verified_zero": zero, "ms": receipt.ms_total}
            self._say("receipt", **facts, survivors=len(receipt.survivors), written=obeyed.answered, trouble=trouble)

    def _tell_poll(self) -> None:
        poller = self._desk.poller
        status = poller.status() if poller is not None else None
        if status is None or status.polls == self._told or status.fetching_s is not None:
            return
        self._told = status.polls
        guard = self._status()
        self._say(
            "poll",
            mode=status.mode.value,
            good=status.good,
            generation=status.generation,
            epoch=status.epoch,
            good_age_s=None if status.good_age_s is None else round(status.good_age_s, 1),
            latched=[str(order) for order in status.latched],
            guard="away" if "error" in guard else ("latched" if guard.get("latched") else "not latched"),
            detail=status.detail,
        )

    def _owes_now(self) -> bool:
        return not self._new.empty() or any(o.receipt is None for o in self._obeyed.values())

    def _code(self) -> ExitCode:
        """9 before 8 before 7 before 4 for a kill; 5 when nothing good was read; 0 only for a good signed "not killed"."""
        poller = self._desk.poller
        assert poller is not None
        status = poller.status()
        if status.mode is not Mode.KILLED:
            return ExitCode.DONE if status.good_age_s is not None and status.mode is Mode.ARMED else ExitCode.PENDING
        receipts = [o.receipt for o in self._obeyed.values()]
        if not receipts or not self._held():
            return ExitCode.NOT_PROVEN
        codes = {ExitCode.NOT_PROVEN if receipt is None else verdict(receipt).exit_code for receipt in receipts}
        codes |= {ExitCode.LATER_STEP for o in self._obeyed.values() if not o.answered}
        return worst(codes) or ExitCode.DENIED
