"""The allowlist as Envoy's routes, listeners and clusters."""

from __future__ import annotations

import json

import pytest

from console.domain.network import AMBIGUOUS_PATH, Allowlist, AllowlistEntry
from console.egress.envoy.config import bootstrap, clusters, discovery, listeners, route_config, whole
from console.egress.envoy.fragments import RBAC_FILTER, STATE_HOST, STATE_ID, Json, Slot, Surroundings

SLOT = Slot("s1", "agent-1")
AROUND = Surroundings(("192.0.2.2/32",), ("127.0.0.1", 5300))


def entry(entry_id: str, host: str, port: int = 443, methods: str = "", paths: str = "", networks: str = "") -> AllowlistEntry:
    return AllowlistEntry(
        entry_id, host, port, tuple(methods.split()), tuple(paths.split()), "r", "o", private_networks=tuple(networks.split())
    )


def routes(*entries: AllowlistEntry) -> dict[str, Json]:
    """Virtual hosts by name."""
    return {v["name"]: v for v in route_config(SLOT, Allowlist(1, entries), AROUND)["virtual_hosts"]}


def names(virtual_host: Json) -> list[str]:
    return [r["name"] for r in virtual_host["routes"]]


def test_an_empty_list_refuses_everything_in_both_ways() -> None:
    (last,) = routes().values()
    assert last["domains"] == ["*"]
    assert [r["match"] for r in last["routes"]] == [{"connect_matcher": {}}, {"prefix": "/"}]
    assert all(r["direct_response"]["status"] == 403 for r in last["routes"])


@pytest.mark.parametrize(
    "made", [entry("e1", "a.test"), entry("e1", "a.test", 80), entry("e1", "a.test", 80, "GET"), entry("e1", "a.test", 80, "", "/v1")]
)
def test_every_host_answers_tunnels_and_all_else_to_the_last(made: AllowlistEntry) -> None:
    (host, _) = routes(made).values()
    everything: list[Json] = [{"connect_matcher": {}}, {"prefix": "/"}]
    for match in everything:
        assert [r["match"] for r in host["routes"]].count(match) == 1
    assert all("direct_response" in r for r in host["routes"][1:])


def test_the_refusal_of_all_else_is_always_last() -> None:
    assert list(routes(entry("e1", "a.test"), entry("e2", "b.test", 80)))[-1] == "none"


def test_port_443_is_a_tunnel_and_nothing_else() -> None:
    host = routes(entry("e1", "a.test", 443, "GET", "/only"))["a.test:443"]
    assert host["domains"] == ["a.test:443"]
    assert [(r["name"], list(r["match"])) for r in host["routes"]] == [("e1", ["connect_matcher"]), ("outside:e1", ["prefix"])]
    assert host["routes"][0]["match"] == {"connect_matcher": {}}
    assert host["routes"][0]["route"]["cluster"] == "gate-s1"


def test_another_port_is_plain_http_and_never_a_tunnel() -> None:
    host = routes(entry("e1", "a.test", 8080, "GET POST", "/v1 /x/"))["a.test:8080"]
    allowed = host["routes"][:2]
    assert [r["match"].get("path_separated_prefix", r["match"].get("prefix")) for r in allowed] == ["/v1", "/x/"]
    assert {r["match"]["headers"][0]["string_match"]["safe_regex"]["regex"] for r in allowed} == {"GET|POST"}
    assert not any("connect_matcher" in r["match"] for r in allowed)


def test_port_80_is_also_the_name_without_port() -> None:
    assert routes(entry("e1", "a.test", 80))["a.test:80"]["domains"] == ["a.test", "a.test:80"]


def test_no_domain_occurs_twice() -> None:
    hosts = routes(entry("e1", "a.test", 80, "GET"), entry("e2", "a.test", 80, "POST"))
    assert names(hosts["a.test:80"])[:2] == ["e1", "e2"]
    domains = [d for v in hosts.values() for d in v["domains"]]
    assert len(domains) == len(set(domains))


def test_the_most_specific_host_carries_what_a_wildcard_allows() -> None:
    hosts = routes(entry("e1", "*.w.test", 80, "GET"), entry("e2", "a.w.test", 80, "POST"), entry("e3", "*.b.w.test", 80, "PUT"))
    assert names(hosts["a.w.test:80"])[:2] == ["e1", "e2"]
    assert names(hosts["*.b.w.test:80"])[:2] == ["e1", "e3"]
    assert names(hosts["*.w.test:80"])[0] == "e1"
    assert "e2" not in names(hosts["*.w.test:80"])


