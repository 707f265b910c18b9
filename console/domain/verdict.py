"""What a receipt amounts to: whether zero is verified, the exit code, and why. No other place decides any of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from console.domain.errors import ExitCode
from console.domain.kill import PROOF, Outcome, Receipt, StepName, StepStatus, Unwatched, worst_outcomes
from console.domain.words import counted

_OPEN = (Outcome.NOT_PROVEN, Outcome.DYING)
_BAD = (StepStatus.FAILED, StepStatus.UNKNOWN)
_RANK = (ExitCode.NOT_PROVEN, ExitCode.BEST_EFFORT, ExitCode.LATER_STEP)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answers, and whether something may still run."""

    verified_zero: bool
    """Every target is confirmed dead by the kernel, and nothing in the receipt speaks against it."""
    exit_code: ExitCode
    short: str
    """The result in about forty letters, for a list or a small window. It holds no text of an agent."""
    code_why: str
    """Why the exit code is not 0, or empty. It holds no text of an agent."""
    may_run: bool
    """A survivor, an unproven target, an unknown check, or a return that is not dead again. Best effort alone is not."""

    @property
    def is_confirmed(self) -> bool:
        """The only green result: zero is verified, and nothing is known or unknown of other programs. A later step has its own mark."""
        return self.verified_zero and self.exit_code in (ExitCode.DONE, ExitCode.LATER_STEP)


def verdict(receipt: Receipt) -> Verdict:
    """Decide from all parts of a receipt; what it says of itself (``verified_zero``) is not asked."""
    zero, doubts = zero_and_doubts(receipt)
    may_run = bool(doubts) or zero is not StepStatus.OK
    is_best_effort = any(t.outcome is Outcome.BEST_EFFORT for t in receipt.targets)
    if may_run or any(r.certain for r in receipt.returns):
        code, why = ExitCode.NOT_PROVEN, ", ".join(doubts) or ("a killed session ran again" if not may_run else "nothing is confirmed yet")
    elif is_best_effort or receipt.connections or is_unrecorded(receipt):
        code, why = ExitCode.BEST_EFFORT, _best_effort_why(receipt, is_best_effort)
    elif later := not_done(receipt):
        code, why = ExitCode.LATER_STEP, f"a later step is not done: {', '.join(name.replace('_', ' ') for name in later)}"
    else:
        code, why = ExitCode.DONE, ""
    return Verdict(not may_run and not is_best_effort, code, _short(receipt, zero, doubts), why, may_run)


def zero_and_doubts(receipt: Receipt) -> tuple[StepStatus, list[str]]:
    """(``ok``, ``pending`` or ``unknown`` for zero, why something may still run in words)."""
    zero, look = (_check(receipt, receipt.step(name).status) for name in PROOF)
    return zero, _doubts(receipt, zero, look)


def _best_effort_why(receipt: Receipt, is_best_effort: bool) -> str:
    if is_best_effort:
        return "not every agent can be confirmed dead"
    return "agents had connections to other programs" if receipt.connections else "connections to other programs were not recorded"


def is_unrecorded(receipt: Receipt) -> bool:
    """Whether connections of its targets are unknown. It counts like a connection: what is not known is never taken for none."""
    is_open = receipt.connections_state == "pending" and not receipt.complete and not _is_cut_off(receipt)
    return bool(receipt.targets) and receipt.connections_state in ("not recorded", "pending") and not is_open


