"""Only the proxy's own refusal of this very name counts; whatever else answers is no proof."""

from __future__ import annotations

import socket
import threading

import pytest

from console.domain.errors import ConsoleError
from console.domain.network import Allowlist, AllowlistEntry
from console.egress import portals as probe
from console.egress.portals import forbidden_name, must_refuse

BODY = b'{"error":"Destination not in allowlist","rule_needed":{"host":"NAME"}}'
HEAD = b"HTTP/1.1 403 Forbidden\r\ncontent-length: LENGTH\r\ncontent-type: application/json\r\n\r\n"


def answered(answer: bytes, *, closes: bool = True) -> None:
    """must_refuse against somebody who answers this."""
    ours, theirs = socket.socketpair()
    name = forbidden_name()

    def peer() -> None:
        assert name.encode() in theirs.recv(4096)
        theirs.sendall(answer.replace(b"NAME", name.encode()).replace(b"LENGTH", str(len(BODY) - 4 + len(name)).encode()))
        if closes:
            theirs.close()

    thread = threading.Thread(target=peer)
    thread.start()
    try:
        must_refuse(ours, name)
    finally:
        thread.join()
        ours.close()
        theirs.close()


def test_the_refusal_is_enough_without_the_end_of_the_connection() -> None:
    answered(HEAD + BODY, closes=False)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 200 OK"),
        (HEAD.replace(b"403", b"503") + BODY, "503"),
        (HEAD + BODY.replace(b"not in", b"in the"), "HTTP/1.1 403"),
        (HEAD + BODY.replace(b"NAME", b"NOME"), "HTTP/1.1 403"),
        (HEAD, "HTTP/1.1 403"),
        (b"\xff" * 20000, r"it answered (\\xff){80}\."),
        (b"", "it answered nothing"),
    ],
)
def test_everything_else_is_not_proven(answer: bytes, why: str) -> None:
    with pytest.raises(ConsoleError, match=f"not proven: .*{why}"):
        answered(answer)


def test_who_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_S", 0.05)
    with pytest.raises(ConsoleError, match="not proven: .*no answer"):
        answered(b"HTTP/1.1 403", closes=False)


def test_no_entry_covers_the_name_and_it_is_another_each_time() -> None:
    name = forbidden_name()
    assert name != forbidden_name()
    hosts = ("*.test", "*.com", "probe.test", "watchfloor-probe.example.com")
    entries = tuple(AllowlistEntry(f"e{n}", host, 80, (), (), "r", "o") for n, host in enumerate(hosts))
    assert not any(e.covers_host(name) for e in Allowlist(1, entries).entries)
