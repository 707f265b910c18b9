"""Access-log lines as records."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from console.domain.network import Allowlist, AllowlistEntry, EgressRecord
from console.egress.access_log import AccessLog, Joiner, printable, record_of

ALLOWLIST = Allowlist(
    1, (AllowlistEntry("e1", "a.test", 443, reason="r", owner="o"), AllowlistEntry("e2", "a.test", 80, reason="r", owner="o"))
)


def http(**changes: Any) -> dict[str, Any]:
    line = {"k": "http", "agent": "a1", "id": "1", "t": "12.5", "method": "GET", "host": "a.test", "path": "/x", "code": 200}
    return line | {"route": "e2", "details": "via_upstream", "up": 3, "down": 4, "flags": "-", "end": None, "to": None} | changes


def tunnel(**changes: Any) -> dict[str, Any]:
    return http(method="CONNECT", host="a.test:443", path=None, route="e1", details="downstream_remote_disconnect") | changes


def gate(**changes: Any) -> dict[str, Any]:
    return {"k": "gate", "id": "1", "sni": "a.test", "end": None, "flags": "-", "to": "11.0.0.1:443"} | changes


def test_an_allowed_request() -> None:
    assert record_of(http(), None, ALLOWLIST) == EgressRecord(12.5, "a1", "GET", "a.test", "/x", 200, 3, 4, True, "entry e2")


@pytest.mark.parametrize(
    ("line", "gate_line", "status", "allowed", "words"),
    [
        (http(route="none", code=403, details="direct_response", host="b.test"), None, 403, False, "no entry for GET b.test:80/x"),
        (http(route="outside:e2", code=403, details="direct_response", host="a.test:81"), None, 403, False, "outside entry"),
        (http(route="none", code=403, details="direct_response"), None, 403, False, "not in the allowlist at that time"),
        (http(code=403, details="rbac_access_denied_matched_policy[none]"), None, 403, False, "private, own or metadata"),
        (http(route=None, code=400, details="path_normalization_failed"), None, 400, False, "path_normalization_failed"),
        (http(code=403, details="upgrade_failed"), None, 403, False, "upgrade_failed"),
        (http(code=403), None, 403, True, "entry e2"),
        (http(code=503, details="dns_resolution_failure"), None, 503, True, "entry e2"),
        (tunnel(), gate(), 200, True, "entry e1"),
        (tunnel(), gate(to=None), 503, True, "entry e1"),
        (tunnel(), None, 403, False, "ended before its TLS was seen"),
        (tunnel(), gate(sni="b.test", end="rbac_access_denied_x"), 403, False, "'b.test' is not the host"),
        (tunnel(host="A.test:443"), gate(end="rbac_access_denied_x"), 403, False, "private, own or metadata"),
        (tunnel(), gate(sni=None, flags="NR"), 403, False, "not TLS"),
        (tunnel(code=503), None, 503, True, "entry e1"),
    ],
)
def test_verdicts(line: dict[str, Any], gate_line: dict[str, Any] | None, status: int, allowed: bool, words: str) -> None:
    record = record_of(line, gate_line, ALLOWLIST)
    assert (record.status, record.allowed) == (status, allowed)
    assert words in record.rule


def test_numbers_that_are_none_are_zero() -> None:
    record = record_of(http(up="x", down=-5, t="never"), None, ALLOWLIST)
    assert (record.bytes_up, record.bytes_down) == (0, 0)
    assert abs(record.at - time.time()) < 60


def test_text_is_printable_ascii_and_bounded() -> None:
    assert printable("a\x1b[31m\n\u202e\u00e9\\", 100) == "a\\x1b[31m\\n\\u202e\\xe9\\\\"
    assert len(printable("\u202e" * 50, 60)) == 60
    assert printable(None, 5) == ""


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def test_the_two_lines_of_a_tunnel_are_joined_in_either_order() -> None:
    joiner = Joiner()
    assert joiner.take(line(tunnel()), 0) == []
    assert joiner.take(line(gate()), 0) == [(tunnel(), gate())]
    assert joiner.take(line(gate()), 0) == []
    assert joiner.take(line(tunnel()), 0) == [(tunnel(), gate())]


def test_a_tunnel_whose_gate_said_nothing_is_not_waited_for_long() -> None:
    joiner = Joiner()
    joiner.take(line(tunnel()), 0)
    assert joiner.overdue(1) == []
    assert joiner.overdue(4) == [(tunnel(), None)]
    assert joiner.overdue(99) == []


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"k":"other"}', b"\xff\xfe", b'{"k":"http","x":"' + b"a" * 200_000 + b'"}'])
def test_what_is_no_line_of_ours_is_counted(raw: bytes) -> None:
    joiner = Joiner()
    assert joiner.take(raw, 0) == []
    assert joiner.unreadable == 1


def test_following_tells_each_record_once_and_survives_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.egress.access_log._ROTATE", 2 * len(line(http(path="/1"))))
    path, told, reopened = tmp_path / "access.jsonl", list[EgressRecord](), list[int]()
    log = AccessLog(path, told.append, lambda: ALLOWLIST, lambda: reopened.append(1))
    path.write_bytes(line(http(path="/of-an-earlier-run")) + b"\n")
    log.start()
    try:
        wait_for(lambda: log.following)
        path.write_bytes(line(http(path="/1")) + b"\n" + line(http(path="/2"))[:40])
        wait_for(lambda: len(told) == 1)
        with path.open("ab") as file:
            file.write(line(http(path="/2"))[40:] + b"\n")
        wait_for(lambda: len(told) == 2 and bool(reopened) and not path.exists())
        path.write_bytes(line(http(path="/3")) + b"\n")
        wait_for(lambda: len(told) == 3)
        with path.open("ab") as file:
            file.write(line(tunnel()) + b"\n")
    finally:
        log.stop()
    assert [r.path for r in told] == ["/1", "/2", "/3", ""]
    assert not log.following
    assert log.unreadable == 0


def wait_for(true: Any) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)
