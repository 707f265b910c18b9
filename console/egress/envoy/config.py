"""The allowlist as Envoy's configuration: plain dicts, one listener, gate, cluster pair and route file per sandbox.

All paths are relative to the egress folder, which is Envoy's working directory. ``envoy/README.md`` draws the way of a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from console.domain.network import AMBIGUOUS_PATH, Allowlist, AllowlistEntry
from console.egress.addresses import permission
from console.egress.envoy.fragments import (
    HTTP_LINE,
    IDLE,
    RBAC_FILTER,
    STATE_HOST,
    STATE_ID,
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
from console.egress.envoy.gate import LISTENER, gate

CLUSTER = TYPE + "envoy.config.cluster.v3.Cluster"
ROUTES = TYPE + "envoy.config.route.v3.RouteConfiguration"
ADMIN_SOCKET = "admin/admin.sock"
CONNECT_TIMEOUT = "5s"


def route_config(slot: Slot, allowlist: Allowlist, around: Surroundings) -> Json:
    """The routes of one sandbox: a virtual host per host and port, and a last one that refuses everything else."""
    hosts = [_virtual_host(slot, allowlist, host, port, around) for host, port in _destinations(allowlist)]
    last = {"name": "none", "domains": ["*"], "routes": _refusals("none")}
    return {
        "@type": ROUTES,
        "name": slot.name,
        "virtual_hosts": [*hosts, last],
        # Routes and clusters come from different files and may be read in either order; a route must not be refused for that.
        "validate_clusters": False,
        # With some cluster types this header chooses the destination, and it comes from the agent.
        "request_headers_to_remove": ["x-envoy-original-dst-host"],
    }


def _destinations(allowlist: Allowlist) -> list[tuple[str, int]]:
    """Every host and port named, once, in list order (Envoy refuses a domain that occurs twice)."""
    return list(dict.fromkeys((e.host, e.port) for e in allowlist.entries))


def _virtual_host(slot: Slot, allowlist: Allowlist, host: str, port: int, around: Surroundings) -> Json:
    entries = covering(allowlist, host, port)
    routes = [r for e in entries for r in _routes(slot, e)]
    named = [n for e in entries for n in e.private_networks]
    virtual: Json = {
        "name": f"{host}:{port}",
        # Clients leave out the port of plain HTTP, and Envoy compares the whole Host header.
        "domains": [host, f"{host}:80"] if port == 80 else [f"{host}:{port}"],
        "routes": [*_blocked(slot, host, port), *routes, *_refusals(f"outside:{entries[0].entry_id}", _all_in(routes))],
    }
    if named and port != TLS_PORT:
        virtual["typed_per_filter_config"] = {RBAC_FILTER: _rbac_route(permission(named, around.host_addresses))}
    return virtual


def _all_in(routes: list[Json]) -> list[Json]:
    """The matches that leave nothing of their kind to a route after them."""
    return [r["match"] for r in routes if r["match"] in _EVERYTHING]


def _blocked(slot: Slot, host: str, port: int) -> list[Json]:
    """Packages that the agent's type may not have, at a registry whose paths can be seen."""
    if slot.narrowing is None or port == TLS_PORT:
        return []
    matches = [{"safe_regex": {"regex": path}} for name, path in slot.narrowing.blocked_paths if name == host]
    answer = {"status": 403, "body": {"inline_string": "not in allowlist"}}
    return [
        {"name": "blocked", "match": m, "direct_response": answer, "typed_per_filter_config": {RBAC_FILTER: _rbac_route(None)}}
        for m in matches
    ]


