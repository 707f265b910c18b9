"""What can be asked of the guard: one table of operations, by door. Kills are answered at once; what loosens goes to the clerk."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, NotRecorded, UsageProblem
from console.domain.guard import ANSWER_ROOM, CAUSES, LINE_LIMIT, cut, number, scope_of, text, whole, whole_list
from console.domain.kill import KILL_ID, Outcome, Receipt
from console.domain.roles.rights import Right
from console.domain.verdict import judged
from console.killswitch.guard.adoption import Adoption, Asked
from console.killswitch.guard.freeze import ASKED, Freezing, check_cause, lease_end, stop_softly
from console.killswitch.guard.launches import Calls, Launches
from console.killswitch.guard.state import Guard, is_own_part, monotonic
from console.killswitch.guard.unlatch import Unlatching
from console.killswitch.kernel import processes
from console.killswitch.kernel.peers import Peer
from console.killswitch.kill.orders import is_claimed, order_id
from console.killswitch.kill.receipt import read_receipt, receipt_bytes, write_receipt
from console.killswitch.kill.records import asked
from console.killswitch.kill.session import KillSession, zero_ms
from console.killswitch.kill.snapshot import find_process
from console.killswitch.kill.suspects import chosen, end
from console.killswitch.store.registry import Registry

MOST = 100
"""Agents of one answer."""
WORDS = 1000
"""Bytes of one agent's words."""
TURN_S = 0.01
"""So long one answer keeps the guard's loop: a press behind it waits no longer."""


def counts(registry: Registry, after: str) -> dict[str, Any]:
    """Of the agents by name behind ``after``: how many processes each has, and why a kill of it cannot be proven.

    ``next`` is what to ask for next, or None at the end. One that is not in any answer is not registered, or came meanwhile: ask
    ``procs`` for it.
    """
    found: dict[str, int] = {}
    doubts: dict[str, str] = {}
    room, until = ANSWER_ROOM, time.monotonic() + TURN_S
    names = sorted(name for name in list(registry.held) if name > after)
    for name in names:
        held = registry.held.get(name)
        if held is None:
            continue
        count, why = len(held.pids()), cut(held.entry.why_best_effort or held.doubt, WORDS, WORDS)
        room -= len(name) + 12 + (len(name) + len(json.dumps(why)) + 6 if why else 0)
        if found and room < 0:
            break
        found[name] = count
        if why:
            doubts[name] = why
        if len(found) >= MOST or time.monotonic() > until:
            break
    last = next(reversed(found), "")
    return {"counts": found, "best_effort": doubts, "next": last if last and last != names[-1] else None}


MOST_SUSPECTS = 500
"""That one request may name; the line that holds it is bounded too."""
MOST_NAMED = 20
"""Of one answer, which is a line of 4 KiB."""


def end_suspects(guard: Guard, message: dict[str, Any], peer: int) -> dict[str, Any]:
    """Kills the suspects that are named, or the preselected ones. Raises NotFound or UsageProblem before anything is killed."""
    kill_id, by = text(message, "kill_id", limit=60), text(message, "by", "", 100)
    kill, receipt = _receipt(guard, kill_id)
    suspects = chosen(receipt, whole_list(message, "pids", MOST_SUSPECTS))
    spared = processes.own_line(guard.supervisor_pid, peer, *guard.connected())
    done = end(receipt, suspects, spared | {one.pid for one in suspects if _is_own(guard, one.pid)})
    words = [f"suspect process {one.pid}: {one.words}" + (f", as {by} asked" if by else "") for one in done]
    if kill is not None:
        kill.amended = [*kill.amended, *words][-50:]
    paper = kill.receipt() if kill is not None else judged(replace(receipt, amended=(*receipt.amended, *words)[-50:]))
    if words:
        guard.record("receipt", lambda: write_receipt(guard.folder, paper))
        guard.record_line("receipt_amended", kill_id=kill_id, verified_zero=paper.verified_zero, reason="; ".join(words)[:1000])
    return {"kill_id": kill_id, "ended": [asdict(one) for one in done][:MOST_NAMED], "n": len(done), "n_done": sum(d.done for d in done)}


