"""An allowlisted name leads to public addresses, or to the private ones its entry names; TLS goes where the tunnel says. Real Envoy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.domain.network import Allowlist
from tests.fakes.egress_box import Box
from tests.fakes.egress_stage import Stage, entry, stage

pytestmark = pytest.mark.envoy

FORBIDDEN = ("rebound.test", "metadata.test", "loopback.test", "host.test", "mapped.test", "mixed.test")
ALLOWLIST = Allowlist(
    1,
    (
        entry("e1", "good.test"),
        entry("e2", "good.test", 80),
        entry("e3", "corp.test", 443, networks="10.99.0.0/16"),
        entry("e4", "corp.test", 80, networks="10.99.0.0/16"),
        *(entry(f"f{i}", name) for i, name in enumerate(FORBIDDEN)),
        *(entry(f"g{i}", name, 80) for i, name in enumerate(FORBIDDEN)),
    ),
)


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        # host.test leads to an address of "this host": its own are read from /proc/self/net, here one more.
        for module in ("service", "resolver_process"):
            patch.setattr(f"console.egress.{module}.host_addresses", lambda: ("192.0.2.77/32",))
        with stage(ALLOWLIST) as it:
            yield it


@pytest.fixture(scope="module")
def inside(running: Stage) -> Iterator[Box]:
    with running.box("a1") as box:
        yield box


def test_a_public_address_is_reached(running: Stage, inside: Box) -> None:
    assert "hello from upstream" in inside.get("http://good.test/")
    assert "tls hello from upstream" in inside.tls("good.test:443", "good.test")
    assert ("::ffff:11.0.0.1", 443) in running.world.seen


def test_a_private_address_is_reached_when_the_entry_names_its_network(inside: Box) -> None:
    assert "hello from upstream" in inside.get("http://corp.test/")
    assert "tls hello from upstream" in inside.tls("corp.test:443", "corp.test")


@pytest.mark.parametrize("name", FORBIDDEN)
def test_no_forbidden_address_even_sees_a_connection(running: Stage, inside: Box, name: str) -> None:
    before = len(running.world.seen)
    assert not inside.get(f"http://{name}/").startswith("HTTP/1.1 200")
    assert inside.tls(f"{name}:443", name).startswith("closed")
    assert running.world.seen[before:] == []


def test_the_refusal_of_an_address_has_words_and_a_record(running: Stage, inside: Box) -> None:
    answer = inside.get("http://rebound.test/secret")
    assert answer.startswith("HTTP/1.1 403")
    assert "private" in answer
    record = running.record("a1", host="rebound.test", path="/secret")
    assert (record.allowed, record.status) == (False, 403)
    assert "private" in record.rule


@pytest.mark.parametrize("name", ["evil.test", "GOOD.test.evil.test", "data-in-a-name.evil.test"])
def test_another_server_name_is_closed_and_never_looked_up(running: Stage, inside: Box, name: str) -> None:
    seen, asked = len(running.world.seen), len(running.world.asked)
    assert inside.tls("good.test:443", name).startswith("closed")
    assert running.world.seen[seen:] == []
    assert name.lower() not in running.world.asked[asked:]
    record = running.record(
        "a1", method="CONNECT", allowed=False, rule=f"entry e1: the TLS server name '{name.lower()}' is not the host of the tunnel"
    )
    assert record.host == "good.test"


@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH_9\r\n", b"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", b"\x00" * 64])
def test_what_is_not_tls_is_closed(running: Stage, inside: Box, data: bytes) -> None:
    before = len(running.world.seen)
    answer = inside.raw(b"CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n" + data)
    assert "hello" not in answer
    assert running.world.seen[before:] == []


def test_unlisted_names_are_never_asked_for(running: Stage, inside: Box) -> None:
    assert inside.get("http://tunnel-data.evil.test/").startswith("HTTP/1.1 403")
    assert inside.tls("tunnel-data.evil.test:443", "tunnel-data.evil.test").startswith("HTTP/1.1 403")
    assert "tunnel-data.evil.test" not in running.world.asked
