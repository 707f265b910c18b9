"""The toy agents of the demo, run as agents are: as programs of their own with an agent socket and a workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from console.integrations import client
from tests.fakes.agent_socket import AgentSocket

TOYS = Path(client.__file__).parent / "toys"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentSocket]:
    with AgentSocket(tmp_path / "a.sock") as running:
        yield running


def run(server: AgentSocket, toy: str, *options: str, **env: str) -> str:
    """Runs one toy to its end; its output."""
    mark = {k: v for k, v in os.environ.items() if k.startswith("WATCHFLOOR_TEST")}
    told = subprocess.run(
        [sys.executable, "-I", str(TOYS / f"{toy}.py"), *options],
        env={"PATH": "/usr/bin:/bin", "WATCHFLOOR_AGENT_SOCKET": str(server.path), **mark, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return told.stdout


def test_the_planner_spawns_what_it_was_told_and_works_on_when_refused(server: AgentSocket) -> None:
    inner = {"toy": "spender", "args": ["--seconds", "9"], "limits": {"cost_usd": 0.2}}
    child = {"toy": "planner", "args": ["--spawn", json.dumps(inner)], "name": "sub-planner"}
    out = run(server, "planner", "--seconds", "0.2", "--step", "0.1", "--private", "patients=SECRET", "--spawn", json.dumps(child))
    assert "spawned child-1 (planner)" in out
    assert server.bodies("/v1/private-data") == [{"dataset": "patients", "sensitivity": "SECRET", "source": "demo"}]
    (spawned,) = server.bodies("/v1/spawn")
    assert spawned["name"] == "sub-planner"
    assert spawned["argv"] == ["python3", str(TOYS / "planner.py"), "--spawn", json.dumps(inner)]
    assert server.bodies("/v1/permission") == [{"tool": "run_shell", "argument": "rm -rf /"}]
    assert server.bodies("/v1/usage")

    server.answers["/v1/spawn"] = (403, {"error": "Depth 4 is over the limit of 3."})
    assert "spawn of writer refused: 403: Depth 4" in run(server, "planner", "--seconds", "0", "--spawn", '{"toy": "writer"}')


def test_the_spender_spends_until_its_time_is_over(server: AgentSocket) -> None:
    run(server, "spender", "--seconds", "0.5", "--step", "0.1", "--cost", "0.25")
    reports = server.bodies("/v1/usage")
    assert len(reports) >= 2
    assert all(report["cost_usd"] == 0.25 and report["tokens"] > 0 for report in reports)


def test_the_writer_changes_only_what_it_was_allowed_to(server: AgentSocket, tmp_path: Path) -> None:
    out = run(server, "writer", "--seconds", "0.3", "--step", "0.2", WATCHFLOOR_WORKSPACE=str(tmp_path / "w"))
    assert (tmp_path / "w" / "output" / "report.md").read_text().startswith("# Report, edition")
    assert "write_file output/report.md: allow (because)" in out
    asked = [body["argument"] for body in server.bodies("/v1/permission")]
    assert "../../outside.txt" in asked

    server.answers["/v1/permission"] = (200, {"verdict": "ask", "rule": "r", "reason": "wait"})
    run(server, "writer", "--seconds", "0.1", "--step", "0.2", WATCHFLOOR_WORKSPACE=str(tmp_path / "w2"))
    assert not (tmp_path / "w2").exists()
    server.answers["/v1/permission"] = (503, {"error": "killed"})
    assert "refused: 503: killed" in run(server, "writer", "--seconds", "0.1", WATCHFLOOR_WORKSPACE=str(tmp_path / "w2"))


class _Proxy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        allowed = "docs" in self.path
        self.send_response(200 if allowed else 403)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_the_reacher_goes_through_the_proxy_and_reports_what_came_back(server: AgentSocket) -> None:
    with HTTPServer(("127.0.0.1", 0), _Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            urls = ["--url", "http://docs.test/", "--url", "http://paste.test/"]
            direct = ["--direct", "127.0.0.1:1"]
            address = f"http://127.0.0.1:{proxy.server_port}"
            out = run(server, "reacher", "--seconds", "0.1", "--step", "0.2", *urls, *direct, HTTP_PROXY=address)
        finally:
            proxy.shutdown()
            thread.join()
    assert "GET http://docs.test/: 200 (2 bytes)" in out
    assert "GET http://paste.test/: 403 refused" in out
    assert "connect 127.0.0.1:1: no way" in out
    actions = [body["action"] for body in server.bodies("/v1/usage")]
    assert "GET http://paste.test/: 403 refused" in actions


def test_the_reacher_without_a_way_out_says_so(server: AgentSocket) -> None:
    out = run(server, "reacher", "--seconds", "0.1", "--step", "0.2", "--url", "http://name.invalid/")
    assert "no answer" in out
    assert "nothing: no URL was given" in run(server, "reacher", "--seconds", "0.1", "--step", "0.2")


def runaways(seconds: str) -> list[Path]:
    """Processes of /proc that sleep exactly this long."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and f"time.sleep(float({seconds}))".encode() in (folder / "cmdline").read_bytes():
                found.append(folder)
        except OSError:
            continue
    return found


def test_the_escaper_leaves_processes_without_parent_session_environment_or_name(server: AgentSocket) -> None:
    seconds = f"4.{os.getpid()}1"  # as a float prints it: no zero at the end
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-I", str(TOYS / "escaper.py"), "--seconds", seconds, "--runaways", "2"],
        env={"PATH": "/usr/bin:/bin", "WATCHFLOOR_AGENT_SOCKET": str(server.path)},
    )
    try:
        while len(away := [p for p in runaways(seconds) if p.name != str(process.pid)]) < 2 and process.poll() is None:
            time.sleep(0.05)
        assert len(away) == 2
        for folder in away:
            assert (folder / "environ").read_bytes() == b""
            assert (folder / "cmdline").read_bytes().startswith(b"[kworker")
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            assert int(fields[1]) != process.pid  # not our child any more
            assert int(fields[3]) not in (os.getsid(0), process.pid)  # a session of its own
    finally:
        process.wait(timeout=60)
        while runaways(seconds) and time.monotonic() - started < 60:
            time.sleep(0.1)  # they end by themselves
    assert runaways(seconds) == []
    assert len(server.bodies("/v1/usage")) >= 2
