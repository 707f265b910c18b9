"""Without a supervisor the bucket's kill still reaches the host: ``watchfloor remote watch`` presses, proves, answers, never loosens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, NotFound, Unavailable
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kernel.processes import is_alive
from console.killswitch.store.atomic_file import read_sealed
from console.settings.places import find_places
from console.supervisor.verbs.signing import keys, release
from console.supervisor.verbs.watch import watch
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.strict_gcs import StrictGcs

KEY = "platform/kill-switch.json"
EMERGENCY = b'{"killed":true,"reason":"emergency\\u001b[2J"}'


@pytest.fixture
def gcs() -> Iterator[StrictGcs]:
    with StrictGcs("fleet") as server:
        yield server


@pytest.fixture
def it(gcs: StrictGcs, state_dir: Path) -> Iterator[Instance]:
    """A host that has read the signed baseline, with one agent; its silence freezes nothing so soon."""
    options = (
        "--remote-bucket",
        "fleet",
        "--remote-endpoint",
        gcs.url,
        "--remote-poll-s",
        "1",
        "--host-name",
        "one",
        "--heartbeat-s",
        "60",
    )
    with Instance(state_dir, *options) as made:
        keys(made.places, Namespace(action="init", fleet=None, quorum=1, json=True))
        until(lambda: not made.api.status().soft_stop, words="the soft stop lifts by itself")
        yield made


def command(it: Instance, *words: str) -> list[str]:
    return [sys.executable, "-m", "console.supervisor", "oneshot", *words, "--state-dir", str(it.state_dir), "--json"]


def events(said: str) -> dict[str, dict[str, Any]]:
    assert said.isascii() and "\x1b" not in said, "what others wrote cannot act on a terminal"
    lines = [json.loads(line) for line in said.splitlines()]
    assert all(line["schema_version"] == 1 for line in lines)
    return {line["event"]: line for line in lines}


def answer_of(gcs: StrictGcs, generation: int) -> dict[str, Any]:
    return dict(json.loads(gcs.bucket.get(f"platform/receipts/{generation}/one.json", {}).body))


def test_a_kill_in_the_bucket_stops_a_host_whose_supervisor_and_guard_died_and_its_supervisor_finds_it_so(
    gcs: StrictGcs, it: Instance, capsys: pytest.CaptureFixture[str]
) -> None:
    def once() -> tuple[int, dict[str, dict[str, Any]]]:
        code = watch(it.places, Namespace(once=True, standby=False, json=True))
        return code, events(capsys.readouterr().out)

    with pytest.raises(Conflict, match="A supervisor runs and polls"):
        once()
    pid = it.agent(it.launch("sleep", "300")).pid
    assert pid is not None
    it.stop(signal.SIGKILL)
    backup = {name: (it.state_dir / name).read_bytes() for name in ("ledger.db", "remote-state.json")}
    code, seen = once()
    assert code == 0 and seen["poll"]["mode"] == "armed"
    with gcs.failing("503"):
        code, seen = once()
    assert code == 5 and "503" in seen["alarm"]["text"] and is_alive(pid)

    kill_guard(it)
    generation = gcs.bucket.put(KEY, EMERGENCY).generation
    code, seen = once()
    assert code == 8 and not is_alive(pid), seen
    assert seen["receipt"]["verified_zero"] is True and seen["receipt"]["written"] is True
    assert seen["kill"]["reason"] == "emergency\x1b[2J"
    answer = answer_of(gcs, generation)
    assert answer["host"] == "one" and answer["verified_zero"] is True and answer["order"] == seen["kill"]["order"]
    latch = read_sealed(it.places.guard_dir / "latch.json")
    assert latch is not None and latch["latched"] is True
    code, seen = once()
    assert code == 8 and "kill" not in seen, "it is not killed twice; nobody recorded its connections, then as now"
    assert answer_of(gcs, generation) == answer

    it.start()
    until(lambda: it.api.kill_switch().remote_latched)
    switch = it.api.kill_switch()
    assert switch.killed and switch.by == "remote" and len(switch.receipts) == 1
    until(lambda: it.api.receipt(switch.kill_id).complete, words="the supervisor finishes the receipt")
    assert answer_of(gcs, generation) == answer and not [n for n in it.api.status().notices if "not written to the bucket" in n]

    it.stop(signal.SIGKILL)
    kill_guard(it)
    for name, body in backup.items():
        (it.state_dir / name).write_bytes(body)
    for more in it.state_dir.glob("ledger.db-*"):
        more.unlink()
    it.start()
    assert it.api.fleet().killed, "a ledger and a state from before the kill bring nothing back"
    until(lambda: it.api.kill_switch().remote_latched, words="and the order is read again")
    assert not [a for a in it.api.fleet().agents if a.state in ("running", "starting", "frozen")]


def kill_guard(it: Instance) -> None:
    """Our own guard, named by its own answer."""
    descriptor = os.pidfd_open(it.living_guard())
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)
    until(lambda: not it.guard_pid())


def test_it_goes_on_polling_sees_the_release_lifts_nothing_and_gives_way_to_a_supervisor(gcs: StrictGcs, it: Instance) -> None:
    it.launch("sleep", "300")
    it.stop(signal.SIGKILL)
    gcs.bucket.put("platform/orders/1", EMERGENCY)
    watcher = subprocess.Popen(command(it, "watch"), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert watcher.stdout is not None and watcher.stderr is not None
        order = next(line["order"] for line in map(json.loads, watcher.stdout) if line["event"] == "receipt" and line["written"])
        with pytest.raises(Conflict, match="Another process polls"):
            watch(it.places, Namespace(once=True, standby=False, json=True))
        assert release(it.places, Namespace(reason="over", review=False, order=order, key=[], yes=True, json=True)) == 0
        line = next(line for line in map(json.loads, watcher.stdout) if line["event"] == "released")
        assert line["orders"] == [order] and "stays killed" in line["note"]
        client = GuardClient(it.places.guard_sock, timeout_s=60)
        assert client.status()["latched"] is True
        client.close()
        it.start()
        ended = next(line for line in map(json.loads, watcher.stdout) if line["event"] == "ended")
        assert "supervisor" in ended["why"] and watcher.wait(90) == 0
        until(lambda: it.api.kill_switch().paths[2].facts, words="the supervisor polls now")
        assert it.api.fleet().killed and not it.api.kill_switch().remote_latched
    finally:
        watcher.kill()
        watcher.wait()
        for pipe in (watcher.stdout, watcher.stderr):
            assert pipe is not None
            pipe.close()


def test_watch_without_a_bucket_says_what_is_missing(state_dir: Path) -> None:
    with pytest.raises(Unavailable, match="not configured"):
        watch(find_places(str(state_dir), create=True), Namespace(once=True, standby=False, json=True))
    with pytest.raises(NotFound):
        watch(None, Namespace(once=True, standby=False, json=True))
