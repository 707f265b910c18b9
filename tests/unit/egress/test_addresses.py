"""Which addresses a name may lead to."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from console.domain.network import AllowlistEntry
from console.egress.addresses import NEVER, host_addresses, permission
from console.egress.resolver import Policy
from console.egress.resolver_process import policy

TRIE = """Main:
  +-- 0.0.0.0/0 3 0 4
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 192.0.2.2
        /32 host LOCAL
     |-- 192.0.2.255
        /32 link BROADCAST
     |-- 192.0.2.0
        /24 link UNICAST
"""
INET6 = """00000000000000000000000000000001 01 80 10 80       lo
fe800000000000000042acfffe110002 02 40 20 80     eth0
20010db8000000000000000000000007 02 40 00 80     eth0
"""


def may_reach(address: str, named: tuple[str, ...], host: tuple[str, ...] = ()) -> bool:
    """As the name server that Envoy asks judges it."""
    entry = AllowlistEntry("e1", "good.test", reason="r", owner="o", private_networks=named)
    judge = Policy(policy((entry,), {}, (), host))
    return judge.may_reach(ipaddress.ip_address(address).packed, judge.named("good.test"))


@pytest.mark.parametrize(
    ("address", "named", "wanted"),
    [
        ("11.0.0.1", (), True),
        ("2606:4700::1111", (), True),
        ("10.1.2.3", (), False),
        ("10.1.2.3", ("10.1.0.0/16",), True),
        ("10.2.2.3", ("10.1.0.0/16",), False),
        ("172.16.0.1", (), False),
        ("192.168.1.1", (), False),
        ("100.64.0.1", (), False),
        ("100.64.0.1", ("100.64.0.0/10",), True),
        ("100.100.100.200", ("100.64.0.0/10",), False),
        ("169.254.169.254", ("169.254.0.0/16",), False),
        ("127.0.0.1", ("127.0.0.0/8",), False),
        ("0.0.0.0", (), False),
        ("255.255.255.255", (), False),
        ("224.0.0.1", (), False),
        ("::1", (), False),
        ("::ffff:10.0.0.1", ("10.0.0.0/8",), False),
        ("::ffff:11.0.0.1", (), False),
        ("64:ff9b::a00:1", (), False),
        ("2002:a00:1::", (), False),
        ("fe80::1", (), False),
        ("ff02::1", (), False),
        ("fd00::1", (), False),
        ("fd00::1", ("fd00::/8",), True),
        ("fd00:ec2::254", ("fd00::/8",), False),
    ],
)
def test_public_addresses_and_named_networks_only(address: str, named: tuple[str, ...], wanted: bool) -> None:
    assert may_reach(address, named) is wanted


def test_this_host_is_never_reached_even_inside_a_named_network() -> None:
    assert may_reach("10.0.0.5", ("10.0.0.0/8",))
    assert not may_reach("10.0.0.5", ("10.0.0.0/8",), ("10.0.0.5/32",))
    assert not may_reach("11.0.0.5", (), ("11.0.0.5/32",))


def test_own_addresses_are_read_from_proc(tmp_path: Path) -> None:
    (tmp_path / "fib_trie").write_text(TRIE)
    (tmp_path / "if_inet6").write_text(INET6)
    assert host_addresses(tmp_path) == ("192.0.2.2/32", "2001:db8::7/128")
    assert host_addresses(tmp_path / "nothing") == ()


def test_the_permission_starts_with_what_is_never_reached() -> None:
    rules = permission(("10.0.0.0/8",), ("192.0.2.2/32",))["and_rules"]["rules"]
    never = [m["matcher"]["typed_config"]["upstream_ip"]["address_prefix"] for m in rules[0]["not_rule"]["or_rules"]["rules"]]
    assert {"127.0.0.0", "169.254.0.0", "192.0.2.2"} <= set(never)
    assert len(never) == len(NEVER) + 1
    assert "or_rules" in rules[1]
    assert "and_rules" in permission((), ())["and_rules"]["rules"][1]
