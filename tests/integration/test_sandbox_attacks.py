"""Every way out of a sandbox that an agent might try, as one table (findings: network 2, portal 2; drill D12, D15, D16), from inside.

The world around it is real: listeners on the host's addresses and on docker0, a name server on the host's loopback, a peer sandbox, an
abstract socket. Each would tell if anything reached it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict
from console.domain.network import Allowlist, NetworkMode
from console.egress import nsbind
from console.sandbox.bubblewrap import Bubblewrap
from console.sandbox.containers.docker import Docker
from console.sandbox.interface import Prepared, Sandbox, Ticket
from console.sandbox.managed import Managed
from tests.fakes.egress_box import Box
from tests.fakes.egress_stage import Stage, entry, stage
from tests.fakes.sandbox_world import UID, WAIT_S, World, answers, wait_for

ATTACKS = """
import ctypes, errno, json, os, socket, sys, time
world = json.loads(sys.argv[1])
def word(call):
    try:
        got = call()
    except socket.gaierror as error:
        return "no name"
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except Exception as error:
        return type(error).__name__
    return got if isinstance(got, str) else "done"
def tcp(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.settimeout(2); s.connect((host, port))
def ask(host, port=53):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.connect((host, port)); s.send(b"\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0\\x06canary\\x04evil\\0\\0\\1\\0\\1"); s.recv(512)
def abstract():
    with socket.socket(socket.AF_UNIX) as s: s.connect(world["abstract"])
def multicast():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.sendto(b"x", ("224.0.0.251", 5353))
def arp():
    return str(len(open("/proc/net/arp").read().splitlines()) - 1) + " neighbours"
def routes():
    return str(len(open("/proc/net/route").read().splitlines()) - 1) + " routes"
seen = {"host " + a: word(lambda a=a: tcp(a, world["port"])) for a in world["hosts"]}
seen |= {
    "loopback service": word(lambda: tcp("127.0.0.1", world["port"])),
    "peer": word(lambda: tcp(world["peer"], 80)),
    "metadata": word(lambda: tcp("169.254.169.254", 80)),
    "link local": word(lambda: tcp("169.254.77.254", 80)),
    "outside": word(lambda: tcp("1.1.1.1", 443)),
    "ipv6 outside": word(lambda: tcp("2606:4700:4700::1111", 443)),
    "ipv6 loopback": word(lambda: tcp("::1", world["port"])),
    "dns of the engine": word(lambda: ask("127.0.0.11")),
    "dns on loopback": word(lambda: ask("127.0.0.1", world["dns"])),
    "dns outside": word(lambda: ask("9.9.9.9")),
    "name": word(lambda: socket.getaddrinfo("canary.drill.test", 80)),
    "udp 443": word(lambda: ask("1.1.1.1", 443)),
    "multicast": word(multicast),
    "raw": word(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()),
    "raw6": word(lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).close()),
    "packet": word(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()),
    "vsock": word(lambda: socket.socket(40, socket.SOCK_STREAM).close()),
    "arp": word(arp), "routes": word(routes),
    "abstract": word(abstract),
    "host netns": word(lambda: os.open("/proc/1/ns/net", os.O_RDONLY) and ctypes.CDLL(None).setns(3, 0x40000000) and "refused"),
}
print(json.dumps(seen))
"""
UNREACHABLE = {"ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EACCES", "EPERM"}
REFUSED = {"ECONNREFUSED"}
EXPECTED: dict[str, set[str]] = {
    "loopback service": REFUSED,
    "peer": UNREACHABLE,
    "metadata": UNREACHABLE,
    "link local": UNREACHABLE,
    "outside": UNREACHABLE,
    "ipv6 outside": UNREACHABLE,
    "ipv6 loopback": UNREACHABLE | REFUSED,
    "dns of the engine": REFUSED,
    "dns on loopback": REFUSED,
    "dns outside": UNREACHABLE,
    "name": {"no name"},
    "udp 443": UNREACHABLE,
    "multicast": UNREACHABLE,
    "raw": {"EPERM"},
    "raw6": {"EPERM"},
    "packet": {"EPERM"},
    "vsock": {"EPERM"},
    "arp": {"0 neighbours"},
    "routes": {"0 routes"},
    "abstract": REFUSED,
    "host netns": {"EACCES", "EPERM", "refused"},
}


class Around:
    """What an agent could reach if there were a hole."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.over = threading.Event()
        self.hosts = [line.split()[3].split("/")[0] for line in _ip("-4", "-o", "address") if " lo " not in line]
        self.hosts += [line.split()[2] for line in _ip("route", "show", "default") if line.split()[1] == "via"]
        self.door = socket.create_server(("0.0.0.0", 0), backlog=64)  # noqa: S104 - a hole would be seen on any address
        self.names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.names.bind(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0watchfloor-attack-{os.getpid()}")
        self.abstract.listen()
        self.threads = [threading.Thread(target=self._watch, args=(s,)) for s in (self.door, self.names, self.abstract)]
        for thread in self.threads:
            thread.start()

    def _watch(self, sock: socket.socket) -> None:
        sock.settimeout(0.2)
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError):
                if sock.type == socket.SOCK_DGRAM:
                    self.reached.append(repr(sock.recvfrom(512)))
                else:
                    connection, peer = sock.accept()
                    connection.close()
                    self.reached.append(repr(peer))

    def spec(self, peer: str) -> str:
        name = self.abstract.getsockname()
        fields: dict[str, Any] = {"hosts": self.hosts, "port": self.door.getsockname()[1], "dns": self.names.getsockname()[1], "peer": peer}
        return json.dumps(fields | {"abstract": name.decode()})

    def close(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()
        for sock in (self.door, self.names, self.abstract):
            sock.close()


def _ip(*words: str) -> list[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture
def around() -> Iterator[Around]:
    made = Around()
    yield made
    made.close()


@pytest.fixture
def world(state_dir: Path) -> Iterator[World]:
    made = World(state_dir)
    yield made
    made.close()


def attack(sandbox: Sandbox, world: World, around: Around, mode: NetworkMode, **changes: Any) -> dict[str, str]:
    """Has an agent try everything; what came of it. Fails when anything outside was reached."""
    contained = isinstance(sandbox, Docker)
    spec = world.python("attack", ATTACKS, around.spec("172.17.0.2"), network_mode=mode, **changes)
    seen: dict[str, str] = answers(sandbox, spec, Ticket("") if contained else world.ticket("attack"))
    assert around.reached == []
    return seen


def judge(seen: dict[str, str], around: Around) -> None:
    expected = {**{f"host {address}": UNREACHABLE for address in around.hosts}, **EXPECTED}
    assert around.hosts and seen.keys() == expected.keys()
    wrong = {name: found for name, found in seen.items() if found not in expected[name]}
    assert not wrong, wrong


@pytest.mark.parametrize("mode", [NetworkMode.NONE, NetworkMode.PROXIED])
@pytest.mark.parametrize("kind", [Bubblewrap, Managed])
def test_no_way_out_of_a_sandbox_without_a_container(
    world: World, around: Around, kind: type[Bubblewrap | Managed], mode: NetworkMode
) -> None:
    judge(attack(kind(), world, around, mode), around)


@pytest.mark.engine
def test_no_way_out_of_a_container_with_a_peer_on_the_bridge(world: World, around: Around, engine_socket: Path) -> None:
    labels = {"io.watchfloor.instance": world.name}
    docker = Docker(str(engine_socket))
    peer: Prepared = docker.prepare(world.spec("peer", "/bin/sleep", "300", network_mode=NetworkMode.FULL, labels=labels), Ticket(""))
    try:
        docker.go(peer)
        judge(attack(docker, world, around, NetworkMode.PROXIED, labels=labels), around)
    finally:
        docker.abort(peer)


# -- the portal's port: squatted, stolen, exhausted, and a neighbour that goes on

SQUAT = """
import errno, json, socket, sys
kept = []
def bind(host, family=socket.AF_INET, port=3128, only6=None):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if only6 is not None: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only6)
    kept.append(s)
    try: s.bind((host, port)); s.listen()
    except OSError as error: return errno.errorcode[error.errno]
    return "took it"
print(json.dumps([bind("127.0.0.1"), bind("0.0.0.0"), bind("::", socket.AF_INET6, only6=0)]), flush=True)
"""
FLOOD = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000)) if resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 20000 else None
held = []
for _ in range(int(sys.argv[1])):
    s = socket.socket(); s.setblocking(False)
    try: s.connect(("127.0.0.1", 3128))
    except BlockingIOError: pass
    except OSError: break
    held.append(s)