def _receipt(guard: Guard, kill_id: str) -> tuple[KillSession | None, Receipt]:
    """From memory, or from the disk for a kill of a former guard. NotFound when there is none."""
    kill = guard.kills.get(kill_id)
    if kill is not None:
        return kill, kill.receipt()
    receipt = read_receipt(guard.folder, kill_id) if KILL_ID.match(kill_id) else None
    if receipt is None:
        raise NotFound(f"There is no kill {kill_id[:60]!r}: nothing was killed.", "watchfloor receipt list shows the kills.")
    return None, receipt


def _is_own(guard: Guard, pid: int) -> bool:
    one = find_process(pid)
    return one is not None and is_own_part(guard, one)


# The other causes belong to timers and holds of the guard: the supervisor must not be able to lift what guards against it.
SUPERVISOR_CAUSES = tuple(c for c in CAUSES if c not in ("hold", "heartbeat", "lease", "soft_stop"))
CHUNK = 2000
MOST_READERS = 16
MOST_AT_ONCE = 16


MEMBERS_MAY = {
    "press": Right.KILL,
    "hold": Right.KILL,
    "let_go": Right.KILL,
    "suspects": Right.KILL,
    "status": Right.READ,
    "progress": Right.READ,
    "receipt": Right.READ,
}
"""What members of the roles' groups may ask of the guard, and the right that each needs. Nothing else."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation."""

    run: Callable[[dict[str, Any], Peer], dict[str, Any]]
    slow: bool = False
    """Waits for the disk: the clerk does it."""
    at_once: Callable[[dict[str, Any]], None] | None = None
    """What must not wait for the clerk: done by the loop when the line is read."""
    loosens: bool = False
    """Refused on any doubt about the peer."""
    is_order: bool = False
    """Its agents may take several lines; it begins with the last."""