def _routes(slot: Slot, entry: AllowlistEntry) -> list[Json]:
    if entry.port == TLS_PORT:
        tunnel = {"upgrade_type": "CONNECT", "connect_config": {}}
        route = {"cluster": f"gate-{slot.name}", "timeout": "0s", "idle_timeout": IDLE, "upgrade_configs": [tunnel]}
        # Addresses of a tunnel are judged behind the gate, where the name is resolved.
        return [
            {
                "name": entry.entry_id,
                "match": {"connect_matcher": {}},
                "route": route,
                "typed_per_filter_config": {RBAC_FILTER: _rbac_route(None)},
            }
        ]
    matches = [_path_match(p) for p in entry.paths] or [{"prefix": "/"}]
    only: list[Json] = []
    if entry.methods:
        only.append({"name": ":method", "string_match": {"safe_regex": {"regex": "|".join(entry.methods)}}})
    if entry.paths:
        only.append({"name": ":path", "string_match": {"safe_regex": {"regex": AMBIGUOUS_PATH}}, "invert_match": True})
    if only:
        # Method and path in one match: as separate routes, each could let through what the other refuses.
        matches = [m | {"headers": only} for m in matches]
    # "Upgrade: CONNECT" in a plain request is an upgrade too: a server that agreed would get a tunnel that no entry judges.
    plain = {"upgrade_type": "CONNECT", "enabled": False}
    route = {"cluster": f"out-{slot.name}", "timeout": "0s", "idle_timeout": IDLE, "upgrade_configs": [plain]}
    return [{"name": entry.entry_id, "match": m, "route": route} for m in matches]


def _path_match(path: str) -> Json:
    # "the prefix must be a path segment": /v1 covers /v1 and /v1/x, never /v1x; it may not end in a slash (route_components.proto)
    return {"prefix": path} if path.endswith("/") else {"path_separated_prefix": path}


_EVERYTHING: tuple[Json, Json] = ({"connect_matcher": {}}, {"prefix": "/"})
"""A prefix match never sees CONNECT, so there are two."""


def _refusals(name: str, taken: Sequence[Json] = ()) -> list[Json]:
    """Of everything but what is ``taken`` wholly: Envoy reads the routes of 1,000 entries at each edit, so none is there for nothing."""
    answer = {"status": 403, "body": {"inline_string": "not in allowlist"}}
    free = {RBAC_FILTER: _rbac_route(None)}
    return [{"name": name, "match": m, "direct_response": answer, "typed_per_filter_config": free} for m in _EVERYTHING if m not in taken]


def _rbac_route(allowed: Json | None) -> Json:
    typed: Json = {"@type": TYPE + "envoy.extensions.filters.http.rbac.v3.RBACPerRoute"}
    return typed if allowed is None else typed | {"rbac": {"rules": allow(allowed)}}


def listeners(slot: Slot, allowlist: Allowlist, around: Surroundings, *, inline: bool = False) -> list[Json]:
    """The sandbox's front door (HTTP on a unix socket) and its gate (TLS, inside Envoy). ``inline``: with its routes, to validate."""
    return [_front(slot, allowlist, around, inline), gate(slot, allowlist, around)]


