"""The only part of the portal with privileges: ``python -I -S nsbind.py CHANNEL_FD PID START_TICKS PORT USERNS``.

Enters the sandbox's network namespace, binds one loopback port there and hands the listening socket and a pidfd of the
sandbox over CHANNEL_FD (SCM_RIGHTS). A process of its own for each sandbox, so nothing of ours stays in a namespace.
"""

import ctypes
import json
import os
import socket
import sys
from pathlib import Path

NEWUSER, NEWNET = 0x10000000, 0x40000000


def bind_in(pid: int, start_ticks: int, port: int, userns: bool) -> list[int]:
    """The descriptors of (listening socket, pidfd). Raises OSError with why not."""
    pidfd = os.pidfd_open(pid)  # opened first, then checked: no race with a reused pid
    with open(f"/proc/{pid}/stat", "rb") as stat:
        if int(stat.read().rsplit(b")", 1)[1].split()[19]) != start_ticks:
            raise OSError("the process is not the one that was started")
    here = Path("/proc/self/ns/net").readlink()  # "net:[inode]": both namespaces live, so the inode tells them apart
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(pidfd, NEWNET | (NEWUSER if userns else 0)) != 0:
        raise OSError("setns: " + os.strerror(ctypes.get_errno()))
    if Path("/proc/self/ns/net").readlink() == here:
        raise OSError("the sandbox shares our own network namespace")
    if (names := sorted(name for _, name in socket.if_nameindex())) != ["lo"]:
        raise OSError(f"the sandbox is not loopback-only: {names}")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # never SO_REUSEPORT: the agent could share the port
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return [listener.detach(), pidfd]


def main() -> None:
    """One request, one answer: {"error": ""} with both descriptors, or why not without."""
    channel_fd, pid, start_ticks, port, userns = map(int, sys.argv[1:])
    with socket.socket(fileno=channel_fd) as channel:
        try:
            socket.send_fds(channel, [json.dumps({"error": ""}).encode()], bind_in(pid, start_ticks, port, bool(userns)))
        except OSError as error:
            channel.send(json.dumps({"error": str(error)}).encode())


if __name__ == "__main__":
    main()
