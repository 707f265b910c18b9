"""The route takes a body, asks once, and answers with what was done."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.testclient import TestClient

from console.audit.log import AuditLog
from console.credentials.host_key import ensure_host_key
from console.domain.engine.command import Record
from console.services.records.key_retirement import host_key_id
from console.services.records.routes import key_routes
from console.services.routes.responses import refusals, routed
from console.settings.places import Places


def test_a_retired_key_is_recorded_by_who_asked_and_another_is_not_found(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path / "run", "0123abcd", False)
    AuditLog(places.audit_db).close()
    ensure_host_key(places.keys_dir)
    kept = list[Record]()
    app = Starlette(routes=routed(key_routes(places, kept.append, lambda _request: "operator:7")), exception_handlers=refusals())
    old = host_key_id(places)
    with TestClient(app) as client:
        for body in ({"key_id": "0" * 16, "reason": "r"}, {"key_id": old, "reason": ""}, {"key_id": old, "reason": "r", "more": 1}, {}):
            assert client.post("/api/keys/retire", json=body).status_code in (404, 400)
        assert kept == []
        said = client.post("/api/keys/retire", json={"key_id": old, "reason": "leaked"})
    assert said.status_code == 200 and said.json()["key_id"] == old and host_key_id(places) == said.json()["by"]
    assert [(r.actor, r.kind) for r in kept] == [("operator:7", "key.retired")] and "leaked" in kept[0].what
