"""Envoy's reading of a URL, without Envoy (that both agree is tests/integration/test_egress_judgement.py)."""

from __future__ import annotations

import pytest

from console.domain.errors import UsageProblem
from console.domain.network import Allowlist, AllowlistEntry
from console.egress.url_test import judge_request, judge_url, normalised

ALLOWLIST = Allowlist(
    1,
    (
        AllowlistEntry("e1", "a.test", 443, reason="r", owner="o"),
        AllowlistEntry("e2", "a.test", 80, ("GET",), ("/v1",), reason="r", owner="o"),
        AllowlistEntry("e3", "a.test", 8080, reason="r", owner="o"),
    ),
)


@pytest.mark.parametrize(
    ("method", "url", "entry_id", "allowed"),
    [
        ("GET", "https://a.test/any/path", "e1", True),
        ("DELETE", "https://A.test", "e1", True),
        ("GET", "https://a.test:443/", "e1", True),
        ("GET", "https://a.test:8080/", "e1", False),
        ("GET", "https://user:secret@a.test/", "e1", True),
        ("GET", "https://a.test@b.test/", None, False),
        ("get", "http://a.test/v1/x", "e2", True),
        ("POST", "http://a.test/v1", "e2", False),
        ("GET", "http://a.test/v1/../x", "e2", False),
        ("GET", "http://a.test:443/", "e1", False),
        ("PUT", "http://a.test:8080", "e3", True),
        ("GET", "http://b.test/", None, False),
    ],
)
def test_urls(method: str, url: str, entry_id: str | None, allowed: bool) -> None:
    said = judge_url(ALLOWLIST, method, url)
    assert (said.allowed, said.entry_id) == (allowed, entry_id), said.reason


@pytest.mark.parametrize("url", ["", "a.test", "ftp://a.test/", "https://", "http://a.test:99999/", "http://[::1", "javascript:alert(1)"])
def test_what_is_no_url_is_said_to_be_none(url: str) -> None:
    with pytest.raises(UsageProblem):
        judge_url(ALLOWLIST, "GET", url)


@pytest.mark.parametrize(
    "authority", ["", "*.test:443", "a test:443", "a.test:", "a.test:-1", "a.test:0443", "a.test:443:443", "[::1]:443", "a.test\n:443"]
)
def test_odd_authorities_are_refused(authority: str) -> None:
    assert not judge_request(ALLOWLIST, "CONNECT", authority, "").allowed


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/a/./b/../c", "/a/c"),
        ("/..", "/"),
        ("/a/..", "/"),
        ("/a//b", "/a/b"),
        ("/a/%2E%2e/b", "/b"),
        ("/%41?x=/../", "/A"),
        ("/a%2fb", None),
        ("/a%5Cb", None),
        ("/a%00", None),
        ("/a%zz", "/a%zz"),
        ("/a\x7f", None),
        ("/a\u00e4", None),
        ("/a{b}|", "/a%7Bb%7D%7C"),
        ("/a/..;x/b", "/b"),
        ("/a/.;x/b", "/a/b"),
        ("/a/%2e%2e;x/b", "/a/..;x/b"),
        ("/a#b", None),
        ("a", None),
        ("*", None),
    ],
)
def test_paths_are_read_as_envoy_reads_them(path: str, wanted: str | None) -> None:
    assert normalised(path) == wanted
