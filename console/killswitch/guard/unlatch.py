"""The un-kill, as the guard allows it. First the caller proves who asks, then exactly what was checked is released, once.

``prove`` turns a passphrase, a signature that the supervisor verified, or the kill's typed id into a ticket for one generation. ``unlatch``
takes it. A kill in between makes both worthless: a kill wins over every release.

The check before it finds all that shows, or does not exclude, that something of ours still runs. Each doubt tells what to do. A receipt
covers only the agents that the guard knew. Where the registry or the latch was lost there is no receipt. So everything that can know of an
agent is checked: the registry, the agents' cgroup, the engine's own list, the marks in processes' environments.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Any

from console.domain.errors import Conflict, Denied, NotRecorded
from console.domain.kill import KILL_ID
from console.domain.process.failpoints import failpoint
from console.killswitch.guard.state import Guard, monotonic
from console.killswitch.kernel import processes
from console.killswitch.kernel.engine import EngineSilent
from console.killswitch.kill.receipt import read_receipt
from console.killswitch.store.passphrase import SHOWN_FROM, Passphrase

MOST_NAMED = 5
LOOKED = "The record of agents was lost. A look found none in any cgroup, container or marked process; what is in none of these is unknown."


def has_receipt(kill_id: str) -> bool:
    """Whether it is a kill's id, and no mark such as ``latch-unreadable``."""
    return bool(KILL_ID.match(kill_id)) and kill_id[0].isdigit()


def find_doubts(guard: Guard) -> list[str]:
    """Empty when everything was looked at and nothing of ours was found. Waits for the engine (seconds), not under the guard's lock."""
    found = [*_in_cgroups(guard), *_in_engine(guard)]
    if guard.registry.incomplete or not _was_looked_over(guard):
        found += _in_environments(guard)
    if not found:
        with guard.lock:
            for held in guard.registry.held.values():
                held.doubt = ""  # it was found empty, and now nothing knows of it elsewhere either
    return found


def _was_looked_over(guard: Guard) -> bool:
    """Return whether the newest kill's second look was completed, or its receipt names what it left alone. Without a receipt: no."""
    newest = next((k for k in reversed(guard.latch.state.kills) if has_receipt(k)), "")
    receipt = read_receipt(guard.folder, newest) if newest else None
    if receipt is None or not receipt.complete:
        return False
    return bool(receipt.survivors) or receipt.second_look.is_ok


def _in_cgroups(guard: Guard) -> list[str]:
    with guard.lock:
        alive = [i for i, held in guard.registry.held.items() if held.is_populated()]
        tree = guard.tree
    if alive:
        return [f"{len(alive)} agents still have processes, for example {alive[0]}. Kill again, and rearm once all are confirmed dead."]
    if tree is not None and tree.agents.is_populated():
        pids = tree.agents.pids(MOST_NAMED)
        return [f"Among the agents' cgroups, in none that is registered, processes run{_named(pids)}. Kill again, or end them."]
    return []


def _in_engine(guard: Guard) -> list[str]:
    ever, engine = guard.registry.containers_ever, guard.engine
    if engine is None:
        if ever and guard.registry.incomplete and guard.registry.engine_socket:
            return [f"Containers were started through {guard.registry.engine_socket}, which is not asked here: start the guard with it."]
        return []
    try:
        running = engine.running()
    except EngineSilent as error:
        return [f"The engine does not say which containers run ({error}). Start it, then rearm."] if ever else []
    if not running:
        return []
    names = ", ".join(f"{c.container_id[:12]} of {c.agent_id or 'no known agent'}" for c in running[:MOST_NAMED])
    return [f"{len(running)} containers of this instance run: {names}. Kill again, or remove them."]


def _in_environments(guard: Guard) -> list[str]:
    spared = processes.ancestors(os.getpid()) | (processes.ancestors(guard.supervisor_pid) if guard.supervisor_pid > 1 else frozenset())
    try:
        marked = [m for m in processes.find_marked(guard.config.instance_id, guard.config.run_dir) if m.pid not in spared]
    except OSError as error:
        return [f"Not every process could be checked ({error.strerror or error}): an agent's may be among them. Rearm again."]
    alive = [m for m in marked if processes.is_alive(m.pid)]
    if not alive:
        return []
    return [f"{len(alive)} processes carry an agent's marks{_named([m.pid for m in alive])}. Kill again, or end them if they are yours."]


def _named(pids: list[int]) -> str:
    words = [f"{pid} {processes.command_line(pid)[:60]!r}" for pid in pids[:MOST_NAMED]]
    return f" (pid {', '.join(words)})" if words else ""


