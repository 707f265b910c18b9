"""Every client we could think of against the real Envoy as we configure it: what it reads, and what its server gets to see.

One table, one Envoy. A row says what is sent into the sandbox's port, what comes back and, when it is let through, the head the server
reads. Of what is refused no server sees a byte: that is looked at after each group of rows, behind a request that is let through.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from console.domain.network import Allowlist
from tests.fakes.egress_box import Box
from tests.fakes.egress_stage import Stage, entry, stage
from tests.fakes.instance import until

pytestmark = pytest.mark.envoy

ELSEWHERE = (
    "rebound.test", "metadata.test", "loopback.test", "mapped.test", "linklocal6.test", "unique6.test", "metadata6.test", "shared.test",
    "zero.test", "nat64.test", "sixtofour.test", "multicast.test",
)  # fmt: skip
"""Names of the list that lead where no name may."""
ALLOWLIST = Allowlist(
    1,
    (
        entry("e1", "good.test"),
        entry("e2", "good.test", 80),
        entry("e3", "*.wild.test", 80, "GET HEAD", "/v1 /x/"),
        entry("e4", "*.wild.test"),
        entry("e5", "good.test", 8080, "GET"),
        entry("e6", "other.test"),
        entry("e7", "corp.test", 80, networks="10.99.0.0/16"),
        *(entry(f"n{i}", name, port) for i, name in enumerate(ELSEWHERE) for port in (80, 443)),
    ),
)


@dataclass(frozen=True)
class Reaches:
    """Let through, and so the server reads it."""

    line: str
    host: str = "good.test"


@dataclass(frozen=True)
class Denied:
    """403 in our words, with the rule that would be needed."""

    host: str
    path: str = "/"
    method: str = "GET"


@dataclass(frozen=True)
class Refused:
    """Not a request that is read at all, or closed (status 0)."""

    status: int
    words: str = ""


Outcome = Reaches | Denied | Refused
PRIVATE = Refused(403, "the name leads to a private, own or metadata address")
CLOSED = Refused(0)


def get(target: str, *headers: str, method: str = "GET", version: str = "HTTP/1.1", body: str = "") -> bytes:
    """A request in latin-1; the Host is good.test unless headers say otherwise."""
    lines = [f"{method} {target} {version}", *(headers or ("Host: good.test",)), "", body]
    return "\r\n".join(lines).encode("latin1")


def post(*headers: str, body: str = "") -> bytes:
    return get("http://good.test/", "Host: good.test", *headers, method="POST", body=body)


def wild(path: str) -> bytes:
    return get(f"http://b.wild.test{path}", "Host: b.wild.test")


OK = Reaches("GET / HTTP/1.1")
ROOT = "http://good.test/"
CLIENTS: dict[str, dict[str, tuple[bytes, Outcome]]] = {
    "who is asked for": {  # RFC 9112 section 3.2: the absolute form wins over Host
        "absolute form": (get(ROOT), OK),
        "absolute form, another Host": (get(ROOT, "Host: evil.test"), OK),
        "absolute form, a listed Host": (get("http://evil.test/"), Denied("evil.test")),
        "absolute form, no Host": (get(ROOT, "X: y"), OK),
        "origin form": (get("/"), OK),
        "origin form, no Host": (get("/", "X: y"), Refused(400)),
        "two Hosts": (get("/", "Host: good.test", "Host: evil.test"), Denied("good.test,evil.test")),
        "empty Host": (get("/", "Host:"), Denied("")),
        "Host in tabs": (get("/", "Host:\tgood.test\t"), OK),
        "list of Hosts": (get("/", "Host: good.test, evil.test"), Refused(400)),
        "NUL in Host": (get("/", "Host: good.test\x00.evil.test"), Refused(400)),
        "fragment in Host": (get("/", "Host: good.test#.evil.test"), Refused(400)),
        "path in Host": (get("/", "Host: good.test/.evil.test"), Refused(400)),
        ":authority as a header": (get("/", ":authority: good.test"), Refused(400)),
        "upper case": (get("http://GOOD.TEST/", "X: y"), Reaches("GET / HTTP/1.1", "GOOD.TEST")),
        "trailing dot": (get("http://good.test./"), Denied("good.test.")),
        "suffix": (get("http://good.test.evil.test/"), Denied("good.test.evil.test")),
        "prefix": (get("http://evilgood.test/"), Denied("evilgood.test")),
        "userinfo, forbidden": (get("http://good.test@evil.test/"), Denied("evil.test")),
        "userinfo, listed": (get("http://evil.test@good.test/"), OK),
        "userinfo in Host": (get("/", "Host: good.test@evil.test"), Denied("good.test@evil.test")),
        "wildcard as a name": (get("http://*.wild.test/v1"), Refused(400)),
        "apex of a wildcard": (get("http://wild.test/v1"), Denied("wild.test", "/v1")),
        "below a wildcard": (get("http://x.a.wild.test/v1"), Reaches("GET /v1 HTTP/1.1", "x.a.wild.test")),
        "punycode": (get("http://xn--gd-fka.test/"), Denied("xn--gd-fka.test")),
        "IDN as UTF-8": (get("http://g\xc3\xb6od.test/"), Refused(400)),
        "ideographic full stop": (get("http://good\xe3\x80\x82test/"), Refused(400)),
        "escaped dot in the name": (get("http://good%2etest/"), Refused(400)),
        "//name as a target": (get("//evil.test/"), Reaches("GET /evil.test/ HTTP/1.1")),
    },
    "schemes and ports": {
        "HTTP:// in capitals": (get("HTTP://good.test/"), OK),
        "https:// without a tunnel": (get("https://good.test/"), Refused(403, "https:// goes through CONNECT")),
        "https:// to port 80": (get("https://other.test:80/"), Refused(403, "https:// goes through CONNECT")),
        "ftp://": (get("ftp://good.test/"), Refused(400)),
        "ws://": (get("ws://good.test/"), Refused(400)),
        "file://": (get("file://good.test/etc/passwd"), Refused(400)),
        "port 80": (get("http://good.test:80/"), Reaches("GET / HTTP/1.1", "good.test:80")),
        "listed port": (get("http://good.test:8080/"), Reaches("GET / HTTP/1.1", "good.test:8080")),
        "listed port, another method": (get("http://good.test:8080/", method="PUT"), Denied("good.test:8080", method="PUT")),
        "other port": (get("http://good.test:81/"), Denied("good.test:81")),
        "port 443 in clear": (get("http://good.test:443/"), Denied("good.test:443")),
        "port 080": (get("http://good.test:080/"), Denied("good.test:080")),
        "port 0": (get("http://good.test:0/"), Denied("good.test:0")),
        "port 65616": (get("http://good.test:65616/"), Refused(400)),
        "port +80": (get("http://good.test:+80/"), Refused(400)),
        "no port behind the colon": (get("/", "Host: good.test:"), Denied("good.test:")),
    },
    "addresses as names": {
        "IPv4": (get("http://11.0.0.1/"), Denied("11.0.0.1")),
        "IPv4, decimal": (get("http://184549377/"), Denied("184549377")),
        "IPv4, hexadecimal": (get("http://0x0b000001/"), Denied("0x0b000001")),
        "IPv4, octal": (get("http://0177.0.0.1/"), Denied("0177.0.0.1")),
        "IPv4, short": (get("http://127.1/"), Denied("127.1")),
        "IPv6": (get("http://[::1]/"), Denied("[::1]")),
        "IPv6, mapped": (get("http://[::ffff:11.0.0.1]/"), Denied("[::ffff:11.0.0.1]")),
        "IPv6, zone": (get("http://[fe80::1%25eth0]/"), Refused(400)),
        "metadata address": (get("http://169.254.169.254/latest/"), Denied("169.254.169.254", "/latest/")),
    },
    "where a listed name leads": {
        "named private network": (get("http://corp.test/"), Reaches("GET / HTTP/1.1", "corp.test")),
        **{f"leads elsewhere: {name}": (get(f"http://{name}/"), PRIVATE) for name in ELSEWHERE},
    },
    "paths of an entry that names /v1 and /x/": {
        "path": (wild("/v1/a?b=/../c"), Reaches("GET /v1/a?b=/../c HTTP/1.1", "b.wild.test")),
        "path, longer word": (wild("/v1x"), Denied("b.wild.test", "/v1x")),
        "path, upper case": (wild("/V1"), Denied("b.wild.test", "/V1")),
        "path, ..": (wild("/v1/../secret"), Denied("b.wild.test", "/secret")),
        "path, %2e%2e": (wild("/v1/%2e%2e/secret"), Denied("b.wild.test", "/secret")),
        "path, .%2E": (wild("/v1/.%2E/secret"), Denied("b.wild.test", "/secret")),
        "path, back into it": (wild("/secret/../v1"), Reaches("GET /v1 HTTP/1.1", "b.wild.test")),
        "path, above the root": (wild("/../../v1"), Reaches("GET /v1 HTTP/1.1", "b.wild.test")),
        "path, //": (wild("//v1///a"), Reaches("GET /v1/a HTTP/1.1", "b.wild.test")),
        "path, // and ..": (wild("/x//../../secret"), Denied("b.wild.test", "/secret")),
        "path, backslashes": (wild("/v1\\..\\secret"), Denied("b.wild.test", "/secret")),
        "path, escaped slash": (wild("/v1/..%2fsecret"), Refused(400)),
        "path, escaped backslash": (wild("/v1/..%5Csecret"), Refused(400)),
        "path, ..;": (wild("/v1/..;/secret"), Denied("b.wild.test", "/secret")),
        "path, %2e%2e;": (wild("/v1/%2e%2e;/secret"), Denied("b.wild.test", "/v1/..;/secret")),
        "path, %2e%2e;a=b": (wild("/v1/%2e%2e;a=b/secret"), Denied("b.wild.test", "/v1/..;a=b/secret")),
        "path, ..%3b": (wild("/v1/..%3b/secret"), Denied("b.wild.test", "/v1/..%3b/secret")),
        "path, parameter": (wild("/v1/a;b=c/d"), Reaches("GET /v1/a;b=c/d HTTP/1.1", "b.wild.test")),
        "path, escaped twice": (wild("/v1/%252e%252e/secret"), Denied("b.wild.test", "/v1/%252e%252e/secret")),
        "path, overlong UTF-8": (wild("/v1/%c0%ae%c0%ae/secret"), Denied("b.wild.test", "/v1/%c0%ae%c0%ae/secret")),
        "path, %u": (wild("/v1/%u002e%u002e/secret"), Denied("b.wild.test", "/v1/%u002e%u002e/secret")),
        "path, NUL": (wild("/v1/%00"), Refused(400)),
        "path, control character": (wild("/v1/\x01"), Refused(400)),
        "path, UTF-8": (wild("/v1/\xc3\xb6"), Refused(400)),
        "path, escaped letters": (wild("/%76%31"), Reaches("GET /v1 HTTP/1.1", "b.wild.test")),
        "path, fragment": (wild("/v1#/../secret"), Refused(400)),
        "path, a blank": (wild("/v1 /secret"), Refused(400)),
    },
    "methods": {
        "method of no entry": (get("http://b.wild.test/v1", method="POST"), Denied("b.wild.test", "/v1", "POST")),
        "method in small letters": (get("http://b.wild.test/v1", method="get"), Refused(400)),
        "method with a listed beginning": (get("http://b.wild.test/v1", method="GETX"), Refused(400)),
        "method overridden": (
            get("http://b.wild.test/v1", "X-HTTP-Method-Override: DELETE", method="POST"), Denied("b.wild.test", "/v1", "POST"),
        ),
    },
    "where a request ends": {
        "Content-Length and chunked": (post("Content-Length: 4", "Transfer-Encoding: chunked", body="0\r\n\r\nGET /x"), Refused(400)),
        "two Content-Lengths": (post("Content-Length: 0", "Content-Length: 5", body="abcde"), Refused(400)),
        "list of Content-Lengths": (post("Content-Length: 5, 5", body="abcde"), Refused(400)),
        "Content-Length +5": (post("Content-Length: +5", body="abcde"), Refused(400)),
        "Content-Length -1": (post("Content-Length: -1", body="abcde"), Refused(400)),
        "Content-Length 0x5": (post("Content-Length: 0x5", body="abcde"), Refused(400)),
        "chunked, then identity": (post("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body="0\r\n\r\n"), Refused(501)),
        "xchunked": (post("Transfer-Encoding: xchunked", body="0\r\n\r\n"), Refused(501)),
        "blank before the colon": (post("Transfer-Encoding : chunked", body="0\r\n\r\n"), Refused(400)),
        "HTTP/1.0 and chunked": (
            get(ROOT, "Transfer-Encoding: chunked", method="POST", version="HTTP/1.0", body="0\r\n\r\n"), Reaches("POST / HTTP/1.1"),
        ),
        "Host in a trailer": (
            post("Transfer-Encoding: chunked", "Trailer: Host", body="1\r\na\r\n0\r\nHost: evil.test\r\n\r\n"), Reaches("POST / HTTP/1.1"),
        ),
        "folded header": (get(ROOT, "Host: good.test", "X-A: b", " Host: evil.test"), OK),
        "bare line feeds": (b"GET http://good.test/ HTTP/1.1\nHost: good.test\n\n", OK),
        "bare carriage return": (get(ROOT, "Host: good.test", "X: a\rHost: evil.test"), OK),
        "NUL in a header": (get(ROOT, "Host: good.test", "X: a\x00b"), Refused(400)),
        "blank in a header's name": (get(ROOT, "Host: good.test", "X y: a"), Refused(400)),
        "blank before the first header": (get(ROOT, " X: a", "Host: good.test"), Refused(400)),
        "Connection: Host": (get(ROOT, "Host: good.test", "Connection: Host"), OK),
    },
    "other protocols": {
        "HTTP/1.0": (get(ROOT, version="HTTP/1.0"), OK),
        "HTTP/1.0, no Host": (b"GET http://good.test/ HTTP/1.0\r\n\r\n", OK),
        "HTTP/1.0, origin form, no Host": (b"GET / HTTP/1.0\r\n\r\n", Refused(400)),
        "HTTP/1.0 to another": (get("http://evil.test/", version="HTTP/1.0"), Denied("evil.test")),
        "HTTP/1.0, CONNECT to another": (b"CONNECT evil.test:443 HTTP/1.0\r\n\r\n", Denied("evil.test:443", "", "CONNECT")),
        "HTTP/0.9": (b"GET http://good.test/\r\n\r\n", OK),
        "HTTP/0.9 to another": (b"GET http://evil.test/\r\n\r\n", Denied("evil.test")),
        "HTTP/2.0 in the first line": (get(ROOT, version="HTTP/2.0"), OK),  # judged and answered as HTTP/1.0
        "HTTP/2 with prior knowledge": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", Refused(400)),
        "h2c upgrade": (
            get(ROOT, "Host: good.test", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
            OK,
        ),
        "WebSocket": (
            get(ROOT, "Host: good.test", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"), Refused(403, "wss://"),
        ),
        "WebSocket to another": (get("http://evil.test/", "Host: good.test", "Connection: Upgrade", "Upgrade: websocket"), Refused(403)),
        "Upgrade: CONNECT": (get(ROOT, "Host: good.test", "Connection: Upgrade", "Upgrade: CONNECT"), Refused(403, "wss://")),
        "Upgrade: connect-udp": (get(ROOT, "Host: good.test", "Connection: Upgrade", "Upgrade: connect-udp"), Refused(404)),
        "PROXY protocol": (b"PROXY TCP4 11.0.0.1 11.0.0.1 1 80\r\n" + get(ROOT), Refused(400)),
        "TLS without CONNECT": (bytes.fromhex("16030100c8010000c40303") + b"\0" * 190, Refused(400)),
    },
    "too much": {
        "header of 61 KiB": (get(ROOT, "Host: good.test", "X: " + "a" * 61 * 1024), Refused(431)),
        "101 headers": (get(ROOT, "Host: good.test", *(f"X-{i}: 1" for i in range(101))), Refused(431)),
        "path of 61 KiB": (get(ROOT + "a" * 61 * 1024), Refused(431)),
    },
    "headers that would steer Envoy or a server behind it": {
        "x-envoy and forwarded headers": (
            get(ROOT, "Host: good.test", "x-envoy-original-dst-host: 127.0.0.1:1", "x-envoy-max-retries: 9", "X-Forwarded-Proto: https"),
            OK,
        ),
    },
    "tunnels": {
        "CONNECT to port 80": (get("good.test:80", method="CONNECT"), Denied("good.test:80", "", "CONNECT")),
        "CONNECT to port 22": (get("good.test:22", method="CONNECT"), Denied("good.test:22", "", "CONNECT")),
        "CONNECT without port": (get("good.test", method="CONNECT"), Refused(400)),
        "CONNECT to another": (get("evil.test:443", method="CONNECT"), Denied("evil.test:443", "", "CONNECT")),
        "CONNECT to an address": (get("11.0.0.1:443", method="CONNECT"), Denied("11.0.0.1:443", "", "CONNECT")),
        "CONNECT, trailing dot": (get("good.test.:443", method="CONNECT"), Denied("good.test.:443", "", "CONNECT")),
        "CONNECT, userinfo": (get("good.test@evil.test:443", method="CONNECT"), Refused(400)),
        "CONNECT, a URL": (get("http://good.test:443/", method="CONNECT"), Refused(400)),
        "CONNECT, a body": (get("good.test:443", "Host: good.test", "Content-Length: 5", method="CONNECT", body="GET /"), Refused(400)),
        "CONNECT, chunked": (get("good.test:443", "Host: good.test", "Transfer-Encoding: chunked", method="CONNECT"), Refused(501)),
        "connect in small letters": (get("good.test:443", method="connect"), Refused(400)),
        "CONNECT, the admin's socket": (get("admin/admin.sock:443", method="CONNECT"), Refused(400)),
    },
}  # fmt: skip

# (authority of the CONNECT line, TLS server name, "reached", "closed" within the tunnel or "denied" before it)
TUNNELS = [
    ("good.test:443", "good.test", "reached"),
    ("GOOD.test:443", "good.test", "reached"),
    ("good.test:443", "GOOD.TEST", "reached"),
    ("b.wild.test:443", "b.wild.test", "reached"),
    ("good.test:443", "evil.test", "closed"),
    ("good.test:443", "other.test", "closed"),  # listed, but not asked for
    ("b.wild.test:443", "x.a.wild.test", "closed"),
    ("good.test:443", "", "closed"),
    ("good.test:443", "good.test.evil.test", "closed"),
    ("good.test:443", "xgood.test", "closed"),
    ("rebound.test:443", "rebound.test", "closed"),
    ("linklocal6.test:443", "linklocal6.test", "closed"),
    ("evil.test:443", "good.test", "denied"),
    ("wild.test:443", "wild.test", "denied"),
]


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with stage(ALLOWLIST) as it:
        yield it


@pytest.fixture(scope="module")
def inside(running: Stage) -> Iterator[Box]:
    with running.box("client") as box:
        yield box


def seen_by_servers(running: Stage, box: Box, since: int, mark: str) -> list[str]:
    """What servers were sent since then; complete, because what was asked for last is among it."""
    assert "hello" in box.get(f"http://good.test/fence-{mark}")
    until(lambda: any(f"/fence-{mark}" in r for r in running.world.requests[since:]), 90, "a later request was seen")
    return [r for r in running.world.requests[since:] if f"/fence-{mark}" not in r]


def wrong(answer: str, outcome: Outcome) -> str:
    """What is wrong with an answer, or empty."""
    head, _, body = answer.partition("\r\n\r\n")
    status = int(head.split(" ")[1]) if head.startswith(("HTTP/1.1 ", "HTTP/1.0 ")) else 0
    match outcome:
        case Reaches():
            return "" if status == 200 else answer
        case Denied(host, path, method):
            needed = {"host": host, "method": method, "path": path or None}
            is_right = status == 403 and json.loads(body) == {"error": "Destination not in allowlist", "rule_needed": needed}
            return "" if is_right else answer
        case Refused(wanted, words):
            return "" if status == wanted and words in body else answer


@pytest.mark.parametrize("group", CLIENTS)
def test_what_a_client_gets_and_what_a_server_sees(running: Stage, inside: Box, group: str) -> None:
    clients, since = CLIENTS[group], len(running.world.requests)
    found = {name: wrong(inside.raw(data), outcome) for name, (data, outcome) in clients.items()}
    assert {name: words for name, words in found.items() if words} == {}
    seen = seen_by_servers(running, inside, since, str(list(CLIENTS).index(group)))
    wanted = [f"{o.line}\r\nhost: {o.host}" for _, o in clients.values() if isinstance(o, Reaches)]
    assert ["\r\n".join(request.split("\r\n")[:2]) for request in seen] == wanted
    for request in seen:
        lower = request.lower()
        assert lower.count("\nhost:") == 1 and "\rhost:" not in lower, request
        assert not any(word in lower for word in ("x-envoy", "x-forwarded-proto: https", "\nupgrade:")), request


FIRST = [
    (get("http://good.test/one"), ["200", "403"]),
    (post("Content-Length: 0"), ["200", "403"]),
    (post("Content-Length: 6", body="GET /x"), ["200", "403"]),
    (post("Transfer-Encoding: chunked", body="0\r\n\r\n"), ["200", "403"]),
    (get("http://good.test:81/"), ["403", "403"]),
]
SECOND = [get("http://evil.test/two"), get("evil.test:443", method="CONNECT")]


def test_the_second_request_of_a_connection_is_judged_by_itself(running: Stage, inside: Box) -> None:
    since = len(running.world.requests)
    for (first, answers), second in itertools.product(FIRST, SECOND):
        got = inside.raw(first + second, answers=2)
        assert [part[:3] for part in got.split("HTTP/1.1 ")[1:]] == answers, (first, second, got)
    assert not any("two" in r or "evil" in r for r in seen_by_servers(running, inside, since, "second"))


@pytest.mark.parametrize("old", [False, True], ids=["HTTP/1.1", "HTTP/1.0"])
def test_a_tunnel_is_tls_for_the_host_that_was_asked_for(inside: Box, old: bool) -> None:
    asked = [(authority, name) for authority, name, _ in TUNNELS]
    got = inside.tunnels(asked, old=old)  # at once: each refused one takes a second to close
    for (authority, name, outcome), answer in zip(TUNNELS, got, strict=True):
        match outcome:
            case "reached":
                is_right = "tls hello from upstream" in answer
            case "denied":
                is_right = answer.startswith(("HTTP/1.1 403", "HTTP/1.0 403")) and "Destination not in allowlist" in answer
            case _:
                is_right = answer.startswith("closed")
        assert is_right, (authority, name, answer)


def test_tunnels_to_different_hosts_at_once_never_get_each_others_connection(running: Stage) -> None:
    with running.box("parallel") as box:
        hosts = ["good.test", "b.wild.test", "other.test", "a.wild.test"] * 5
        assert [("tls hello" in got) for got in box.tunnels([(f"{h}:443", h) for h in hosts])] == [True] * 20
    until(lambda: sum(r.agent_id == "parallel" for r in running.records) == 20, 90, "all are recorded")
    mine = [r for r in running.records if r.agent_id == "parallel"]
    assert {(r.host, r.rule, r.status) for r in mine} == {
        ("good.test", "entry e1", 200), ("b.wild.test", "entry e4", 200), ("a.wild.test", "entry e4", 200), ("other.test", "entry e6", 200)
    }  # fmt: skip


def test_the_table_is_long_enough() -> None:
    assert sum(map(len, CLIENTS.values())) + len(TUNNELS) >= 140