def judged(receipt: Receipt) -> Receipt:
    """The receipt with ``verified_zero`` as its parts have it. Whatever makes or changes a receipt hands it on through here."""
    return replace(receipt, verified_zero=verdict(receipt).verified_zero)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The code of several kills: 9, 8, 7, then 0."""
    found = set(codes)
    return next((code for code in _RANK if code in found), ExitCode.DONE)


def _check(receipt: Receipt, status: StepStatus) -> StepStatus:
    """``ok``, ``pending`` or ``unknown``: a check that a finished receipt lacks, or that was skipped, is not known."""
    if status is StepStatus.OK or (status is StepStatus.PENDING and not receipt.complete):
        return status
    return StepStatus.UNKNOWN


def _doubts(receipt: Receipt, zero: StepStatus, look: StepStatus) -> list[str]:
    """Why something may still run, in words. Empty while the kill has not come to its proof yet."""
    found, alive = [], [r for r in receipt.returns if r.certain and not r.proven]
    outcomes = worst_outcomes(receipt.targets)
    if zero is not StepStatus.PENDING:
        if still := sum(outcome in _OPEN for outcome in outcomes.values()):
            found.append(f"{still} of {counted(len(outcomes), 'agent')} may still run")
        elif zero is StepStatus.UNKNOWN:
            found.append("whether all agents are dead is unknown")
    if receipt.survivors:
        found.append(f"{counted(len(receipt.survivors), 'process is', 'processes are')} still alive")
    if look is StepStatus.UNKNOWN:
        found.append("what the second look saw is unknown")
    if alive:
        found.append(f"{counted(len(alive), 'process', 'processes')} of a killed session ran again")
    return found


def not_done(receipt: Receipt) -> list[str]:
    """Later steps that failed or are unknown. Of an incomplete receipt that waits for no step, the end itself is unknown."""
    bad = [s.name.value for s in receipt.steps if s.status in _BAD and s.name not in PROOF]
    bad += ["persistence check"] if receipt.persistence else []
    bad += ["return watch"] if receipt.not_watched else []
    return bad or (["completion"] if _is_cut_off(receipt) else [])


def _is_cut_off(receipt: Receipt) -> bool:
    """Whether its reader waits no longer: every step is decided, and the end itself is not there."""
    return not receipt.complete and len({s.name for s in receipt.steps if s.status is not StepStatus.PENDING}) == len(StepName)


def is_compared(receipt: Receipt) -> bool:
    """Whether a supervisor has finished it: it adds agents that the ledger knows and the guard's record lost."""
    return receipt.complete and len({s.name for s in receipt.steps}) == len(StepName)


def _short(receipt: Receipt, zero: StepStatus, doubts: list[str]) -> str:
    outcomes = worst_outcomes(receipt.targets)
    total, proven = len(outcomes), sum(outcome is Outcome.PROVEN_ZERO for outcome in outcomes.values())
    if doubts:
        return f"NOT PROVEN: {doubts[0]}"
    if zero is not StepStatus.OK:
        return f"{proven} of {total} confirmed dead so far"
    if any(r.certain for r in receipt.returns):
        return "a killed session ran again and died"
    nothing = "nothing was running" if is_compared(receipt) else "nothing on record was running"
    words = f"{proven} of {total} confirmed dead" if total else nothing
    if proven < total:
        return f"{words}, {total - proven} best effort"
    if receipt.connections:
        return f"{words}, other programs are involved"
    if is_unrecorded(receipt):
        return f"{words}, connections not recorded"
    return f"{words}, a later step is not done" if not_done(receipt) else words


def not_watched_words(times: Iterable[Unwatched]) -> str:
    """When no guard looked for processes that run again."""
    return f"Return watch: not watched {', '.join(map(_gap_words, times))}"


def _gap_words(one: Unwatched) -> str:
    since, until = clock_words(one.since), clock_words(one.until)
    length = one.until - one.since
    if length < 0:  # the clock was set back meanwhile, so no two of its times bound the gap
        return f"for an unknown time after {since}, since the clock was set back"
    if since != until:
        return f"from {since} to {until}"
    return f"for {length:.1f} s at {since}" if length >= 0.05 else f"for less than 0.1 s at {since}"


def clock_words(at: float) -> str:
    """Local time of day, to the second."""
    return time.strftime("%H:%M:%S", time.localtime(at))
