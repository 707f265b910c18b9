"""Point 13 of the kill: whoever is dead, hung or dying, and whichever way is pressed, everything ends at zero and the rest is finished."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from console.domain.errors import Denied
from console.domain.kill import StepName, StepStatus
from console.killswitch.client.guard_client import GuardClient
from tests.fakes.broken import Broken
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, latched, living, receipts
from tests.fakes.nursery import Nursery
from tests.fault.conftest import Make

DOWN = ("supervisor dead", "supervisor hung", "supervisor dying", "guard dead", "guard hung", "both dead", "both hung")
WAYS = ("panic", "panic-button", "SIGUSR1 to the guard", "SIGUSR1 to the supervisor")
ORDINARY = {
    ("supervisor dead", "SIGUSR1 to the guard"),
    ("supervisor hung", "panic-button"),
    ("supervisor dying", "panic"),
    ("guard dead", "SIGUSR1 to the supervisor"),
    ("guard hung", "SIGUSR1 to the supervisor"),
    ("both dead", "panic-button"),
    ("both hung", "panic"),
}
"""Each who and each way at least once; the others with --long."""


@dataclass
class Scene:
    """An instance with its guard's pid, which no longer answers when it is asked for."""

    it: Broken
    guard: int


def is_possible(down: str, way: str) -> bool:
    """One who is dead or hung takes no signal."""
    who, _, how = down.partition(" ")
    if way == "SIGUSR1 to the guard":
        return who == "supervisor"
    if way == "SIGUSR1 to the supervisor":
        return who == "guard"
    return True


def cells() -> list[object]:
    found: list[object] = []
    for down in DOWN:
        for way in WAYS:
            if is_possible(down, way):
                marks = () if (down, way) in ORDINARY else (pytest.mark.long,)
                found.append(pytest.param(down, way, id=f"{down}-{way}".replace(" ", "_"), marks=marks))
    return found


@pytest.mark.parametrize(("down", "way"), cells())
def test_whoever_is_down_every_way_ends_at_zero(broken: Make, nursery: Nursery, windows: Nursery, down: str, way: str) -> None:
    it = broken()
    it.start()
    for _ in range(2):
        it.stubborn()
    until(lambda: len(living(it.places)) >= 6, words="two agents of three processes each")
    scene = Scene(it, it.living_guard())
    take_down(scene, down)
    with pressing(scene, way, nursery, windows):
        until(lambda: not living(it.places), words="nobody is left")
        until(lambda: latched(it.places), words="it is latched on disk")
        until(lambda: any(r.scope == "all" and r.verified_zero for r in receipts(it.places)), words="a receipt proves it")
    check_invariants(it.places, killed=True)
    bring_back(scene, down)
    receipt = it.receipt_of()
    steps = {s.name: s for s in receipt.steps}
    assert receipt.verified_zero and steps[StepName.ROTATE].status is StepStatus.OK, steps[StepName.ROTATE]
    assert steps[StepName.REMOTE].status is StepStatus.SKIPPED, steps[StepName.REMOTE]
    assert it.api.fleet().killed and not [a for a in it.api.fleet().agents if a.state == "running"]
    check_invariants(it.places, killed=True)


def take_down(scene: Scene, down: str) -> None:
    who, _, how = down.partition(" ")
    it = scene.it
    assert it.supervisor is not None
    if how == "dying":
        it.arm("rotate.begun:kill")  # it takes part in the kill, and dies of it
        return
    number = signal.SIGKILL if how == "dead" else signal.SIGSTOP
    if who in ("supervisor", "both"):
        it.supervisor.send_signal(number)
        if how == "dead":
            it.supervisor.wait()
            it.supervisor = None
    if who in ("guard", "both"):
        os.kill(scene.guard, number)  # the guard of this instance, named by its own answer


@contextlib.contextmanager
def pressing(scene: Scene, way: str, nursery: Nursery, windows: Nursery) -> Iterator[None]:
    """Presses, and ends whatever pressed."""
    it = scene.it
    pressed = None
    if way == "panic":
        pressed = nursery.run("console", "panic", "--reason", "the test", "--state-dir", str(it.state_dir))
    elif way == "panic-button":
        pressed = windows.run("tests.fakes.panic_driver", str(it.state_dir))
    elif way == "SIGUSR1 to the guard":
        os.kill(scene.guard, signal.SIGUSR1)
    else:
        assert it.supervisor is not None
        it.supervisor.send_signal(signal.SIGUSR1)
    try:
        yield
        if way == "panic" and it.supervisor is None:
            assert pressed is not None and pressed.wait(90) == 0, "it starts a supervisor and sees the later steps through"
    finally:
        if pressed is not None:
            print(pressed.said())
            pressed.end()


def bring_back(scene: Scene, down: str) -> None:
    """Those who were stopped go on; the dead supervisor is started again, unless the press has started one."""
    it = scene.it
    with contextlib.suppress(ProcessLookupError):
        os.kill(scene.guard, signal.SIGCONT)
    if down == "supervisor dying":
        assert it.supervisor is not None and it.supervisor.wait() == -signal.SIGKILL
        it.supervisor = None
    if it.supervisor is not None:
        it.supervisor.send_signal(signal.SIGCONT)
        return
    it.arm("")
    until(lambda: it.answers() or it.try_to_start(), words="a supervisor answers")


def test_a_silent_supervisor_means_frozen_agents_and_a_press_still_ends_at_zero(broken: Make) -> None:
    it = broken("--heartbeat-s", "0.5")
    it.start()

    def started() -> str:
        with contextlib.suppress(Denied):  # on a busy machine a heartbeat may be late by itself
            return it.stubborn()
        return ""

    agent = until(started, words="an agent starts")
    assert it.supervisor is not None
    it.supervisor.send_signal(signal.SIGSTOP)
    client = GuardClient(it.places.guard_sock, timeout_s=90)
    until(lambda: client.status()["frozen"].get(agent) == ["heartbeat"], words="frozen, because of the heartbeat")
    kill_id = client.press("all", "silent", "test", timeout_s=90)
    until(lambda: client.progress(kill_id)["done"])
    client.close()
    check_invariants(it.places, killed=True)
    it.supervisor.send_signal(signal.SIGCONT)
    assert it.receipt_of(kill_id).verified_zero


def test_a_lease_that_runs_out_freezes_with_the_supervisor_dead_and_a_press_still_ends_at_zero(broken: Make) -> None:
    it = broken("--heartbeat-s", "60")
    it.start()
    agent = it.stubborn()
    client = GuardClient(it.places.guard_supervisor_sock, timeout_s=90)
    client.call("lease", seconds=0.5)
    it.stop(signal.SIGKILL)
    until(lambda: "lease" in client.status()["frozen"].get(agent, []), words="frozen, because of the lease")
    kill_id = client.press("all", "silent", "test", timeout_s=90)
    until(lambda: client.progress(kill_id)["done"])
    client.close()
    check_invariants(it.places, killed=True)
    it.start()
    assert it.receipt_of(kill_id).verified_zero
