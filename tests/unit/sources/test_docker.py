"""Labelled containers of an engine; a small stand-in answers on a unix socket."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import ProcessIdentity, SourceReport
from console.sources.docker import LABEL_AGENT, LABEL_INSTANCE, DockerSource
from console.sources.interface import UNVERIFIED, Pids
from console.sources.processes import ProcessTable
from tests.fakes.proc import FakeProc

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64


class Engine(socketserver.ThreadingUnixStreamServer):
    """Answers each path with a status and bytes."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.release = threading.Event()
        self.silent = False
        super().__init__(str(path), _Handler)

    def containers(self, rows: object) -> None:
        self.answers["/containers/json"] = (200, json.dumps(rows).encode())

    def pid(self, container_id: str, pid: object) -> None:
        self.answers[f"/containers/{container_id}/json"] = (200, json.dumps({"State": {"Pid": pid}}).encode())


class _Handler(BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.server.silent:
            self.server.release.wait(20)
            return
        status, body = self.server.answers.get(self.path, (404, b"{}"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def address_string(self) -> str:
        return "unix"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    server = Engine(tmp_path / "engine.sock")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def look(tmp_path: Path, **changes: Any) -> SourceReport:
    return source(tmp_path, **changes).look()


def source(tmp_path: Path, pids: Pids = "all", timeout_s: float = 5.0) -> DockerSource:
    return DockerSource(tmp_path / "engine.sock", "0a0a0a0a", pids, ProcessTable(tmp_path / "proc"), timeout_s)


def row(container_id: str, name: str = "/box", **labels: str) -> dict[str, Any]:
    return {
        "Id": container_id,
        "Names": [name],
        "State": "running",
        "Labels": {key.replace("__", "/"): value for key, value in labels.items()},
    }


def test_agents_of_others_are_seen_and_our_own_and_plain_containers_are_not(tmp_path: Path, engine: Engine, proc: FakeProc) -> None:
    other = row(ONE)
    other["Labels"] = {LABEL_INSTANCE: "ffffffff", LABEL_AGENT: "planner-1", "io.watchfloor.context": "ctx-1"}
    own = row(TWO)
    own |= {"Labels": {LABEL_INSTANCE: "0a0a0a0a", LABEL_AGENT: "mine"}, "Created": int(time.time())}
    engine.containers([other, own, row(THREE, other="x")])
    engine.pid(ONE, 900)
    proc.add(900, start=42, cgroup=f"0::/docker/{ONE}")
    report = look(tmp_path)
    assert report.available
    (seen,) = report.sightings
    assert (seen.key, seen.container_id, seen.name, seen.session, seen.status) == (ONE, ONE, "planner-1", "ctx-1", "running")
    assert seen.process == ProcessIdentity(900, 42)
    assert "ffffffff" in seen.detail


@pytest.mark.parametrize("made", [{"Created": 1}, {}, {"Created": "now"}, {"Created": True}])
def test_our_own_label_hides_nobody(tmp_path: Path, engine: Engine, proc: FakeProc, made: dict[str, object]) -> None:
    """Which of them are agents of ours the engine of the supervisor knows, by their ids; anybody can write the label."""
    engine.containers([{"Id": ONE, "Labels": {LABEL_INSTANCE: "0a0a0a0a", LABEL_AGENT: "a-00000000"}, **made}])
    (seen,) = look(tmp_path).sightings
    assert "Carries this instance's label" in seen.detail and seen.agent_id == ""


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"devcontainer.local_folder": "/home/dev/p"}, "Dev container"),
        ({"devcontainer.config_file": "/home/dev/p/x.json"}, "Dev container"),
        ({"kagenti.io/type": "agent"}, "kagenti"),
        ({"apphub.cloud.google.com/functional-type": "AGENT"}, "apphub"),
        ({LABEL_AGENT: "no instance"}, "unnamed"),
    ],
)
def test_labels_of_others(tmp_path: Path, engine: Engine, proc: FakeProc, labels: dict[str, str], words: str) -> None:
    engine.containers([{"Id": ONE, "Labels": labels}])
    (seen,) = look(tmp_path).sightings
    assert words in seen.detail
    assert seen.name in (ONE[:12], "no instance")
    assert (seen.process, seen.status) == (None, UNVERIFIED)


