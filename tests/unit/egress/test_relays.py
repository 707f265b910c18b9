"""A relay is nobody's before its order, and whoever closes one never waits for whoever is told of its end."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from console.egress import relays
from console.egress.children import identities
from console.egress.ports import Port
from console.egress.relays import Relay, Relays, Told

WHO = identities()[1]


def until(seen: threading.Event) -> None:
    assert seen.wait(60)


def test_a_cut_of_one_that_has_no_order_yet_leaves_it_waiting(tmp_path: Path) -> None:
    relay = Relay(WHO, tmp_path)
    assert relay.cut() == 0 and relay.waits()
    relay.discard()
    assert not relay.waits()


def carried(kept: Relays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Gives "a1" a relay on a port of ours; the descriptor whose end stands for its sandbox's."""
    listener, (pidfd, alive), (inside, other) = socket.create_server(("127.0.0.1", 0)), os.pipe(), socket.socketpair()
    port = Port(listener.detach(), pidfd, inside.detach())
    monkeypatch.setattr(relays, "open_door", lambda *_door: port)
    kept.open("a1", "up.sock", 1, 1, False, tmp_path, 0).close()
    other.close()
    return alive


def test_one_that_died_is_told_and_what_was_known_of_it_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, done = list[str](), threading.Event()

    def gone(agent_id: str) -> None:
        told.append(f"gone {agent_id}")
        done.set()

    kept = Relays(WHO, tmp_path, None, gone, lambda agent_id: told.append(f"dead {agent_id}"), lambda *_words: None)
    alive = carried(kept, tmp_path, monkeypatch)
    os.kill(kept.pids()["a1"], signal.SIGKILL)
    until(done)
    assert told == ["dead a1", "gone a1"] and kept.names() == []
    os.close(alive)
    kept.close_all()


def test_whoever_closes_one_that_is_over_does_not_wait_for_who_is_told_of_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, over, go_on = threading.RLock(), threading.Event(), threading.Event()
    told: list[str] = []

    def gone(agent_id: str) -> None:
        with lock:
            told.append(agent_id)

    kept = Relays(WHO, tmp_path, None, gone, lambda agent_id: told.append(f"dead {agent_id}"), lambda *_words: None)
    real = kept._told.on_end

    def ended(relay: Relay, code: int) -> None:
        over.set()
        until(go_on)
        real(relay, code)

    kept._told = Told(ended, lambda *_words: None)
    os.close(carried(kept, tmp_path, monkeypatch))  # the sandbox ends
    until(over)

    def close() -> None:
        with lock:
            kept.close("a1")

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    late = time.monotonic() + 60
    while "a1" in kept:
        assert time.monotonic() < late
        time.sleep(0.005)
    go_on.set()
    closing.join(20)
    assert not closing.is_alive(), "who closes and who is told wait for each other"
    kept.close_all()
    assert [thread for thread in threading.enumerate() if thread.name == "relay-a1"] == [] and told == ["a1"]
