"""The armed light on a real supervisor and guard: green while every proof is fresh, never green on a doubt."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.armed import ArmedView, PathView
from console.supervisor.verbs.signing import keys
from tests.fakes.engine_stub import EngineStub
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.strict_gcs import StrictGcs


class Engine(EngineStub):
    """One that also says which version it is: to the supervisor it is a Docker engine, to the guard one without containers."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "well")

    def _answer(self, sock: socket.socket, path: str) -> None:
        told = {
            "version": {"Version": "99.0", "ApiVersion": "1.44", "MinAPIVersion": "1.24"},
            "info": {
                "MemoryLimit": True,
                "SwapLimit": True,
                "CpuCfsQuota": True,
                "PidsLimit": True,
                "SecurityOptions": ["name=seccomp,profile=builtin"],
            },
        }.get(path.rpartition("/")[2])
        if told is None:
            super()._answer(sock, path)
            return
        raw = json.dumps(told).encode()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + str(len(raw)).encode() + b"\r\n\r\n" + raw)


@pytest.fixture
def gcs() -> Iterator[StrictGcs]:
    with StrictGcs("fleet") as server:
        yield server


@pytest.fixture
def it(gcs: StrictGcs, state_dir: Path) -> Iterator[Instance]:
    """A host with every path: a canary each second, an engine, a bucket read each second."""
    engine = Engine(state_dir / "engine.sock")
    remote = {"bucket": "fleet", "endpoint": gcs.url, "poll_s": 1.0}
    settings = {"canary_s": 1.0, "engine_socket": str(state_dir / "engine.sock"), "remote": remote, "host_name": "one"}
    (state_dir / "settings.json").write_text(json.dumps(settings))
    try:
        with Instance(state_dir) as made:
            keys(made.places, Namespace(action="init", fleet=None, quorum=1, json=True))
            until(lambda: light(made).state == "armed", words="every path is proven")
            yield made
    finally:
        engine.close()


def light(it: Instance) -> ArmedView:
    for _ in range(5):  # two questions: the light may change between them
        seen = it.api.status().armed
        assert seen is not None
        if seen.state == it.api.kill_switch().state or seen.state != "armed":
            return seen
    raise AssertionError("the light is green in one place and not in the other")


def path(it: Instance, name: str) -> PathView:
    return next(p for p in light(it).paths if p.name == name)


def test_the_light_is_green_only_while_every_path_is_proven(gcs: StrictGcs, it: Instance) -> None:
    local, engine, remote = (path(it, name) for name in ("local", "engine", "remote"))
    assert local.measured_ms is not None and local.proof_age_s is not None and local.worst_s and "canary" in local.how
    assert engine.proof_age_s is not None and "no container canary" in engine.how
    assert remote.lease_left_s and remote.heartbeat_age_s is not None and remote.clock_off_s is not None
    assert remote.worst_s is not None and remote.worst_s > local.worst_s, "poll, read, and then the kill"

    with gcs.failing("503"):
        until(lambda: light(it).state == "in_doubt" and "HTTP 503" in path(it, "remote").detail, words="the bucket is away: amber")
        until(lambda: any(why.startswith("remote: ") for why in light(it).why), words="and the light says why")
    until(lambda: light(it).state == "armed")

    guard = it.living_guard()
    os.kill(guard, signal.SIGSTOP)  # our own guard, named by its own answer
    try:
        until(lambda: light(it).state == "in_doubt" and path(it, "local").state == "in_doubt", words="the guard is stopped: amber")
        until(lambda: path(it, "engine").state == "in_doubt", words="what only the guard could do is in doubt with it")
    finally:
        os.kill(guard, signal.SIGCONT)
    until(lambda: light(it).state == "armed")

    socket_file = it.state_dir / "engine.sock"
    socket_file.unlink()
    until(lambda: path(it, "engine").state == "in_doubt", words="the engine is away: amber")
    until(lambda: "engine is away" in path(it, "engine").detail, words="its events stream may be missed first")
    assert light(it).state == "in_doubt"
    seen = status(it)
    assert seen["state"] == "in_doubt" == seen["armed"]["state"] and {"why", "worst_s", "paths"} <= set(seen["armed"])
    it.stop()
    seen = status(it)
    assert seen["armed"]["state"] == "in_doubt" and "no supervisor answers" in seen["armed"]["why"][0]


def status(it: Instance) -> dict[str, Any]:
    command = [sys.executable, "-m", "console", "status", "--json", "--state-dir", str(it.state_dir)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=150, check=True)
    return dict(json.loads(done.stdout))
