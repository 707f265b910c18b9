"""A place to start real agents in: a state directory with secrets in it, leaves of our own making, and short Python programs as agents."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from console.domain.agent import AgentId, ContextId
from console.domain.network import NetworkMode
from console.sandbox.interface import LaunchSpec, Prepared, Sandbox, Ticket
from console.sandbox.workspace.folder import open_workspace

UID = GID = 64321
WAIT_S = 60.0


def cgroup2() -> Path:
    """The mount point of the cgroup v2 hierarchy."""
    return next(iter(_mounts("cgroup2")))


def _mounts(kind: str, option: str = "") -> list[Path]:
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split()[0] == kind and (not option or option in rest.split()[2].split(",")):
            found.append(Path(fields.split()[4]))
    return found


class World:
    """One instance's worth of folders and cgroups. ``close`` empties and removes them."""

    def __init__(self, state: Path) -> None:
        self.state = state.resolve()
        self.name = f"watchfloor-test-{secrets.token_hex(4)}"
        (self.state / "agents").mkdir(mode=0o711)
        (self.state / "output").mkdir(mode=0o700)
        (self.state / "guard").mkdir()
        (self.state / "guard" / "latch").write_text("canary-of-the-state-dir")
        self._leaves: list[Path] = []
        self._sockets: list[socket.socket] = []

    def ticket(self, agent_id: str, *, pids_max: int = 0) -> Ticket:
        """A leaf of our own, and a v1 pids leaf with a cap where one is asked for."""
        leaf = self._make(cgroup2() / self.name / agent_id)
        limits: tuple[str, ...] = ()
        if pids_max:
            if (leaf / "pids.max").exists():
                (leaf / "pids.max").write_text(str(pids_max))
            else:
                other = self._make(_mounts("cgroup", "pids")[0] / self.name / agent_id)
                (other / "pids.max").write_text(str(pids_max))
                limits = (str(other),)
        return Ticket(str(leaf), limits, 1)

    def _make(self, leaf: Path) -> Path:
        leaf.mkdir(parents=True)
        self._leaves.append(leaf)
        return leaf

    def spec(self, agent_id: str, *argv: str, env: Mapping[str, str] | None = None, **changes: Any) -> LaunchSpec:
        """A launch whose socket listens and whose workspace exists."""
        door = self.state / "agents" / f"{agent_id}.sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(door))
        door.chmod(0o666)
        listener.listen(8)
        self._sockets.append(listener)
        fields: dict[str, Any] = {
            "agent_id": AgentId(agent_id),
            "argv": argv,
            "env": {"PATH": "/usr/bin:/bin", **(env or {})},
            "workspace": open_workspace(self.state / "workspaces", ContextId(f"c-{agent_id}"), UID, GID),
            "agent_socket": door,
            "output": self.state / "output" / f"{agent_id}.log",
            "network_mode": NetworkMode.NONE,
            "hide": (self.state,),
            "uid": UID,
            "gid": GID,
        }
        return LaunchSpec(**{**fields, **changes})

    def python(self, agent_id: str, program: str, *words: str, **changes: Any) -> LaunchSpec:
        """An agent that runs a short program on the system's Python."""
        return self.spec(agent_id, "/usr/bin/python3", "-c", program, *words, **changes)

    def listener(self, number: int = -1) -> socket.socket:
        """The listening socket of the latest (or ``number``-th) spec."""
        return self._sockets[number]

    def close(self) -> None:
        """Kills what is left in our own leaves, removes them and the sockets."""
        for listener in self._sockets:
            listener.close()
        for leaf in self._leaves:
            if (leaf / "cgroup.kill").exists():
                (leaf / "cgroup.kill").write_text("1")
        for leaf in self._leaves:
            _remove(leaf)
        for parent in {leaf.parent for leaf in self._leaves}:
            parent.rmdir()


