"""What survives: latch and registry over crashes, lost and corrupt files, a full disk, flooded sockets, too few descriptors."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError, Denied, Killed, Unavailable
from console.domain.guard import decode, encode
from console.domain.kill import receipt_from_json
from console.domain.verdict import verdict
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.client.kill import press_and_wait
from console.killswitch.client.start import start_guard
from console.killswitch.kernel import processes
from tests.fakes.guard_world import GuardWorld, until


@pytest.fixture
def world(state_dir: Path) -> Iterator[GuardWorld]:
    made = GuardWorld(state_dir)
    try:
        yield made.start()
    finally:
        made.close()


def test_the_latch_survives_crashes_of_the_guard(world: GuardWorld) -> None:
    receipt = world.pressed()
    for _ in range(3):
        world.kill_guard()
        world.start()
        status = world.operator.status()
        assert status["latched"] and status["generation"] == 1 and status["kills"] == [receipt.kill_id]
        with pytest.raises(Killed):
            world.supervisor.ticket("late", "process", "managed")


def test_a_press_that_was_answered_is_latched_though_the_guard_dies_at_once(world: GuardWorld) -> None:
    world.agent("one")
    world.operator.press("all", "x", "y", timeout_s=90)
    world.kill_guard()
    world.start()
    assert world.operator.status()["latched"]
    with pytest.raises(Killed):
        world.supervisor.ticket("late", "process", "managed")


@pytest.mark.parametrize("damage", ["missing", "empty", "flipped", "garbage", "folder missing", "torn"])
def test_a_lost_or_corrupt_latch_reads_as_killed(world: GuardWorld, damage: str) -> None:
    agent = world.agent("one")
    latch = world.state / "guard" / "latch.json"
    world.kill_guard()
    whole = latch.read_bytes()
    if damage == "missing":
        latch.unlink()
    elif damage == "folder missing":
        for file in sorted((world.state / "guard").rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
    else:
        wrong = {
            "empty": b"",
            "flipped": whole.replace(b'"generation": 0', b'"generation": 7'),
            "garbage": os.urandom(300),
            "torn": whole[:40],
        }
        latch.write_bytes(wrong[damage])
    world.start()
    status = world.operator.status()
    assert status["latched"] and status["notices"], damage
    assert agent.wait(60) == -signal.SIGKILL
    until(lambda: world.operator.status()["kill"]["done"], "its kill is done")
    world.unlatch("owner")
    world.kill_guard()
    world.start()
    assert not world.operator.status()["latched"]


def test_a_corrupt_registry_reads_as_killed_and_its_leaves_are_found(world: GuardWorld) -> None:
    agents = [world.agent("one"), world.agent("two")]
    world.kill_guard()
    (world.state / "guard" / "registry.json").write_text('{"agents": []}')
    world.start()
    assert world.operator.status()["latched"] and [a.wait(60) for a in agents] == [-signal.SIGKILL] * 2


def test_corrupt_causes_freeze_everything(world: GuardWorld) -> None:
    world.agent("one")
    world.kill_guard()
    (world.state / "guard" / "causes.json").write_text("{")
    world.start()
    status = world.operator.status()
    assert status["frozen"] == {"one": ["operator", "soft_stop"]} and not status["latched"]
    with pytest.raises(Denied):  # there may have been a soft stop: as strict as that
        world.supervisor.ticket("late", "process", "managed")
    world.supervisor.soft_stop(False, "the supervisor knows better")
    world.supervisor.ticket("late", "process", "managed")
    assert world.operator.status()["frozen"] == {"one": ["operator"]}


def test_a_new_guard_takes_over_live_agents(world: GuardWorld) -> None:
    agent = world.agent("one")
    world.kill_guard()
    world.start()
    assert agent.poll() is None and world.operator.status()["agents"] == 1
    assert world.supervisor.call("procs", agent_id="one")["pids"] == [agent.pid]
    receipt = press_and_wait(world.state, world.run, world.instance, "all", "x", "y", timeout_s=90)
    assert not verdict(receipt).may_run and agent.wait(60) == -signal.SIGKILL


def test_a_kill_half_done_is_finished_by_the_next_guard(world: GuardWorld) -> None:
    """As a guard leaves it that died between the latch and the SIGKILL."""
    agent = world.agent("one")
    world.kill_guard()
    from console.killswitch.store.latch import Latch

    latch = Latch(world.state / "guard")
    latch.load()
    latch.press("20250101-000000-abcdef", "half done")
    latch.save()
    world.start()
    assert agent.wait(60) == -signal.SIGKILL
    assert not verdict(receipt_from_json(world.receipt("20250101-000000-abcdef"))).may_run


def test_only_one_guard_per_instance(shared: GuardWorld) -> None:
    assert start_guard(shared.state, shared.run, shared.instance) == shared.pid
    command = [
        sys.executable,
        "-m",
        "console.killswitch",
        f"--state-dir={shared.state}",
        f"--run-dir={shared.run}",
        f"--instance={shared.instance}",
    ]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 75 and b"already" in done.stderr and processes.is_alive(shared.pid)


def test_a_guard_refuses_to_start_inside_an_agent(world: GuardWorld, state_dir: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom console.killswitch.client.start import start_guard\n"
        "try: print(start_guard(Path(sys.argv[1]), Path(sys.argv[1])/'run', '0badc0de'))\n"
        "except Exception as e: print(type(e).__name__, e)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    agent = world.agent("sly", sys.executable, "-c", code, str(state_dir / "mine"), stdout=subprocess.PIPE, env=env, confirm=False)
    assert agent.stdout is not None and b"Unavailable" in agent.stdout.readline()


def test_quit_is_refused_while_needed_and_leaves_nothing(world: GuardWorld) -> None:
    agent = world.agent("one")
    with pytest.raises(Conflict):
        world.supervisor.call("quit")
    agent.kill()
    agent.wait()
    world.supervisor.forget("one")
    world.supervisor.call("quit")
    until(lambda: not processes.is_alive(world.pid), "the guard ended")
    assert not Path(f"/sys/fs/cgroup/unified/watchfloor-{world.instance}").exists()


DISK_FULL = r"""
import json, os, subprocess, sys, time
from pathlib import Path
state = Path(sys.argv[1]); instance = sys.argv[2]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(state)], check=True)
from tests.fakes.guard_world import GuardWorld, until
from console.domain.verdict import verdict
from console.killswitch.client.kill import press_and_wait
from console.domain.errors import NotRecorded
world = GuardWorld(state); world.instance = instance
world.start()
out = {}
try:
    one, two = world.agent("one"), world.agent("two")
    world.operator.freeze(["two"])
    until(lambda: (state / "guard" / "reserve").exists(), "the reserve is laid down")
    until(lambda: '"two"' in (state / "guard" / "causes.json").read_text(), "the freeze is on disk")
    def fill():
        fd = os.open(state / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for size in (65536, 4096, 1):
            try:
                while True: os.write(fd, b"x" * size)
            except OSError: pass
        os.close(fd)
    def free(): return os.statvfs(state).f_bavail
    (state / "guard" / "reserve").unlink()   # the worst: not even the reserve is there
    fill(); time.sleep(1.2); fill()
    out["free"] = free()
    try: world.supervisor.ticket("late", "process", "managed"); out["ticket"] = "given"
    except NotRecorded as e: out["ticket"] = "NotRecorded"
    try: world.operator.thaw(["two"]); out["thaw"] = "done"
    except NotRecorded as e: out["thaw"] = "NotRecorded"
    out["freeze"] = world.operator.freeze(["one"])["frozen"]
    receipt = press_and_wait(state, world.run, instance, "all", "disk full", "t", timeout_s=90)
    out["zero"] = not verdict(receipt).may_run
    out["latch"] = next(s.status for s in receipt.steps if s.name == "latch")
    out["dead"] = [one.wait(60), two.wait(60)]
    out["latched"] = world.operator.status()["latched"]
    out["notices"] = [n for n in world.operator.status()["notices"] if "not written" in n]
    (state / "filler").unlink()
    until(lambda: (state / "guard" / "receipts" / f"{receipt.kill_id}.json").exists(), "the receipt is written once there is room")
    out["later"] = json.loads((state / "guard" / "latch.json").read_text())["body"]["latched"]
    print("RESULT " + json.dumps(out), flush=True)
finally:
    world.close()
"""


def test_a_full_disk_stops_no_freeze_and_no_kill(state_dir: Path) -> None:
    """In a mount namespace of its own, on a tmpfs of 2 MiB without a free byte and without the reserve."""
    instance = os.urandom(4).hex()
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = ["/usr/bin/unshare", "-m", sys.executable, "-c", DISK_FULL, str(state_dir), instance]
    done = subprocess.run(command, capture_output=True, timeout=200, check=False, env=env)
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("RESULT ")]
    assert lines, done.stderr.decode()[-3000:]
    out = json.loads(lines[0][7:])
    assert out["free"] == 0 and out["ticket"] == "NotRecorded" and out["thaw"] == "NotRecorded" and out["freeze"] == 1
    assert out["zero"] and out["latch"] == "failed" and out["dead"] == [-9, -9] and out["latched"] and out["notices"]
    assert out["later"] is True


# --- the sockets under pressure -----------------------------------------------------------------------------------------


def connect(world: GuardWorld) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(60)
    sock.connect(str(world.run / "guard.sock"))
    return sock


def test_long_and_partial_lines_are_cut_off(shared: GuardWorld) -> None:
    long, slow = connect(shared), connect(shared)
    long.sendall(b"x" * 9000)
    with contextlib.suppress(ConnectionResetError):
        assert long.recv(100) == b""
    begun = time.monotonic()
    slow.sendall(b'{"op":"sta')
    assert slow.recv(100) == b"" and time.monotonic() - begun > 0.9
    long.close()
    slow.close()


@pytest.mark.parametrize(
    "line",
    [b"\n", b"[]\n", b"null\n", b"\xff\xfe\n", b'{"op":7}\n', b'{"op":"press"}\n', b"[" * 4000 + b"\n", b'{"op":"press","scope":[1]}\n'],
)
def test_nonsense_gets_a_refusal_and_presses_nothing(shared: GuardWorld, line: bytes) -> None:
    sock = connect(shared)
    sock.sendall(line)
    answer = decode(sock.makefile("rb").readline())
    assert answer["ok"] is False and answer["error"]
    sock.sendall(encode({"op": "status"}))
    assert decode(sock.makefile("rb").readline())["latched"] is False
    sock.close()


def test_many_requests_on_one_connection(shared: GuardWorld) -> None:
    sock = connect(shared)
    sock.sendall(encode({"op": "status"}) * 20)
    lines = sock.makefile("rb")
    assert all(decode(lines.readline())["ok"] for _ in range(20))
    lines.close()
    sock.close()


def test_a_flood_of_connections_leaves_room_for_a_press(shared: GuardWorld) -> None:
    code = (
        "import socket,sys,time\nheld=[]\n"
        "for i in range(40):\n"
        "    s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); held.append(s)\n"
        "print('ready', flush=True); time.sleep(600)\n"
    )
    agent = shared.agent("one")
    floods = [shared.popen(sys.executable, "-S", "-c", code, str(shared.run / "guard.sock"), stdout=subprocess.PIPE) for _ in range(10)]
    for flood in floods:
        assert flood.stdout is not None and flood.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    client = GuardClient(shared.run / "guard.sock", timeout_s=60)
    assert client.press("all", "flooded", "tester", timeout_s=90)
    client.close()
    assert agent.wait(60) == -signal.SIGKILL


def test_descriptors_are_raised_and_too_few_refuse_launches(shared: GuardWorld) -> None:
    import resource

    soft, hard = resource.prlimit(shared.pid, resource.RLIMIT_NOFILE)
    assert soft == hard
    agent = shared.agent("one")
    used = len(os.listdir(f"/proc/{shared.pid}/fd"))
    resource.prlimit(shared.pid, resource.RLIMIT_NOFILE, (used + 40, hard))
    with pytest.raises(Unavailable):
        shared.supervisor.ticket("two", "process", "managed")
    resource.prlimit(shared.pid, resource.RLIMIT_NOFILE, (used, hard))  # not one more can be opened
    fd = os.pidfd_open(shared.pid)
    signal.pidfd_send_signal(fd, signal.SIGUSR1)
    os.close(fd)
    assert agent.wait(60) == -signal.SIGKILL
    resource.prlimit(shared.pid, resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: shared.operator.status()["kill"]["done"], "done")


def test_the_guard_is_the_last_to_be_taken_by_memory(shared: GuardWorld) -> None:
    """Lowering it takes CAP_SYS_RESOURCE (proc(5)), which not every root has."""
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    expected = -900 if int(effective.split()[1], 16) & (1 << 24) else int(Path("/proc/self/oom_score_adj").read_text())
    assert int(Path(f"/proc/{shared.pid}/oom_score_adj").read_text()) == expected


def test_the_status_fits_into_a_line_whatever_there_is(shared: GuardWorld) -> None:
    for n in range(60):
        shared.supervisor.ticket(f"agent-with-a-long-name-{n:040d}", "process", "managed")
    shared.operator.freeze("all")
    status = shared.operator.status()
    assert status["agents"] == 60 and status["frozen_n"] == 60 and len(status["frozen"]) < 60
    with pytest.raises(ConsoleError):
        shared.operator.call("status", extra="x" * 5000)
