"""A server that starts whatever a client asks it for, by TCP on loopback and by a unix socket: what an agent hands work to.

``python -m tests.fakes.work_server PORT PATH``: prints "ready". A line of a client is a command; "pass" asks for nothing and takes a
descriptor (SCM_RIGHTS), which it keeps. A connection is kept until the client closes it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_started: list[subprocess.Popen[bytes]] = []
_kept: list[int] = []


class Handler(socketserver.BaseRequestHandler):
    """One client."""

    request: socket.socket

    def handle(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self.request, 4000, 4)
        _kept.extend(descriptors)
        words = data.decode().split()
        if words and words[0] != "pass":
            _started.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True))
        with contextlib.suppress(OSError):
            self.request.sendall(b"%d\n" % (_started[-1].pid if _started else 0))
            self.request.recv(1)


class Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class Unix(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def main(port: int, path: str) -> None:
    servers = [Tcp(("127.0.0.1", port), Handler), Unix(path.replace("@", "\0", 1) if path.startswith("@") else path, Handler)]
    if not path.startswith("@"):
        Path(path).chmod(0o777)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()  # until the test closes it
    for one in _started:
        one.kill()
        one.wait()
    os._exit(0)


@contextlib.contextmanager
def work_server(port: int, path: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One that runs while the block does; whatever it started ends with it."""
    command = [sys.executable, str(Path(__file__)), str(port), path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


CLIENT = """import os, socket, sys, time
how, where, command, then = sys.argv[1:5]
if how == "tcp":
    sock = socket.create_connection(("127.0.0.1", int(where)))
else:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect("\\0" + where[1:] if where.startswith("@") else where)
if then == "pass":
    mine, theirs = socket.socketpair()
    socket.send_fds(sock, [b"pass"], [theirs.fileno()])
    theirs.close()
else:
    sock.sendall(command.encode())
sock.recv(20)
if then in ("close", "pass"):
    sock.close()
print("asked", flush=True)
time.sleep(600)
"""
"""An agent: tcp or unix, port or path, command, and what it does then: keep, close, pass (only an end that it passed on stays)."""


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
