"""The one place that decides whether zero is verified and the exit code; and that the headline agrees with it."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.errors import ExitCode
from console.domain.headline import headline_of
from console.domain.kill import Connection, Outcome, Receipt, Return, Step, StepName, StepStatus, Survivor, Suspect, Target, Unwatched
from console.domain.verdict import judged, not_watched_words, verdict, worst

STEPS = tuple(Step(n, StepStatus.OK, 610.0 if n is StepName.ZERO else 1200.0) for n in StepName)
SURVIVOR = Survivor("a0", 7, "D", "nfs_wait", "x", "why")
CHECKS = (StepName.ZERO, StepName.SECOND_LOOK)
LATER = tuple(n for n in StepName if n not in CHECKS)


def receipt(*outcomes: Outcome, **changes: object) -> Receipt:
    targets = tuple(Target(f"a{n}", "managed", o, 10.0, {}) for n, o in enumerate(outcomes))
    made = Receipt("k1", "00000000", "all", "why", "who", 1.0, steps=STEPS, targets=targets, ms_total=1300.0, complete=True)
    return replace(made, **changes)  # type: ignore[arg-type]


def steps_with(name: StepName, status: StepStatus) -> tuple[Step, ...]:
    return tuple(replace(s, status=status) if s.name is name else s for s in STEPS)


def came_back(*, certain: bool = True, proven: bool = False) -> Return:
    return Return("a0", "s", 8, 80, 7, "claude", "claude --resume", 9.0, "session id", certain, proven, proven, "why")


def connection(program: str, agent: str = "a0") -> Connection:
    return Connection(agent, "tcp", "127.0.0.1:5", "127.0.0.1:6", 9, 90, program, 26, "")


# --- generated receipts -----------------------------------------------------------------------------------------------

_STEPS = st.lists(st.sampled_from(StepName), unique=True).flatmap(
    lambda names: st.tuples(*(st.builds(Step, st.just(n), st.sampled_from(StepStatus), st.none() | st.floats(0, 9e4)) for n in names))
)
_TARGETS = st.lists(
    st.builds(Target, st.sampled_from(["a0", "a1", "a2"]), st.just("managed"), st.sampled_from(Outcome), st.none() | st.floats(0, 9e4))
)
_RETURNS = st.lists(st.builds(came_back, certain=st.booleans(), proven=st.booleans()), max_size=3)
_RECEIPTS = st.builds(
    Receipt,
    *(st.just(x) for x in ("k1", "00000000", "all", "why", "who")),
    pressed_at=st.just(1.0),
    verified_zero=st.booleans(),
    survivors=st.lists(st.just(SURVIVOR), max_size=2).map(tuple),
    steps=_STEPS | st.just(STEPS),
    targets=_TARGETS.map(tuple),
    only_seen=st.none() | st.integers(0, 3),
    complete=st.booleans(),
    returns=_RETURNS.map(tuple),
    watch_until=st.sampled_from([0.0, 1e9]),
    connections=st.lists(st.builds(connection, st.text(max_size=50)), max_size=3).map(tuple),
    connections_state=st.sampled_from(["none", "recorded", "not recorded", "pending"]),
    uncovered=st.lists(st.just("a0"), max_size=2).map(tuple),
)


def status_of(made: Receipt, name: StepName) -> StepStatus | None:
    return next((s.status for s in made.steps if s.name is name), None)


def is_cut_off(made: Receipt) -> bool:
    return not made.complete and all(status_of(made, n) not in (None, StepStatus.PENDING) for n in StepName)


def are_unknown(made: Receipt) -> bool:
    """Connections of targets, in a receipt that will not be added to."""
    is_last = made.complete or is_cut_off(made)
    return bool(made.targets) and (made.connections_state == "not recorded" or (made.connections_state == "pending" and is_last))


def is_known(made: Receipt, name: StepName) -> bool:
    status = status_of(made, name)
    return status is StepStatus.OK or (not made.complete and status in (None, StepStatus.PENDING))


@settings(max_examples=300, deadline=None)
@given(_RECEIPTS)
def test_zero_is_never_verified_beside_anything_that_speaks_against_it(made: Receipt) -> None:
    found = verdict(made)
    speaks_against = (
        made.survivors
        or any(t.outcome is not Outcome.PROVEN_ZERO for t in made.targets)
        or status_of(made, StepName.ZERO) is not StepStatus.OK
        or not is_known(made, StepName.SECOND_LOOK)
        or any(r.certain and not r.proven for r in made.returns)
    )
    assert found.verified_zero == (not speaks_against)
    assert judged(made).verified_zero == found.verified_zero
    assert verdict(judged(made)) == found  # what a receipt says of itself is not asked


@settings(max_examples=300, deadline=None)
@given(_RECEIPTS)
def test_exit_codes_rank_9_8_7_0(made: Receipt) -> None:
    found = verdict(made)
    nines = (
        made.survivors
        or any(t.outcome in (Outcome.NOT_PROVEN, Outcome.DYING) for t in made.targets)
        or status_of(made, StepName.ZERO) is not StepStatus.OK
        or not is_known(made, StepName.SECOND_LOOK)
        or any(r.certain for r in made.returns)
    )
    eights = made.connections or any(t.outcome is Outcome.BEST_EFFORT for t in made.targets) or are_unknown(made)
    sevens = any(status_of(made, n) in (StepStatus.FAILED, StepStatus.UNKNOWN) for n in LATER) or is_cut_off(made)
    assert found.exit_code == (9 if nines else 8 if eights else 7 if sevens else 0)


@settings(max_examples=300, deadline=None)
@given(_RECEIPTS)
def test_the_headline_says_what_the_code_says(made: Receipt) -> None:
    found, headline = verdict(made), headline_of(made)
    assert headline.isascii() and headline.isprintable()
    assert headline.startswith("All processes of") <= (not found.may_run)
    assert headline.startswith(("NOT PROVEN", "Killing")) == found.may_run
    later = [n for n in LATER if status_of(made, n) in (StepStatus.FAILED, StepStatus.UNKNOWN)]
    if not headline.startswith("Killing"):
        assert bool(later or is_cut_off(made)) == ("Not done: " in headline)
        assert are_unknown(made) == ("were not recorded" in headline)
        assert bool(made.connections) == ("had connections to other programs: " in headline)
        assert any(r.certain and r.proven for r in made.returns) == ("ran again and died" in headline)
    if found.exit_code is ExitCode.DONE:
        assert found.verified_zero
    assert found.is_confirmed == (found.verified_zero and found.exit_code in (0, 7))
    assert found.short.isascii() and len(found.short) < 80
    assert found.short.startswith("NOT PROVEN") == headline.startswith("NOT PROVEN")
    if found.exit_code is not ExitCode.DONE:
        assert found.short != verdict(receipt(*(t.outcome for t in made.targets))).short or not found.verified_zero, "it tells why"


# --- one by one -------------------------------------------------------------------------------------------------------


def test_all_confirmed_dead_and_every_step_done() -> None:
    made = receipt(*[Outcome.PROVEN_ZERO] * 6)
    found = verdict(made)
    assert (found.verified_zero, found.exit_code, found.may_run) == (True, ExitCode.DONE, False)
    assert headline_of(made) == "All processes of 6 agents are dead. Confirmed after 0.61 s."


@pytest.mark.parametrize("status", [StepStatus.FAILED, StepStatus.UNKNOWN])
def test_a_best_effort_target_and_a_failed_step_are_8_and_both_are_named(status: StepStatus) -> None:
    made = receipt(Outcome.PROVEN_ZERO, Outcome.BEST_EFFORT, steps=steps_with(StepName.REMOTE, status))
    found = verdict(made)
    assert (found.verified_zero, found.exit_code, found.may_run) == (False, ExitCode.BEST_EFFORT, False)
    assert "1 agent best effort: no proof is possible." in headline_of(made) and "Not done: remote." in headline_of(made)


def test_connections_are_8_and_the_headline_names_the_programs_and_a_failed_step() -> None:
    hostile = "\x1b[2Jred" * 20
    made = receipt(
        *[Outcome.PROVEN_ZERO] * 6,
        connections=(connection("postgres"), connection("postgres"), connection("redis", "a1"), connection(hostile, "a1"), connection("")),
        steps=steps_with(StepName.EVIDENCE, StepStatus.FAILED),
    )
    found = verdict(made)
    assert (found.verified_zero, found.exit_code) == (True, ExitCode.BEST_EFFORT)
    assert headline_of(made).startswith(
        "All processes of 6 agents are dead. 2 agents had connections to other programs: postgres, redis, ?[2Jred?[2Jred"
    )
    assert "and 1 more. Not done: evidence." in headline_of(made) and "\x1b" not in headline_of(made)


@pytest.mark.parametrize("changes", [{"connections_state": "not recorded"}, {"connections_state": "pending"}])
def test_connections_that_are_not_known_are_never_green(changes: dict[str, Any]) -> None:
    made = receipt(Outcome.PROVEN_ZERO, **changes)
    found = verdict(made)
    assert (found.verified_zero, found.exit_code, found.is_confirmed) == (True, ExitCode.BEST_EFFORT, False)
    assert "Connections to other programs were not recorded." in headline_of(made)
    assert found.short == "1 of 1 confirmed dead, connections not recorded"
    later = receipt(Outcome.PROVEN_ZERO, steps=steps_with(StepName.ROTATE, StepStatus.FAILED), **changes)
    assert verdict(later).exit_code is ExitCode.BEST_EFFORT and "not recorded. Not done: rotate." in headline_of(later)
    assert verdict(receipt(**changes)).exit_code is ExitCode.DONE, "where nothing ran nothing was connected"


def test_connections_that_are_still_looked_for_are_no_doubt_yet() -> None:
    made = receipt(Outcome.PROVEN_ZERO, steps=STEPS[:4], complete=False, connections_state="pending")
    at_zero = verdict(made)
    assert (at_zero.exit_code, "recorded" in headline_of(made)) == (ExitCode.DONE, False)


def test_what_was_not_looked_at_is_never_called_none() -> None:
    assert "onnections" not in headline_of(receipt(Outcome.PROVEN_ZERO))
    uncovered = receipt(Outcome.PROVEN_ZERO, uncovered=("a0",))
    assert (verdict(uncovered).exit_code, "is not covered" in headline_of(uncovered)) == (ExitCode.DONE, True)
    suspect = Suspect("a0", 10, 100, "/bin/sleep", 0, "sleep 9", "w", "marker", True, 9)
    assert "1 process outside may be an agent's work." in headline_of(receipt(Outcome.PROVEN_ZERO, suspects=(suspect,)))


def test_a_session_that_ran_again_is_9_and_verified_only_once_it_is_dead_again() -> None:
    alive, dead = (verdict(receipt(Outcome.PROVEN_ZERO, returns=(came_back(proven=p),))) for p in (False, True))
    assert (alive.verified_zero, alive.exit_code, alive.may_run) == (False, ExitCode.NOT_PROVEN, True)
    assert (dead.verified_zero, dead.exit_code, dead.may_run) == (True, ExitCode.NOT_PROVEN, False)
    again = receipt(Outcome.PROVEN_ZERO, returns=(came_back(),))
    assert "NOT PROVEN: 1 process of a killed session ran again." in headline_of(again)
    shown = verdict(receipt(Outcome.PROVEN_ZERO, returns=(came_back(certain=False),)))
    assert (shown.verified_zero, shown.exit_code) == (True, ExitCode.DONE)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("status", [s for s in StepStatus if s is not StepStatus.OK])
def test_a_check_that_is_not_known_is_9(name: StepName, status: StepStatus) -> None:
    found = verdict(receipt(Outcome.PROVEN_ZERO, steps=steps_with(name, status)))
    assert (found.verified_zero, found.exit_code) == (False, ExitCode.NOT_PROVEN)
    assert verdict(receipt(Outcome.PROVEN_ZERO, steps=tuple(s for s in STEPS if s.name is not name))).exit_code is ExitCode.NOT_PROVEN


def test_a_step_that_is_still_pending_is_not_a_failed_one() -> None:
    made = receipt(Outcome.PROVEN_ZERO, steps=STEPS[:4], complete=False)
    at_zero = verdict(made)
    assert (at_zero.verified_zero, at_zero.exit_code) == (True, ExitCode.DONE)
    made = receipt(Outcome.DYING, Outcome.PROVEN_ZERO, steps=STEPS[:3], complete=False)
    before = verdict(made)
    assert (before.verified_zero, before.exit_code) == (False, ExitCode.NOT_PROVEN)
    assert headline_of(made) == "Killing: 1 of 2 agents confirmed dead so far."


def test_survivors_are_never_beside_a_verified_zero() -> None:
    made = receipt(Outcome.BEST_EFFORT, survivors=(SURVIVOR,) * 40, verified_zero=True)
    found = verdict(made)
    assert (found.verified_zero, found.exit_code) == (False, ExitCode.NOT_PROVEN)
    assert "40 processes are still alive" in headline_of(made)


def test_the_worst_code_of_several_kills() -> None:
    ranked = (ExitCode.NOT_PROVEN, ExitCode.BEST_EFFORT, ExitCode.LATER_STEP, ExitCode.DONE)
    for codes in itertools.product(ranked, repeat=3):
        assert worst(codes) is min(codes, key=ranked.index)
    assert worst(()) is ExitCode.DONE


def test_a_persistence_check_that_is_unknown_is_a_later_step_and_no_doubt_about_processes() -> None:
    target = Target("a-1", "adopted", Outcome.PROVEN_ZERO, 1.0)
    steps = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)
    receipt = Receipt("k", "i", "a-1", "r", "b", 1.0, steps=steps, targets=(target,), complete=True, persistence="unknown")
    found = verdict(receipt)
    assert found.verified_zero and found.exit_code is ExitCode.LATER_STEP and "Not done: persistence check." in headline_of(receipt)


def test_a_gap_of_the_return_watch_within_one_second_is_said_by_its_length() -> None:
    at = 1_800_000_000.0
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    assert not_watched_words([Unwatched(at, at + 0.4)]) == f"Return watch: not watched for 0.4 s at {clock}"
    later = time.strftime("%H:%M:%S", time.localtime(at + 2))
    assert not_watched_words([Unwatched(at, at + 2)]) == f"Return watch: not watched from {clock} to {later}"


@pytest.mark.parametrize("length", [0.0, 0.04])
def test_a_gap_too_short_to_measure_is_not_said_to_be_empty(length: float) -> None:
    at = 1_800_000_000.0
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    assert not_watched_words([Unwatched(at, at + length)]) == f"Return watch: not watched for less than 0.1 s at {clock}"


@pytest.mark.parametrize("length", [-0.3, -5.0])
def test_a_gap_in_which_the_clock_was_set_back_has_no_false_end(length: float) -> None:
    at = 1_800_000_000.0
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    words = f"Return watch: not watched for an unknown time after {clock}, since the clock was set back"
    assert not_watched_words([Unwatched(at, at + length)]) == words
