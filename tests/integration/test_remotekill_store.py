"""The real Google client against the strict stand-in: writes with proof, races, rights, and servers that misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from google.oauth2.credentials import Credentials

from console.domain.errors import Conflict, NotFound, Unreachable, UsageProblem
from console.remotekill.document import SIZE_LIMIT, KeySet, Signer, baseline_document, kill_document, order_of, parse
from console.remotekill.keys import init_keys, load_keys, load_signers, take_epoch
from console.remotekill.machine import Effect, Latch, LeaseRenewed, LiftSoftStop, Mode, Released, SoftStop
from console.remotekill.poller import Poller
from console.remotekill.release import make_release, review
from console.remotekill.store import RemoteStore, now_text
from tests.fakes.instance import until
from tests.fakes.strict_gcs import StrictGcs

KEY = "platform/kill-switch.json"
EMERGENCY = b'{"killed":true,"reason":"emergency"}'
PATIENCE_S = 60.0
"""Deadline of what must succeed, on a busy machine too."""
ENDS_S = 120.0
"""By then a call with a deadline of 1 s is over; without one it would go on for ever."""
FAULTS = ["refuse", "503", "429", "401", "403", "reset", "black_hole", "drip", "drip_body", "huge", "truncated", "garbage"]


class Fleet:
    """Keys and documents of one fleet."""

    def __init__(self, folder: Path) -> None:
        init_keys(folder, "f1")
        self.folder = folder
        self.keys: KeySet = load_keys(folder)
        self.signers: list[Signer] = load_signers(folder)

    def baseline(self, epoch: int | None = None) -> bytes:
        number = take_epoch(self.folder) if epoch is None else epoch
        return baseline_document(fleet="f1", epoch=number, reason="", actor="ann", issued_at=now_text(), signers=self.signers)

    def kill(self, actor: str = "ann") -> bytes:
        return kill_document(fleet="f1", reason="drill", actor=actor, issued_at=now_text(), signers=self.signers)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "keys")


@pytest.fixture
def gcs() -> Iterator[StrictGcs]:
    with StrictGcs("fleet") as server:
        yield server


@pytest.fixture
def store(gcs: StrictGcs) -> Iterator[RemoteStore]:
    opened = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=PATIENCE_S, write_deadline_s=PATIENCE_S)
    yield opened
    opened.close()


def bearer(token: str) -> Credentials:
    return Credentials(token=token)  # type: ignore[no-untyped-call]


def live(gcs: StrictGcs) -> bytes:
    return gcs.bucket.objects[KEY].body


# --- writes -----------------------------------------------------------------------------------------------------------


def test_a_kill_is_ok_after_it_was_read_back_and_is_logged(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    assert store.write_baseline(fleet.baseline()).ok
    document = fleet.kill()
    done = store.write_kill(document, fleet.keys)
    assert done.ok and not done.already and done.order == order_of(gcs.bucket.objects[KEY].generation, document)
    assert live(gcs) == document and gcs.bucket.objects[KEY].cache_control == "no-store"
    logged, trouble = store.kill_log()
    assert trouble == "" and [e.kind for e in logged] == ["baseline", "kill"] and logged[1].order == done.order
    assert document in [o.body for n, o in gcs.bucket.listing("platform/kill-log/")]


def test_a_kill_needs_nothing_in_the_bucket_and_no_keys(gcs: StrictGcs, store: RemoteStore) -> None:
    document = kill_document(fleet="f1", reason="", actor="", issued_at="")
    assert store.write_kill(document, KeySet("f1", 1, {})).ok and live(gcs) == document


def test_a_live_kill_is_success_and_is_left_alone(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    done = store.write_kill(fleet.kill(), fleet.keys)
    assert done.ok and done.already and live(gcs) == EMERGENCY
    assert done.order == order_of(gcs.bucket.objects[KEY].generation, EMERGENCY)


def test_junk_and_objects_too_large_are_overwritten(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    for body in (b"junk", b"x" * (SIZE_LIMIT + 1), b""):
        gcs.bucket.put(KEY, body)
        document = fleet.kill()
        assert store.write_kill(document, fleet.keys).ok and live(gcs) == document


def test_write_kill_writes_nothing_but_kills(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    assert store.write_kill(fleet.baseline(), fleet.keys).detail == "failed: the document is not a kill"
    assert KEY not in gcs.bucket.objects


def test_the_first_baseline_is_create_only(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    done = store.write_baseline(fleet.baseline())
    assert not done.ok and done.detail.startswith("failed: the object changed") and live(gcs) == EMERGENCY


def test_eight_consoles_at_once_write_one_kill_and_all_succeed(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    barrier = threading.Barrier(8)
    results: list[Any] = []

    def press(n: int) -> None:
        console = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=PATIENCE_S, write_deadline_s=PATIENCE_S)
        document = fleet.kill(f"console {n}")
        barrier.wait()
        results.append(console.write_kill(document, fleet.keys))
        console.close()

    threads = [threading.Thread(target=press, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.ok for r in results] == [True] * 8, results
    assert sorted(r.already for r in results) == [False] + [True] * 7
    assert len({r.generation for r in results}) == 1


def test_a_412_is_read_again_and_the_kill_wins_over_a_baseline_landing_in_between(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline(1))
    between = fleet.baseline(2)
    original = gcs.bucket.put
    races = [3]

    def put(name: str, body: bytes, conditions: dict[str, str] | None = None, *rest: Any) -> Any:
        if name == KEY and races[0]:
            races[0] -= 1
            original(KEY, between)
        return original(name, body, conditions, *rest)

    gcs.bucket.put = put  # type: ignore[method-assign,assignment]
    document = fleet.kill()
    assert store.write_kill(document, fleet.keys).ok and live(gcs) == document
    assert [s for m, p, s in gcs.requests if m == "POST" and "kill-log" not in p][:4] == [412, 412, 412, 200]


def test_the_last_resort_is_an_unconditional_write_with_read_back(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline(1))
    original = gcs.bucket.put

    def put(name: str, body: bytes, conditions: dict[str, str] | None = None, *rest: Any) -> Any:
        if name == KEY and "ifGenerationMatch" in (conditions or {}):
            original(KEY, fleet.baseline(2))  # somebody who is always faster
        return original(name, body, conditions, *rest)

    gcs.bucket.put = put  # type: ignore[method-assign,assignment]
    document = fleet.kill()
    assert store.write_kill(document, fleet.keys).ok and live(gcs) == document


def test_ok_needs_the_bytes_back(gcs: StrictGcs, fleet: Fleet) -> None:
    store = RemoteStore("fleet", endpoint=gcs.url, write_deadline_s=1.0)
    original = gcs.bucket.put

    def put(name: str, body: bytes, *rest: Any) -> Any:
        return original(name, body.replace(b"true", b"null"), *rest)  # a store that lies

    gcs.bucket.put = put  # type: ignore[method-assign,assignment]
    done = store.write_kill(fleet.kill(), fleet.keys)
    assert not done.ok and done.detail.startswith("failed")
    store.close()


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_ends_a_write_by_its_deadline_with_words(gcs: StrictGcs, fleet: Fleet, kind: str) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    store = RemoteStore("fleet", endpoint=gcs.url, write_deadline_s=1.0)
    began = time.monotonic()
    with gcs.failing(kind):
        done = store.write_kill(fleet.kill(), fleet.keys)
        took = time.monotonic() - began
    assert not done.ok and done.detail.startswith("failed: ") and took < ENDS_S, (done, took)
    store._write_deadline_s = PATIENCE_S
    assert store.write_kill(fleet.kill(), fleet.keys).ok, "the next try, with the server well again, succeeds"
    store.close()


def test_a_passing_503_is_retried(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    with gcs.failing("503", times=2):
        assert store.write_kill(fleet.kill(), fleet.keys).ok


def test_the_rate_limit_of_one_write_a_second_does_not_stop_a_kill(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    gcs.bucket.min_write_gap_s = 1.0
    assert store.write_kill(fleet.kill(), fleet.keys).ok
    assert 429 in [s for _, _, s in gcs.requests]


def test_a_kill_log_that_cannot_be_written_is_said_and_does_not_fail_the_kill(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.allow("console", "get", "create", "delete", prefix=KEY)
    with_token = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("console"), write_deadline_s=PATIENCE_S)
    done = with_token.write_kill(fleet.kill(), fleet.keys)
    assert done.ok and "kill log not written: HTTP 403" in done.detail
    with_token.close()


# --- rights -----------------------------------------------------------------------------------------------------------


def test_a_poller_or_agent_token_can_neither_kill_nor_release(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    gcs.allow("poller", "get", prefix=KEY)
    store = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("poller"), read_deadline_s=PATIENCE_S, write_deadline_s=PATIENCE_S)
    assert store.read().body == EMERGENCY
    generation = gcs.bucket.objects[KEY].generation
    assert store.write_release(fleet.baseline(), generation).detail == "failed: HTTP 403"
    assert store.write_receipt(5, "host-a", b"{}").detail == "failed: HTTP 403"
    assert store.kill_log() == ([], "HTTP 403")
    gcs.bucket.put(KEY, fleet.baseline())
    assert "HTTP 403" in store.write_kill(fleet.kill(), fleet.keys).detail
    store.close()


def test_a_writer_that_cannot_read_writes_and_is_not_believed(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.allow("blind", "create", "delete", prefix=KEY)
    store = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("blind"), read_deadline_s=PATIENCE_S, write_deadline_s=PATIENCE_S)
    document = fleet.kill()
    done = store.write_kill(document, fleet.keys)
    assert live(gcs) == document and not done.ok and "not confirmed" in done.detail and done.generation
    store.close()


# --- reads ------------------------------------------------------------------------------------------------------------


def test_a_steady_poll_is_one_request_on_one_connection(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    generation = gcs.bucket.put(KEY, fleet.baseline()).generation
    assert store.read().generation == generation
    gcs.requests.clear()
    for _ in range(20):
        assert store.read(generation).unchanged
    assert [s for _, _, s in gcs.requests] == [304] * 20 and gcs.connections == 1


def test_metadata_and_bytes_cannot_mix(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    first = fleet.baseline(1)
    gcs.bucket.put(KEY, first)
    original = gcs.bucket.get
    swapped: list[object] = []

    def get(name: str, conditions: dict[str, str]) -> Any:
        found = original(name, conditions)
        if not swapped:
            swapped.append(gcs.bucket.put(KEY, EMERGENCY))
        return found

    gcs.bucket.get = get  # type: ignore[method-assign]
    seen = store.read()
    assert seen.body is None and (seen.missing or seen.fault), "the old generation is gone: nothing is known"
    assert store.read().body == EMERGENCY


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_is_a_fault_and_never_a_document(gcs: StrictGcs, fleet: Fleet, kind: str) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    store = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=1.0)
    began = time.monotonic()
    with gcs.failing(kind):
        seen = store.read()
        took = time.monotonic() - began
    assert seen.fault and seen.body is None and not seen.missing and took < ENDS_S, (seen, took)
    store._read_deadline_s = PATIENCE_S
    assert store.read().body is not None
    store.close()


@pytest.mark.parametrize("kind", ["huge", "truncated", "drip_body", "garbage"])
def test_faults_of_the_media_alone(gcs: StrictGcs, fleet: Fleet, kind: str) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    store = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=1.0)
    with gcs.failing(kind, path="^/download/"):
        seen = store.read()
    assert seen.body is None and seen.fault
    store.close()


def test_flipped_bytes_are_noticed(gcs: StrictGcs, store: RemoteStore) -> None:
    stored = gcs.bucket.put(KEY, EMERGENCY)
    original = gcs.bucket.get

    def get(name: str, conditions: dict[str, str]) -> Any:
        if "generation" not in conditions:
            return original(name, conditions)
        return type(stored)(EMERGENCY.replace(b"true", b"null"), stored.generation)

    gcs.bucket.get = get  # type: ignore[method-assign]
    assert store.read().fault


def test_an_object_too_large_is_junk_and_is_not_downloaded(gcs: StrictGcs, store: RemoteStore) -> None:
    gcs.bucket.put(KEY, b" " * (SIZE_LIMIT + 1))
    assert "larger" in store.read().junk
    assert not [p for _, p, _ in gcs.requests if p.startswith("/download/")]


def test_the_environment_cannot_redirect_the_channel(gcs: StrictGcs, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    store = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=PATIENCE_S)
    assert store.read().body == EMERGENCY
    store.close()


def test_hung_calls_leave_no_thread_and_do_not_block_other_calls(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    store = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=1.0)
    with gcs.failing("drip", method="GET", path="alt=media"):
        for _ in range(3):
            assert store.read().fault == "no answer in time"
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("remotekill-")], 60)
    store.close()


@pytest.mark.parametrize(("bucket", "key"), [("", KEY), ("gs://x", KEY), ("UPPER", KEY), ("fleet", ""), ("fleet", "/a"), ("fleet", "a\nb")])
def test_bad_names_are_refused(bucket: str, key: str) -> None:
    with pytest.raises(UsageProblem):
        RemoteStore(bucket, key)


# --- receipts ---------------------------------------------------------------------------------------------------------


def test_receipts_are_created_once_and_listed_by_host(gcs: StrictGcs, store: RemoteStore) -> None:
    assert store.write_receipt(7, "host-b", json.dumps({"verified_zero": True})).ok
    assert store.write_receipt(7, "host-a", b'{"survivors":[]}').ok
    assert store.write_receipt(7, "host-a", b'{"survivors":[]}').already
    other = store.write_receipt(7, "host-a", b'{"survivors":[1]}')
    assert not other.ok and "another receipt" in other.detail
    gcs.bucket.put("platform/receipts/7/junk.json", b"[")
    gcs.bucket.put("platform/receipts/7/<b>.json", b"{}")
    gcs.bucket.put("platform/receipts/70/host-c.json", b"{}")
    found, trouble = store.receipts(7)
    assert trouble == "" and [(r.host, r.receipt) for r in found] == [
        ("host-a", {"survivors": []}),
        ("host-b", {"verified_zero": True}),
        ("junk", None),
    ]


@pytest.mark.parametrize("host", ["", "../x", "a/b", "<b>", "x" * 64, ".hidden"])
def test_a_receipt_goes_nowhere_else(store: RemoteStore, host: str) -> None:
    with pytest.raises(UsageProblem):
        store.write_receipt(7, host, b"{}")


# --- releases ---------------------------------------------------------------------------------------------------------


def test_a_release_replaces_exactly_what_was_reviewed(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    store.write_baseline(fleet.baseline())
    store.write_kill(fleet.kill(), fleet.keys)
    reviewed = review(store, fleet.keys)
    assert reviewed.reason == "drill" and reviewed.orders == (reviewed.order,)
    body = make_release(reviewed, fleet.keys, fleet.signers, epoch=take_epoch(fleet.folder), reason="over", actor="ann")
    gcs.bucket.put(KEY, EMERGENCY)  # K8: a kill lands between review and release
    done = store.write_release(body, reviewed.generation)
    assert not done.ok and "review it again" in done.detail and live(gcs) == EMERGENCY
    second = review(store, fleet.keys)
    assert set(second.orders) == {reviewed.order, second.order}, "the earlier kill is still to be released"
    body = make_release(second, fleet.keys, fleet.signers, epoch=take_epoch(fleet.folder), reason="over", actor="ann")
    assert store.write_release(body, second.generation).ok and live(gcs) == body
    with pytest.raises(NotFound, match="signed un-kill"):
        review(store, fleet.keys)


def test_a_review_says_what_it_could_not_see(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    with pytest.raises(NotFound):
        review(store, fleet.keys)
    gcs.bucket.put(KEY, EMERGENCY)
    with gcs.failing("403", path="kill-log"):
        assert review(store, fleet.keys).trouble == "HTTP 403"
    with gcs.failing("503"), pytest.raises(Unreachable):
        review(store, fleet.keys)
    stranger = KeySet("f1", 1, {})
    with pytest.raises(Conflict):
        make_release(review(store, fleet.keys), stranger, fleet.signers, epoch=9, reason="x", actor="")
    with pytest.raises(UsageProblem, match="reason"):
        make_release(review(store, fleet.keys), fleet.keys, fleet.signers, epoch=9, reason="  ", actor="")


# --- the poller, end to end -------------------------------------------------------------------------------------------


class Host:
    """A poller with a real store."""

    def __init__(self, gcs: StrictGcs, fleet: Fleet, folder: Path, **options: Any) -> None:
        self.took: list[Effect] = []
        self.store = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=1.0)
        self.poller = Poller(self.store, folder / "remote.json", fleet.keys, self.took.append, period_s=0.1, **options)

    def __enter__(self) -> Host:
        self.poller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.poller.stop(60)
        self.store.close()

    def wait(self, kind: type, seconds: float = 60) -> Effect:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for effect in list(self.took):
                if isinstance(effect, kind):
                    return effect
            time.sleep(0.01)
        raise AssertionError(f"no {kind.__name__} in {self.took}")

    def wait_last(self, kind: type, *others: type, seconds: float = 60) -> None:
        """Until the newest effect among these kinds is of the first."""
        end = time.monotonic() + seconds
        while not isinstance(next((one for one in reversed(list(self.took)) if isinstance(one, (kind, *others))), None), kind):
            assert time.monotonic() < end, self.took
            time.sleep(0.01)

    def wait_reads(self, gcs: StrictGcs, number: int = 2) -> None:
        """Until as many more requests of the poller's were answered: the first may have been under way."""
        before = len(gcs.requests)
        end = time.monotonic() + 60
        while len(gcs.requests) < before + number:
            assert time.monotonic() < end, gcs.requests[-3:]
            time.sleep(0.01)

    def wait_mode(self, mode: Mode, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while self.poller.status().mode is not mode:
            assert time.monotonic() < end, self.poller.status()
            time.sleep(0.01)


def test_kill_by_any_client_release_and_everything_in_between(gcs: StrictGcs, store: RemoteStore, fleet: Fleet, tmp_path: Path) -> None:
    with Host(gcs, fleet, tmp_path) as host:
        host.wait(SoftStop)
        assert store.write_baseline(fleet.baseline()).ok
        host.wait(LiftSoftStop)
        host.wait(LeaseRenewed)
        host.wait_mode(Mode.ARMED)
        # Any HTTP client, no signature, no console.
        url = f"{gcs.url}/upload/storage/v1/b/fleet/o?uploadType=media&name={KEY.replace('/', '%2F')}"
        assert requests.post(url, data=EMERGENCY, timeout=60).status_code == 200
        latch = host.wait(Latch)
        assert isinstance(latch, Latch) and latch.reason == "emergency" and parse(live(gcs), fleet.keys) is not None
        host.took.clear()
        # The old baseline put back, deletion and junk do not un-kill.
        for body in (fleet.baseline(1), b"junk", b'{"killed":false}'):
            gcs.bucket.put(KEY, body)
            host.wait_reads(gcs, 4)
        gcs.bucket.delete(KEY, {})
        host.wait_reads(gcs, 4)
        assert host.poller.status().mode is Mode.KILLED and Released not in [type(e) for e in host.took]
        # A second kill; the release names both.
        gcs.bucket.put(KEY, EMERGENCY)
        host.wait(Latch)
        reviewed = review(store, fleet.keys, host.poller.status().latched)
        assert len(reviewed.orders) == 2
        body = make_release(reviewed, fleet.keys, fleet.signers, epoch=take_epoch(fleet.folder), reason="over", actor="ann")
        assert store.write_release(body, reviewed.generation).ok
        released = host.wait(Released)
        assert isinstance(released, Released) and set(released.orders) == set(reviewed.orders)
        host.wait_mode(Mode.ARMED)


@pytest.mark.parametrize("kind", ["refuse", "503", "black_hole", "drip", "403"])
def test_an_outage_stops_softly_after_the_lease_and_lifts_by_itself(gcs: StrictGcs, fleet: Fleet, tmp_path: Path, kind: str) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    with Host(gcs, fleet, tmp_path, lease_s=1.5) as host:
        host.wait_mode(Mode.ARMED)
        host.wait_last(LiftSoftStop, SoftStop)
        with gcs.failing(kind):
            host.wait_mode(Mode.SOFT)
            host.wait_last(SoftStop, LiftSoftStop)
        host.wait_last(LiftSoftStop, SoftStop)
        host.wait_mode(Mode.ARMED)
        assert Latch not in [type(e) for e in host.took], "an outage destroys nothing"
