"""Faults 1, 3 and 4: the guard and the supervisor die, fail or hang at each state that matters, and nothing that was promised is lost."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError, NotRecorded
from console.domain.kill import Receipt, StepName, StepStatus
from console.domain.network import NetworkMode, Sensitivity
from console.killswitch.store.atomic_file import RESERVE_BYTES
from tests.fakes.broken import Broken
from tests.fakes.instance import until
from tests.fakes.invariants import audited, check_invariants, living
from tests.fakes.nursery import Nursling
from tests.fault.conftest import Make, sparse

LIVE = ("starting", "running", "waiting", "frozen", "over_budget")
GUARD_POINTS = [f"{what}.{when}" for what in ("latch", "registry", "receipt") for when in ("written", "renamed")]
GUARD_POINTS += [f"kill.{step}" for step in ("refuse", "latch", "signal", "zero", "second_look")]
CAUSES_POINTS = ["causes.written", "causes.renamed"]
LAUNCH_POINTS = [f"launch.{when}" for when in ("recorded", "ticketed", "prepared", "confirmed", "gone")]
DISK_POINTS = ["ledger.commit", "ledger.committed", "audit.commit", "audit.committed", "act.recorded"]
ASKER = """while True:
    try: print("answer", agent.permission("write_file", "f.txt")["verdict"], flush=True); time.sleep(60)
    except client.Refused as e: print("refused", e.status, flush=True); time.sleep(0.1)
"""
COUNTER = "n = 0\nwhile True: n += 1; print(n, flush=True); time.sleep(0.05)"
SPENDER = """n = 0
while True:
    try: agent.usage(cost_usd=0.01); n += 1; print("acknowledged", n, flush=True)
    except client.Refused: time.sleep(0.05)