def _front(slot: Slot, allowlist: Allowlist, around: Surroundings, inline: bool) -> Json:
    source = {"path_config_source": _file_source(f"rds/{slot.name}", "rds.json"), "resource_api_version": "V3"}
    if inline:
        routes: Json = {"route_config": {k: v for k, v in route_config(slot, allowlist, around).items() if k != "@type"}}
    else:
        routes = {"rds": {"route_config_name": slot.name, "config_source": source}}
    manager = {
        "stat_prefix": slot.name,
        "codec_type": "HTTP1",
        **routes,
        # Before routes are matched: "/a/../b" and "//b" would otherwise match one entry and reach another path.
        "normalize_path": True,
        "merge_slashes": True,
        # Servers disagree on what %2F means, so no entry can judge it.
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        # A sandbox is never "internal": its x-envoy-* headers are dropped, not obeyed.
        "use_remote_address": True,
        "internal_address_config": {"unix_sockets": False},
        # No destination learns an address inside this host.
        "skip_xff_append": True,
        "generate_request_id": False,
        "server_header_transformation": "PASS_THROUGH",
        "request_headers_timeout": "10s",
        "stream_idle_timeout": IDLE,
        "common_http_protocol_options": {"idle_timeout": IDLE},
        # Python's own client before 3.12, and so pip, asks for a tunnel in HTTP/1.0.
        "http_protocol_options": {"accept_http_10": True},
        "http_filters": [
            *_authority_to_filter_state(),
            typed(
                "envoy.filters.http.dynamic_forward_proxy",
                "envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig",
                {"dns_cache_config": dns_cache(slot, around), "save_upstream_address": True},
            ),
            typed(RBAC_FILTER, "envoy.extensions.filters.http.rbac.v3.RBAC", {"rules": allow(permission((), around.host_addresses))}),
            typed("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router", {"suppress_envoy_headers": True}),
        ],
        "local_reply_config": _local_replies(),
        "access_log": [access_log(slot, HTTP_LINE)],
    }
    hcm = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        manager,
    )
    return {
        "@type": LISTENER,
        "name": slot.name,
        # 0660: the relay is in Envoy's group; nobody else passes the folder.
        "address": {"pipe": {"path": f"sock/{slot.name}.sock", "mode": 0o660}},
        # The default of 1 MiB per connection lets one sandbox take the memory of all.
        "per_connection_buffer_limit_bytes": 65536,
        "filter_chains": [{"filters": [hcm]}],
    }


def _authority_to_filter_state() -> list[Json]:
    """The host of the CONNECT line, without :443, and an id, for the gate. A plain request hands nothing over."""
    cut = {"pattern": {"regex": "^(.*):443$"}, "substitution": "\\1"}
    present = {"metadata_namespace": "watchfloor", "key": "host", "regex_value_rewrite": cut}
    return [
        typed(
            "envoy.filters.http.header_to_metadata",
            "envoy.extensions.filters.http.header_to_metadata.v3.Config",
            {"request_rules": [{"header": ":authority", "on_header_present": present}]},
        ),
        _for_connect_alone(
            typed(
                "envoy.filters.http.set_filter_state",
                "envoy.extensions.filters.http.set_filter_state.v3.Config",
                {"on_request_headers": [_state(STATE_HOST, "%DYNAMIC_METADATA(watchfloor:host)%"), _state(STATE_ID, "%UNIQUE_ID%")]},
            )
        ),
    ]


def _for_connect_alone(inner: Json) -> Json:
    method = typed("method", "envoy.type.matcher.v3.HttpRequestHeaderMatchInput", {"header_name": ":method"})
    is_connect = {"single_predicate": {"input": method, "value_match": {"exact": "CONNECT"}}}
    skip = {"action": typed("skip", "envoy.extensions.filters.common.matcher.action.v3.SkipFilter", {})}
    matcher = {"matcher_list": {"matchers": [{"predicate": {"not_matcher": is_connect}, "on_match": skip}]}}
    delegate = {"extension_config": inner, "xds_matcher": matcher}
    return typed("envoy.filters.http.match_delegate", "envoy.extensions.common.matching.v3.ExtensionWithMatcher", delegate)


def _state(key: str, text: str) -> Json:
    return {
        "object_key": key,
        # Hashable, so that it is part of the key of the pool the connection into the gate comes from. Of a shared pool a waiting tunnel
        # gets whichever connection is ready first, with the host of another tunnel.
        "factory_key": "envoy.hashable_string",
        "format_string": {"text_format_source": {"inline_string": text}},
        "shared_with_upstream": "ONCE",
        "skip_if_empty": True,
    }


