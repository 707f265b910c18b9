"""One press reaches every host through the bucket; coming back needs a signed release and then a rearm on each host."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.domain.kill import Receipt
from console.supervisor.verbs.signing import keys
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.strict_gcs import StrictGcs

KEY = "platform/kill-switch.json"


def oneshot(it: Instance, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "console.supervisor", "oneshot", *words, "--state-dir", str(it.state_dir), "--json"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=150, stdin=subprocess.DEVNULL, check=False)


def step(receipt: Receipt, name: str) -> tuple[str, str]:
    return next((s.status.value, s.detail) for s in receipt.steps if s.name.value == name)


@pytest.fixture
def gcs() -> Iterator[StrictGcs]:
    with StrictGcs("fleet") as server:
        yield server


def host(stack: ExitStack, gcs: StrictGcs, name: str) -> Instance:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    stack.callback(shutil.rmtree, folder)
    options = (
        "--remote-bucket",
        "fleet",
        "--remote-endpoint",
        gcs.url,
        "--remote-poll-s",
        "1",
        "--host-name",
        name,
        "--stand-in",
        "bucket",
    )
    return stack.enter_context(Instance(folder, *options))


@pytest.fixture
def hosts(gcs: StrictGcs) -> Iterator[tuple[Instance, Instance]]:
    """Two hosts of one fleet that have read the signed baseline."""
    with ExitStack() as stack:
        one, two = host(stack, gcs, "one"), host(stack, gcs, "two")
        assert one.api.status().soft_stop  # no good read yet: nothing starts
        keys(one.places, Namespace(action="init", fleet=None, quorum=1, json=True))
        shutil.copy(one.places.keys_dir / "fleet-keys.json", two.places.keys_dir)
        for it in (one, two):
            until(lambda it=it: not it.api.status().soft_stop, words="the soft stop lifts by itself")  # type: ignore[misc]
        yield one, two


def test_a_press_on_one_host_stops_the_other_and_only_a_release_and_a_rearm_bring_it_back(
    gcs: StrictGcs, hosts: tuple[Instance, Instance]
) -> None:
    one, two = hosts
    here, there = one.launch("sleep", "300"), two.launch("sleep", "300")
    receipt = one.api.activate("stop all hosts")
    assert receipt.verified_zero
    assert step(receipt, "remote")[0] == "ok"
    assert one.agent(here).state == "killed"
    two.state_becomes(there, "killed")
    obeyed = until(lambda: next((r for r in two.api.receipts().receipts if r.complete), None))
    assert obeyed is not None
    assert obeyed.by == "remote"
    assert step(receipt, "remote")[1].startswith("order 1 read back, generation ")
    assert two.api.receipt(obeyed.kill_id).order.startswith("1/")
    answers = until(lambda: {h.host: h.verified_zero for h in one.api.kill_switch().hosts if h.acknowledged} == {"one": True, "two": True})
    assert answers
    assert len(one.api.receipts().receipts) == 1  # its own order read back does not press twice
    for it in hosts:
        until(lambda it=it: it.api.kill_switch().remote_latched)  # type: ignore[misc]
        with pytest.raises(Conflict, match=f"blocked by remote order 1.*remote release --state-dir {it.places.state_dir} --reason"):
            it.api.rearm("too early")
    assert oneshot(one, "release", "--reason", "over", "--yes").returncode == 2  # nobody reviewed which order
    order = one.api.kill_switch().remote_latched[0]
    done = oneshot(one, "release", "--reason", "over", "--order", order)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["released"] == [order]
    for it in hosts:
        until(lambda it=it: not it.api.kill_switch().remote_latched)  # type: ignore[misc]
        assert it.api.fleet().killed  # a release never clears a local latch
        it.api.rearm("looked into it")
        it.state_becomes(it.launch("sleep", "300"), "running")
        assert it.agent(here if it is one else there).state == "killed"  # nothing was restored


def test_a_hand_written_emergency_file_kills(gcs: StrictGcs, hosts: tuple[Instance, Instance]) -> None:
    one, two = hosts
    agents = [(one, one.launch("sleep", "300")), (two, two.launch("sleep", "300"))]
    gcs.bucket.put(KEY, b'{"killed":true,"reason":"emergency"}')
    for it, agent in agents:
        it.state_becomes(agent, "killed")
        until(lambda it=it: it.api.kill_switch().reason == "emergency")  # type: ignore[misc]


def test_a_hidden_kill_is_released_by_who_still_obeys_it(gcs: StrictGcs, hosts: tuple[Instance, Instance]) -> None:
    one, two = hosts
    baseline = gcs.bucket.get(KEY, {}).body
    gcs.bucket.put(KEY, b'{"killed":true,"reason":"a prank"}')
    for it in hosts:
        until(lambda it=it: it.api.kill_switch().remote_latched)  # type: ignore[misc]
    gcs.bucket.put(KEY, baseline)  # whoever may write can hide it, and must not thereby make it last
    order = one.api.kill_switch().remote_latched[0]
    seen = json.loads(oneshot(one, "release", "--review", "--json").stdout)
    assert (seen["order"], seen["instead"]) == (order, "a signed un-kill lies there")
    done = oneshot(one, "release", "--reason", "over", "--order", order, "--yes")
    assert done.returncode == 0, done.stderr
    for it in hosts:
        until(lambda it=it: not it.api.kill_switch().remote_latched)  # type: ignore[misc]
        it.api.rearm("looked into it")
    assert oneshot(two, "release", "--review").returncode == 3


def test_without_the_bucket_the_local_kill_is_whole_and_the_remote_step_says_failed_and_is_tried_again(
    gcs: StrictGcs, hosts: tuple[Instance, Instance]
) -> None:
    one, _ = hosts
    agent = one.launch("sleep", "300")
    with gcs.failing("refuse"):
        receipt = one.api.activate("the bucket is away")
        assert receipt.verified_zero
        assert one.agent(agent).state == "killed"
        status, words = step(receipt, "remote")
        assert status == "failed"
        assert words.startswith("failed")
    until(lambda: step(one.api.receipt(receipt.kill_id), "remote")[0] == "ok", words="the retry succeeds")
    assert b'"killed":true' in gcs.bucket.get("platform/orders/1", {}).body
    assert [name for name, _ in gcs.bucket.listing("platform/orders/")] == ["platform/orders/1"], "however often it is tried, one order"


def test_an_order_is_not_hidden_by_the_old_baseline(gcs: StrictGcs, hosts: tuple[Instance, Instance]) -> None:
    one, two = hosts
    baseline = gcs.bucket.get(KEY, {}).body
    agent = two.launch("sleep", "300")
    one.api.activate("stop all hosts")
    gcs.bucket.put(KEY, baseline)  # by a writer of the kill file, at once
    two.state_becomes(agent, "killed")


def test_a_hand_written_kill_is_not_hidden_where_the_bucket_keeps_versions(gcs: StrictGcs, hosts: tuple[Instance, Instance]) -> None:
    gcs.bucket.versioning = True
    agents = [(it, it.launch("sleep", "300")) for it in hosts]
    baseline = gcs.bucket.get(KEY, {}).body
    gcs.bucket.put(KEY, b'{"killed":true,"reason":"emergency"}')
    gcs.bucket.put(KEY, baseline)  # before any host has polled
    for it, agent in agents:
        it.state_becomes(agent, "killed")
        until(lambda it=it: it.api.kill_switch().reason == "emergency")  # type: ignore[misc]


def test_without_versions_status_and_doctor_say_that_a_hidden_order_can_be_missed(gcs: StrictGcs, hosts: tuple[Instance, Instance]) -> None:
    one, _ = hosts

    def remote() -> tuple[str, str]:
        return next((p.state, p.detail) for p in one.api.kill_switch().paths if p.name == "remote")

    words = "a hidden hand-written order can be missed: the bucket keeps no versions"
    until(lambda: remote()[0] == "proven" and words in remote()[1])
    assert words in json.loads(oneshot(one, "doctor").stdout)["checks"]["remote kill"]
    gcs.bucket.versioning = True
    gcs.bucket.put(KEY, gcs.bucket.get(KEY, {}).body)
    until(lambda: remote()[0] == "proven" and "missed" not in remote()[1])
    assert json.loads(oneshot(one, "doctor").stdout)["checks"]["remote kill"].startswith("available")


def test_a_deleted_file_freezes_and_its_return_thaws(gcs: StrictGcs, hosts: tuple[Instance, Instance]) -> None:
    one, _ = hosts
    agent = one.python("n = 0\nwhile True: n += 1; print(n, flush=True); time.sleep(0.05)")
    one.says(agent, "3\n")
    kept = gcs.bucket.get(KEY, {}).body
    gcs.bucket.delete(KEY, {})
    one.state_becomes(agent, "frozen")
    assert one.api.status().soft_stop
    assert not one.api.fleet().killed
    gcs.bucket.put(KEY, kept)
    one.state_becomes(agent, "running")
    assert not one.api.status().soft_stop
