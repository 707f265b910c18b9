"""Routes of started programs: which there are; a body is read strictly."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from starlette.applications import Starlette
from starlette.testclient import TestClient

from console.domain.conversation import Program
from console.egress.answers import Availability
from console.services.launch.command_reach import preview_command
from console.services.launch.program_ending import Endings
from console.services.launch.program_routes import program_routes
from console.services.launch.programs import Programs
from console.services.policy.dangerous_operations import DangerDesk
from console.services.routes.responses import refusals, routed
from tests.fakes.program_stage import Stage


def client(tmp_path: Path) -> TestClient:
    stage = Stage(tmp_path)
    it, dangers, talk = stage.parts, DangerDesk(stage.parts.places, stage.parts.scribe, stage.parts.notice), stage.talk()
    programs = Programs(stage.outlooks(), it.sandboxes, lambda: Availability(True, "a test"), dangers, talk, lambda _agent: ("", ""))
    endings = Endings(it.core, SimpleNamespace(), it.scribe, it.notice, talk)  # type: ignore[arg-type]
    routes = program_routes(programs, endings, lambda body: preview_command(stage.outlooks(), it.sandboxes, body, dangers))
    app = Starlette(routes=routed(routes), exception_handlers=refusals())
    return TestClient(app, raise_server_exceptions=False)


def test_a_preview_starts_nothing_and_unknown_agents_and_fields_are_refused(tmp_path: Path) -> None:
    with client(tmp_path) as asks:
        good = {"agent": "codex", "prompt": "p", "sandbox": "bubblewrap"}
        seen = asks.post("/api/programs/preview", json={"items": [good]}).json()
        assert (
            seen["schema_version"] == 1
            and seen["items"][0]["version"]
            and {r["what"] for r in seen["items"][0]["reach"]} >= {"files", "cost"}
        )
        assert asks.post("/api/programs/preview", json={"items": []}).status_code == 400
        assert asks.post("/api/programs/preview", json={"items": [good | {"argv": ["x"]}]}).status_code == 400
        assert asks.post("/api/programs", json={"items": [good] * 51}).status_code == 400
        assert asks.post("/api/agents/nobody/message", json={"text": "x"}).status_code == 404
        assert asks.post("/api/agents/nobody/message", json={"text": ""}).status_code == 400
        assert asks.post("/api/agents/nobody/interrupt", json={"all": True}).status_code == 400
        assert asks.post("/api/agents/nobody/end", json={}).status_code == 404
        for wrong in ({"within_s": -1}, {"within_s": 601}, {"reason": "x" * 501}, {"kill": True}):
            assert asks.post("/api/agents/nobody/end", json=wrong).status_code == 400
        assert len(asks.get("/api/programs").json()["programs"]) == len(Program)