print(len(held), flush=True)
sys.stdin.read()
"""


def inside(box: Box, program: str, *words: str) -> subprocess.Popen[str]:
    """A program in a sandbox's network namespace, under an agent's uid."""
    enter = ["nsenter", f"--net=/proc/{box.pid}/ns/net", "setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--no-new-privs"]
    command = [*enter, "/usr/bin/python3", "-I", "-c", program, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with stage() as it:
        assert it.egress.apply(Allowlist(1, (entry("e1", "good.test", 80),))).ok
        yield it


@pytest.mark.envoy
def test_the_portals_port_is_neither_stolen_nor_squatted(running: Stage) -> None:
    with running.box("a1") as box:
        thief = inside(box, SQUAT)
        try:
            assert thief.stdout is not None
            assert json.loads(thief.stdout.readline()) == ["EADDRINUSE"] * 3
            assert "hello from upstream" in box.get("http://good.test/")
        finally:
            finish(thief)
    box = Box()
    squatter = inside(box, SQUAT + "sys.stdin.read()")
    try:
        assert squatter.stdout is not None
        assert json.loads(squatter.stdout.readline())[0] == "took it"
        with pytest.raises(Conflict, match="Address already in use"):
            running.egress.attach("a1", box.pid, box.start_ticks, False)
        assert running.egress.attached() == []
    finally:
        finish(squatter)
        box.stop()


@pytest.mark.envoy
def test_ten_thousand_silent_connections_exhaust_nobody_but_their_own(running: Stage, full_counts: bool) -> None:
    with running.box("a1") as one, running.box("a2") as two:
        flood = inside(one, FLOOD, "10000" if full_counts else "1000")
        try:
            assert flood.stdout is not None
            assert int(flood.stdout.readline()) >= 1000
            relay = running.egress.relay_pids()["a1"]
            assert all("hello" in two.get("http://good.test/") for _ in range(20))
            assert len(list(Path(f"/proc/{relay}/fd").iterdir())) < 600  # at most 256 connections, two sockets each
            assert running.egress.health()[0] == "healthy"
        finally:
            finish(flood)
        wait_for(lambda: "hello" in one.get("http://good.test/"), "its own portal is there again once it let go")


@pytest.mark.envoy
def test_a_relay_without_a_descriptor_left_rests_says_so_and_is_there_again() -> None:
    said: list[tuple[str, str]] = []
    with stage(on_words=lambda *told: said.append(told)) as it:
        assert it.egress.apply(Allowlist(1, (entry("e1", "good.test", 80),))).ok
        with it.box("a1") as one, it.box("a2") as two:
            pid = it.egress.relay_pids()["a1"]
            as_relay = ["setpriv", "--reuid=65531", "--regid=65532", "--clear-groups"]
            subprocess.run([*as_relay, "prlimit", f"--pid={pid}", "--nofile=40:40"], check=True)
            flood = inside(one, FLOOD, "200")
            try:
                wait_for(lambda: said, "it is said")
                assert said[0][0] == "a1" and "takes no more connections for now (Too many open files)" in said[0][1]
                assert "hello" in two.get("http://good.test/") and "a1" in it.egress.relay_pids()
            finally:
                finish(flood)
            wait_for(lambda: "hello" in one.get("http://good.test/"), "its own portal is there again once it let go")


def test_the_helper_alone_needs_privileges_and_only_two() -> None:
    """CAP_SYS_ADMIN and CAP_SYS_PTRACE are enough for nsbind.py; less is refused; it is under 70 lines."""
    assert len(Path(nsbind.__file__).read_text().splitlines()) < 70
    box = Box()
    try:
        for caps, opened in (("sys_admin,+sys_ptrace", True), ("net_admin", False)):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            keep = ["setpriv", "--bounding-set", f"-all,+{caps}", "--inh-caps", "-all", "--no-new-privs"]
            command = [*keep, sys.executable, "-I", "-S", str(Path(nsbind.__file__)), str(theirs.fileno())]
            ours.send(json.dumps([box.pid, box.start_ticks, 3128, False]).encode())
            subprocess.run(command, pass_fds=[theirs.fileno()], check=True, timeout=WAIT_S)
            ours.settimeout(WAIT_S)
            message, fds, _, _ = socket.recv_fds(ours, 4096, 3)
            for fd in fds:
                os.close(fd)
            ours.close()
            theirs.close()
            assert (len(fds) == 3) is opened and bool(json.loads(message)["error"]) is not opened, message
    finally:
        box.stop()
