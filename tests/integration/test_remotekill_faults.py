"""No fault of network, store, clock or document un-kills, through the real client; while a fetch hangs the guard enforces the lease."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.killswitch.kernel import processes
from console.remotekill.document import KeySet, Signer, baseline_document, canonical, kill_document, order_of, release_document
from console.remotekill.keys import init_keys, load_keys, load_signers
from console.remotekill.machine import Effect, Latch, LeaseRenewed, LiftSoftStop, Mode, Released
from console.remotekill.poller import Poller
from console.remotekill.state_file import load_state
from console.remotekill.store import RemoteStore, now_text
from tests.fakes.guard_world import GuardWorld, until
from tests.fakes.strict_gcs import StrictGcs

KEY = "platform/kill-switch.json"
EMERGENCY = b'{"killed":true,"reason":"emergency"}'
NETWORK = [
    "refuse",
    "503",
    "500",
    "429",
    "401",
    "403",
    "reset",
    "black_hole",
    "drip",
    "drip_body",
    "huge",
    "truncated",
    "garbage",
    "nested",
]
DECADE_S = 10 * 365.25 * 86400


class Fleet:
    """Keys of one fleet, and what they can sign."""

    def __init__(self, folder: Path, name: str = "f1") -> None:
        init_keys(folder, name)
        self.name = name
        self.keys: KeySet = load_keys(folder)
        self.signers: list[Signer] = load_signers(folder)

    def baseline(self, epoch: int) -> bytes:
        return baseline_document(fleet=self.name, epoch=epoch, reason="", actor="ann", issued_at=now_text(), signers=self.signers)

    def release(self, epoch: int, *orders: Any) -> bytes:
        return release_document(
            fleet=self.name, epoch=epoch, reason="", actor="ann", issued_at=now_text(), releases=orders, signers=self.signers
        )


class Host:
    """Store and poller of one host; every poll is asked for by the test."""

    def __init__(self, gcs: StrictGcs, fleet: Fleet, folder: Path, **options: Any) -> None:
        self.gcs, self.took = gcs, list[Effect]()
        self.store = RemoteStore("fleet", endpoint=gcs.url)
        self.file = folder / "remote.json"
        self.poller = Poller(self.store, self.file, fleet.keys, self.took.append, **options)

    def put(self, body: bytes) -> int:
        return self.gcs.bucket.put(KEY, body).generation

    def poll(self, deadline_s: float = 60.0) -> Mode:
        """One look; short for those that meet a fault, long for those that must succeed on a busy machine."""
        self.took.clear()
        self.store._read_deadline_s = deadline_s
        self.poller.poll_once()
        return self.poller.status().mode

    def settles(self, mode: Mode) -> bool:
        """Whether it comes to this mode with nothing wrong any more; a good read may take longer than its bound on a busy machine."""
        return any(self.poll() is mode for _ in range(10))

    def has(self, *kinds: type) -> bool:
        return any(isinstance(effect, kinds) for effect in self.took)


@pytest.fixture
def gcs() -> Iterator[StrictGcs]:
    with StrictGcs("fleet") as server:
        yield server


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "keys")


@pytest.fixture
def host(gcs: StrictGcs, fleet: Fleet, tmp_path: Path) -> Iterator[Host]:
    made = Host(gcs, fleet, tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("kind", NETWORK)
def test_no_fault_of_the_network_or_the_store_loosens_or_kills(gcs: StrictGcs, fleet: Fleet, host: Host, kind: str) -> None:
    host.put(fleet.baseline(5))
    with gcs.failing(kind):
        assert host.poll(0.5) is Mode.SOFT, "a new host stays stopped"
    assert host.settles(Mode.ARMED)
    host.put(fleet.baseline(6))
    with gcs.failing(kind):
        assert host.poll(0.5) is Mode.ARMED and not host.has(Latch, LeaseRenewed), "only the lease decides"
    host.put(EMERGENCY)
    with gcs.failing(kind):
        assert host.poll(0.5) is not Mode.KILLED
    assert host.settles(Mode.KILLED)
    host.put(fleet.release(7, *host.poller.status().latched))
    with gcs.failing(kind):
        assert host.poll(0.5) is Mode.KILLED and not host.has(Released, LiftSoftStop, LeaseRenewed)
    assert host.settles(Mode.ARMED), "once it is well again, the release is read"


def tampered(fleet: Fleet) -> bytes:
    return fleet.release(6, order_of(1, EMERGENCY)).replace(b'"epoch":6', b'"epoch":7')


def other_fleet(tmp_path: Path) -> bytes:
    return Fleet(tmp_path / "other", "f2").baseline(6)


DOCUMENTS: dict[str, tuple[Callable[[Fleet, Path], bytes], Mode]] = {
    # name: (bytes, what an armed host of epoch 5 becomes)
    "empty": (lambda f, p: b"", Mode.SOFT),
    "truncated": (lambda f, p: f.baseline(6)[:-9], Mode.SOFT),
    "bad signature": (lambda f, p: tampered(f), Mode.SOFT),
    "other fleet": (lambda f, p: other_fleet(p), Mode.SOFT),
    "old epoch": (lambda f, p: f.baseline(4), Mode.ARMED),
    "same epoch": (lambda f, p: f.baseline(5), Mode.ARMED),
    "future epoch, releases nothing": (lambda f, p: f.baseline(2**53 - 1), Mode.ARMED),
    "releases another kill": (lambda f, p: f.release(6, order_of(1, EMERGENCY)), Mode.ARMED),
    "unsigned": (lambda f, p: b'{"killed":false}', Mode.SOFT),
    "unsigned, with a BOM": (lambda f, p: b'\xef\xbb\xbf{"killed":false}', Mode.SOFT),
    "duplicate keys": (lambda f, p: f.baseline(6)[:-1] + b',"killed":false}', Mode.SOFT),
    "duplicate keys, one of them true": (lambda f, p: b'{"killed":true,"killed":false}', Mode.SOFT),
    "killed is 0": (lambda f, p: b'{"killed":0}', Mode.SOFT),
    "killed is null": (lambda f, p: b'{"killed":null}', Mode.SOFT),
    "killed is the word false": (lambda f, p: b'{"killed":"false"}', Mode.SOFT),
    "not a number": (lambda f, p: b'{"killed":false,"epoch":NaN}', Mode.SOFT),
    "a list": (lambda f, p: b"[false]", Mode.SOFT),
    "nested deep": (lambda f, p: b"[" * 60000, Mode.SOFT),
    "no text": (lambda f, p: b"\xff\xfe\x00", Mode.SOFT),
    "too large": (lambda f, p: canonical({"killed": False, "pad": "x" * 70000}), Mode.SOFT),
    "a signature of nobody's": (lambda f, p: Fleet(p / "stranger").baseline(6), Mode.SOFT),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_document_but_a_covering_release_un_kills(gcs: StrictGcs, fleet: Fleet, host: Host, tmp_path: Path, name: str) -> None:
    make, armed_becomes = DOCUMENTS[name]
    host.put(fleet.baseline(5))
    assert host.poll() is Mode.ARMED
    host.put(EMERGENCY)
    assert host.poll() is Mode.KILLED and host.has(Latch)
    host.put(make(fleet, tmp_path))
    assert host.poll() is Mode.KILLED and not host.has(Released, LiftSoftStop, LeaseRenewed)
    gcs.bucket.delete(KEY, {})
    assert host.poll() is Mode.KILLED, "nor does its deletion"
    assert load_state(host.file)[0].mode is Mode.KILLED


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_an_armed_host_makes_of_each_document(fleet: Fleet, host: Host, tmp_path: Path, name: str) -> None:
    make, armed_becomes = DOCUMENTS[name]
    host.put(fleet.baseline(5))
    assert host.poll() is Mode.ARMED
    host.put(make(fleet, tmp_path))
    assert host.poll() is armed_becomes and not host.has(Latch)
    if name == "old epoch":
        assert not host.has(LeaseRenewed), "an old document is no good read"


@pytest.mark.parametrize(
    "body",
    [
        EMERGENCY,
        b"\xef\xbb\xbf" + EMERGENCY,
        b'{\r\n  "killed": true\r\n}\r\n',
        kill_document(fleet="another", reason="", actor="", issued_at=""),
        b'{"killed":true,"epoch":-1,"sigs":"none","fleet":7}',
    ],
)
def test_any_document_that_says_killed_kills(fleet: Fleet, host: Host, body: bytes) -> None:
    host.put(fleet.baseline(5))
    host.poll()
    host.put(body)
    assert host.poll() is Mode.KILLED and host.has(Latch)


@pytest.mark.parametrize("shift_s", [DECADE_S, -DECADE_S])
def test_a_clock_ten_years_off_changes_nothing_but_what_is_said_of_it(
    fleet: Fleet, host: Host, monkeypatch: pytest.MonkeyPatch, shift_s: float
) -> None:
    host.put(fleet.baseline(5))
    assert host.poll() is Mode.ARMED
    off = host.store.clock_off()
    assert off is not None and abs(off[0]) <= 2
    left = host.poller.status().lease_left_s
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift_s)
    assert host.poller.status().lease_left_s == pytest.approx(left, abs=5), "the lease runs on another clock"
    host.store._polling.clock.note("Sun, 22 Nov 2026 01:00:00 GMT")
    off = host.store.clock_off()
    assert off is not None and abs(off[0]) > 60, "and the difference is seen"
    assert host.poll() is Mode.ARMED and host.has(LeaseRenewed)
    host.put(EMERGENCY)
    assert host.poll() is Mode.KILLED
    monkeypatch.setattr(time, "time", lambda: real() - shift_s)
    assert host.poll() is Mode.KILLED
    host.put(fleet.release(6, *host.poller.status().latched))
    assert host.poll() is Mode.ARMED, "a release neither expires nor comes too early"


# --- the lease, while a fetch hangs -----------------------------------------------------------------------------------


class Leasing:
    """What a supervisor does with the poller's effects that matter here."""

    def __init__(self, world: GuardWorld) -> None:
        self._world = world

    def __call__(self, effect: Effect) -> None:
        match effect:
            case LeaseRenewed(seconds):
                self._world.supervisor.lease(seconds)
            case LiftSoftStop():
                self._world.supervisor.soft_stop(False)