PROOF_S = 60.0
NONCE_S = 600.0
MOST_OPEN = 32
"""Nonces and tickets kept; the oldest go first."""
NO_PASSPHRASE = "No passphrase is set: the typed id of the kill was enough. Set one: watchfloor secrets passphrase set"
KINDS = ("passphrase", "signature", "typed")


@dataclass(frozen=True, slots=True)
class Proof:
    """Who asked was proven ``kind``-wise, for one generation of the latch, until ``until`` (CLOCK_MONOTONIC)."""

    kind: str
    generation: int
    until: float
    words: str = ""


def newest(kills: tuple[str, ...] | list[str]) -> str:
    """The kill that a person types: the latch's last real one, else its last mark ("" when there is none)."""
    real = [k for k in kills if has_receipt(k)]
    return (real or list(kills) or [""])[-1]


class Unlatching:
    """Nonces, proofs and the release of one guard. Only the clerk's thread calls it, but for ``view``."""

    def __init__(self, guard: Guard, passphrase: Passphrase) -> None:
        self._guard = guard
        self._passphrase = passphrase
        self._nonces: dict[str, tuple[int, float]] = {}
        self._proofs: dict[str, Proof] = {}

    def view(self) -> dict[str, Any]:
        """For the status; from memory."""
        note, generation = self._passphrase.note, self._guard.latch.state.generation
        view: dict[str, Any] = {"passphrase": self._passphrase.state, "wrong": note.wrong, "wait_s": self._passphrase.wait_s()}
        if self._passphrase.why:
            view["why"] = self._passphrase.why[:120]
        if self._guard.latch.state.latched and note.reset_generation == generation:
            view["reset_while_killed"] = True
        return view

    def look(self) -> None:
        """Once a second, on the clerk's thread: a file that was tampered with shows before anybody needs it."""
        if self._passphrase.look() == "broken":
            self._guard.notices["passphrase"] = (
                f"The passphrase for rearm cannot be trusted: {self._passphrase.why}. It does not work until it is reset."
            )
        else:
            self._guard.notices.pop("passphrase", None)
        self._show_wrong()

    def doubts(self) -> dict[str, Any]:
        """Return what speaks against an un-kill now. A doubt that is cleared up is not listed any more."""
        found = find_doubts(self._guard)
        return {"doubts": [words[:400] for words in found[:6]], "incomplete": self._guard.registry.incomplete[:300]}

    def challenge(self) -> dict[str, Any]:
        """A nonce for a signature over the latch as it is now; good once."""
        state = self._guard.latch.state
        nonce = secrets.token_hex(16)
        self._nonces[nonce] = (state.generation, monotonic() + NONCE_S)
        while len(self._nonces) > MOST_OPEN:
            self._nonces.pop(next(iter(self._nonces)))
        return {"nonce": nonce, "generation": state.generation, "to_type": newest(state.kills)}

    def prove(self, kind: str, generation: int, by: str, *, passphrase: str = "", kill_id: str = "", nonce: str = "") -> dict[str, Any]:
        """A ticket for ``unlatch``. Denied on a wrong proof, which is journalled; Conflict when the latch moved on."""
        guard = self._guard
        guard.latch.obey_disk()
        guard.latch.check_release(generation, guard.latch.state.kills)
        try:
            words = self._check(kind, generation, passphrase, kill_id, nonce)
        except Denied as error:
            self._show_wrong()
            self._journal("rearm_refused", proof=kind[:20], by=by, why=error.what[:200], wrong=self._passphrase.note.wrong)
            raise
        self._show_wrong()
        ticket = secrets.token_hex(16)
        self._proofs[ticket] = Proof(kind, generation, monotonic() + PROOF_S, words)
        while len(self._proofs) > MOST_OPEN:
            self._proofs.pop(next(iter(self._proofs)))
        return {"proof": ticket, "note": words}

    def _check(self, kind: str, generation: int, passphrase: str, kill_id: str, nonce: str) -> str:
        """An amber note, or nothing."""
        if kind == "passphrase":
            self._passphrase.check(passphrase)
            return ""
        if kind == "signature":
            known, until = self._nonces.pop(nonce, (-1, 0.0))
            if known != generation or monotonic() > until:
                raise Denied("The signature is over a nonce that this guard did not give, or gave for another state.", "Sign again.")
            return ""
        if kind != "typed":
            raise Denied("That proves nothing.", f"Proofs: {', '.join(KINDS)}.")
        if self._passphrase.look() != "not_set":
            why = f": {self._passphrase.why}" if self._passphrase.why else ""
            raise Denied(
                f"A passphrase is set{why}; the typed id is not enough.",
                "Give the passphrase, sign with an operator key, or the owner resets it at a terminal: watchfloor secrets passphrase reset",
            )
        wanted = newest(self._guard.latch.state.kills)
        if kill_id != wanted:
            raise Denied(f"The kill to release is {wanted}; that is not what was typed.", "Look at its receipt, then type its id.")
        return NO_PASSPHRASE

    def unlatch(self, generation: int, kills: list[str], proof: str, by: str, reason: str) -> dict[str, Any]:
        """Generation current, every kill covered and over, the asker proven; journal first, disk before memory."""
        guard = self._guard
        guard.latch.obey_disk()
        if any(not kill.is_done for kill in list(guard.kills.values())):
            raise Conflict("A kill is still being carried out.", "Wait until it is done.")
        with guard.lock:
            guard.latch.check_release(generation, kills)
        # A latch that came from a damaged file has no receipt: everything that may know is asked, whatever the caller believes.
        if found := find_doubts(guard):
            raise Conflict(found[0], "watchfloor rearm shows all of it; fix what is named, then rearm.")
        proven = self._proofs.pop(proof, None)
        if proven is None or proven.generation != generation or monotonic() > proven.until:
            raise Denied("The right to rearm was not proven.", "Give the passphrase, a signature, or the typed id of the kill.")
        words = " ".join(w for w in (proven.words, LOOKED if guard.registry.incomplete else "") if w)
        was_reset = self._passphrase.note.reset_generation == generation
        try:
            guard.journal.append(
                "unlatch",
                generation=generation,
                kills=kills[:200],
                by=by,
                reason=reason,
                proof=proven.kind,
                reset_while_killed=was_reset,
                incomplete=guard.registry.incomplete[:200],
            )
            failpoint("unlatch.journalled")
            guard.latch.release(generation)
        except OSError as error:
            raise NotRecorded(
                f"The release could not be recorded: {error.strerror}.", "Make room on the disk; it stays killed until then."
            ) from error
        self._proofs.clear()
        for key in ("latch", "registry", "came-back", "risen"):
            guard.notices.pop(key, None)
        guard.registry.incomplete = ""
        guard.afterwards.forget()  # nobody waits for those receipts any more
        guard.record("registry", guard.registry.save)
        state = guard.latch.state
        return {"latched": state.latched, "generation": state.generation, "proof": proven.kind, "note": words}

    def change(self, new: str, old: str, by: str) -> dict[str, Any]:
        """Set the passphrase, or replace it. A replacement needs the old one. Journalled first."""
        what = "changed" if self._passphrase.look() == "set" else "set"
        self._journal("passphrase", by=by, what=f"to be {what}")
        try:
            self._passphrase.change(new, old)
        except Denied as error:
            self._journal("passphrase", by=by, what="refused", why=error.what[:200])
            raise
        finally:
            self._show_wrong()
        self._journal("passphrase", by=by, what=what)
        return {"passphrase": self._passphrase.state, "path": str(self._passphrase.path)}

    def reset(self, kill_id: str, by: str) -> dict[str, Any]:
        """Forgets the passphrase; while killed only with the kill's typed id, and that is remembered until the rearm."""
        state = self._guard.latch.state
        if state.latched and kill_id != newest(state.kills):
            raise Denied("While killed a reset takes the id of the kill, typed by hand.", f"The kill is {newest(state.kills)}.")
        self._journal("passphrase", by=by, what="reset", latched=state.latched, kills=list(state.kills)[-3:])
        self._passphrase.reset(state.generation if state.latched else -1)
        self._guard.notices.pop("passphrase", None)
        self._show_wrong()
        return {"passphrase": self._passphrase.state, "while_killed": state.latched}

    def _show_wrong(self) -> None:
        wrong = self._passphrase.note.wrong
        if wrong >= SHOWN_FROM:
            self._guard.notices["wrong-passphrase"] = f"{wrong} wrong passphrases in a row; the audit log shows who gave them."
        else:
            self._guard.notices.pop("wrong-passphrase", None)

    def _journal(self, kind: str, **data: Any) -> None:
        """NotRecorded when it cannot be kept: a refusal then still refuses, and a change does not happen."""
        try:
            self._guard.journal.append(kind, **data)
        except OSError as error:
            raise NotRecorded(f"It could not be recorded: {error.strerror}.", "Make room on the disk.") from error
