"""The gate behind CONNECT: only TLS whose server name is the host of the tunnel, only to addresses its entry may lead to."""

from __future__ import annotations

from console.domain.network import Allowlist
from console.egress.addresses import permission
from console.egress.envoy.fragments import (
    GATE_LINE,
    IDLE,
    RBAC_FILTER,
    STATE_HOST,
    TLS_PORT,
    TYPE,
    Json,
    Slot,
    Surroundings,
    access_log,
    allow,
    covering,
    dns_cache,
    typed,
)

LISTENER = TYPE + "envoy.config.listener.v3.Listener"


def gate(slot: Slot, allowlist: Allowlist, around: Surroundings) -> Json:
    """Behind CONNECT: TLS whose server name equals the authority, to an address the entry may lead to; all else is closed."""
    chain = [
        typed(
            "envoy.filters.network.sni_dynamic_forward_proxy",
            "envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig",
            {"port_value": TLS_PORT, "dns_cache_config": dns_cache(slot, around), "save_upstream_address": True},
        ),
        # Measured: without this check a tunnel to a listed host could carry TLS for any other server behind it.
        _network_rbac("watchfloor.name", "name", _same_name()),
        _network_rbac(RBAC_FILTER, "addresses", _gate_addresses(allowlist, around)),
        typed(
            "envoy.filters.network.tcp_proxy",
            "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
            {
                "stat_prefix": f"tls-{slot.name}",
                "cluster": f"out-{slot.name}",
                "idle_timeout": IDLE,
                # Only once the filters above let the first bytes pass: no refused address ever sees a connection.
                "upstream_connect_mode": "ON_DOWNSTREAM_DATA",
                "max_early_data_bytes": 65536,
            },
        ),
    ]
    inspector = typed("envoy.filters.listener.tls_inspector", "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", {})
    return {
        "@type": LISTENER,
        "name": f"gate-{slot.name}",
        "internal_listener": {},
        "listener_filters": [inspector],
        "listener_filters_timeout": "10s",
        "per_connection_buffer_limit_bytes": 65536,
        # Measured: without this a tunnel to an allowed host carried anything, not TLS alone.
        "filter_chains": [{"name": "tls", "filter_chain_match": {"transport_protocol": "tls"}, "filters": chain}],
        "access_log": [access_log(slot, GATE_LINE)],
    }


def _network_rbac(name: str, stat: str, rules: Json) -> Json:
    return typed(name, "envoy.extensions.filters.network.rbac.v3.RBAC", {"stat_prefix": stat, "rules": rules})


def _same_name() -> Json:
    """connection.requested_server_name == string(filter_state[STATE_HOST]).lowerAscii(), as the parsed expression RBAC takes."""

    def call(function: str, *args: Json, target: Json | None = None) -> Json:
        return {"call_expr": {"function": function, "args": list(args)} | ({"target": target} if target else {})}

    def name(ident: str) -> Json:
        return {"ident_expr": {"name": ident}}

    wanted = call("string", call("_[_]", name("filter_state"), {"const_expr": {"string_value": STATE_HOST}}))
    lower = call("lowerAscii", target=wanted)
    server_name = {"select_expr": {"operand": name("connection"), "field": "requested_server_name"}}
    policy = {
        "permissions": [{"any": True}],
        "principals": [{"any": True}],
        "condition": call("_==_", server_name, lower),
        "cel_config": {"enable_string_conversion": True, "enable_string_functions": True},
    }
    return {"action": "ALLOW", "policies": {"name": policy}}


def _gate_addresses(allowlist: Allowlist, around: Surroundings) -> Json:
    policies = allow(permission((), around.host_addresses))["policies"]
    for host in dict.fromkeys(e.host for e in allowlist.entries if e.port == TLS_PORT):
        named = [n for e in covering(allowlist, host, TLS_PORT) for n in e.private_networks]
        if named:
            match = {"suffix": host[1:]} if host.startswith("*.") else {"exact": host}
            # Name and address in one policy: as two, a private address of one entry would be open to every listed name.
            both = [{"requested_server_name": match}, permission(named, around.host_addresses)]
            policies[host] = {"permissions": [{"and_rules": {"rules": both}}], "principals": [{"any": True}]}
    return {"action": "ALLOW", "policies": policies}
