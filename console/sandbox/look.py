"""Report what a process can see of its own sandbox, from inside, before the agent's first instruction. Standard library only.

It is started in one of three ways:

* The shim runs this file (runpy) in the child that becomes the agent.
* A container's init runs it from the folder bound in.
* Under bubblewrap it is the program: ``python3 -I -S look.py REPORT_FD GATE_FD -- COMMAND...``.

The starting process gets one JSON line and answers one byte. Without a ``Y`` nothing of the agent ever runs.
"""

# Runs without our own modules, and pathlib would double its start-up time.
# ruff: noqa: PTH112, PTH208
import ctypes
import json
import os
import resource
import socket
import sys
from typing import Any, NoReturn

CLONE_NEWUSER = 0x10000000
PR_GET_SECCOMP, PR_GET_NO_NEW_PRIVS = 21, 39
ENGINE_SOCKETS = ("/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock")
DEVICES = ("/dev/kvm", "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/dm-0")
REFUSED = 126


def facts() -> dict[str, Any]:
    """Everything a measure of hardening.py asks about the inside. What cannot be read is None: unknown, never good."""
    status = _status()
    mounts = _mounts()
    return {
        "uids": list(os.getresuid()),
        "gids": list(os.getresgid()),
        "groups": os.getgroups(),
        "caps": {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd") if name in status},
        "nnp": ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
        "seccomp": max(int(status.get("Seccomp", 0)), ctypes.CDLL(None).prctl(PR_GET_SECCOMP, 0, 0, 0, 0)),
        "root": mounts.get("/", {}).get("options"),
        "tmp": _tmp(mounts),
        "engine_sockets": [path for path in ENGINE_SOCKETS if os.access(path, os.W_OK)],
        "devices": [path for path in DEVICES if os.access(path, os.R_OK)],
        "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[:20] if os.path.isdir("/proc") else None,
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "kernel": os.uname().release,
        "user_namespaces": _may_create_user_namespaces(),
    }


def _may_create_user_namespaces() -> bool:
    """Tried in a child, because the one that succeeds is in the new namespace."""
    pid = os.fork()
    if not pid:
        os._exit(0 if ctypes.CDLL(None).unshare(CLONE_NEWUSER) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def _status() -> dict[str, str]:
    try:
        with open("/proc/self/status") as file:
            return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return {}


def _mounts() -> dict[str, dict[str, Any]]:
    """The mount on top of each mount point (proc(5), mountinfo)."""
    found = {}
    try:
        with open("/proc/self/mountinfo") as file:
            for line in file:
                fields, _, rest = line.partition(" - ")
                words = fields.split()
                found[words[4]] = {"options": words[5].split(","), "kind": rest.split()[0]}
    except (OSError, IndexError):
        return {}
    return found


def _tmp(mounts: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """/tmp as it is mounted; None: it is no mount of its own."""
    if "/tmp" not in mounts:  # noqa: S108 - asked about, not used
        return None
    size = os.statvfs("/tmp")  # noqa: S108
    return {**mounts["/tmp"], "bytes": size.f_blocks * size.f_frsize}  # noqa: S108


def report(report_fd: int, gate_fd: int) -> bool:
    """Tells what was seen and waits for the answer; whether the agent may start. Both descriptors are closed to the agent."""
    for fd in (report_fd, gate_fd):
        os.set_inheritable(fd, False)
    os.write(report_fd, json.dumps({"facts": facts()}).encode() + b"\n")
    answer = os.read(gate_fd, 1)  # end-of-file: whoever would have to judge is gone
    os.close(report_fd)
    os.close(gate_fd)
    return answer == b"Y"


def main(argv: list[str]) -> NoReturn:
    """Under bubblewrap: looks, reports, waits, becomes the agent."""
    words = argv[3:]
    try:
        if not report(int(argv[0]), int(argv[1])):
            os._exit(REFUSED)
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"[watchfloor: cannot run {words[0]!r}: {error}]\n".encode(errors="backslashreplace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
