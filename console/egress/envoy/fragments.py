"""Pieces of Envoy configuration that front door and gate share: names, typed extensions, address rules, name cache, log lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from console.domain.network import Allowlist, AllowlistEntry, Narrowing, Sensitivity

Json = dict[str, Any]
TYPE = "type.googleapis.com/"
RBAC_FILTER = "watchfloor.addresses"
TLS_PORT = 443
ACCESS_LOG = "log/access.jsonl"
IDLE = "900s"
# Filter state set on the outer stream and handed to the gate: the host of the CONNECT line and the id that joins both log lines.
STATE_HOST = "envoy.upstream.dynamic_host"
STATE_ID = "watchfloor.id"


@dataclass(frozen=True, slots=True)
class Slot:
    """One sandbox in the configuration."""

    name: str
    """``s1``, ``s2`` ...: names its files, sockets, listeners and clusters; nothing an agent chose."""
    agent_id: str
    narrowing: Narrowing | None = None
    """What its agent's type takes away from the list."""
    level: Sensitivity = Sensitivity.PUBLIC
    """The class of the data in its session: entries that may not receive it are taken away."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the configuration depends on besides the allowlist."""

    host_addresses: tuple[str, ...] = ()
    """This host's own addresses as CIDR; no destination may resolve to one."""
    resolver: tuple[str, int] | None = None
    """Address and port of the name server Envoy asks; None: the system's."""


def covering(allowlist: Allowlist, host: str, port: int) -> list[AllowlistEntry]:
    """The entries that cover a host (or a whole wildcard) on a port, in list order.

    Envoy picks one virtual host, the most specific; the list means any entry that fits. So each carries all that cover it.
    """
    sample = "x" + host[1:] if host.startswith("*.") else host
    return [e for e in allowlist.entries if e.port == port and e.covers_host(sample)]


def allow(allowed: Json) -> Json:
    return {"action": "ALLOW", "policies": {"addresses": {"permissions": [allowed], "principals": [{"any": True}]}}}


def dns_cache(slot: Slot, around: Surroundings) -> Json:
    # A search domain would turn a name on the list into another name that no operator reviewed.
    cares: Json = {"dns_resolver_options": {"no_default_search_domain": True}}
    if around.resolver is not None:
        address, port = around.resolver
        cares["resolvers"] = [{"socket_address": {"address": address, "port_value": port}}]
    return {
        "name": slot.name,
        "dns_lookup_family": "ALL",
        "host_ttl": "60s",
        # Each sandbox has a cache of its own; a wildcard entry would let an agent fill memory with made-up names.
        "max_hosts": 1024,
        "dns_query_timeout": "5s",
        # An edit may change what a name is allowed to lead to, and a name server may come back: soon asked again.
        "dns_min_refresh_rate": "1s",
        "dns_failure_refresh_rate": {"base_interval": "1s", "max_interval": "2s"},
        "typed_dns_resolver_config": typed(
            "envoy.network.dns_resolver.cares", "envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig", cares
        ),
    }


_COMMON_LINE = {
    "t": "%START_TIME(%s.%3f)%",
    "id": f"%FILTER_STATE({STATE_ID}:PLAIN)%",
    "flags": "%RESPONSE_FLAGS%",
    "up": "%BYTES_RECEIVED%",
    "down": "%BYTES_SENT%",
    "to": "%UPSTREAM_REMOTE_ADDRESS%",
    "end": "%CONNECTION_TERMINATION_DETAILS%",
}
HTTP_LINE = _COMMON_LINE | {
    "k": "http",
    "method": "%REQ(:METHOD)%",
    "host": "%REQ(:AUTHORITY)%",
    "path": "%REQ(:PATH)%",
    "code": "%RESPONSE_CODE%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "route": "%ROUTE_NAME%",
}
GATE_LINE = _COMMON_LINE | {"k": "gate", "sni": "%REQUESTED_SERVER_NAME%", "chain": "%FILTER_CHAIN_NAME%"}


def access_log(slot: Slot, line: Json) -> Json:
    return typed(
        "envoy.access_loggers.file",
        "envoy.extensions.access_loggers.file.v3.FileAccessLog",
        {"path": ACCESS_LOG, "log_format": {"json_format": line | {"agent": slot.agent_id}}},
    )


def typed(name: str, kind: str, value: Json) -> Json:
    return {"name": name, "typed_config": {"@type": TYPE + kind} | value}