def test_only_a_host_that_names_networks_has_its_own_address_rule() -> None:
    hosts = routes(entry("e1", "a.test", 80), entry("e2", "b.test", 80, networks="10.0.0.0/8"))
    assert "typed_per_filter_config" not in hosts["a.test:80"]
    assert "10.0.0.0" in json.dumps(hosts["b.test:80"]["typed_per_filter_config"][RBAC_FILTER])


def test_the_address_rule_is_only_off_where_nothing_is_resolved() -> None:
    hosts = routes(entry("e1", "a.test", 80), entry("e2", "a.test"))
    off = {RBAC_FILTER: {"@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute"}}
    for host in hosts.values():
        for route in host["routes"]:
            is_tunnel = "route" in route and route["route"]["cluster"] == "gate-s1"
            assert (route.get("typed_per_filter_config") == off) == (is_tunnel or "direct_response" in route)


def test_a_tunnels_connection_into_the_gate_is_its_own() -> None:
    front, _ = listeners(SLOT, Allowlist(), AROUND)
    filters = front["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    (delegate,) = (f["typed_config"] for f in filters if f["name"] == "envoy.filters.http.match_delegate")
    states = delegate["extension_config"]["typed_config"]["on_request_headers"]
    assert {s["object_key"]: s["factory_key"] for s in states} == {STATE_HOST: "envoy.hashable_string", STATE_ID: "envoy.hashable_string"}
    assert "not_matcher" in json.dumps(delegate["xds_matcher"]) and "CONNECT" in json.dumps(delegate["xds_matcher"])


def test_an_entry_that_names_paths_takes_none_that_servers_read_in_different_ways() -> None:
    narrow, wide, _ = routes(entry("e1", "a.test", 80, paths="/v1"), entry("e2", "b.test", 80)).values()
    only = {"name": ":path", "string_match": {"safe_regex": {"regex": AMBIGUOUS_PATH}}, "invert_match": True}
    assert narrow["routes"][0]["match"]["headers"] == [only]
    assert "headers" not in wide["routes"][0]["match"]
    for host in (narrow, wide):
        assert host["routes"][0]["route"]["upgrade_configs"] == [{"upgrade_type": "CONNECT", "enabled": False}]


def test_a_sandbox_has_a_front_door_a_gate_and_its_own_clusters() -> None:
    front, gate = listeners(SLOT, Allowlist(), AROUND)
    assert front["address"] == {"pipe": {"path": "sock/s1.sock", "mode": 0o660}}
    manager = front["filter_chains"][0]["filters"][0]["typed_config"]
    assert manager["rds"]["config_source"]["path_config_source"]["path"] == "rds/s1/rds.json"
    for key in ("normalize_path", "merge_slashes", "use_remote_address"):
        assert manager[key] is True
    assert manager["path_with_escaped_slashes_action"] == "REJECT_REQUEST"
    assert [f["name"] for f in manager["http_filters"]].index(RBAC_FILTER) == len(manager["http_filters"]) - 2
    assert gate["internal_listener"] == {}
    assert [c["name"] for c in clusters(SLOT, AROUND)] == ["out-s1", "gate-s1"]


def test_the_log_names_the_agent_by_a_literal() -> None:
    front, _ = listeners(SLOT, Allowlist(), AROUND)
    manager = front["filter_chains"][0]["filters"][0]["typed_config"]
    assert manager["access_log"][0]["typed_config"]["log_format"]["json_format"]["agent"] == "agent-1"


def test_the_name_server_asked_is_ours() -> None:
    assert json.dumps(clusters(SLOT, AROUND)).count('"port_value": 5300') == 1


def test_the_bootstrap_has_no_tcp_port_and_no_secret() -> None:
    text = json.dumps(bootstrap())
    assert "socket_address" not in text
    assert bootstrap()["admin"]["address"]["pipe"]["mode"] == 0o600


def test_the_whole_is_static_and_carries_its_routes() -> None:
    made = whole([SLOT], Allowlist(1, (entry("e1", "a.test"),)), AROUND)
    assert "dynamic_resources" not in made
    assert '"a.test:443"' in json.dumps(made)
    assert "rds.json" not in json.dumps(made)


def test_a_discovery_file_carries_its_version() -> None:
    assert discovery("4.2", "type", [{}]) == {"version_info": "4.2", "type_url": "type", "resources": [{}]}
