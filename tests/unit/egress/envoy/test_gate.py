"""The gate behind CONNECT."""

from __future__ import annotations

import json

from console.domain.network import Allowlist, AllowlistEntry
from console.egress.envoy.fragments import Slot, Surroundings
from console.egress.envoy.gate import gate


def entry(entry_id: str, host: str, port: int, *networks: str) -> AllowlistEntry:
    return AllowlistEntry(entry_id, host, port, reason="r", owner="o", private_networks=networks)


ALLOWLIST = Allowlist(
    1,
    (
        entry("e1", "a.test", 443),
        entry("e2", "*.w.test", 443, "10.1.0.0/16"),
        entry("e3", "b.w.test", 443, "10.2.0.0/16"),
        entry("e4", "c.test", 80, "10.3.0.0/16"),
    ),
)
GATE = gate(Slot("s1", "a1"), ALLOWLIST, Surroundings(("192.0.2.2/32",)))


def test_only_tls_has_a_chain() -> None:
    assert [c["filter_chain_match"] for c in GATE["filter_chains"]] == [{"transport_protocol": "tls"}]
    assert "default_filter_chain" not in GATE


def test_names_and_addresses_are_judged_before_anything_is_connected() -> None:
    filters = GATE["filter_chains"][0]["filters"]
    assert [f["name"].rsplit(".", 1)[-1] for f in filters] == ["sni_dynamic_forward_proxy", "name", "addresses", "tcp_proxy"]
    assert filters[-1]["typed_config"]["upstream_connect_mode"] == "ON_DOWNSTREAM_DATA"
    assert filters[1]["typed_config"]["rules"]["action"] == "ALLOW"
    assert filters[1]["typed_config"]["rules"]["policies"]["name"]["condition"]["call_expr"]["function"] == "_==_"


def test_private_networks_belong_to_the_names_that_name_them() -> None:
    policies = GATE["filter_chains"][0]["filters"][2]["typed_config"]["rules"]["policies"]
    assert list(policies) == ["addresses", "*.w.test", "b.w.test"]
    wild, exact = json.dumps(policies["*.w.test"]), json.dumps(policies["b.w.test"])
    assert '"suffix": ".w.test"' in wild
    assert '"exact": "b.w.test"' in exact
    assert "10.1.0.0" in wild
    assert "10.2.0.0" not in wild
    assert "10.1.0.0" in exact
    assert "10.2.0.0" in exact
    assert "10.3.0.0" not in json.dumps(policies)
