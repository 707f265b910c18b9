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

    def baseline(self, epoch: int | None = None, settled: int = 0) -> bytes:
        number = take_epoch(self.folder) if epoch is None else epoch
        return baseline_document(
            fleet="f1", epoch=number, reason="", actor="ann", issued_at=now_text(), signers=self.signers, settled=settled
        )

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


def order(number: int) -> str:
    return f"platform/orders/{number}"


def writer(gcs: StrictGcs) -> None:
    """The roles of a host and of a console, as docs/how-to/remote-kill.md has them."""
    gcs.allow("console", "get", prefix=KEY)
    gcs.allow("console", "get", "create", prefix="platform/orders/")
    gcs.allow("console", "get", "create", prefix="platform/receipts/")
    gcs.allow("console", "list", "bucket")


# --- writes -----------------------------------------------------------------------------------------------------------


def test_a_kill_is_an_order_of_its_own_and_ok_after_it_was_read_back(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    assert store.write_baseline(fleet.baseline()).ok
    before = live(gcs)
    document = fleet.kill()
    done = store.write_kill(document, fleet.keys)
    assert done.ok and done.number == 1 and done.order == order_of(gcs.bucket.objects[order(1)].generation, document, 1)
    assert gcs.bucket.objects[order(1)].body == document and gcs.bucket.objects[order(1)].cache_control == "no-store"
    assert live(gcs) == before, "the kill file is for emergencies by hand"
    assert store.order_numbers() == ([1], "")


def test_a_kill_needs_nothing_in_the_bucket_and_no_keys(gcs: StrictGcs, store: RemoteStore) -> None:
    document = kill_document(fleet="f1", reason="", actor="", issued_at="")
    assert store.write_kill(document, KeySet("f1", 1, {})).ok and gcs.bucket.objects[order(1)].body == document


def test_a_taken_number_means_the_next_one_and_none_is_replaced(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline(settled=4))
    for number, body in ((5, b"junk"), (6, b"x" * (SIZE_LIMIT + 1)), (7, b"")):
        gcs.bucket.put(order(number), body)
    done = store.write_kill(fleet.kill(), fleet.keys)
    assert done.ok and done.number == 8 and gcs.bucket.objects[order(5)].body == b"junk"


def test_a_number_that_may_not_be_replaced_is_taken_whichever_way_the_service_says_so(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    gcs.bucket.put(order(1), EMERGENCY)
    writer(gcs)
    gcs.rights_before_conditions = True
    console = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("console"), write_deadline_s=PATIENCE_S)
    done = console.write_kill(fleet.kill(), fleet.keys)
    assert done.ok and done.number == 2 and gcs.bucket.objects[order(1)].body == EMERGENCY
    console.close()


def test_a_number_is_taken_after_the_settled_ones_by_the_bucket_or_by_this_host(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline(settled=6))
    assert store.write_kill(fleet.kill(), fleet.keys, settled=3).number == 7
    gcs.bucket.put(KEY, fleet.baseline(1, settled=2))  # an older document put back: what this host knows counts
    assert store.write_kill(fleet.kill(), fleet.keys, settled=9).number == 10
    stranger = KeySet("f1", 1, {})
    assert store.write_kill(fleet.kill(), stranger, settled=0).number == 1, "an unsigned word settles nothing"


def test_an_answer_that_was_lost_is_no_second_order(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    document = fleet.kill()
    with gcs.failing("reset", method="POST", times=1):
        done = store.write_kill(document, fleet.keys)
    assert done.ok and done.number == 1 and store.order_numbers() == ([1], "")


def test_write_kill_writes_nothing_but_kills(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    assert store.write_kill(fleet.baseline(), fleet.keys).detail == "failed: the document is not a kill"
    assert not gcs.bucket.objects


def test_the_first_baseline_is_create_only(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    done = store.write_baseline(fleet.baseline())
    assert not done.ok and done.detail.startswith("failed: the object changed") and live(gcs) == EMERGENCY


def test_eight_consoles_at_once_each_write_an_order_and_none_is_lost(gcs: StrictGcs, fleet: Fleet) -> None:
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
    assert sorted(r.number for r in results) == list(range(1, 9))
    assert len({gcs.bucket.objects[order(n)].body for n in range(1, 9)}) == 8


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


def test_a_passing_429_does_not_stop_a_kill(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    with gcs.failing("429", method="POST", times=2):
        assert store.write_kill(fleet.kill(), fleet.keys).ok
    assert 429 in [s for _, _, s in gcs.requests]


# --- rights -----------------------------------------------------------------------------------------------------------


def test_a_poller_or_agent_token_can_neither_kill_nor_release(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    gcs.allow("poller", "get", prefix=KEY)
    store = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("poller"), read_deadline_s=PATIENCE_S, write_deadline_s=PATIENCE_S)
    assert store.read().body == EMERGENCY
    generation = gcs.bucket.objects[KEY].generation
    assert store.write_release(fleet.baseline(), generation).detail == "failed: HTTP 403"
    assert store.write_receipt(5, "host-a", b"{}").detail == "failed: HTTP 403"
    assert store.order_numbers() == ([], "HTTP 403") and store.read_orders(1).denied and store.read_history(()).denied
    assert store.write_kill(fleet.kill(), fleet.keys).detail == "failed: HTTP 403"
    assert list(gcs.bucket.objects) == [KEY]
    store.close()


def test_a_host_may_add_orders_and_can_neither_replace_nor_delete_one(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    writer(gcs)
    store = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("console"), read_deadline_s=PATIENCE_S, write_deadline_s=PATIENCE_S)
    document = fleet.kill()
    assert store.write_kill(document, fleet.keys).ok
    head = {"Authorization": "Bearer console"}
    url = f"{gcs.url}/storage/v1/b/fleet/o/platform%2Forders%2F1"
    assert requests.delete(url, headers=head, timeout=60).status_code == 403
    upload = f"{gcs.url}/upload/storage/v1/b/fleet/o?uploadType=media&name=platform%2Forders%2F1"
    assert requests.post(upload, data=b"{}", headers=head, timeout=60).status_code == 403
    assert store.write_release(fleet.baseline(), gcs.bucket.objects[KEY].generation).detail == "failed: HTTP 403"
    assert gcs.bucket.objects[order(1)].body == document
    store.close()


def test_a_writer_that_cannot_read_writes_once_and_is_not_believed(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.allow("blind", "create", prefix="platform/orders/")
    store = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("blind"), read_deadline_s=PATIENCE_S, write_deadline_s=PATIENCE_S)
    document = fleet.kill()
    for _ in range(3):  # as a retry does
        done = store.write_kill(document, fleet.keys)
        assert not done.ok and "written as order 1, but not confirmed" in done.detail
    assert [o.body for o in gcs.bucket.objects.values()] == [document]
    store.close()


# --- reads ------------------------------------------------------------------------------------------------------------


def test_a_steady_poll_is_one_request_on_one_connection(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    generation = gcs.bucket.put(KEY, fleet.baseline()).generation
    assert store.read().generation == generation
    gcs.requests.clear()
    for _ in range(20):
        assert store.read(generation).unchanged
    assert [s for _, _, s in gcs.requests] == [304] * 20 and gcs.connections == 1


def test_a_steady_poll_is_two_requests_and_no_list(gcs: StrictGcs, store: RemoteStore, fleet: Fleet, tmp_path: Path) -> None:
    gcs.bucket.versioning = True
    gcs.bucket.put(KEY, fleet.baseline())
    for number in (1, 2, 3):
        gcs.bucket.put(order(number), fleet.kill())
    gcs.bucket.put(KEY, fleet.baseline(settled=3))
    poller = Poller(store, tmp_path / "remote.json", fleet.keys, lambda _effect: None)
    poller.poll_once()
    gcs.requests.clear()
    for _ in range(20):
        poller.poll_once()
    conditional = [path for _, path, status in gcs.requests if status == 304 and "kill-switch.json" in path]
    next_order = [path for _, path, status in gcs.requests if status == 404 and path.partition("?")[0].endswith("orders%2F4")]
    assert (len(conditional), len(next_order), len(gcs.requests)) == (20, 20, 40)
    assert gcs.connections == 1


def test_the_versions_are_listed_once_for_each_change_of_the_kill_file(
    gcs: StrictGcs, store: RemoteStore, fleet: Fleet, tmp_path: Path
) -> None:
    gcs.bucket.versioning = True
    gcs.bucket.put(KEY, fleet.baseline())
    took: list[Effect] = []
    poller = Poller(store, tmp_path / "remote.json", fleet.keys, took.append)
    poller.poll_once()
    gcs.requests.clear()
    old = live(gcs)
    for change in range(3):
        gcs.bucket.put(KEY, EMERGENCY if change == 1 else old)
        gcs.bucket.put(KEY, old)
        for _ in range(3):
            poller.poll_once()
    assert len([path for _, path, _ in gcs.requests if "versions=" in path]) == 3
    assert [type(e) for e in took if isinstance(e, Latch)] == [Latch] and poller.status().history_unread == ""


@pytest.mark.parametrize("kind", ["huge", "truncated", "drip_body", "503"])
def test_an_order_whose_bytes_cannot_be_had_is_an_order(gcs: StrictGcs, fleet: Fleet, kind: str) -> None:
    gcs.bucket.put(order(1), EMERGENCY)
    store = RemoteStore("fleet", endpoint=gcs.url, read_deadline_s=1.0)
    with gcs.failing(kind, path="^/download/"):
        (found,) = store.read_orders(1).found
    assert found.number == 1 and found.body is None and found.order.startswith(f"1/{found.generation}:sha256:000")
    store.close()


def test_an_order_too_large_is_an_order_and_is_not_downloaded(gcs: StrictGcs, store: RemoteStore) -> None:
    gcs.bucket.put(order(1), b" " * (SIZE_LIMIT + 1))
    assert [(f.number, f.body) for f in store.read_orders(1).found] == [(1, None)]
    assert not [p for _, p, _ in gcs.requests if p.startswith("/download/")]


def test_without_the_right_to_list_a_free_number_is_denied_and_a_taken_one_is_read(gcs: StrictGcs, fleet: Fleet) -> None:
    gcs.allow("reader", "get", prefix="platform/")
    store = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("reader"), read_deadline_s=PATIENCE_S)
    assert store.read_orders(1).denied
    gcs.bucket.put(order(1), EMERGENCY)
    seen = store.read_orders(1)
    assert seen.denied and [f.body for f in seen.found] == [EMERGENCY]
    store.close()


def test_what_a_bucket_without_versions_or_rights_cannot_show_is_said(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    gcs.bucket.put(KEY, fleet.baseline())
    assert store.read_history(()).blind == "the bucket keeps no versions"
    gcs.bucket.versioning = True
    gcs.bucket.put(KEY, EMERGENCY)
    gcs.bucket.put(KEY, fleet.baseline())
    seen = store.read_history({gcs.bucket.objects[KEY].generation})
    assert seen.blind == "" and [f.body for f in seen.found][1:] == [EMERGENCY] and len(seen.listed) == 3
    gcs.allow("lister", "list", "get")
    other = RemoteStore("fleet", endpoint=gcs.url, credentials=bearer("lister"), read_deadline_s=PATIENCE_S)
    assert other.read_history(()).blind == "", "earlier versions are there, so they are kept"
    gcs.bucket.noncurrent.clear()
    assert other.read_history(()).blind == "whether the bucket keeps versions cannot be told"
    other.close()


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
    reads = [store.read(), store.read()]  # the first may still meet the connection that the fault broke
    assert any(one.body is not None for one in reads), reads
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
    gcs.bucket.versioning = True
    store.write_baseline(fleet.baseline())
    store.write_kill(fleet.kill(), fleet.keys)
    reviewed = review(store, fleet.keys)
    assert reviewed.reason == "drill" and reviewed.orders == (reviewed.order,) and reviewed.settled == 1
    body = make_release(reviewed, fleet.keys, fleet.signers, epoch=take_epoch(fleet.folder), reason="over", actor="ann")
    gcs.bucket.put(KEY, EMERGENCY)  # K8: a kill lands between review and release
    done = store.write_release(body, reviewed.generation)
    assert not done.ok and "review it again" in done.detail and live(gcs) == EMERGENCY
    second = review(store, fleet.keys)
    assert len(second.orders) == 2 and set(reviewed.orders) < set(second.orders), "the earlier kill is still to be released"
    body = make_release(second, fleet.keys, fleet.signers, epoch=take_epoch(fleet.folder), reason="over", actor="ann")
    assert store.write_release(body, second.generation).ok and live(gcs) == body
    with pytest.raises(NotFound, match="signed un-kill"):
        review(store, fleet.keys)


def test_a_review_says_what_it_could_not_see(gcs: StrictGcs, store: RemoteStore, fleet: Fleet) -> None:
    with pytest.raises(NotFound):
        review(store, fleet.keys)
    gcs.bucket.put(KEY, EMERGENCY)
    with gcs.failing("403", path="orders"):
        assert "orders: HTTP 403" in review(store, fleet.keys).trouble
    with gcs.failing("403", path="versions="):
        assert "cannot be listed" in review(store, fleet.keys).trouble
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
        # A second kill; the release ends both.
        assert store.write_kill(fleet.kill(), fleet.keys).ok
        host.wait(Latch)
        reviewed = review(store, fleet.keys, host.poller.status().latched)
        assert len(reviewed.orders) == 2 and reviewed.settled == 1
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
