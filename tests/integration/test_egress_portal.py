"""The portal with real namespaces: who gets a port, who does not, what cuts it, what the relay may do. Real Envoy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError
from console.domain.network import Allowlist
from console.egress import nsbind
from console.egress.ports import Helper
from tests.fakes.egress_box import Box
from tests.fakes.egress_stage import Stage, entry, stage

pytestmark = pytest.mark.envoy

ALLOWLIST = Allowlist(1, (entry("e1", "good.test"), entry("e2", "good.test", 80)))
BOUND_S = 50.0
"""About 1 ms was measured on a quiet machine. A relay that hangs is waited for PATIENCE_S on a stage: this shows that nobody was."""


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with stage(ALLOWLIST) as it:
        yield it


def wait_until(true: object, within_s: float = 60.0) -> bool:
    assert callable(true)
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.01)
    return False


def test_a_sandbox_has_the_proxy_and_nothing_else(running: Stage) -> None:
    with running.box("a1") as box:
        assert running.egress.attached() == ["a1"]
        assert "hello from upstream" in box.get("http://good.test/")
        assert box.connect("11.0.0.1", 80) == "Network is unreachable"
        assert box.connect("192.0.2.2", 22) == "Network is unreachable"
        assert box.connect("127.0.0.1", 9901) == "Connection refused"


def test_detach_closes_the_port_and_cuts_every_tunnel(running: Stage) -> None:
    with running.box("a1") as box:
        assert box.hold("good.test:443") == "streaming"
        assert box.hold() == "streaming"
        began = time.monotonic()
        assert running.egress.detach("a1") == 2
        assert time.monotonic() - began < BOUND_S
        assert box.held() == [False, False]
        assert box.connect("127.0.0.1", 3128) == "Connection refused"
        assert running.egress.attached() == []
        assert running.egress.detach("a1") == 0


def test_two_sandboxes_are_apart(running: Stage) -> None:
    with running.box("a1") as one, running.box("a2") as two:
        assert one.hold("good.test:443") == "streaming"
        assert two.hold("good.test:443") == "streaming"
        running.egress.detach("a1")
        assert one.held() == [False]
        assert two.held() == [True]
        assert "hello" in two.get("http://good.test/only-two")
        assert running.record("a2", path="/only-two").allowed
        assert not [r for r in running.records if r.agent_id == "a1" and r.path == "/only-two"]
        pids = running.egress.relay_pids()
        assert list(pids) == ["a2"]


def test_the_relay_has_no_privilege(running: Stage) -> None:
    with running.box("a1"):
        status = Path(f"/proc/{running.egress.relay_pids()['a1']}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(fields[name], 16) == 0
        assert fields["NoNewPrivs"] == "1"
        assert set(fields["Uid"].split()) == {"65531"}
        assert fields["Groups"].strip() == ""
        environment = Path(f"/proc/{running.egress.relay_pids()['a1']}/environ").read_bytes()
        assert environment == b""


def test_nor_has_envoy_and_its_sockets_are_closed_to_others(running: Stage) -> None:
    envoy = next(p for p in Path("/proc").glob("[0-9]*") if _runs_envoy_of(p, running))
    fields = dict(line.split(":\t", 1) for line in (envoy / "status").read_text().splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == 0
    assert set(fields["Uid"].split()) == {"65532"}
    assert (envoy / "environ").read_bytes() == b""
    root = running.folder / "egress"
    assert root.stat().st_mode & 0o007 == 0
    assert (root / "admin").stat().st_mode & 0o077 == 0
    assert (root / "sock").stat().st_mode & 0o007 == 0


def _runs_envoy_of(process: Path, running: Stage) -> bool:
    try:
        return (process / "cwd").samefile(running.folder / "egress") and b"bootstrap.json" in (process / "cmdline").read_bytes()
    except OSError:
        return False


def test_the_admin_interface_is_out_of_reach(running: Stage) -> None:
    with running.box("a1") as box:
        for path in ("/config_dump", "/quitquitquit", "/stats"):
            assert box.raw(f"GET {path} HTTP/1.1\r\nHost: envoy\r\n\r\n".encode()).startswith("HTTP/1.1 403")
            assert box.get(f"http://localhost:9901{path}").startswith("HTTP/1.1 403")
            assert box.get(f"http://127.0.0.1:9901{path}").startswith("HTTP/1.1 403")
        assert running.egress.health()[0] == "healthy"


def test_a_process_in_our_own_namespace_is_refused(running: Stage) -> None:
    box = Box(namespace=False)
    try:
        with pytest.raises(Conflict, match="our own network namespace"):
            running.egress.attach("a1", box.pid, box.start_ticks, False)
        assert running.egress.attached() == []
    finally:
        box.stop()


def test_a_reused_pid_is_refused(running: Stage) -> None:
    box = Box()
    try:
        with pytest.raises(Conflict, match="not the one that was started"):
            running.egress.attach("a1", box.pid, box.start_ticks + 1, False)
        assert box.connect("127.0.0.1", 3128) == "Connection refused"
    finally:
        box.stop()


def test_a_namespace_with_another_interface_is_refused(running: Stage) -> None:
    box = Box()
    try:
        enter = ["nsenter", f"--net=/proc/{box.pid}/ns/net", "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"]
        subprocess.run(enter, check=True)
        with pytest.raises(Conflict, match="not loopback-only"):
            running.egress.attach("a1", box.pid, box.start_ticks, False)
    finally:
        box.stop()


def test_attaching_twice_is_refused_and_harms_nothing(running: Stage) -> None:
    with running.box("a1") as box:
        with pytest.raises(Conflict, match="attached already"):
            running.egress.attach("a1", box.pid, box.start_ticks, False)
        with pytest.raises(Conflict, match="Address already in use"):
            running.egress.attach("a2", box.pid, box.start_ticks, False)
        assert "hello" in box.get("http://good.test/")


def test_hostile_agent_ids_are_refused(running: Stage) -> None:
    for name in ("../up", "a b", "A", "", "%REQ(X)%", "x" * 64):
        with pytest.raises(ConsoleError):
            running.egress.attach(name, os.getpid(), 1, False)


def test_a_dead_relay_means_no_network_and_is_told(running: Stage) -> None:
    with running.box("a1") as box:
        running.deaths.clear()
        assert box.hold("good.test:443") == "streaming"
        os.kill(running.egress.relay_pids()["a1"], signal.SIGKILL)
        assert wait_until(lambda: running.deaths == ["a1"])
        assert box.held() == [False]
        assert box.connect("127.0.0.1", 3128) == "Connection refused"
        assert running.egress.attached() == []
        running.egress.attach("a1", box.pid, box.start_ticks, False)
        assert "hello" in box.get("http://good.test/")


def test_a_hung_relay_is_cut_all_the_same(running: Stage) -> None:
    with running.box("a1") as box:
        assert box.hold("good.test:443") == "streaming"
        os.kill(running.egress.relay_pids()["a1"], signal.SIGSTOP)
        began = time.monotonic()
        running.egress.detach("a1")
        assert time.monotonic() - began < BOUND_S
        assert box.held() == [False]
        assert box.connect("127.0.0.1", 3128) == "Connection refused"


def test_a_sandbox_that_ends_is_forgotten_without_alarm(running: Stage) -> None:
    running.deaths.clear()
    box = Box()
    running.egress.attach("a9", box.pid, box.start_ticks, False)
    box.stop()
    assert wait_until(lambda: running.egress.attached() == [])
    assert running.deaths == []
    assert wait_until(lambda: '"a9"' not in running.egress.config_text())


def test_silence_and_many_connections_do_not_reach_the_neighbour(running: Stage) -> None:
    with running.box("a1") as one, running.box("a2") as two:
        for _ in range(3):
            assert one.hold() == "streaming"
        flood = threading.Thread(target=lambda: [one.get("http://good.test/flood") for _ in range(50)])
        flood.start()
        assert all("hello" in two.get("http://good.test/") for _ in range(20))
        flood.join()


HOLDER = """
import sys, json
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from console.domain.network import Allowlist
from console.egress.service import Egress
folder, netns, pid, ticks = Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
egress = Egress(folder, folder, lambda record: None, netns=netns)
egress.start()
assert egress.apply(Allowlist(1)).ok
egress.attach("a1", pid, ticks, False)
print(json.dumps([egress._envoy.pid, egress._resolver.pid, egress.relay_pids()["a1"]]), flush=True)
sys.stdin.read()
"""


def test_a_supervisor_that_is_killed_leaves_no_process_and_no_network(running: Stage) -> None:
    box = Box()
    root = Path(__file__).parents[2]
    arguments = [str(root), str(running.folder / "second"), str(running.world.netns), str(box.pid), str(box.start_ticks)]
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        pids = json.loads(holder.stdout.readline())
        assert box.get("http://good.test/").startswith("HTTP/1.1 403")
        holder.kill()
        holder.wait()
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        assert box.connect("127.0.0.1", 3128) == "Connection refused"
    finally:
        holder.kill()
        holder.wait()
        for pipe in (holder.stdin, holder.stdout):
            assert pipe is not None
            pipe.close()
        box.stop()


def test_a_sandbox_whose_loopback_comes_up_later_gets_its_port() -> None:
    """Bubblewrap names its process first and brings its loopback interface up after that."""
    late = "sleep 0.6; ip link set lo up; exec sleep 60"
    box = subprocess.Popen(["unshare", "-n", "sh", "-c", late])
    helper = Helper()
    try:
        assert wait_until(lambda: os.readlink(f"/proc/{box.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
        start_ticks = int(Path(f"/proc/{box.pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[19])
        helper.bind(box.pid, start_ticks, userns=False).close()
    finally:
        helper.discard()
        box.kill()
        box.wait()


def test_the_helper_is_the_only_privileged_part_and_short() -> None:
    text = Path(nsbind.__file__).read_text()
    assert len(text.splitlines()) < 70
    assert "import console" not in text
