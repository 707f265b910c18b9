"""The client of ``egress.py``: keeps some connections busy and says how fast they were. Standard library only, run in a namespace.

``python -I egress_client.py HOST PORT TARGET CONNECTIONS SECONDS`` prints ``{"requests", "p50_us", "p99_us", "mb_s", "new"}``; the
server's answer must end with ``END``. ``... HOST PORT TARGET watch`` prints ``status monotonic_ns`` whenever the status changes, until its
input ends.
"""

import json
import os
import select
import socket
import sys
import time

END = b"<end of the answer of the bench>"


class Connection:
    """One keep-alive connection with one request under way."""

    def __init__(self, address: tuple[str, int], request: bytes) -> None:
        self.address, self.request = address, request
        self.tail = b""
        self.began = 0.0
        self.opened = 0
        self.open()

    def open(self) -> None:
        self.opened += 1
        self.sock = socket.create_connection(self.address, timeout=30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self) -> None:
        self.tail, self.began = b"", time.perf_counter()
        self.sock.sendall(self.request)


def load(address: tuple[str, int], request: bytes, count: int, seconds: float) -> dict[str, object]:
    """Requests for some time over ``count`` connections; a server that closes is connected to again, which counts as time."""
    connections = [Connection(address, request) for _ in range(count)]
    poll = select.epoll()
    by_fd = {}
    for one in connections:
        by_fd[one.sock.fileno()] = one
        poll.register(one.sock.fileno(), select.EPOLLIN)
        one.send()
    took: list[float] = []
    received = 0
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < seconds:
        for fd, _ in poll.poll(1):
            one = by_fd[fd]
            data = one.sock.recv(1 << 18)
            received += len(data)
            one.tail = (one.tail + data)[-len(END) :]
            is_whole = one.tail == END
            if is_whole:
                took.append(time.perf_counter() - one.began)
                one.tail = b""
            if not data:
                poll.unregister(fd)
                one.sock.close()
                del by_fd[fd]
                one.began = time.perf_counter()
                began_at = one.began
                one.open()
                by_fd[one.sock.fileno()] = one
                poll.register(one.sock.fileno(), select.EPOLLIN)
                one.send()
                one.began = began_at
            elif is_whole:
                one.send()
    lasted = now - began
    took.sort()
    return {
        "requests": len(took) / lasted,
        "p50_us": 1e6 * took[len(took) // 2] if took else 0.0,
        "p99_us": 1e6 * took[int(len(took) * 0.99)] if took else 0.0,
        "mb_s": received / lasted / 1e6,
        "new": sum(one.opened for one in connections) - count,
    }


def watch(address: tuple[str, int], request: bytes) -> None:
    """Asks all the time, each time the status is another one it says since when."""
    last = b""
    sock: socket.socket | None = None
    while not select.select([sys.stdin], [], [], 0)[0]:  # noqa: TID251 - on the standard library alone, with few descriptors
        try:
            if sock is None:
                sock = socket.create_connection(address, timeout=30)
            sock.sendall(request)
            got = sock.recv(65536)
        except OSError:
            got = b""
        at = time.monotonic_ns()
        if not got:
            if sock is not None:
                sock.close()
            sock = None
            continue
        status = got.split(b" ", 2)[1]
        if status != last:
            last = status
            os.write(1, status + b" %d\n" % at)


def main(host: str, port: str, target: str, what: str, seconds: str = "0") -> None:
    name = target.split("/")[2]
    request = f"GET {target} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()
    address = (host, int(port))
    if what == "watch":
        watch(address, request)
    else:
        print(json.dumps(load(address, request, int(what), float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