def clusters(slot: Slot, around: Surroundings) -> list[Json]:
    """Where a sandbox's requests go: out by name, or into its gate. Its own, so that no sandbox shares connections or a name cache."""
    door = {"endpoint": {"address": {"envoy_internal_address": {"server_listener_name": f"gate-{slot.name}"}}}}
    raw = typed("envoy.transport_sockets.raw_buffer", "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer", {})
    return [
        {
            "@type": CLUSTER,
            "name": f"out-{slot.name}",
            "lb_policy": "CLUSTER_PROVIDED",
            "connect_timeout": CONNECT_TIMEOUT,
            "cluster_type": typed(
                "envoy.clusters.dynamic_forward_proxy",
                "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig",
                {"dns_cache_config": dns_cache(slot, around)},
            ),
        },
        {
            "@type": CLUSTER,
            "name": f"gate-{slot.name}",
            "type": "STATIC",
            "connect_timeout": CONNECT_TIMEOUT,
            "load_assignment": {"cluster_name": f"gate-{slot.name}", "endpoints": [{"lb_endpoints": [door]}]},
            "transport_socket": typed(
                "envoy.transport_sockets.internal_upstream",
                "envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport",
                {"transport_socket": raw},
            ),
        },
    ]


def _local_replies() -> Json:
    """What an agent reads when it is refused. The text is its own request back, as JSON, so nothing in it can be forged markup."""
    needed = {"method": "%REQ(:METHOD)%", "host": "%REQ(:AUTHORITY)%", "path": "%REQ(:PATH)%"}

    def reply(details: str, body: Json) -> Json:
        expression = f"response.code == 403 && response.code_details.startsWith('{details}')"
        match = typed("cel", "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter", {"expression": expression})
        return {"filter": {"extension_filter": match}, "body_format_override": {"json_format": body}}

    address = {
        "error": "Destination not in allowlist",
        "why": "the name leads to a private, own or metadata address that its entry does not name",
        "rule_needed": needed | {"private_networks": "the network of that address"},
    }
    upgrade = {"error": "Request not accepted", "why": "plain HTTP is not upgraded; wss:// goes through CONNECT"}
    scheme = {"error": "Request not accepted", "why": "https:// goes through CONNECT"}
    return {
        "mappers": [
            reply("rbac_access_denied", address),
            reply("upgrade_failed", upgrade),
            reply("http1.https_url_on_plaintext_connection", scheme),
            reply("direct_response", {"error": "Destination not in allowlist", "rule_needed": needed}),
        ]
    }


def bootstrap() -> Json:
    """The part that never changes: admin on a unix socket, everything else from watched files."""
    return _base() | {
        "dynamic_resources": {
            "lds_config": {"path_config_source": _file_source("lds", "lds.json"), "resource_api_version": "V3"},
            "cds_config": {"path_config_source": _file_source("cds", "cds.json"), "resource_api_version": "V3"},
        }
    }


def whole(slots: Sequence[Slot], allowlist: Allowlist, around: Surroundings) -> Json:
    """Everything in one static configuration: what ``envoy --mode validate`` reads and what a person is shown."""

    def bare(resources: Iterable[Json]) -> list[Json]:
        return [{k: v for k, v in r.items() if k != "@type"} for r in resources]

    return _base() | {
        "static_resources": {
            "listeners": bare(x for s in slots for x in listeners(s, allowlist, around, inline=True)),
            "clusters": bare(x for s in slots for x in clusters(s, around)),
        }
    }


def discovery(version: str, type_url: str, resources: Sequence[Json]) -> Json:
    """A file of the file-based xDS protocol."""
    return {"version_info": version, "type_url": type_url, "resources": list(resources)}


def _base() -> Json:
    return {
        "node": {"id": "watchfloor", "cluster": "watchfloor"},
        # A TCP port of the admin interface can be reached by every account, and ends Envoy with one request.
        "admin": {"address": {"pipe": {"path": ADMIN_SOCKET, "mode": 0o600}}},
        "bootstrap_extensions": [
            typed("envoy.bootstrap.internal_listener", "envoy.extensions.bootstrap.internal_listener.v3.InternalListener", {})
        ],
    }


def _file_source(folder: str, name: str) -> Json:
    return {"path": f"{folder}/{name}", "watched_directory": {"path": folder}}