@pytest.mark.parametrize("pid", [0, -1, True, "900", None, 2**40])
def test_an_unusable_pid_gives_no_process(tmp_path: Path, engine: Engine, proc: FakeProc, pid: object) -> None:
    engine.containers([row(ONE, kagenti_="x") | {"Labels": {"kagenti.io/type": "agent"}}])
    engine.pid(ONE, pid)
    (seen,) = look(tmp_path).sightings
    assert seen.process is None


def test_a_pid_outside_the_containers_cgroup_is_not_believed(tmp_path: Path, engine: Engine, proc: FakeProc) -> None:
    engine.containers([{"Id": ONE, "Labels": {"kagenti.io/type": "agent"}}])
    engine.pid(ONE, 900)
    proc.add(900, cgroup="0::/system.slice/sshd.service")
    (seen,) = look(tmp_path).sightings
    assert (seen.process, seen.status) == (None, UNVERIFIED)


def test_confined_to_our_own_processes_a_container_without_a_known_one_is_not_shown(tmp_path: Path, engine: Engine, proc: FakeProc) -> None:
    engine.containers([{"Id": ONE, "Labels": {"kagenti.io/type": "agent"}}, {"Id": TWO, "Labels": {"kagenti.io/type": "agent"}}])
    engine.pid(ONE, 900)
    proc.add(900, cgroup=f"0::/docker/{ONE}")
    assert [s.key for s in look(tmp_path, pids=lambda pid: pid == 900).sightings] == [ONE]
    assert look(tmp_path, pids=lambda pid: False).sightings == ()


def test_the_pid_is_asked_once_while_the_process_lives(tmp_path: Path, engine: Engine, proc: FakeProc) -> None:
    engine.containers([{"Id": ONE, "Labels": {"kagenti.io/type": "agent"}}])
    engine.pid(ONE, 900)
    proc.add(900, cgroup=f"0::/docker/{ONE}")
    docker = source(tmp_path)
    docker.look()
    docker.look()
    assert engine.asked.count(f"/containers/{ONE}/json") == 1


@pytest.mark.parametrize("body", [b"{}", b"not json", b"[" * 100_000, b"null", b'"x"'])
def test_an_answer_of_another_form_is_said(tmp_path: Path, engine: Engine, body: bytes) -> None:
    engine.answers["/containers/json"] = (200, body)
    report = look(tmp_path)
    assert not report.available
    assert "because" in report.reason or "form" in report.reason


def test_rows_of_another_form_are_passed_over(tmp_path: Path, engine: Engine, proc: FakeProc) -> None:
    engine.containers(
        [7, {}, {"Id": "../x", "Labels": {"kagenti.io/type": "agent"}}, {"Id": ONE, "Labels": 3}, {"Id": TWO, "Labels": None}]
    )
    assert look(tmp_path).sightings == ()


def test_an_engine_error_is_said(tmp_path: Path, engine: Engine) -> None:
    engine.answers["/containers/json"] = (500, b"{}")
    report = look(tmp_path)
    assert not report.available
    assert "answered 500" in report.reason


def test_no_engine_is_a_reason_not_an_error(tmp_path: Path) -> None:
    report = look(tmp_path)
    assert not report.available
    assert report.reason.startswith("Not available, because there is no engine socket at")


def test_an_engine_that_does_not_answer_is_given_up(tmp_path: Path, engine: Engine) -> None:
    engine.silent = True
    report = look(tmp_path, timeout_s=0.2)
    assert not report.available
    assert "did not answer in time" in report.reason
