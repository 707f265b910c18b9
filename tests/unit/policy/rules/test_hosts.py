"""One host for certain, or none."""

import pytest

from console.domain.calls.permission import Verdict
from console.policy.rules.hosts import HostRules, read_host, read_url
from tests.fakes.policy_world import rules


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://a.example/x", "a.example", 443),
        ("http://A.Example.:8080/", "a.example", 8080),
        ("http://127.0.0.1/", "127.0.0.1", 80),
        ("http://[::1]:80/", "::1", 80),
        ("ssh://a.example/x", "a.example", 22),
    ],
)
def test_a_url_names_one_host(url: str, host: str, port: int) -> None:
    found = read_url(url)
    assert found is not None and (found.host, found.port) == (host, port)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.example",
        "file:///etc/passwd",
        "http://a@b.example/",
        "http://a.example\\@b.example/",
        "http://a.example b",
        "http://0x7f.1/",
        "http://127.1/",
        "http://017700000001/",
        "http://2130706433/",
        "http://a.example:99999/",
        "http:///x",
        "gopher://a.example/",
        "http://\u0430.example/",
        "http://a..example/",
        "http://{a,b}.example/",
        "http://[1-3].example/",
        "dict://a.example",
        "http://a.example\n.b.example/",
        "http://[::1/",
    ],
)
def test_what_programs_would_disagree_about_is_no_host(url: str) -> None:
    assert read_url(url) is None


def test_rules() -> None:
    made = HostRules(
        rules(allow=["network(outbound:a.example)"], ask=["network(outbound:*.b.example)"], deny=["network(outbound:c.example:80)"])
    )
    assert made.judge("https://a.example/", True).verdict is Verdict.ALLOW
    assert made.judge("https://x.b.example/", True).verdict is Verdict.ASK
    assert made.judge("http://c.example/", True).verdict is Verdict.DENY
    assert made.judge("c.example", False).verdict is Verdict.DENY, "a port that is not said may be the denied one"
    bound = HostRules(rules(allow=["network(outbound:a.example:443)"]))
    assert bound.judge("https://a.example/", True).verdict is Verdict.ALLOW
    assert bound.judge("a.example", False).verdict is Verdict.ASK, "a port that is not said is not the allowed one"
    assert made.judge("http://2130706433/", True).verdict is Verdict.DENY, "what is not certain may be what is denied"
    assert made.judge("https://d.example/", True).verdict is Verdict.ASK
    mapped = HostRules(rules(allow=["network(outbound:*)"], deny=["network(outbound:169.254.169.254)"]))
    assert mapped.judge("http://[::ffff:169.254.169.254]/", True).verdict is Verdict.DENY
    assert HostRules(rules(allow=["network(outbound:*)"])).judge("http://0x7f.1/", True).verdict is Verdict.ASK


def test_a_host_in_an_argument() -> None:
    found = read_host("[::1]:22")
    assert found is not None and (found.host, found.port) == ("::1", 22)
    assert read_host("a b") is None and read_host("a/b") is None
