"""The only part of the portal with privileges: ``python -I -S nsbind.py CHANNEL_FD``.

It waits for its order, JSON [pid, start ticks, port, whether to enter the user namespace too]. Then it enters the network
namespace, binds one loopback port, and hands over the listening socket, a pidfd and a connection to that port from inside (SCM_RIGHTS).
"""

import ctypes
import errno
import json
import os
import socket
import struct
import sys
import time

NEWUSER, NEWNET = 0x10000000, 0x40000000
NEEDED = 1 << 21 | 1 << 19  # CAP_SYS_ADMIN, CAP_SYS_PTRACE
libc = ctypes.CDLL(None, use_errno=True)


def hold(effective: int) -> None:
    """capset(2): of what is permitted it keeps NEEDED and gives up the rest; ``effective`` of that may be used."""
    header, data = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    if libc.capget(header, data) == 0:
        kept = NEEDED & struct.unpack("6I", data)[1]
        if libc.capset(header, struct.pack("6I", kept & effective, kept, 0, 0, 0, 0)) == 0:
            return
    raise OSError("capset: " + os.strerror(ctypes.get_errno()))


def bind_in(pid: int, start_ticks: int, port: int, userns: bool) -> list[int]:
    """The descriptors. Raises OSError with why not."""
    pidfd = os.pidfd_open(pid)  # opened first, then checked: no race with a reused pid
    with open(f"/proc/{pid}/stat", "rb") as stat:
        if int(stat.read().rsplit(b")", 1)[1].split()[19]) != start_ticks:
            raise OSError("the process is not the one that was started")
    # (pathlib would be a third of this program's start)
    here = os.readlink("/proc/self/ns/net")  # noqa: PTH115 - "net:[inode]": both namespaces live, so the inode tells them apart
    if libc.setns(pidfd, NEWNET | (NEWUSER if userns else 0)) != 0:
        raise OSError("setns: " + os.strerror(ctypes.get_errno()))
    if os.readlink("/proc/self/ns/net") == here:  # noqa: PTH115
        raise OSError("the sandbox shares our own network namespace")
    if (names := sorted(name for _, name in socket.if_nameindex())) != ["lo"]:
        raise OSError(f"the sandbox is not loopback-only: {names}")
    listener, inside = (socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(2))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # never SO_REUSEPORT: the agent could share the port
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    for _ in range(100):  # 2 s: bubblewrap names its process before it brings the loopback interface up
        if (refused := inside.connect_ex(("127.0.0.1", port))) != errno.ENETUNREACH:
            break
        time.sleep(0.02)
    if refused:
        raise OSError("the loopback port does not answer: " + os.strerror(refused))
    return [listener.detach(), pidfd, inside.detach()]


if __name__ == "__main__":
    hold(0)
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        if order := channel.recv(4096):  # else nobody needs it any more
            try:
                hold(NEEDED)
                socket.send_fds(channel, [json.dumps({"error": ""}).encode()], bind_in(*json.loads(order)))
            except OSError as error:
                channel.send(json.dumps({"error": str(error)}).encode())
