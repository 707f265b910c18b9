"""The un-kill, as the guard allows it. First the caller proves who asks, then exactly what was checked is released, once.

``prove`` turns a passphrase, a signature that the supervisor verified, or the kill's typed id into a ticket for one generation. ``unlatch``
takes it. A kill in between makes both worthless: a kill wins over every release.

The check before it finds all that shows, or does not exclude, that something of ours still runs. Each doubt tells what to do. A receipt
covers only the agents that the guard knew. Where the registry or the latch was lost there is no receipt. So everything that can know of an
agent is checked: the registry and the agents' cgroup here; the engine's own list and the marks in processes' environments by a helper.

That helper (helpers/unlock.py) is also the only one that reads the passphrase's files. Its answer opens nothing by itself.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.domain.errors import Conflict, ConsoleError, Denied, NotRecorded, Unavailable, UsageProblem
from console.domain.kill import has_receipt
from console.domain.process.failpoints import failpoint
from console.killswitch.guard.helper import ask
from console.killswitch.guard.state import Guard, monotonic
from console.killswitch.kernel import processes

HELPER = "unlock"
MOST_NAMED = 5
LOOKED = "The record of agents was lost. A look found none in any cgroup, container or marked process; what is in none of these is unknown."
SHOWN_FROM = 3
"""Wrong attempts in a row after which a notice is shown."""
UNANSWERED_S = 10.0
"""The least wait after a check that gave no answer: it may have been a wrong attempt."""
RETRY_S = 60.0
"""After a look that no helper answered: more often, looks would keep the clerk's thread from everything else."""
LONGEST_WAIT_S = 300.0
"""No answer of the helper makes the next attempt wait longer."""


def find_doubts(guard: Guard) -> list[str]:
    """Empty when everything was looked at and nothing of ours was found. Raises Unavailable when the helper does not answer.

    Waits for the engine (seconds), not under the guard's lock.
    """
    registry, config = guard.registry, guard.config
    asked = {"instance": config.instance_id, "run_dir": str(config.run_dir), "folder": str(guard.folder), "ever": registry.containers_ever}
    asked |= {"engine": str(guard.engine.path) if guard.engine is not None else "", "incomplete": bool(registry.incomplete)}
    asked |= {"recorded": registry.engine_socket if registry.incomplete else "", "spared": [guard.supervisor_pid]}
    asked |= {"newest": next((k for k in reversed(guard.latch.state.kills) if has_receipt(k)), "")}
    heard = ask(HELPER, {"op": "doubts", **asked}, {"doubts": list})
    found = [*_in_cgroups(guard), *map(str, heard["doubts"])]
    if not found:
        with guard.lock:
            for held in guard.registry.held.values():
                held.doubt = ""  # it was found empty, and now nothing knows of it elsewhere either
    return found


def _in_cgroups(guard: Guard) -> list[str]:
    with guard.lock:
        alive = [i for i, held in guard.registry.held.items() if held.is_populated()]
        tree = guard.tree
    if alive:
        return [f"{len(alive)} agents still have processes, for example {alive[0]}. Kill again, and rearm once all are confirmed dead."]
    if tree is not None and tree.agents.is_populated():
        pids = tree.agents.pids(MOST_NAMED)
        words = ", ".join(f"{pid} {processes.command_line(pid)[:60]!r}" for pid in pids)
        named = f" (pid {words})" if pids else ""
        return [f"Among the agents' cgroups, in none that is registered, processes run{named}. Kill again, or end them."]
    return []


_NOTE: dict[str, Any] = {"sha256": "", "next_sha256": "", "path": "", "wrong": 0, "reset_generation": -1}
"""What lies beside the latch (helpers/passphrase.py says what each means). Nothing in it helps to guess the passphrase."""
_SHAPE: dict[str, type] = {"state": str, "why": str, "path": str, "not_before": float, "note": dict, "refused": list}
_REFUSALS = {kind.__name__: kind for kind in (Conflict, Denied, NotRecorded, UsageProblem)}


class Passphrase:
    """What was last heard of the passphrase, from one helper to the next."""

    def __init__(self, file: Path | None, folder: Path) -> None:
        self._places = {"file": str(file or ""), "folder": str(folder)}
        self.note, self.path, self.why = _NOTE, str(file or ""), ""
        self.state = "set" if (folder / "rearm.json").exists() else "not_set"
        """set, not_set or broken. Until the helper answers a guess: a guard's start waits for no helper."""
        self.not_before = 0.0
        """CLOCK_BOOTTIME, which no process can set: when the next attempt is looked at."""
        self._is_loaded = False
        """Whether a helper has told what a former guard left: until then each request begins with that."""
        self.unheard, self._not_again = "", 0.0
        """Why the last look has no answer, and when it is repeated (CLOCK_MONOTONIC)."""
        self._marks: list[tuple[int, ...]] = [(), ()]
        """Of its two files at the last look. Without them none is set, and no helper is needed to know that."""

    def wait_s(self) -> float:
        """Seconds until the next attempt is looked at."""
        return max(0.0, round(self.not_before - time.clock_gettime(time.CLOCK_BOOTTIME), 1))

    def ask(self, op: str, **more: str | int) -> str:
        """``load``, ``look``, ``check``, ``change`` or ``reset``: the state after it.

        Raises what it was refused with, or Unavailable when the helper gave no answer: an attempt then counts as a wrong one.
        """
        if not self._is_loaded and op != "load":
            self.ask("load")
        known, now = {"note": self.note, "not_before": self.not_before}, time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            heard = ask(HELPER, {"op": op, **self._places, **known, **more}, _SHAPE)
            if not _is_whole(heard):
                raise Unavailable("The guard's helper (unlock) gave no answer that can be used.", "Nothing was done. Try again.")
        except Unavailable:
            if "given" in more or "old" in more:
                self.not_before = max(self.not_before, now + UNANSWERED_S)
            raise
        self.state, self.why, self.path, self.note = heard["state"], heard["why"], heard["path"], heard["note"]
        self._is_loaded = True
        self.not_before = min(heard["not_before"], now + LONGEST_WAIT_S)
        if heard["refused"]:
            kind, what, remedy = heard["refused"]
            raise _REFUSALS[kind](what, remedy)
        return self.state

    def look_if_changed(self) -> None:
        """Asks for a look if a file is another one than at the last: inode, size, owner, mode, or times that only the kernel sets."""
        marks = [_mark(path) for path in (f"{self._places['folder']}/rearm.json", self.path)]  # first: a later change is another look
        if marks == self._marks or monotonic() < self._not_again:
            return
        try:
            self.ask("look" if self._is_loaded else "load")
        except Unavailable as error:
            self.unheard, self._not_again = error.what, monotonic() + RETRY_S
        else:
            self.unheard, self._marks = "", marks


