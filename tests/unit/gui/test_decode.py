"""The stream's reader: only checked values come out, in order, and what cannot be read asks for a whole reading."""

from __future__ import annotations

import json
from queue import SimpleQueue
from threading import Event

import pytest

from console.api.agents.fleet_changes import FleetChanges
from console.api.messages import Delta
from console.gui.link.decode import Decoder, Incoming, Read, read_block


def message(kind: str, data: object, seq: int = 7) -> bytes:
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(data)}".encode()


def test_agents_come_checked_and_the_rest_as_deltas() -> None:
    changes = read_block(1, message("agents", {"patch": [["a", {"cost_usd": 2}]]}))
    assert changes is not None and isinstance(changes.value, FleetChanges) and changes.value.quiet == [("a", {"cost_usd": 2.0})]
    notice = read_block(1, message("notice", {"text": "x"}, 8))
    assert notice is not None and isinstance(notice.value, Delta) and (notice.value.seq, notice.last_id) == (8, "8")
    wrapped = read_block(1, message("agents", {"seq": 9, "kind": "agents", "data": {"upsert": [{"id": "a"}]}}, 1))
    assert wrapped is not None and isinstance(wrapped.value, FleetChanges) and wrapped.value.seq == 9
    assert read_block(1, b": alive") is None


@pytest.mark.parametrize(
    "block",
    [b"event: resync\ndata: {}", message("agents", [1]), message("agents", {"upsert": [{}]}), b"event: kill\ndata: {",
     b"event: egress\ndata: [1]",
     b"event: kill\ndata: " + b"[" * 200_000, b"event: agents\ndata: " + b"[" * 200_000],
)  # fmt: skip
def test_what_cannot_be_read_asks_for_a_whole_reading(block: bytes) -> None:
    found = read_block(3, block)
    assert found is not None and found.value is None and found.connection == 3 and not found.ended


def test_messages_may_come_in_pieces_and_a_connection_ends_after_what_it_said() -> None:
    decoder, seen = Decoder(), list[Read]()
    decoder.read.connect(seen.append)
    queue: Incoming = SimpleQueue()
    whole = message("notice", {"n": 1}, 1) + b"\r\n\r\n" + message("notice", {"n": 2}, 2) + b"\n\n"
    for start in range(0, len(whole), 9):
        queue.put((1, whole[start : start + 9]))
    queue.put((1, None))
    queue.put((2, b"half of a mess"))
    queue.put((3, message("notice", {"n": 3}, 3) + b"\n\n"))
    queue.put(None)
    decoder._work(queue, Event())
    assert [(read.connection, read.last_id, read.ended) for read in seen] == [
        (1, "1", False),
        (1, "2", False),
        (1, "", True),
        (3, "3", False),
    ]


def test_a_stopped_decoder_reads_no_more_and_starts_again() -> None:
    decoder = Decoder()
    decoder.start()
    decoder.feed(1, b": x\n\n")
    decoder.stop()
    assert decoder._thread is None
    decoder.start()
    decoder.stop()