def test_the_guard_freezes_at_the_end_of_the_lease_while_the_fetch_still_drips(gcs: StrictGcs, fleet: Fleet, state_dir: Path) -> None:
    gcs.bucket.put(KEY, fleet.baseline(5))
    store = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=60.0)
    with contextlib.closing(GuardWorld(state_dir, lease=True, heartbeat_s=600.0).start()) as world, contextlib.closing(store):
        poller = Poller(store, state_dir / "remote.json", fleet.keys, Leasing(world), period_s=0.1, lease_s=1.5)
        world.supervisor.lease(300)
        agent = world.agent("one")
        poller.poll_once()  # from here on its lease counts
        hung = threading.Thread(target=poller.poll_once)
        with gcs.failing("drip"):
            hung.start()
            until(lambda: world.operator.status()["frozen"].get("one") == ["lease"], "the guard froze it")
            assert hung.is_alive() and poller.status().fetching_s is not None, "nobody waited for the fetch"
            assert poller.status().mode is Mode.SOFT and not poller.status().good
            assert processes.is_alive(agent.pid), "an outage destroys nothing"
            # Each close ends the read under way; a poll has several, and the next one drips as well.
            until(lambda: store.close() or not hung.is_alive(), "the fetch ends")  # type: ignore[func-returns-value]
        poller.poll_once()
        until(lambda: "one" not in world.operator.status()["frozen"], "one good read thaws it")
