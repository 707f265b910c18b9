"""Which addresses a name may lead to: public ones, and the private ones its entry names. Never this host, loopback or metadata."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# IANA special-purpose address registries (RFC 6890), and the metadata services that lie inside ranges an entry may name.
_UNUSABLE_V4 = ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15")
_UNUSABLE_V4_HIGH = ("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
_UNUSABLE_V6 = ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
_METADATA = ("100.100.100.200/32", "fd00:ec2::254/128")
NEVER = (*_UNUSABLE_V4, *_UNUSABLE_V4_HIGH, *_UNUSABLE_V6, *_METADATA)
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
GLOBAL = ("0.0.0.0/0", "2000::/3")  # ::ffff:0:0/96 (IPv4-mapped), NAT64, link-local and multicast lie outside 2000::/3


def host_addresses(proc_net: Path = Path("/proc/self/net")) -> tuple[str, ...]:
    """This host's own addresses as /32 and /128, which no name may lead to; loopback ones are refused by range already."""
    found = set()
    trie = proc_net / "fib_trie"
    if trie.exists():
        local = re.findall(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL", trie.read_text())
        found |= {f"{a}/32" for a in local if not a.startswith("127.")}
    inet6 = proc_net / "if_inet6"
    if inet6.exists():
        for line in inet6.read_text().splitlines():
            address = ipaddress.IPv6Address(bytes.fromhex(line.split()[0]))
            if not (address.is_loopback or address.is_link_local):
                found.add(f"{address}/128")
    return tuple(sorted(found))


def permission(named: Iterable[str], host: Iterable[str]) -> dict[str, Any]:
    """An RBAC permission: the resolved upstream address is public, or inside a named network, and never one of NEVER or ``host``."""
    never = _any([*NEVER, *host])
    public = {"and_rules": {"rules": [_any(GLOBAL), {"not_rule": _any(PRIVATE)}]}}
    named = sorted(set(named))
    reachable = {"or_rules": {"rules": [public, _any(named)]}} if named else public
    return {"and_rules": {"rules": [{"not_rule": never}, reachable]}}


def _any(networks: Iterable[str]) -> dict[str, Any]:
    return {"or_rules": {"rules": [_upstream_in(n) for n in networks]}}


def _upstream_in(network: str) -> dict[str, Any]:
    parsed = ipaddress.ip_network(network)
    return {
        "matcher": {
            "name": "envoy.rbac.matchers.upstream_ip_port",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.rbac.matchers.upstream_ip_port.v3.UpstreamIpPortMatcher",
                "upstream_ip": {"address_prefix": str(parsed.network_address), "prefix_len": parsed.prefixlen},
            },
        }
    }
