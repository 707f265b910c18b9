"""What the name server of Envoy answers."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.network import AllowlistEntry
from console.egress.resolver import AAAA, NOWHERE, A, Malformed, Policy, answer_for, ask, permitted, question, records, reply
from console.egress.resolver_process import policy

ENTRIES = (
    AllowlistEntry("e1", "good.test", reason="r", owner="o"),
    AllowlistEntry("e2", "corp.test", reason="r", owner="o", private_networks=("10.0.0.0/8",)),
    AllowlistEntry("e3", "*.wild.test", reason="r", owner="o"),
)


def make(servers: tuple[tuple[str, int], ...] = (), hosts: dict[str, list[str]] | None = None) -> Policy:
    return Policy(policy(ENTRIES, hosts or {}, servers, ("11.0.0.99/32",)))


def query(name: str, kind: int = A) -> bytes:
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
    return struct.pack("!HHHHHH", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def packed(*addresses: str) -> list[tuple[int, bytes]]:
    return [(60, ipaddress.ip_address(a).packed) for a in addresses]


@pytest.mark.parametrize(
    ("name", "found", "wanted"),
    [
        ("good.test", ["11.0.0.1"], ["11.0.0.1"]),
        ("good.test", ["11.0.0.1", "10.0.0.1", "11.0.0.2"], ["11.0.0.1", "11.0.0.2"]),
        ("good.test", ["10.0.0.1"], ["240.0.0.1"]),
        ("good.test", ["169.254.169.254"], ["240.0.0.1"]),
        ("good.test", ["11.0.0.99"], ["240.0.0.1"]),
        ("good.test", [], []),
        ("corp.test", ["10.0.0.1", "10.0.0.2"], ["10.0.0.1"]),
        ("corp.test", ["10.0.0.1", "11.0.0.1"], ["11.0.0.1"]),
        ("corp.test", ["127.0.0.1"], ["240.0.0.1"]),
    ],
)
def test_envoy_learns_no_refused_address_and_never_a_mixture(name: str, found: list[str], wanted: list[str]) -> None:
    one = make()
    assert [data for _, data in permitted(one, one.named(name), A, packed(*found))] == [data for _, data in packed(*wanted)]


@given(st.lists(st.ip_addresses(v=4), max_size=6))
def test_whatever_the_world_says_only_permitted_addresses_come_through(found: list[ipaddress.IPv4Address]) -> None:
    one = make()
    for name, named in (("good.test", ()), ("corp.test", (ipaddress.ip_network("10.0.0.0/8"),))):
        for _, data in permitted(one, one.named(name), A, [(5, a.packed) for a in found]):
            address = ipaddress.ip_address(data)
            assert data == NOWHERE[A] or (address.is_global and str(address) != "11.0.0.99") or any(address in n for n in named)


def test_names_are_matched_like_entries() -> None:
    one = make()
    assert one.named("good.test") == []
    assert one.named("corp.test") == [ipaddress.ip_network("10.0.0.0/8")]
    assert one.named("a.b.wild.test") == []
    for name in ("wild.test", "xwild.test", ".wild.test", "evil.test", "good.test.evil.test", ""):
        assert one.named(name) is None, name


def test_an_unlisted_name_is_refused_without_asking() -> None:
    said = answer_for(make((("192.0.2.1", 53),)), query("evil.test"))
    assert said[3] & 15 == 5
    assert records(said, A) == []


def test_other_types_have_no_answer() -> None:
    said = answer_for(make(), query("good.test", 16))
    assert (said[3] & 15, struct.unpack_from("!H", said, 6)[0]) == (0, 0)


def test_hosts_need_nobody() -> None:
    one = make(hosts={"corp.test": ["10.0.0.7", "fd00::1"], "good.test": ["127.0.0.1"]})
    assert records(answer_for(one, query("corp.test")), A) == [(5, bytes([10, 0, 0, 7]))]
    assert records(answer_for(one, query("CORP.test", AAAA)), AAAA) == [(1, NOWHERE[AAAA])]
    assert records(answer_for(one, query("good.test")), A) == [(1, NOWHERE[A])]


def test_nobody_to_ask_is_a_failure_not_an_empty_answer() -> None:
    assert answer_for(make(), query("good.test"))[3] & 15 == 2


@contextmanager
def upstream(answer: Callable[[bytes], bytes]) -> Iterator[tuple[str, int]]:
    """A name server that answers one question after the other with what the test says."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                data, peer = sock.recvfrom(2048)
                if data == b"end":
                    return
                sock.sendto(answer(data), peer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield sock.getsockname()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(b"end", sock.getsockname())
        thread.join()


def made(data: bytes, *addresses: str) -> bytes:
    _, kind, end = question(data)
    return reply(data, end, kind, packed(*addresses))


def test_answers_are_taken_from_a_server_and_sifted() -> None:
    with upstream(lambda data: made(data, "10.0.0.1", "11.0.0.1")) as server:
        assert records(answer_for(make((server,)), query("good.test")), A) == [(60, bytes([11, 0, 0, 1]))]


def test_the_question_that_goes_out_has_an_id_of_its_own_and_nothing_else() -> None:
    seen: list[bytes] = []

    def remember(data: bytes) -> bytes:
        seen.append(data)
        return made(data, "11.0.0.1")

    extra = query("good.test") + b"\0\0\x29\x10\0\0\0\0\0\0\x08exfil!!!"
    with upstream(remember) as server:
        answer_for(make((server,)), extra[:4] + struct.pack("!HHHH", 1, 0, 0, 1) + extra[12:])
    assert b"exfil" not in seen[0]
    assert question(seen[0])[2] == len(seen[0])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: made(query("evil.test"), "11.0.0.1")[:0] + d[:2] + made(query("evil.test"), "11.0.0.1")[2:],
        lambda d: made(d, "11.0.0.1")[:20],
        lambda d: d[:2] + b"\x81\x80\x00\x01\xff\xff\x00\x00\x00\x00" + d[12:],
        lambda d: d[:2] + b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + d[12:] + b"\xc0",
        lambda d: d[:2] + b"\x81\x82\x00\x01\x00\x00\x00\x00\x00\x00" + d[12:],
    ],
)
def test_a_server_that_answers_nonsense_is_a_failure(spoil: Callable[[bytes], bytes]) -> None:
    with upstream(spoil) as server:
        assert answer_for(make((server,)), query("good.test"))[3] & 15 == 2


def test_a_name_that_does_not_exist_is_said_so() -> None:
    with upstream(lambda d: d[:2] + b"\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00" + d[12:]) as server:
        assert answer_for(make((server,)), query("good.test"))[3] & 15 == 3


def test_the_next_server_is_asked_when_one_fails() -> None:
    with upstream(lambda d: d[:2] + b"short-and-wrong") as bad, upstream(lambda d: made(d, "11.0.0.1")) as good:
        assert ask([bad, good], query("good.test"), question(query("good.test"))[2])


@given(st.binary(max_size=80))
def test_no_message_breaks_the_reader(data: bytes) -> None:
    for read in (lambda: question(data), lambda: records(data, A), lambda: answer_for(make(), data)):
        try:
            read()
        except (Malformed, IndexError, struct.error):
            pass
