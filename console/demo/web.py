"""Serve the demo's stand-in web hosts, in a process and a network namespace of their own. No packet leaves it.

``python -m console.demo.web LOG`` makes the namespace (root only) and gives loopback the demo's addresses. It serves each host on port
80. For each request that really arrived it writes one JSON line to LOG. The process ends with the demo (PDEATHSIG). The namespace lives as
long as this process. Other processes find it at ``/proc/PID/ns/net``.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO

NETWORK = "10.213.0.0/24"
HOSTS = {"docs.demo.watchfloor.test": "10.213.0.10", "paste.demo.watchfloor.test": "10.213.0.11"}
"""``.test`` is reserved (RFC 6761): none of these names can be anybody's."""
ALLOWED, FORBIDDEN = HOSTS
PORT = 80
READY = "ready"
UNPRIVILEGED = 65534
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
# netdevice(7)
_SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFFLAGS, _IFF_UP = 0x8916, 0x891C, 0x8914, 0x1


def enter_own_network() -> None:
    """A new network namespace whose loopback is up and holds the demo's addresses. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    _configure("lo", "127.0.0.1", "255.0.0.0")
    for number, address in enumerate(HOSTS.values(), 1):
        _configure(f"lo:{number}", address, "255.255.255.255")


def _configure(interface: str, address: str, mask: str) -> None:
    name = interface.encode().ljust(16, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, mask)):
            fcntl.ioctl(control, request, name + struct.pack("<HH4s8x", socket.AF_INET, 0, socket.inet_aton(value)))
        fcntl.ioctl(control, _SIOCSIFFLAGS, name + struct.pack("<H14x", _IFF_UP))


class WebHost(ThreadingHTTPServer):
    """One stand-in host."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], host: str, log: IO[str]) -> None:
        self.host, self.log, self.lock = host, log, threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Binds without asking DNS for our name, which HTTPServer does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.host, int(self.socket.getsockname()[1])

    def arrived(self, method: str, path: str) -> None:
        """One line, at once on disk."""
        with self.lock:
            self.log.write(json.dumps({"at": time.time(), "host": self.host, "method": method, "path": path[:300]}) + "\n")
            self.log.flush()


class _Handler(BaseHTTPRequestHandler):
    server: WebHost
    timeout = 30

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.server.arrived(self.command, self.path)
        body = f"A stand-in for {self.server.host}, part of the Watchfloor demo.\n".encode() * 20
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The log is ``arrived``."""


def end_with_parent() -> None:
    """SIGKILL when the demo is gone, however it went (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)


def main(log_file: str) -> None:
    """Serves until SIGTERM."""
    end_with_parent()
    enter_own_network()
    with open(log_file, "a", encoding="utf-8") as log:
        servers = [WebHost((address, PORT), host, log) for host, address in HOSTS.items()]
        os.setgroups([])
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
        end_with_parent()  # a change of identity clears it
        for server in servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        print(READY, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        main(sys.argv[1])
    except (OSError, IndexError) as error:
        sys.exit(f"{error}")
