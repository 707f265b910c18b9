"""Contained agents in containers of a real engine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient

from console.domain.agent import AgentId
from console.domain.errors import Conflict, ConsoleError, TimedOut, UsageProblem
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode
from console.domain.sandbox import GivenState
from console.sandbox.containers.docker import Docker
from console.sandbox.interface import KILLED_EXIT_CODE, LaunchSpec, Prepared, Ticket
from tests.fakes.sandbox_world import UID, WAIT_S, World, answers, look_around, run, wait_for

pytestmark = pytest.mark.engine
ROOT = Path(__file__).parents[2]
TICKET = Ticket("")
SLEEP = ("/bin/sleep", "300")


@pytest.fixture
def world(state_dir: Path) -> Iterator[World]:
    made = World(state_dir)
    yield made
    made.close()


@pytest.fixture
def sandbox(engine_socket: Path) -> Docker:
    return Docker(str(engine_socket))


@pytest.fixture
def engine(engine_socket: Path) -> Iterator[APIClient]:
    client = APIClient(base_url=f"unix://{engine_socket}", version="auto", timeout=120)
    yield client
    client.close()


@pytest.fixture
def labels(world: World) -> dict[str, str]:
    return {"io.watchfloor.instance": world.name}


def inspect(engine: APIClient, prepared: Prepared) -> Any:
    return engine.inspect_container(prepared.container_id)


def test_contained_agent_sees_only_its_own_and_can_do_nothing(
    world: World, sandbox: Docker, labels: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WF_SECRET", "canary-7f3a")
    spec = look_around(world, "look", env={"ONLY": "this"}, labels=labels)
    seen = answers(sandbox, spec, TICKET)
    assert seen["ids"] == [UID] * 4 and seen["groups"] == []
    assert seen["caps"] == [0, 0, 0, 0, 0]
    assert seen["nnp"] == 1 and seen["seccomp"] == 2
    assert seen["pids"] == [1, seen["pid"]]
    assert seen["interfaces"] == ["lo"]
    assert seen["fds"] == [0, 1, 2]
    assert {"PATH", "ONLY"} <= set(seen["environ"]) <= {"PATH", "ONLY", "LC_CTYPE"}
    assert not seen["canary"]
    assert seen["state"] == ["agents", "workspaces"] and seen["agents"] == ["look.sock"]
    assert seen["other"] == "ENOENT"
    assert {seen[way] for way in ("proc_root", "up", "link")} <= {"ENOENT", "EACCES"} and seen["contexts"] == ["c-look"]
    assert seen["release_agent"] == []
    for name in ("leave", "leave_v2", "plant", "core_pattern", "sysrq", "root", "usr", "mknod"):
        assert seen[name] in ("ENOENT", "EACCES", "EPERM", "EROFS"), name
    for name in ("vsock", "packet", "keyctl", "io_uring", "userns", "mount", "ptrace", "bpf", "perf", "userfaultfd"):
        assert seen[name] == "EPERM", name
    assert seen["devices"] == []
    assert seen["work"] == "done" and (spec.workspace / "output" / "made").read_text() == "made"
    assert seen["talk"] == "done" and seen["cwd"] == str(spec.workspace)


def test_container_is_hardened_and_says_no_secret(world: World, sandbox: Docker, engine: APIClient, labels: dict[str, str]) -> None:
    spec = world.spec("hard", *SLEEP, env={"AGENT_AUTH_TOKEN": "canary-token-55"}, labels=labels, pids_max=77, memory_max_bytes=100_000_000)
    prepared = sandbox.prepare(spec, TICKET)
    try:
        sandbox.go(prepared)
        found = inspect(engine, prepared)
        host = found["HostConfig"]
        assert host["RestartPolicy"] == {"Name": "no", "MaximumRetryCount": 0}
        assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] and not host["Privileged"]
        assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and host["SecurityOpt"] == ["no-new-privileges:true"]
        assert host["PidsLimit"] == 77 and host["Memory"] == 100_000_000
        assert "noexec" in str(host["Tmpfs"]) and "size=104857600" in str(host["Tmpfs"]) and host["IpcMode"] == "private"
        assert found["Config"]["Image"].startswith("sha256:") and not host["ExtraHosts"] and host["NanoCpus"] > 0
        given = sandbox.hardening(spec.agent_id)
        assert {g.name for g in given if g.state is not GivenState.GIVEN} == {"kernel of its own"}
        assert found["Config"]["User"] == f"{UID}:{UID}"
        assert {**labels, "io.watchfloor.agent": "hard"}.items() <= found["Config"]["Labels"].items()
        assert "canary-token-55" not in str(found) and "docker.sock" not in str(found)
        assert prepared.container_id == found["Id"] and prepared.pid == found["State"]["Pid"]
        assert prepared.netns and prepared.mask and prepared.control_level is ControlLevel.CONTAINED
    finally:
        sandbox.abort(prepared)


def test_the_gate_holds_until_go(world: World, sandbox: Docker, labels: dict[str, str]) -> None:
    spec = world.spec("gate", "/bin/sh", "-c", "echo out; echo err >&2; echo ran > ran; exit 42", labels=labels)
    prepared = sandbox.prepare(spec, TICKET)
    try:
        time.sleep(0.5)
        assert not (spec.workspace / "ran").exists()
        with pytest.raises(TimedOut):
            sandbox.wait(prepared, 0.05)
        sandbox.go(prepared)
        assert sandbox.wait(prepared, WAIT_S) == 42
        assert sorted(spec.output.read_text().split()) == ["err", "out"]
        assert spec.output.stat().st_mode & 0o777 == 0o600
        with pytest.raises(ConsoleError):
            sandbox.go(prepared)
    finally:
        sandbox.abort(prepared)


def test_abort_runs_nothing_and_leaves_nothing(world: World, sandbox: Docker, engine: APIClient, labels: dict[str, str]) -> None:
    spec = world.spec("abort", "/bin/sh", "-c", "echo ran > ran", labels=labels)
    sandbox.abort(sandbox.prepare(spec, TICKET))
    assert not (spec.workspace / "ran").exists()
    assert engine.containers(all=True, filters={"label": f"io.watchfloor.instance={world.name}"}) == []
    assert [path.name for path in spec.output.parent.iterdir()] == ["abort.log"]


def test_a_supervisor_that_dies_leaves_the_gate_shut(
    world: World, sandbox: Docker, engine: APIClient, labels: dict[str, str], engine_socket: Path
) -> None:
    spec = world.spec("orphan", "/bin/sh", "-c", "echo ran > ran", labels=labels)
    fields = (spec.argv, dict(spec.env), str(spec.workspace), str(spec.agent_socket), str(spec.output), labels, UID)
    program = (
        "import os\nfrom pathlib import Path\nfrom console.sandbox.containers.docker import Docker\n"
        "from console.sandbox.interface import LaunchSpec, Ticket\nfrom console.domain.network import NetworkMode\n"
        f"argv, env, work, door, out, labels, uid = {fields!r}\n"
        f"Docker({str(engine_socket)!r}).prepare(LaunchSpec('orphan', argv, env, Path(work), Path(door), Path(out), NetworkMode.NONE,"
        " uid=uid, gid=uid, labels=labels), Ticket(''))\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=WAIT_S, check=False)
    mine = {"label": f"io.watchfloor.instance={world.name}"}
    (found,) = engine.containers(all=True, filters=mine)
    wait_for(lambda: not engine.containers(filters=mine), "the container outlived its gate")
    engine.remove_container(found["Id"], force=True)
    assert not (spec.workspace / "ran").exists()


def test_a_restarted_supervisor_follows_with_output_and_exit_code(
    world: World, sandbox: Docker, labels: dict[str, str], engine_socket: Path
) -> None:
    spec = world.spec("again", "/bin/sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 7", labels=labels)
    prepared = sandbox.prepare(spec, TICKET)
    sandbox.go(prepared)
    wait_for(lambda: spec.output.read_text() == "one\n", "no output")
    follower = sandbox._held[AgentId("again")].follower
    assert follower is not None
    follower.stop()  # as it ends with its supervisor
    later = Docker(str(engine_socket))
    found = later.reattach(AgentId("again"), prepared.pid, prepared.start_ticks, prepared.container_id)
    with pytest.raises(Conflict):
        later.reattach(AgentId("other"), prepared.pid, prepared.start_ticks, prepared.container_id)
    (spec.workspace / "go").touch()
    assert later.wait(found, WAIT_S) == 7
    assert spec.output.read_text() == "one\ntwo\n"
    sandbox.abort(prepared)
    later.abort(found)


def test_a_killed_init_ends_everything_and_stays_dead(world: World, sandbox: Docker, labels: dict[str, str]) -> None:
    spec = world.spec("kill", "/bin/sh", "-c", "setsid sleep 300 & echo up; sleep 300", labels=labels)
    prepared = sandbox.prepare(spec, TICKET)
    sandbox.go(prepared)
    wait_for(lambda: "up" in spec.output.read_text(), "the agent never ran")
    os.kill(prepared.pid, 9)
    assert sandbox.wait(prepared, WAIT_S) == KILLED_EXIT_CODE
    sandbox.release(prepared)


def test_full_is_the_default_bridge(world: World, sandbox: Docker, engine: APIClient, labels: dict[str, str]) -> None:
    prepared = sandbox.prepare(world.spec("full", *SLEEP, labels=labels, network_mode=NetworkMode.FULL), TICKET)
    networks = inspect(engine, prepared)["NetworkSettings"]["Networks"]
    sandbox.abort(prepared)
    assert list(networks) == ["bridge"] and not prepared.netns


BOMB = """
import os, time
made = refused = 0
for _ in range(200):
    try:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
        made += 1
    except OSError:
        refused += 1
