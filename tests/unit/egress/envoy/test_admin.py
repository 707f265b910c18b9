"""Envoy's counters, read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.egress.envoy.admin import Admin, Taken

STATS = {
    "stats": [
        {"name": "cluster_manager.cds.version_text", "value": "1.2"},
        {"name": "listener_manager.lds.version_text", "value": "1.2"},
        {"name": "listener_manager.lds.update_rejected", "value": 2},
        {"name": "listener_manager.lds.update_failure", "value": 1},
        {"name": "http.s1.rds.s1.version_text", "value": "1.1"},
        {"name": "http.s1.rds.s1.update_rejected", "value": 0},
        {"name": "http.s2.rds.s3.version_text", "value": "9"},
        {"name": "cluster.out-s1.update_failure", "value": 4},
        {"histograms": {}},
    ]
}


def test_subscriptions_are_found_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Admin(Path("/nowhere"))
    monkeypatch.setattr(admin, "get", lambda _path: json.dumps(STATS).encode())
    assert admin.taken() == {"cds": Taken("1.2", 0), "lds": Taken("1.2", 3), "s1": Taken("1.1", 0)}


def test_refusals_are_found_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Admin(Path("/nowhere"))
    dump = {"configs": [{"dynamic_listeners": [{"error_state": {"details": "error adding listener"}}, {"error_state": {}}]}]}
    monkeypatch.setattr(admin, "get", lambda _path: json.dumps(dump).encode())
    assert admin.refusals() == ["error adding listener"]


def test_an_envoy_that_is_not_there_is_not_ready(tmp_path: Path) -> None:
    assert not Admin(tmp_path).ready()
    with pytest.raises(OSError):
        Admin(tmp_path).taken()
