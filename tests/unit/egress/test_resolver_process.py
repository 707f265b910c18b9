"""What the name server is told, and whom it asks."""

from __future__ import annotations

from pathlib import Path

from console.domain.network import AllowlistEntry
from console.egress.resolver_process import policy, system_servers


def test_system_servers_are_those_of_resolv_conf(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("# nameserver 192.0.2.9\nnameserver 192.0.2.1\nsearch corp.test\nnameserver 2001:db8::1\nnameserver fe80::1%eth0\n")
    assert system_servers(file) == [("192.0.2.1", 53), ("2001:db8::1", 53)]
    assert system_servers(tmp_path / "none") == []


def test_two_entries_of_one_host_add_their_networks() -> None:
    entries = [
        AllowlistEntry("e1", "a.test", 80, reason="r", owner="o", private_networks=("10.1.0.0/16",)),
        AllowlistEntry("e2", "a.test", 81, reason="r", owner="o", private_networks=("10.2.0.0/16",)),
    ]
    said = policy(entries, {"a.test": ("10.1.0.1",)}, [("192.0.2.1", 53)], ("192.0.2.2/32",))
    assert said["names"] == {"a.test": ["10.1.0.0/16", "10.2.0.0/16"]}
    assert said["hosts"] == {"a.test": ["10.1.0.1"]}
    assert said["servers"] == [["192.0.2.1", 53]]
    assert "192.0.2.2/32" in said["never"]
    assert "127.0.0.0/8" in said["never"]