try:
    open('/tmp/x', 'wb').write(bytes(300 << 20)); full = 0
except OSError:
    full = 1
try:
    os.chmod('/tmp/x', 0o755); os.execv('/tmp/x', ['x'])
except OSError as error:
    print(made, refused, full, error.errno, flush=True)
"""


def test_forks_and_tmp_are_capped(world: World, sandbox: Docker, labels: dict[str, str]) -> None:
    code, text, _ = run(sandbox, world.python("bomb", BOMB, labels=labels, pids_max=40, memory_max_bytes=1 << 30), TICKET)
    made, refused, full, denied = map(int, text.split())
    assert code == 0 and made < 40 and refused > 100 and full == 1 and denied == 13


def test_hostile_words_arrive_unchanged(world: World, sandbox: Docker, labels: dict[str, str]) -> None:
    words = ["", "a\nb", "\u202e\u2066x", "\udcff", "-rf", "$(id)", "ü" * 50_000]
    program = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['HOSTILE']]))"
    hostile = "x\n\u202e" + "y" * 100_000
    assert answers(sandbox, world.python("words", program, *words, env={"HOSTILE": hostile}, labels=labels), TICKET) == [words, hostile]


def test_what_would_be_unheld_is_refused(world: World, sandbox: Docker, labels: dict[str, str], engine_socket: Path) -> None:
    with pytest.raises(UsageProblem):
        sandbox.prepare(world.spec("bare", *SLEEP), TICKET)
    with pytest.raises(UsageProblem):
        sandbox.prepare(world.spec("sock", *SLEEP, labels=labels, extra_binds=((engine_socket, "/run/docker.sock"),)), TICKET)
    absent = Docker(str(world.state / "no.sock"))
    assert not absent.available().ok
    with pytest.raises(ConsoleError):
        absent.prepare(world.spec("gone", *SLEEP, labels=labels), TICKET)
    assert not [path for path in (world.state / "output").iterdir() if path.is_dir()]


def test_output_is_bounded(world: World, sandbox: Docker, labels: dict[str, str]) -> None:
    spec: LaunchSpec = world.spec(
        "flood", "/bin/sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x", labels=labels, output_max_bytes=50_000
    )
    code, text, _ = run(sandbox, spec, TICKET)
    assert code == 0 and "output limit" in text and len(text) < 51_000
