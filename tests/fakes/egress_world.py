"""A small internet in a network namespace of its own: name server, HTTP on 80 and 8080, TLS on 443. Run as a program by ``World``.

Every address lies on the namespace's loopback device, the private and the forbidden ones too, so that a hole would be *seen*:
each accepted connection is told to the test as ``[local address, port]``, and what is read from it.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

ADDRESSES = ("11.0.0.1", "10.99.0.2", "169.254.169.254", "192.0.2.77")
NAMES: dict[str, tuple[str, ...]] = {
    "good.test": ("11.0.0.1",),
    "other.test": ("11.0.0.1",),
    "a.wild.test": ("11.0.0.1",),
    "b.wild.test": ("11.0.0.1",),
    "x.a.wild.test": ("11.0.0.1",),
    "wild.test": ("11.0.0.1",),
    "xwild.test": ("11.0.0.1",),
    "good.test.evil.test": ("11.0.0.1",),
    "evilgood.test": ("11.0.0.1",),
    "evil.test": ("11.0.0.1",),
    "corp.test": ("10.99.0.2",),
    "rebound.test": ("10.99.0.2",),
    "metadata.test": ("169.254.169.254",),
    "loopback.test": ("127.0.0.1",),
    "host.test": ("192.0.2.77",),
    "mixed.test": ("11.9.9.9", "10.99.0.2"),
    "mapped.test": ("::ffff:10.99.0.2",),
    "linklocal6.test": ("fe80::1",),
    "unique6.test": ("fd12::1",),
    "metadata6.test": ("fd00:ec2::254",),
    "shared.test": ("100.64.0.9",),
    "zero.test": ("0.0.0.0",),  # noqa: S104 - an answer, not an address to listen on
    "nat64.test": ("64:ff9b::a9fe:a9fe",),
    "sixtofour.test": ("2002:a9fe:a9fe::1",),
    "multicast.test": ("224.0.0.1",),
}
DNS_PORT = 5353


class World:
    """Starts the program below in a fresh network namespace, and stops it."""

    def __init__(self, folder: Path, *more: str) -> None:
        """``more``: further names that its certificate, signed by ``ca.pem`` in the folder, is for."""
        _make_certificate(folder, (*NAMES, *more))
        command = ["unshare", "-n", sys.executable, "-I", str(Path(__file__)), str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self.netns = Path(f"/proc/{self.process.pid}/ns/net")
        self.seen: list[tuple[str, int]] = []
        self.asked: list[str] = []
        self.requests: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            kind, *rest = json.loads(line)
            if kind == "dns":
                self.asked.append(rest[0])
            elif kind == "http":
                self.requests.append(rest[0])
            else:
                self.seen.append((rest[0], rest[1]))

    def lead(self, name: str, address: str, port: int) -> None:
        """What comes over TLS to this name goes on to another server of the network, in the clear."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, address, port]) + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _make_certificate(folder: Path, known: Iterable[str]) -> None:
    """``cert.pem`` and ``key.pem``, signed by ``ca.pem``: some clients take no certificate of an authority for a server's."""
    names = ",".join(f"DNS:{n}" for n in known)
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    authority = ("-subj", "/CN=authority of the tests", "-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem")
    signed = ("-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key", "-addext", "basicConstraints=critical,CA:FALSE")
    server = ("-subj", "/CN=good.test", "-addext", f"subjectAltName={names}", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem")
    for words in ((*new, *authority), (*new, *signed, *server)):
        subprocess.run(words, check=True, capture_output=True)


def tell(*what: object) -> None:
    with suppress(OSError):
        os.write(1, json.dumps(what).encode() + b"\n")


def serve_names() -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", DNS_PORT))
    while True:
        query, peer = sock.recvfrom(4096)
        sock.sendto(answer(query), peer)


def answer(query: bytes) -> bytes:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin1"))
        at += 1 + query[at]
    (kind,) = struct.unpack_from("!H", query, at + 1)
    name = ".".join(labels).lower()
    tell("dns", name)
    family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
    records = b""
    count = 0
    for address in NAMES.get(name, ()):
        if family and (":" in address) == (kind == 28):
            packed = socket.inet_pton(family, address)
            records += b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 1, len(packed)) + packed
            count += 1
    code = 0x8180 if name in NAMES else 0x8183
    return query[:2] + struct.pack("!HHHHH", code, 1, count, 0, 0) + query[12 : at + 5] + records


class Site(socketserver.BaseRequestHandler):
    """Answers any request with what it saw; ``/slow`` sends a byte every 50 ms for ever, as does a TLS client that sends ``slow``."""

    def handle(self) -> None:
        sock: socket.socket = self.request
        tell("tcp", *sock.getsockname()[:2])
        name = ""
        with suppress(OSError):
            if sock.getsockname()[1] == 443:
                sock = self.server.tls.wrap_socket(sock, server_side=True)  # type: ignore[attr-defined]
                name = "tls "
                if (asked := getattr(sock, "asked", "")) in LED:
                    with socket.create_connection(LED[asked]) as behind:
                        threading.Thread(target=pass_on, args=(behind, sock), daemon=True).start()
                        pass_on(sock, behind)
                    return
            while data := sock.recv(65536):
                if b"slow" in data.split(b"\r\n")[0]:
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                    while True:
                        sock.sendall(b".")
                        time.sleep(0.05)
                head = data.split(b"\r\n\r\n")[0]
                tell("http", data.decode("latin1"))
                body = name.encode() + b"hello from upstream\n" + head
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


LED: dict[str, tuple[str, int]] = {}


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def remember_name(sock: ssl.SSLObject, name: str, _context: ssl.SSLContext) -> None:
    sock.asked = name  # type: ignore[attr-defined]


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def main(folder: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in ADDRESSES:
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    context.sni_callback = remember_name
    threading.Thread(target=serve_names, daemon=True).start()
    for port in (80, 8080, 443):
        server = Server(("::", port), Site)
        server.tls = context  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
    os.write(1, b"ready\n")
    for line in sys.stdin:  # its end: the test ended
        name, address, port = json.loads(line)
        LED[name] = (address, port)


if __name__ == "__main__":
    main(sys.argv[1])
