"""The real Envoy and the pure judgement say the same to every trick a client can play with host, port, method and path."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.domain.network import Allowlist
from console.egress.url_test import judge_request
from tests.fakes.egress_box import Box
from tests.fakes.egress_stage import Stage, entry, stage

pytestmark = pytest.mark.envoy

ALLOWLIST = Allowlist(
    7,
    (
        entry("e1", "good.test"),
        entry("e2", "good.test", 80),
        entry("e3", "*.wild.test", 80, "GET HEAD", "/v1 /x/"),
        entry("e4", "a.wild.test", 80, "POST", "/p"),
        entry("e5", "*.wild.test"),
        entry("e6", "good.test", 8080, "GET"),
        entry("e7", "wild.test", 80, "GET", "/only/this"),
    ),
)

# (method, target, Host header or "": the target's own, whether it is let through)
CASES = [
    ("GET", "http://good.test/", "", True),
    ("GET", "http://GOOD.Test/", "", True),
    ("GET", "http://good.test:80/", "", True),
    ("GET", "/", "good.test", True),
    ("GET", "/", "evil.test", False),
    ("GET", "http://good.test/", "evil.test", True),
    ("GET", "http://evil.test/", "good.test", False),
    ("GET", "http://good.test./", "", False),
    ("GET", "http://good.test.evil.test/", "", False),
    ("GET", "http://evilgood.test/", "", False),
    ("GET", "http://good.test@evil.test/", "", False),
    ("GET", "http://evil.test@good.test/", "", True),
    ("GET", "/", "evil.test@good.test", False),
    ("GET", "/", "good.test@evil.test", False),
    ("CONNECT", "evil.test@good.test:443", "", False),
    ("GET", "http://good.test:81/", "", False),
    ("GET", "http://good.test:443/", "", False),
    ("GET", "http://good.test:080/", "", False),
    ("GET", "http://good.test:8080/", "", True),
    ("POST", "http://good.test:8080/", "", False),
    ("GET", "http://11.0.0.1/", "", False),
    ("GET", "http://184549377/", "", False),
    ("GET", "http://0x0b000001/", "", False),
    ("GET", "http://[::1]/", "", False),
    ("GET", "http://127.0.0.1/", "", False),
    ("GET", "http://xn--gd-fka.test/", "", False),
    ("GET", "http://wild.test/v1", "", False),
    ("GET", "http://wild.test/only/this", "", True),
    ("GET", "http://xwild.test/v1", "", False),
    ("GET", "http://b.wild.test/v1", "", True),
    ("GET", "http://x.a.wild.test/v1", "", True),
    ("GET", "http://B.WILD.test/v1", "", True),
    ("GET", "http://b.wild.test/v1/", "", True),
    ("GET", "http://b.wild.test/v1/more?q=/../..", "", True),
    ("GET", "http://b.wild.test/v1?q=1", "", True),
    ("GET", "http://b.wild.test/v1x", "", False),
    ("GET", "http://b.wild.test/V1", "", False),
    ("GET", "http://b.wild.test/", "", False),
    ("GET", "http://b.wild.test/x", "", False),
    ("GET", "http://b.wild.test/x/", "", True),
    ("GET", "http://b.wild.test/v1/../secret", "", False),
    ("GET", "http://b.wild.test/v1/%2e%2e/secret", "", False),
    ("GET", "http://b.wild.test/v1/.%2E/secret", "", False),
    ("GET", "http://b.wild.test/secret/../v1", "", True),
    ("GET", "http://b.wild.test/secret/%2e%2e/v1", "", True),
    ("GET", "http://b.wild.test/../../v1", "", True),
    ("GET", "http://b.wild.test/v1/..%2fsecret", "", False),
    ("GET", "http://b.wild.test/v1/..%5csecret", "", False),
    ("GET", "http://b.wild.test/v1\\..\\secret", "", False),
    ("GET", "http://b.wild.test//v1", "", True),
    ("GET", "http://b.wild.test/x//../secret", "", True),
    ("GET", "http://b.wild.test/x///y", "", True),
    ("GET", "http://b.wild.test/./v1/.", "", True),
    ("GET", "http://b.wild.test/v1/..", "", False),
    ("GET", "http://b.wild.test/%76%31", "", True),
    ("GET", "http://b.wild.test/v1%00", "", False),
    ("GET", "http://b.wild.test/v1%", "", False),
    ("GET", "http://b.wild.test/v1#x", "", False),
    ("GET", "http://b.wild.test/x/../../secret", "", False),
    ("GET", "http://b.wild.test/v1/..;/secret", "", False),
    ("GET", "http://b.wild.test/x/..;/v1/a", "", True),
    ("GET", "http://b.wild.test/v1/%2e%2e;/secret", "", False),
    ("GET", "http://good.test/v1/%2e%2e;/secret", "", True),
    ("GET", "http://b.wild.test/v1/..%3B/secret", "", False),
    ("GET", "http://b.wild.test/v1/a;b", "", True),
    ("GET", "http://b.wild.test/v1/%252e%252E/secret", "", False),
    ("GET", "http://b.wild.test/v1/%25252fsecret", "", False),
    ("GET", "http://b.wild.test/v1/100%25", "", True),
    ("GET", "http://b.wild.test/v1/%C0%AE%c0%ae/secret", "", False),
    ("GET", "http://b.wild.test/v1/%u002e", "", False),
    ("GET", "http://b.wild.test/v1/a%", "", False),
    ("GET", "http://b.wild.test/v1/a%2", "", False),
    ("GET", "http://b.wild.test/v1/a%2?b", "", False),
    ("GET", "http://b.wild.test/v1/a?b=%2&c=%252e&d=/..;/", "", True),
    ("GET", "http://good.test/a%zz", "", True),
    ("GET", "http://b.wild.test/v1/{a}|b", "", True),
    ("GET", "http://b.wild.test/v1/\x7f", "", False),
    ("GET", "http://b.wild.test/v1/%c3%a4", "", True),
    ("HEAD", "http://b.wild.test/v1", "", True),
    ("POST", "http://b.wild.test/v1", "", False),
    ("get", "http://b.wild.test/v1", "", False),
    ("GETX", "http://b.wild.test/v1", "", False),
    ("POST", "http://a.wild.test/p", "", True),
    ("GET", "http://a.wild.test/p", "", False),
    ("GET", "http://a.wild.test/v1", "", True),
    ("DELETE", "http://a.wild.test/v1", "", False),
    ("OPTIONS", "*", "good.test", False),
    ("CONNECT", "good.test:443", "", True),
    ("CONNECT", "GOOD.test:443", "", True),
    ("CONNECT", "good.test:443", "evil.test:443", True),
    ("CONNECT", "evil.test:443", "good.test:443", False),
    ("CONNECT", "good.test:80", "", False),
    ("CONNECT", "good.test:8080", "", False),
    ("CONNECT", "good.test:22", "", False),
    ("CONNECT", "good.test", "", False),
    ("CONNECT", "good.test.:443", "", False),
    ("CONNECT", "11.0.0.1:443", "", False),
    ("CONNECT", "127.0.0.1:443", "", False),
    ("CONNECT", "good.test@evil.test:443", "", False),
    ("CONNECT", "wild.test:443", "", False),
    ("CONNECT", "b.wild.test:443", "", True),
    ("CONNECT", "b.wild.test:80", "", False),
    ("CONNECT", "xwild.test:443", "", False),
    ("CONNECT", "http://good.test:443/", "good.test:443", False),
]


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with stage(ALLOWLIST) as it:
        yield it


@pytest.fixture(scope="module")
def inside(running: Stage) -> Iterator[Box]:
    with running.box("judged") as box:
        yield box


def arrives_as(method: str, target: str, host: str) -> tuple[str, str]:
    """(authority, path) of a request as RFC 9112 section 3.2.2 reads it: the absolute target wins over the Host header."""
    if method == "CONNECT":
        return target, ""
    if target.startswith("http://"):
        rest = target.removeprefix("http://")
        authority, slash, path = rest.partition("/")
        return authority.rpartition("@")[2], slash + path
    return host, target


@pytest.mark.parametrize("method", sorted({case[0] for case in CASES}))
def test_envoy_and_judge_agree(inside: Box, method: str) -> None:
    for case in CASES:
        if case[0] != method:
            continue
        _, target, host, wanted = case
        authority, path = arrives_as(method, target, host)
        assert judge_request(ALLOWLIST, method, authority, path).allowed is wanted, (case, "the pure judgement")
        answer = inside.raw(f"{method} {target} HTTP/1.1\r\nHost: {host or authority}\r\nConnection: close\r\n\r\n".encode("latin1"))
        status = answer.split(" ")[1] if answer.startswith("HTTP/1.") else answer
        refusals = ("404",) if target == "*" else ("400", "403")  # Envoy routes no "OPTIONS *"
        assert status in ("200", *refusals), (case, answer)  # never a time-out or a 5xx
        assert (status == "200") is wanted, (case, answer)
        if status == "200" and method == "GET":
            assert "hello from upstream" in answer, case


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40
    assert {wanted for *_, wanted in CASES} == {True, False}