class Desk:
    """Turns a message into an answer."""

    def __init__(self, guard: Guard, freezing: Freezing, launches: Launches) -> None:
        self._guard = guard
        self._freezing = freezing
        self._launches = launches
        self.unlatching = Unlatching(guard)
        self.adoption = Adoption(guard, freezing, launches)
        self._reading: dict[tuple[str, int], str] = {}
        """Receipts as they were when a caller (by pid) asked for their first piece."""
        calls = Calls(guard, launches)
        self.ops: dict[str, Op] = {
            "press": Op(self._press, is_order=True),
            "hold": Op(self._hold),
            "let_go": Op(self._let_go, slow=True, at_once=self._stop_clock, loosens=True),
            "freeze": Op(lambda m, p: self._freeze(m, ("operator",), p.uid)),
            "thaw": Op(lambda m, p: self._thaw(m, ("operator",), p.uid), slow=True, loosens=True),
            "freezing": Op(lambda m, p: self._look_at_freeze(m)),
            "status": Op(lambda m, p: self._status()),
            "progress": Op(lambda m, p: self._progress(self._kill(m))),
            "receipt": Op(self._receipt),
            "suspects": Op(lambda m, p: end_suspects(guard, m, p.pid), slow=True, loosens=True),
        }
        self.supervisor_ops: dict[str, Op] = {
            **self.ops,
            "freeze": Op(lambda m, p: self._freeze(m, SUPERVISOR_CAUSES)),
            "thaw": Op(lambda m, p: self._thaw(m, SUPERVISOR_CAUSES), slow=True),
            "halt": Op(self._halt, is_order=True),
            "ticket": Op(self._ticket, slow=True),
            "confirm": Op(self._confirm, slow=True),
            "forget": Op(lambda m, p: launches.forget(*_named(m)), slow=True),
            "call": Op(lambda m, p: calls.ticket(m), slow=True),
            "call_go": Op(lambda m, p: calls.confirm(m), slow=True),
            "call_over": Op(lambda m, p: calls.over(m), slow=True),
            "procs": Op(lambda m, p: launches.procs(text(m, "agent_id", limit=63))),
            "counts": Op(lambda m, p: counts(guard.registry, text(m, "after", "", 63))),
            "connections": Op(lambda m, p: asked(guard.connections.records, list(guard.registry.held), m)),
            "missed": Op(lambda m, p: launches.missed(scope_of(m)), slow=True),
            "heartbeat": Op(self._heartbeat),
            "lease": Op(self._lease, slow=True, at_once=lambda m: _renew(guard, m)),
            "soft_stop": Op(self._soft_stop, slow=True, at_once=lambda m: _stop_softly(guard, freezing, m)),
            "isolate": Op(self._isolate),
            "doubts": Op(lambda m, p: self.unlatching.doubts(), slow=True),
            "challenge": Op(lambda m, p: self.unlatching.challenge(), slow=True),
            "prove": Op(self._prove, slow=True),
            "unlatch": Op(self._unlatch, slow=True),
            "passphrase": Op(self._passphrase, slow=True),
            "seen": Op(lambda m, p: guard.seen.hear(m, guard.record), slow=True),
            "daemons": Op(lambda m, p: guard.respawners.known.hear(m, guard.record), slow=True),
            "returned": Op(lambda m, p: guard.respawners.hear_return(m), slow=True),
            "unheld": Op(lambda m, p: guard.unheld.hear(m, guard.record), slow=True),
            "adoptable": Op(self._adoptable, slow=True),
            "adopt": Op(self._adopt, slow=True),
            "quit": Op(self._quit, slow=True),
        }
        self.wants_to_end = False

    def find(self, name: object, door: str) -> Op:
        """The operation of a door. UsageProblem when it has none of that name."""
        op = (self.supervisor_ops if door == "supervisor" else self.ops).get(name if isinstance(name, str) else "")
        if op is None:
            raise UsageProblem(
                f"This socket has no operation {str(name)[:40]!r}.", "The supervisor's operations are on guard-supervisor.sock."
            )
        return op

    def _press(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        reason, by, order = (str(message.get(k, ""))[:500] for k in ("reason", "by", "order"))  # a badly worded press still kills
        scope, kill_id = scope_of(message), order_id(message)
        if _is_carried_out(self._guard, message):
            return {"kill_id": kill_id}
        kill = self._join(scope, reason, by) or self._guard.press(
            scope, reason, by, order, kill_id, peer=peer.pid, heard_at=message.get("heard_at", 0.0)
        )
        return {"kill_id": kill.order.kill_id}

    def _join(self, scope: str | list[str], reason: str, by: str) -> KillSession | None:
        """With many kills under way, let one more of everything join the newest, so that a storm of kills starts no threads without end.

        Raises Conflict for a kill of unknown agents.
        """
        guard = self._guard
        running = [k for k in guard.kills.values() if not k.finished.is_set()]
        if len(running) < MOST_AT_ONCE:
            return None
        if scope not in ("all", ["all"]):
            if not guard.known(scope):
                raise Conflict("Many kills are being carried out, and none of these agents is registered.", "Ask again in a second.")
            return None
        twin = next((k for k in reversed(running) if k.order.is_all), None)
        if twin is not None:
            with guard.lock:
                twin.strike()
            line = {"kill_id": twin.order.kill_id, "scope": "all", "reason": reason, "by": by[:100], "joined": True}
            guard.clerk.do(lambda: guard.record_line("press", **line))
        return twin

    def _halt(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        scope = scope_of(message)
        if isinstance(scope, str) or scope == ["all"]:
            raise UsageProblem("A halt names its agents.", "To stop everything, use Panic.")
        by, reason = str(message.get("by", "budget"))[:100], str(message.get("reason", ""))[:500]
        if _is_carried_out(self._guard, message):
            return {"kill_id": order_id(message)}
        return {"kill_id": self._guard.press(scope, reason, by, kill_id=order_id(message), peer=peer.pid).order.kill_id}

    def _hold(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        hold = self._freezing.hold(str(message.get("by", ""))[:100], number(message, "held_s", 0.0))
        return {"hold_id": hold.hold_id, "kill_id": hold.kill_id}

    def _stop_clock(self, message: dict[str, Any]) -> None:
        self._freezing.stop_clock(text(message, "hold_id", limit=40))

    def _let_go(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        thawed = self._freezing.let_go(text(message, "hold_id", limit=40), str(message.get("by", ""))[:100])
        return {"thawed": len(thawed)}

    def _freeze(self, message: dict[str, Any], allowed: tuple[str, ...], uid: int | None = None) -> dict[str, Any]:
        cause = check_cause(text(message, "cause", "operator", 20), allowed)
        ids = self._guard.known(scope_of(message))
        if not ids and message.get("scope") != "all":
            raise NotFound("None of these agents is registered with the guard.", "watchfloor fleet lists them.")
        answers = self._freezing.freeze(ids, cause, str(message.get("by", ""))[:100], uid)
        failed = {agent: words for agent, words in answers.items() if words.startswith("failed")}
        asked = {i: self._freezing.pausing.unconfirmed.get(i, ASKED) for i, words in answers.items() if words == ASKED}
        frozen = len(answers) - len(failed) - len(asked)
        return {"frozen": frozen, "failed": dict(list(failed.items())[:10]), "unconfirmed": dict(list(asked.items())[:10])}

    def _look_at_freeze(self, message: dict[str, Any]) -> dict[str, Any]:
        """Of a scope: who has a cause of freeze and is not seen to be frozen. The first ten by name, all of them counted."""
        doubts = self._freezing.unconfirmed(self._guard.known(scope_of(message)))
        return {"unconfirmed": {i: cut(why, 200) for i, why in list(doubts.items())[:10]}, "n": len(doubts)}

    def _thaw(self, message: dict[str, Any], allowed: tuple[str, ...], uid: int | None = None) -> dict[str, Any]:
        cause = check_cause(text(message, "cause", "operator", 20), allowed)
        ids, by = self._guard.known(scope_of(message)), str(message.get("by", ""))[:100]
        return {"thawed": len(self._freezing.thaw(ids, cause, by, uid))}

    def _isolate(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Kills the relays of the agents named: no egress until the supervisor starts them again."""
        tree = self._guard.tree
        ids = self._guard.known(scope_of(message))
        if tree is None:
            raise Denied("There are no cgroups here, so the relays cannot be told apart.", "Revoke the egress instead.")
        answers = {}
        for agent_id in ids:
            kill = tree.relays.path / agent_id / "cgroup.kill"
            try:
                kill.write_text("1")
                answers[agent_id] = "sent"
            except OSError as error:
                answers[agent_id] = f"failed: {error.strerror}"
        return {"relays": dict(list(answers.items())[:20])}

    def _kill(self, message: dict[str, Any]) -> KillSession:
        kill = self._guard.kills.get(text(message, "kill_id", limit=60))
        if kill is None:
            raise NotFound("This guard knows no such kill.", "Read guard/receipts in the state directory.")
        return kill

    def _progress(self, kill: KillSession) -> dict[str, Any]:
        outcomes = [a.outcome for a in kill.aims]
        return {
            "kill_id": kill.order.kill_id,
            "phase": kill.phase,
            "proven": outcomes.count(Outcome.PROVEN_ZERO),
            "best_effort": outcomes.count(Outcome.BEST_EFFORT),
            "total": len(outcomes),
            "ms": zero_ms(kill),
            "done": kill.is_done,
        } | ({"exit_code": int(kill.judged.exit_code), "short": kill.judged.short} if kill.judged is not None else {})

    def _receipt(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """A piece of the receipt's text, for when the disk could not take it."""
        kill, offset = self._kill(message), whole(message, "offset", 0)
        key = (kill.order.kill_id, peer.pid)
        if offset == 0 or key not in self._reading:  # all pieces come from one text: a receipt goes on changing
            while len(self._reading) >= MOST_READERS:
                self._reading.pop(next(iter(self._reading)))
            self._reading[key] = receipt_bytes(kill.receipt()).decode()
        raw, end = self._reading[key], offset + CHUNK
        return {"text": raw[offset:end], "next": end if end < len(raw) else None}

    def _status(self) -> dict[str, Any]:
        guard, freezing = self._guard, self._freezing
        latch, last = guard.latch.state, next(reversed(list(guard.kills.values())), None)
        with guard.lock:
            frozen = {i: sorted(guard.causes.of(i)) for i in guard.registry.held if guard.causes.of(i)}
            agents = len(guard.registry.held)
        follower = guard.follower
        answer: dict[str, Any] = {
            "pid": os.getpid(),
            "instance": guard.config.instance_id,
            "latched": latch.latched,
            "reason": cut(latch.why, 300),
            "generation": latch.generation,
            "kills": list(latch.kills),
            "kills_n": len(latch.kills),
            "agents": agents,
            "frozen": frozen,
            "frozen_n": len(frozen),
            "unconfirmed_n": len(freezing.pausing.unconfirmed),
            "notices": [cut(n, 600) for n in list(guard.notices.values())],
            "soft_stop": cut(guard.causes.soft_stop, 400),
            "holds": [
                {"hold_id": h.hold_id, "kill_id": h.kill_id, "live": h.deadline is not None} for h in list(guard.causes.holds.values())
            ],
            "kill": self._progress(last) if last is not None else None,
            "rearm": self.unlatching.view(),
            "heartbeat_age_s": round(monotonic() - freezing.heard_at, 3),
            "heartbeat_lost": freezing.heartbeat_lost,
            "lease_left_s": freezing.lease_left(),
            "caps": {k: cut(v, 300) for k, v in guard.caps().items()},
            "engine": {
                "socket": cut(str(guard.engine.path), 200) if guard.engine else "",
                "state": follower.state if follower else "none",
            },
        }
        return _fit(answer)

    def _ticket(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        pids_max = whole(message, "pids_max") if message.get("pids_max") is not None else None
        memory_max = whole(message, "memory_max") if message.get("memory_max") is not None else None
        uid = whole(message, "uid") if message.get("uid") is not None else None
        cpus = whole(message, "cpus_milli") if message.get("cpus_milli") is not None else None
        agent_id, kind, level = (text(message, k, limit=63) for k in ("agent_id", "kind", "control_level"))
        return self._launches.ticket(agent_id, kind, level, pids_max, memory_max, uid, cpus)

    def _confirm(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        generation, pid, ticks = (whole(message, k) for k in ("generation", "pid", "start_ticks"))
        return self._launches.confirm(text(message, "agent_id", limit=63), generation, pid, ticks, text(message, "container_id", "", 64))

    def _heartbeat(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        self._guard.supervisor_pid = peer.pid
        away = message.get("planned_restart_s")
        self._freezing.heartbeat(number(message, "planned_restart_s") if away is not None else None)
        return {"latched": self._guard.latch.state.latched, "generation": self._guard.latch.state.generation}

    def _lease(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        waited_s = monotonic() - float(message.get("heard_at", monotonic()))
        self._freezing.lease(number(message, "seconds") if message.get("seconds") is not None else None, waited_s)
        return {"lease_left_s": self._freezing.lease_left()}

    def _soft_stop(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        on = message.get("on")
        if not isinstance(on, bool):
            raise UsageProblem("Field 'on' must be true or false.", "")
        try:
            self._freezing.soft_stop(on, text(message, "why", ""))
        except OSError as error:
            raise NotRecorded("Lifting the soft stop could not be recorded.", "Make room on the disk.") from error
        return {"soft_stop": self._guard.causes.soft_stop}

    def _prove(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Who may rearm: a ticket for ``unlatch``."""
        given = {name: text(message, name, "", room) for name, room in (("passphrase", 256), ("kill_id", 64), ("nonce", 40))}
        kind, generation = text(message, "kind", limit=20), whole(message, "generation")
        return self.unlatching.prove(kind, generation, text(message, "by", "", 200), **given)

    def _unlatch(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Un-kill; see unlatching.py."""
        kills = message.get("kills")
        if not isinstance(kills, list):
            raise UsageProblem("Field 'kills' must list the kills that are released.", "Read them from the status.")
        by, reason, proof = text(message, "by", "", 200), text(message, "reason", ""), text(message, "proof", "", 40)
        return self.unlatching.unlatch(whole(message, "generation"), [str(k) for k in kills], proof, by, reason)

    def _passphrase(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Sets, changes or resets the passphrase."""
        by = text(message, "by", "", 200)
        if message.get("reset") is True:
            return self.unlatching.reset(text(message, "kill_id", "", 64), by)
        return self.unlatching.change(text(message, "new", limit=256), text(message, "old", "", 256), by)

    def _adoptable(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """One process, as a candidate for adoption."""
        pid, ticks, around = whole(message, "pid"), whole(message, "start_ticks"), text(message, "around", "", 63)
        found = self.adoption.examine(pid, ticks, (peer.pid, *whole_list(message, "spare")), around)
        return found | {k: cut(str(found[k]), 500) for k in ("exe", "cmdline", "cgroup", "why_not")}

    def _adopt(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Move a process that Watchfloor did not start into a leaf of ours; see adoption.py."""
        pid, ticks, uid = (whole(message, k) for k in ("pid", "start_ticks", "uid"))
        also = whole_list(message, "also")
        asked = Asked(
            text(message, "agent_id", limit=63), pid, ticks, text(message, "exe"), uid, tuple(zip(also[::2], also[1::2], strict=True))
        )
        done = self.adoption.adopt(asked, (peer.pid, *whole_list(message, "spare")), text(message, "by", "", 200))
        return done | {"left": {str(p): cut(w, 120) for p, w in list(done["left"].items())[:5]}, "left_n": len(done["left"])}

    def _quit(self, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """The embedded pair ends. Refused while anything needs the guard."""
        if not self.nothing_left():
            raise Conflict("The guard stays: agents are alive, or new agents are blocked.", "It ends once nothing needs it.")
        self.wants_to_end = True
        return {}

    def nothing_left(self) -> bool:
        """Whether nothing needs a guard: no agent alive, no latch, no kill going on."""
        guard = self._guard
        alive = any(h.is_populated() for h in list(guard.registry.held.values()))
        return not (guard.latch.state.latched or guard.is_killing() or alive)

    def answer(self, op: Op, message: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Carries an operation out; a refusal is an answer."""
        try:
            return {"ok": True, **op.run(message, peer)}
        except ConsoleError as error:
            return {"ok": False, "error": error.what, "remedy": error.remedy, "kind": type(error).__name__}


def _renew(guard: Guard, message: dict[str, Any]) -> None:
    """A lease counts from when it is heard: a busy clerk must not let it run out. What it thaws is recorded first, by the clerk."""
    if message.get("seconds") is not None:
        guard.causes.lease_until = lease_end(number(message, "seconds"))


def _stop_softly(guard: Guard, freezing: Freezing, message: dict[str, Any]) -> None:
    """Freezes and cuts the egress as soon as it is heard; the clerk records it before it is answered. Lifting it waits for the clerk."""
    if message.get("on") is True:
        stop_softly(guard, freezing, text(message, "why", ""))


def _is_carried_out(guard: Guard, message: dict[str, Any]) -> bool:
    """Whether this guard heard this order before, or another process carries it out."""
    kill_id = order_id(message)
    return bool(kill_id) and (kill_id in guard.kills or is_claimed(message, guard.config.run_dir, guard.folder))


def _named(message: dict[str, Any]) -> list[str]:
    """The agents of a line that names one, or several."""
    scope = scope_of(message) if "scope" in message else [text(message, "agent_id", limit=63)]
    return [] if isinstance(scope, str) else scope


def _fit(answer: dict[str, Any]) -> dict[str, Any]:
    """Shortens the lists until the line fits; the counts stay true."""
    for key, keep in (
        ("frozen", 10),
        ("kills", 20),
        ("notices", 5),
        ("frozen", 2),
        ("holds", 2),
        ("kills", 3),
        ("notices", 2),
        ("frozen", 0),
    ):
        if len(json.dumps(answer)) < LINE_LIMIT - 64:
            break
        value = answer[key]
        answer[key] = dict(list(value.items())[:keep]) if isinstance(value, dict) else value[-keep:]
    return answer
