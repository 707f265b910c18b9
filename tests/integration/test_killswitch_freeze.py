"""Freezing on the real kernel: causes, the hold, heartbeat, lease, soft stop; what thaws is recorded first."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, Denied, NotFound
from console.domain.guard import HOLD_S, decode, encode
from console.domain.kill import receipt_from_json
from console.domain.verdict import verdict
from console.killswitch.client.guard_client import GuardClient
from tests.fakes.guard_world import NOBODY, GuardWorld, until

FAST = 0.6
"""Seconds of heartbeat in these tests."""


@pytest.fixture
def world(state_dir: Path) -> Iterator[GuardWorld]:
    made = GuardWorld(state_dir)
    try:
        yield made.start()
    finally:
        made.close()


def is_frozen(world: GuardWorld, agent_id: str) -> bool:
    folder = next(Path(f"/sys/fs/cgroup/unified/watchfloor-{world.instance}/agents").glob(f"{agent_id}-*"))
    return "frozen 1" in (folder / "cgroup.events").read_text()


def journal(world: GuardWorld) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (world.state / "guard" / "journal.jsonl").read_text().splitlines()]


def causes(world: GuardWorld) -> dict[str, list[str]]:
    return dict(world.operator.status()["frozen"])


def silences(world: GuardWorld) -> list[dict[str, Any]]:
    return [line for line in journal(world) if line.get("cause") == "heartbeat"]


class Raw:
    """A connection whose end the test decides."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(str(path))

    def ask(self, **message: Any) -> dict[str, Any]:
        self.sock.sendall(encode(message))
        return decode(self.sock.makefile("rb").readline())

    def close(self) -> None:
        self.sock.close()


def test_each_cause_removes_only_itself(world: GuardWorld) -> None:
    world.agent("one")
    world.agent("two")
    world.operator.freeze(["one"], "operator", "ann")
    world.supervisor.freeze("all", "budget")
    until(lambda: is_frozen(world, "one") and is_frozen(world, "two"), "both frozen")
    world.supervisor.thaw("all", "budget")
    until(lambda: not is_frozen(world, "two"), "two runs")
    assert is_frozen(world, "one") and causes(world) == {"one": ["operator"]}
    world.operator.thaw(["one"], "operator", "ann")
    until(lambda: not is_frozen(world, "one"), "one runs")
    kinds = [(line["kind"], line.get("cause")) for line in journal(world)]
    assert kinds == [("freeze", "operator"), ("freeze", "budget"), ("thaw", "budget"), ("thaw", "operator")]


def test_an_operator_lifts_no_cause_but_its_own(shared: GuardWorld) -> None:
    shared.agent("one")
    shared.supervisor.freeze("all", "budget")
    with pytest.raises(Conflict):
        shared.operator.thaw("all", "budget")
    with pytest.raises(Conflict):
        shared.supervisor.thaw("all", "heartbeat")
    with pytest.raises(NotFound):
        shared.operator.freeze(["nobody"])
    assert is_frozen(shared, "one")


def test_causes_survive_a_guard_that_is_killed(world: GuardWorld) -> None:
    world.agent("one")
    world.agent("two")
    world.operator.freeze(["one"])
    until(lambda: "operator" in (world.state / "guard" / "causes.json").read_text() and is_frozen(world, "one"), "recorded and done")
    world.kill_guard()
    assert is_frozen(world, "one")
    world.start()
    assert causes(world) == {"one": ["operator"]} and is_frozen(world, "one") and not is_frozen(world, "two")
    world.operator.thaw(["one"])
    until(lambda: not is_frozen(world, "one"), "it runs")


def test_a_hold_kills_at_its_end(shared: GuardWorld) -> None:
    agent = shared.agent("one")
    peer, before = Raw(shared.run / "guard.sock"), len(journal(shared))
    begun = time.monotonic()
    held = peer.ask(op="hold", by="ann")
    until(lambda: is_frozen(shared, "one") or time.monotonic() - begun > HOLD_S, "frozen at the press")
    assert agent.wait(60) == -signal.SIGKILL and time.monotonic() - begun >= HOLD_S
    receipt = shared.receipt(held["kill_id"])
    assert not verdict(receipt_from_json(receipt)).may_run and receipt["by"] == "ann" and shared.operator.status()["latched"]
    ours = [line["kind"] for line in journal(shared)[before:] if line.get("cause") == "hold" or line.get("kill_id") == held["kill_id"]]
    assert ours[:2] == ["freeze", "press"], "it was frozen first"
    peer.close()


def test_a_hold_let_go_thaws_only_its_own(shared: GuardWorld) -> None:
    one, two = shared.agent("one"), shared.agent("two")
    shared.operator.freeze(["two"])
    peer = Raw(shared.run / "guard.sock")
    held = peer.ask(op="hold", by="ann")
    assert peer.ask(op="let_go", hold_id=held["hold_id"])["ok"]
    time.sleep(HOLD_S + 0.4)
    assert one.poll() is None and two.poll() is None and not is_frozen(shared, "one") and is_frozen(shared, "two")
    assert not shared.operator.status()["latched"] and not peer.ask(op="let_go", hold_id=held["hold_id"])["ok"]
    peer.close()