"""


def acknowledged_by(it: Broken, spender: str) -> int:
    """How many reports of its the supervisors have acknowledged: by the last whole line."""
    lines = it.output(spender).split("\n")[:-1]
    return max((int(line.split()[1]) for line in lines if line.startswith("acknowledged")), default=0)


def step(receipt: Receipt, name: StepName) -> StepStatus:
    return next(s.status for s in receipt.steps if s.name is name)


def dies(it: Broken) -> None:
    """The supervisor, at the point that was armed."""
    assert it.supervisor is not None
    assert it.supervisor.wait() == -signal.SIGKILL
    assert it.reached()
    it.supervisor = None
    it.arm("")


@pytest.mark.parametrize(
    "point", sparse(GUARD_POINTS, ("latch.written", "registry.renamed", "receipt.written", "kill.refuse", "kill.zero"))
)
def test_a_guard_that_dies_there_in_a_kill_leaves_a_kill(broken: Make, point: str) -> None:
    it = broken()
    guard = it.start_guard()
    it.start()
    it.stubborn()
    it.arm_guard(f"{point}:kill")
    with suppress(ConsoleError):
        it.press_guard()
    assert guard.wait() == -signal.SIGKILL and it.reached(it.armed_guard) == point
    until(it.guard_pid, words="its supervisor starts another")
    receipt = it.receipt_of()
    assert receipt.scope == "all" and receipt.verified_zero
    check_invariants(it.places, killed=True)


@pytest.mark.parametrize("point", sparse(LAUNCH_POINTS + DISK_POINTS, (*LAUNCH_POINTS[1:], "ledger.commit", "audit.committed")))
def test_a_supervisor_that_dies_there_in_a_launch_launches_nothing_twice(broken: Make, point: str) -> None:
    it = broken()
    it.start()
    it.launch("sh", "-c", "sleep 300", context_id="vault", sensitivity="SECRET")
    it.arm(f"{point}:kill")
    with suppress(ConsoleError):
        it.launch("sh", "-c", "echo ran; sleep 300", name="second")
    dies(it)
    it.start()
    second = [a.id for a in it.api.fleet().agents if a.name == "second"]
    assert len(second) <= 1
    # Whoever runs is followed, whoever is not followed does not run.
    until(
        lambda: set(living(it.places).values()) == {a.id for a in it.api.fleet().agents if a.state in LIVE}, words="fleet and kernel agree"
    )
    assert sum(it.output(agent).count("ran") for agent in second) <= 1
    check_invariants(it.places, killed=False, ratchet={"vault": (Sensitivity.SECRET, NetworkMode.NONE)})


@pytest.mark.parametrize("point", ["rearm.recorded", "rearm.unlatched"])
def test_a_supervisor_that_dies_in_a_rearm_releases_it_wholly_or_not_at_all(broken: Make, point: str) -> None:
    it = broken()
    it.start()
    it.stubborn()
    kill_id = it.api.activate("the test").kill_id
    it.receipt_of(kill_id)
    it.arm(f"{point}:kill")
    with suppress(ConsoleError):
        it.api.rearm("the test", kill_id=kill_id)
    dies(it)
    it.start()
    released = point == "rearm.unlatched"
    assert it.api.fleet().killed is not released
    check_invariants(it.places, killed=not released)
    assert any(kind == "kill.rearm" for kind, _, _, _ in audited(it.places)), "the intent is on record"
    if not released:
        it.api.rearm("again", kill_id=kill_id)
    check_invariants(it.places, killed=False)


@pytest.mark.parametrize("point", sparse(CAUSES_POINTS, ("causes.written",)))
def test_a_guard_that_dies_in_a_freeze_or_a_thaw_thaws_nobody_who_was_frozen_and_still_kills(broken: Make, point: str) -> None:
    it = broken()
    guard = it.start_guard()
    it.start()
    counter = it.python(COUNTER)
    it.says(counter, "1")
    it.arm_guard(f"{point}:kill")
    with suppress(ConsoleError):
        it.api.freeze(counter, reason="look")
    assert guard.wait() == -signal.SIGKILL and it.reached(it.armed_guard) == point
    it.arm_guard("")
    until(it.guard_pid, words="its supervisor starts another")
    # Frozen first, written down second: it is frozen by now, and the next guard finds it so.
    until(lambda: it.agent(counter).state == "frozen", words="frozen")
    with holding_still(it, counter):
        guard = replaced_by_one_that_fails(it)
        it.arm_guard(f"{point}:kill")
        with suppress(ConsoleError):
            it.api.thaw(counter, reason="go on")
        assert guard.wait() == -signal.SIGKILL and it.reached(it.armed_guard) == point
        it.arm_guard("")
        until(it.guard_pid, words="its supervisor starts another")
    with suppress(ConsoleError):
        it.api.thaw(counter, reason="go on")
    before = it.output(counter)
    until(lambda: it.output(counter) != before, words="it goes on once a thaw was answered")
    assert it.receipt_of(it.press_guard()).verified_zero
    check_invariants(it.places, killed=True)


@contextmanager
def holding_still(it: Broken, agent: str) -> Iterator[None]:
    """Whatever is done meanwhile, the agent does nothing. What it had printed is still being copied: that comes to an end first."""
    until(lambda: it.output(agent) == (threading.Event().wait(0.5) or it.output(agent)), words="it prints nothing any more")
    before = it.output(agent)
    yield
    assert it.output(agent) == before


def replaced_by_one_that_fails(it: Broken) -> Nursling:
    """The guard ends in order, and the next one honours failpoints."""
    before = it.living_guard()
    assert it.supervisor is not None
    it.supervisor.send_signal(signal.SIGSTOP)  # or it would start one that does not
    os.kill(before, signal.SIGTERM)  # our own guard, named by its own answer
    until(lambda: not it.guard_pid(), words="it ends")
    guard = until(lambda: _ready(it.try_guard()), words="its lock is free")
    assert guard is not None
    it.supervisor.send_signal(signal.SIGCONT)
    return guard


def _ready(guard: Nursling) -> Nursling | None:
    return guard if "ready\n" in guard.said() else None


@pytest.mark.parametrize("point", sparse(["reserve.written", "reserve.renamed"], ("reserve.written",)))
def test_a_guard_that_dies_laying_down_its_reserve_is_replaced_and_the_next_has_one(broken: Make, point: str) -> None:
    it = broken()
    it.arm_before_start(f"{point}:kill")
    guard = it.try_guard()
    assert guard.wait() == -signal.SIGKILL and it.reached(it.armed_guard) == point
    it.arm_guard("")
    it.start()
    it.stubborn()
    reserve = it.places.guard_dir / "reserve"
    assert reserve.stat().st_size == RESERVE_BYTES
    assert it.receipt_of(it.press_guard()).verified_zero
    assert not list(it.places.guard_dir.glob(".reserve.*")), "no draft of it takes the room that it keeps"
    check_invariants(it.places, killed=True)


def test_what_a_supervisor_leaves_that_dies_while_it_tries_this_host_goes_at_the_next_start(broken: Make) -> None:
    it = broken()
    it.arm("trial.begun:kill")
    trials = it.places.state_dir / "trials"
    if it.try_to_start():
        with suppress(ConsoleError):
            it.launch("true", sandbox="bubblewrap")
        dies(it)
    it.arm("")
    assert list(trials.glob("watchfloor-probe-*")), "in the instance's own folder"
    it.start()
    until(lambda: not list(trials.iterdir()), words="swept, and its own is over")
    it.state_becomes(it.launch("sleep", "300"), "running")
    assert not list(trials.iterdir()) and not list(Path(tempfile.gettempdir()).glob("watchfloor-probe-*"))


def test_a_guard_that_dies_in_a_rearm_stays_killed(broken: Make) -> None:
    it = broken()
    guard = it.start_guard()
    it.start()
    kill_id = it.api.activate("the test").kill_id
    it.receipt_of(kill_id)
    it.arm_guard("unlatch.journalled:kill")
    with suppress(ConsoleError):
        it.api.rearm("the test", kill_id=kill_id)
    assert guard.wait() == -signal.SIGKILL
    until(it.guard_pid, words="its supervisor starts another")
    check_invariants(it.places, killed=True)


@pytest.mark.parametrize("point", ["snapshot.kept", "snapshot.recorded", "snapshot.audited"])
def test_a_supervisor_that_dies_before_the_allow_allowed_nothing(broken: Make, point: str) -> None:
    it = broken()
    it.start()
    it.arm(f"{point}:kill")
    with suppress(ConsoleError):  # the agent may ask, and end the supervisor, before its launch is answered
        it.python(ASKER)
    dies(it)
    [asker] = [path.stem for path in it.places.output_dir.glob("a-*.log")]
    assert "allow" not in it.output(asker)
    it.start()
    it.says(asker, "answer allow")
    check_invariants(it.places, killed=False)
    records = it.api.rollback().records
    assert records[0].state == "unknown", "an intent without an action is offered as unknown"
    assert [r.state for r in records[1:]] in ([], ["newer_exists"])


def test_a_supervisor_that_dies_in_a_rotation_finishes_it_when_it_is_back(broken: Make) -> None:
    it = broken()
    it.start()
    it.stubborn()
    it.arm("rotate.begun:kill")
    with suppress(ConsoleError):
        it.api.activate("the test")
    dies(it)
    it.start()
    receipt = it.receipt_of()
    assert receipt.verified_zero and step(receipt, StepName.ROTATE) is StepStatus.OK
    check_invariants(it.places, killed=True)


@pytest.mark.parametrize("point", ["ledger.commit", "audit.commit"])
def test_a_disk_that_fails_refuses_actions_says_so_and_kills_all_the_same(broken: Make, point: str) -> None:
    it = broken()
    it.start()
    asker = it.python("while not os.path.exists('go'): time.sleep(0.05)\n" + ASKER)
    go = it.places.workspaces_dir / it.agent(asker).session / "go"
    it.arm(f"{point}:raise")
    go.touch()
    with pytest.raises(NotRecorded):
        it.launch("sh", "-c", "echo ran; sleep 300")
    until(lambda: "could not be recorded" in str(it.api.status().notices) or "could not be written" in str(it.api.status().notices))
    if point == "audit.commit":
        it.says(asker, "answer deny")
    receipt = it.api.activate("the disk fails")
    assert receipt.verified_zero
    check_invariants(it.places, killed=True)
    it.arm("")
    it.receipt_of(receipt.kill_id)
    it.api.rearm("the disk is mended", kill_id=receipt.kill_id)
    it.state_becomes(it.launch("sleep", "300"), "running")
    check_invariants(it.places, killed=False)


def test_an_audit_that_hangs_delays_no_kill_and_its_record_comes_later(broken: Make) -> None:
    it = broken()
    it.start()
    it.stubborn()
    it.arm("audit.commit:hang")
    kill_id = it.press_guard()
    until(lambda: not living(it.places), words="nobody is left")
    it.arm("")
    assert it.receipt_of(kill_id).verified_zero
    until(lambda: any(kill_id in data for _, _, _, data in audited(it.places)), words="it is on record")
    check_invariants(it.places, killed=True)


def test_a_latch_that_cannot_be_written_holds_in_memory_says_so_and_is_written_later(broken: Make) -> None:
    it = broken()
    it.start_guard()
    it.start()
    it.stubborn()
    it.arm_guard("latch.written:raise")
    receipt = it.receipt_of(it.press_guard())
    assert receipt.verified_zero and step(receipt, StepName.LATCH) is StepStatus.FAILED
    with pytest.raises(ConsoleError):
        it.launch("sleep", "300")
    latch = it.places.guard_dir / "latch.json"
    before = latch.read_bytes() if latch.exists() else b""
    it.arm_guard("")
    until(lambda: latch.exists() and latch.read_bytes() != before, words="it is written once that works")
    check_invariants(it.places, killed=True)


def test_supervisors_killed_at_random_under_load_lose_nothing_acknowledged(broken: Make, full_counts: bool) -> None:
    it = broken("--heartbeat-s", "60")
    it.start()
    it.launch("sleep", "300", context_id="vault", sensitivity="CONFIDENTIAL")
    spender = it.python(SPENDER)
    chance, acknowledged, ends = random.Random(), set[str](), threading.Event()  # noqa: S311 - not for secrets
    number = 200 if full_counts else 4

    def load() -> None:
        while not ends.is_set():
            with suppress(ConsoleError):
                agent = it.launch("true")
                acknowledged.add(agent)
            ends.wait(0.01)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: acknowledged, words="a launch is acknowledged, however busy this machine is")
        for _ in range(number):
            ends.wait(0.1 + chance.random() * 0.4)
            it.stop(signal.SIGKILL)
            it.start()
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    fleet = {a.id: a for a in it.api.fleet().agents}
    assert acknowledged and acknowledged <= fleet.keys(), "an acknowledged launch is lost"
    spent = until(lambda: acknowledged_by(it, spender), words="a report is acknowledged")
    until(lambda: it.agent(spender).usage["cost_usd"] >= spent * 0.01 - 1e-6, words=f"{spent} acknowledged reports are counted")
    ratchet = {"vault": (Sensitivity.CONFIDENTIAL, NetworkMode.PROXIED)}
    check_invariants(it.places, killed=False, ratchet=ratchet)
    receipt = it.api.activate("the end")
    assert receipt.verified_zero
    check_invariants(it.places, killed=True, ratchet=ratchet)


def test_every_failpoint_has_a_test() -> None:
    """A name in the code that no test breaks would be a promise nobody keeps."""
    root = Path(__file__).parents[2]
    used = set()
    for path in (root / "console").rglob("*.py"):
        for piece in path.read_text().split('failpoint("')[1:]:
            used.add(piece.split('"')[0])
    rooms = [root / "tests" / room for room in ("fault", "integration", "end2end")]
    told = "".join(path.read_text() for room in rooms for path in room.glob("test_*.py"))
    known = {*GUARD_POINTS, *LAUNCH_POINTS, *DISK_POINTS}
    assert used - known == {name for name in used - known if f'"{name}' in told}, used - known