def _remove(leaf: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            leaf.rmdir()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def procs(leaf: str) -> list[int]:
    """Pids in a leaf."""
    return [int(pid) for pid in Path(leaf, "cgroup.procs").read_text().split()]


def run(sandbox: Sandbox, spec: LaunchSpec, ticket: Ticket) -> tuple[int | None, str, Prepared]:
    """A whole life: (exit code, output, prepared)."""
    prepared = sandbox.prepare(spec, ticket)
    try:
        sandbox.go(prepared)
        code = sandbox.wait(prepared, WAIT_S)
    finally:
        sandbox.abort(prepared)
    return code, spec.output.read_text(errors="replace"), prepared


def answers(sandbox: Sandbox, spec: LaunchSpec, ticket: Ticket) -> Any:
    """What a program printed as its last line, as JSON; AssertionError with everything it said when it failed."""
    code, text, _ = run(sandbox, spec, ticket)
    assert code == 0, text
    return json.loads(text.strip().splitlines()[-1])


def wait_for(condition: Any, what: str) -> None:
    """Waits until ``condition()`` holds; AssertionError after WAIT_S."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


LOOK_AROUND = r"""
import ctypes, errno, glob, json, os, socket, sys
def attempt(action):
    try:
        action()
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
door, workspace, state, other = sys.argv[1:5]
def everything():
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            yield open(path, "rb").read()
        except OSError:
            pass
def talk():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(door)
        sock.send(b"hello")
def listing(path):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps({
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
    "groups": sorted(set(os.getgroups()) - {os.getgid()}),
    "caps": [int(status[n], 16) for n in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")],
    "nnp": int(status["NoNewPrivs"]), "seccomp": int(status["Seccomp"]),
    "pids": sorted(int(n) for n in os.listdir("/proc") if n.isdigit()),
    "pid": os.getpid(), "session": os.getsid(0),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "fds": sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")),
    "environ": dict(os.environ),
    "canary": any(b"canary-" + b"7f3a" in text for text in everything()),
    "state": listing(state), "agents": listing(os.path.dirname(door)), "cgroups": listing("/sys/fs/cgroup"),
    "other": attempt(lambda: open(other).read()),
    "leave": attempt(lambda: open("/sys/fs/cgroup/cgroup.procs", "w").write("0")),
    "leave_v2": attempt(lambda: open("/sys/fs/cgroup/unified/cgroup.procs", "w").write("0")),
    "plant": attempt(lambda: open(state + "/planted", "w")),
    "work": attempt(lambda: open(workspace + "/output/made", "w").write("made")),
    "cwd": os.getcwd(), "talk": attempt(talk),
    "vsock": attempt(lambda: socket.socket(40, socket.SOCK_STREAM).close()),
    "packet": attempt(lambda: socket.socket(17, socket.SOCK_RAW).close()),
    "keyctl": call({"x86_64": 250, "aarch64": 219}[os.uname().machine], 0, -3, 0),
    "io_uring": call(425, 1, 0),
    "userns": call({"x86_64": 272, "aarch64": 97}[os.uname().machine], 0x10000000),
    "mount": call({"x86_64": 165, "aarch64": 40}[os.uname().machine], b"none", b"/tmp", b"tmpfs", 0, 0),
    "ptrace": call({"x86_64": 101, "aarch64": 117}[os.uname().machine], 16, 1, 0, 0),
    "bpf": call({"x86_64": 321, "aarch64": 280}[os.uname().machine], 0, 0, 0),
    "perf": call({"x86_64": 298, "aarch64": 241}[os.uname().machine], 0, 0, -1, -1, 0),
    "userfaultfd": call({"x86_64": 323, "aarch64": 282}[os.uname().machine], 1),
    "proc_root": attempt(lambda: open("/proc/1/root" + other).read()),
    "up": attempt(lambda: open(workspace + "/../../" + os.path.relpath(other, state)).read()),
    "link": attempt(lambda: (os.symlink(other, workspace + "/output/way"), open(workspace + "/output/way").read())),
    "contexts": listing(os.path.dirname(workspace)),
    "core_pattern": attempt(lambda: open("/proc/sys/kernel/core_pattern", "w").write("x")),
    "sysrq": attempt(lambda: open("/proc/sysrq-trigger", "w").write("h")),
    "release_agent": [p for p in glob.glob("/sys/fs/cgroup/**/release_agent", recursive=True) if os.access(p, os.W_OK)],
    "root": attempt(lambda: open("/etc/planted", "w").write("x")),
    "usr": attempt(lambda: open("/usr/bin/planted", "w").write("x")),
    "mknod": attempt(lambda: os.mknod(workspace + "/disk", 0o60600, os.makedev(254, 0))),
    "devices": [d for d in ("/dev/kvm", "/dev/kmsg", "/dev/vda", "/var/run/docker.sock", "/run/containerd") if os.path.exists(d)],
}))
"""
"""A program that tries everything an agent should not be able to do, and prints what came of it (drill D02 to D10)."""


def look_around(world: World, agent_id: str, **changes: Any) -> LaunchSpec:
    """An agent that runs LOOK_AROUND; ``other`` is a secret of the state directory."""
    spec = world.python(agent_id, LOOK_AROUND, **changes)
    words = (str(spec.agent_socket), str(spec.workspace), str(world.state), str(world.state / "guard" / "latch"))
    fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    return LaunchSpec(**{**fields, "argv": (*spec.argv, *words)})


def is_root() -> bool:
    """Whether these tests run as root."""
    return os.geteuid() == 0