def test_a_peer_that_vanishes_in_mid_hold_leaves_everything_frozen(world: GuardWorld) -> None:
    agent = world.agent("one", env=NOBODY)
    peer = Raw(world.run / "guard.sock")
    held = peer.ask(op="hold", by="ann")
    peer.sock.shutdown(socket.SHUT_RDWR)
    peer.close()
    time.sleep(HOLD_S + 0.4)
    status = world.operator.status()
    assert agent.poll() is None and is_frozen(world, "one") and not status["latched"]
    assert any(held["hold_id"] in notice for notice in status["notices"])
    with pytest.raises(Denied):
        world.supervisor.ticket("late", "process", "managed")
    until(lambda: held["hold_id"] in (world.state / "guard" / "causes.json").read_text(), "recorded")
    world.kill_guard()
    world.start()  # and a restart neither kills nor thaws
    assert is_frozen(world, "one") and any(held["hold_id"] in n for n in world.operator.status()["notices"])
    world.operator.call("let_go", hold_id=held["hold_id"], by="ben")
    until(lambda: not is_frozen(world, "one"), "it runs")
    assert world.operator.status()["notices"] == []


def test_two_holds_and_one_let_go_leave_it_frozen(shared: GuardWorld) -> None:
    shared.agent("one")
    first, second = Raw(shared.run / "guard.sock"), Raw(shared.run / "guard.sock")
    a, b = first.ask(op="hold", by="ann"), second.ask(op="hold", by="ben")
    first.ask(op="let_go", hold_id=a["hold_id"])
    assert is_frozen(shared, "one")
    second.ask(op="let_go", hold_id=b["hold_id"])
    until(lambda: not is_frozen(shared, "one"), "it runs")
    first.close()
    second.close()


def test_a_silent_supervisor_freezes_its_agents_until_it_is_back(state_dir: Path) -> None:
    world = GuardWorld(state_dir, heartbeat_s=FAST)
    try:
        world.start()
        world.supervisor.heartbeat(planned_restart_s=60)
        world.agent("one")
        world.agent("two")
        world.operator.freeze(["two"])
        said = time.time()
        world.supervisor.heartbeat(planned_restart_s=2.0)
        until(lambda: is_frozen(world, "one"), "frozen")
        until(lambda: silences(world), "recorded")
        assert silences(world)[0]["at"] - said > FAST + 1.0  # it had said that it would be away
        assert causes(world) == {"one": ["heartbeat"], "two": ["heartbeat", "operator"]}
        with pytest.raises(Denied):
            world.supervisor.ticket("late", "process", "managed")
        world.kill_guard()
        world.start(heartbeat_s=30.0)
        assert is_frozen(world, "one")
        world.supervisor.heartbeat()
        until(lambda: not is_frozen(world, "one"), "thawed by the heartbeat")
        assert causes(world) == {"two": ["operator"]} and is_frozen(world, "two")
    finally:
        world.close()


def test_a_lease_that_runs_out_freezes_and_never_resets(world: GuardWorld) -> None:
    world.agent("one")
    assert world.operator.status()["lease_left_s"] is None
    world.supervisor.lease(0.5)
    until(lambda: is_frozen(world, "one"), "frozen")
    with pytest.raises(Denied):
        world.supervisor.ticket("late", "process", "managed")
    world.kill_guard()
    world.start()
    assert is_frozen(world, "one") and world.operator.status()["lease_left_s"] == 0.0
    world.supervisor.lease(300)
    until(lambda: not is_frozen(world, "one"), "thawed by a good lease")
    world.kill_guard()
    world.start()
    left = world.operator.status()["lease_left_s"]
    assert 0 < left < 300 and not is_frozen(world, "one")
    world.supervisor.lease(None)
    assert world.operator.status()["lease_left_s"] is None


def test_a_guard_told_to_lease_runs_nothing_without_one(state_dir: Path) -> None:
    world = GuardWorld(state_dir, lease=True)
    try:
        world.start()
        with pytest.raises(Denied):
            world.supervisor.ticket("early", "process", "managed")
        world.supervisor.lease(300)
        world.agent("one")
    finally:
        world.close()


def test_soft_stop_is_durable_and_refuses_launches(world: GuardWorld) -> None:
    world.agent("one")
    world.supervisor.soft_stop(True, "the bucket cannot be read")
    until(lambda: is_frozen(world, "one"), "frozen")
    with pytest.raises(Denied, match="bucket"):
        world.supervisor.ticket("late", "process", "managed")
    until(lambda: "bucket" in (world.state / "guard" / "causes.json").read_text(), "recorded")
    world.kill_guard()
    world.start()
    assert "bucket" in world.operator.status()["soft_stop"] and is_frozen(world, "one")
    world.supervisor.soft_stop(False)
    until(lambda: not is_frozen(world, "one"), "it runs")
    world.agent("two")


def test_frozen_agents_die_at_once(shared: GuardWorld) -> None:
    agent = shared.agent("one")
    shared.operator.freeze("all")
    until(lambda: is_frozen(shared, "one"), "frozen")
    client = GuardClient(shared.run / "guard.sock", timeout_s=60)
    receipt = shared.receipt(client.press("all", "x", "y", timeout_s=90))
    client.close()
    assert not verdict(receipt_from_json(receipt)).may_run and agent.wait(60) == -signal.SIGKILL