def _mark(path: str) -> tuple[int, ...]:
    """Empty for a file that is not there."""
    try:
        seen = os.lstat(path)  # noqa: PTH116 - no path is one that is not there
    except FileNotFoundError:
        return ()
    except OSError as error:
        return (error.errno or 0,)
    return seen.st_ino, seen.st_size, seen.st_mode, seen.st_uid, seen.st_mtime_ns, seen.st_ctime_ns


def _is_whole(heard: dict[str, Any]) -> bool:
    """Whether what is inside an answer's fields is as it must be: nothing of any other is taken over."""
    is_note = {key: type(value) for key, value in heard["note"].items()} == {key: type(value) for key, value in _NOTE.items()}
    words = heard["refused"]
    is_refusal = not words or (len(words) == 3 and words[0] in _REFUSALS and all(isinstance(one, str) for one in words))
    return is_note and is_refusal and heard["state"] in ("set", "not_set", "broken") and 0 <= heard["not_before"] < 1e15


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

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.passphrase = Passphrase(guard.config.passphrase_file, guard.config.guard_dir)
        self._nonces: dict[str, tuple[int, float]] = {}
        self._proofs: dict[str, Proof] = {}

    def view(self) -> dict[str, Any]:
        """For the status; from memory."""
        it, generation = self.passphrase, self._guard.latch.state.generation
        view: dict[str, Any] = {"passphrase": it.state, "wrong": it.note["wrong"], "wait_s": it.wait_s()}
        if self.passphrase.why:
            view["why"] = self.passphrase.why[:120]
        if self._guard.latch.state.latched and it.note["reset_generation"] == generation:
            view["reset_while_killed"] = True
        return view

    def look(self) -> None:
        """First of all, then once a second, on the clerk's thread: a file that was tampered with shows before it is needed."""
        it, notices = self.passphrase, self._guard.notices
        try:
            it.look_if_changed()
            why = it.unheard
        except ConsoleError as error:
            why = error.what
        if it.state == "broken":
            why = f"The passphrase for rearm cannot be trusted: {it.why}. It does not work until it is reset."
        notices.pop("passphrase", None)
        notices |= {"passphrase": why} if why else {}
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
        except (Denied, Unavailable) as error:
            self._show_wrong()
            self._journal("rearm_refused", proof=kind[:20], by=by, why=error.what[:200], wrong=self.passphrase.note["wrong"])
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
            if self.passphrase.ask("check", given=passphrase) != "set":
                raise Denied("The passphrase cannot be checked.", "watchfloor status shows why.")
            return ""
        if kind == "signature":
            known, until = self._nonces.pop(nonce, (-1, 0.0))
            if known != generation or monotonic() > until:
                raise Denied("The signature is over a nonce that this guard did not give, or gave for another state.", "Sign again.")
            return ""
        if kind != "typed":
            raise Denied("That proves nothing.", f"Proofs: {', '.join(KINDS)}.")
        if self.passphrase.ask("look") != "not_set":
            why = f": {self.passphrase.why}" if self.passphrase.why else ""
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
        was_reset = self.passphrase.note["reset_generation"] == generation
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
        what = "changed" if self.passphrase.ask("look") == "set" else "set"
        self._journal("passphrase", by=by, what=f"to be {what}")
        try:
            self.passphrase.ask("change", new=new, old=old)
        except (Denied, Unavailable) as error:
            self._journal("passphrase", by=by, what="refused", why=error.what[:200])
            raise
        finally:
            self._show_wrong()
        self._journal("passphrase", by=by, what=what)
        return {"passphrase": self.passphrase.state, "path": self.passphrase.path}

    def reset(self, kill_id: str, by: str) -> dict[str, Any]:
        """Forgets the passphrase; while killed only with the kill's typed id, and that is remembered until the rearm."""
        state = self._guard.latch.state
        if state.latched and kill_id != newest(state.kills):
            raise Denied("While killed a reset takes the id of the kill, typed by hand.", f"The kill is {newest(state.kills)}.")
        self._journal("passphrase", by=by, what="reset", latched=state.latched, kills=list(state.kills)[-3:])
        self.passphrase.ask("reset", generation=state.generation if state.latched else -1)
        self._guard.notices.pop("passphrase", None)
        self._show_wrong()
        return {"passphrase": self.passphrase.state, "while_killed": state.latched}

    def _show_wrong(self) -> None:
        wrong = self.passphrase.note["wrong"]
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
