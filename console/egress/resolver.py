"""The name server of Envoy: it answers only for listed names, only with addresses that their entries allow. Standard library only.

Envoy checks the first address of a name and may then connect to another one. Measured: a name with a public and a private address reached
the private one. So a refused address must never reach Envoy. A name with only refused addresses gets one that leads nowhere.
Envoy's own rule then refuses that one with words.

Run by ``launch.py``. Standard input: one policy a line (JSON, see ``Policy``), each answered with ``ok``. Its end ends the process.
"""

import ipaddress
import json
import os
import secrets
import socket
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

A, AAAA = 1, 28  # RFC 1035 section 3.2.2, RFC 3596
NOWHERE = {A: bytes([240, 0, 0, 1]), AAAA: bytes.fromhex("0100" + "00" * 13 + "01")}  # RFC 1112 class E; RFC 6666 discard prefix
TRUNCATED, REFUSED, NO_NAME, FAILED = 0x0200, 5, 3, 2
# Short at most, since an edit of the list must take effect; never 0, or every request would ask again.
TTL_MIN_S, TTL_MAX_S, TTL_OWN_S, TTL_NOWHERE_S = 5, 300, 5, 1
# Below Envoy's own 5 s for a query, so that a second server still gets its turn.
ASK_S = 2.0
ANSWERS_MAX = 16


class Malformed(ValueError):
    """A message that is not what RFC 1035 describes."""


class Policy:
    """What may be answered: {names: {host: [networks]}, hosts: {host: [addresses]}, servers: [[ip, port]], never, private, global}."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.names: dict[str, Any] = {host: _networks(nets) for host, nets in said["names"].items()}
        self.hosts: dict[str, list[str]] = said["hosts"]
        self.servers: list[tuple[str, int]] = [(ip, port) for ip, port in said["servers"]]
        self.never, self.private, self.everywhere = (_networks(said[k]) for k in ("never", "private", "global"))

    def named(self, name: str) -> Any:
        """The private networks a name may lead to; None: the name is in no entry."""
        found = [
            nets
            for host, nets in self.names.items()
            if name == host or (host.startswith("*.") and name.endswith(host[1:]) and name != host[1:])
        ]
        return None if not found else [n for nets in found for n in nets]

    def may_reach(self, packed: bytes, named: Any) -> bool:
        """Whether an address is public, or in a named network, and never a forbidden one."""
        ip = ipaddress.ip_address(packed)
        if any(ip in n for n in self.never):
            return False
        if any(ip in n for n in named):
            return True
        return any(ip in n for n in self.everywhere) and not any(ip in n for n in self.private)


def _networks(texts: list[str]) -> list[Any]:
    return [ipaddress.ip_network(t) for t in texts]


def question(message: bytes) -> tuple[str, int, int]:
    """(lower-case name, type, where the question ends) of a message with one question of class IN."""
    if len(message) < 17 or struct.unpack_from("!H", message, 4)[0] != 1:
        raise Malformed("one question")
    labels, at = [], 12
    while True:
        size = message[at]
        if size == 0:
            break
        if size > 63 or at + 1 + size >= len(message):
            raise Malformed("label")
        labels.append(message[at + 1 : at + 1 + size])
        at += 1 + size
    if len(message) < at + 5:
        raise Malformed("question")
    kind, clas = struct.unpack_from("!HH", message, at + 1)
    if clas != 1:
        raise Malformed("class")
    return b".".join(labels).decode("latin1").lower(), kind, at + 5


def records(message: bytes, kind: int) -> list[tuple[int, bytes]]:
    """(ttl in seconds, address) of every record of a type in the answer section."""
    _, _, at = question(message)
    (count,) = struct.unpack_from("!H", message, 6)
    size = 4 if kind == A else 16
    found = []
    for _ in range(count):
        at = _skip_name(message, at)
        if len(message) < at + 10:
            raise Malformed("record")
        rtype, clas, ttl, length = struct.unpack_from("!HHIH", message, at)
        at += 10
        if len(message) < at + length:
            raise Malformed("record data")
        if (rtype, clas, length) == (kind, 1, size):
            found.append((ttl, message[at : at + size]))
        at += length
    return found


def _skip_name(message: bytes, at: int) -> int:
    while at < len(message):
        size = message[at]
        if size == 0:
            return at + 1
        if size >= 0xC0:  # a pointer ends a name (RFC 1035 section 4.1.4)
            return at + 2
        at += 1 + size
    raise Malformed("name")


def reply(query: bytes, end: int, kind: int, answers: list[tuple[int, bytes]], code: int = 0) -> bytes:
    """An answer to ``query`` made by us from nothing but addresses."""
    # Built from addresses alone: no record of a foreign server, and no extra section, reaches Envoy's parser.
    head = query[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(answers), 0, 0)
    body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data for ttl, data in answers)
    return head + query[12:end] + body


def ask(servers: list[tuple[str, int]], query: bytes, end: int) -> bytes:
    """The answer of the first server that gives one. Raises OSError, Malformed."""
    problem: OSError | Malformed = OSError("no name server is known")
    for server in servers:
        # Random for each question: with a known id another host could answer first (RFC 5452).
        ident = secrets.token_bytes(2)
        # Only the question goes out, under an id of ours: flags, options and further sections of the query do not.
        message = ident + struct.pack("!HHHHH", 0x0100, 1, 0, 0, 0) + query[12:end]
        try:
            answer = _ask_udp(server, message)
            if struct.unpack_from("!H", answer, 2)[0] & TRUNCATED:
                answer = _ask_tcp(server, message)
            if answer[:2] != ident or question(answer)[:2] != question(query)[:2]:
                raise Malformed("another question")
            return answer
        except (OSError, Malformed) as error:
            problem = error
    raise problem


def _family(server: tuple[str, int]) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in server[0] else socket.AF_INET


def _ask_udp(server: tuple[str, int], message: bytes) -> bytes:
    with socket.socket(_family(server), socket.SOCK_DGRAM) as sock:
        sock.settimeout(ASK_S)
        sock.connect(server)  # the kernel drops what others send
        sock.send(message)
        while True:
            answer = sock.recv(4096)
            if len(answer) >= 12 and answer[:2] == message[:2]:
                return answer


def _ask_tcp(server: tuple[str, int], message: bytes) -> bytes:
    with socket.create_connection(server, timeout=ASK_S) as sock:
        sock.sendall(struct.pack("!H", len(message)) + message)
        with sock.makefile("rb") as stream:
            size = stream.read(2)
            if len(size) != 2:
                raise Malformed("no answer")
            return stream.read(struct.unpack("!H", size)[0])


def answer_for(policy: Policy, query: bytes) -> bytes:
    """Our answer to one query of Envoy. Raises Malformed when there is nothing to answer to."""
    name, kind, end = question(query)
    named = policy.named(name)
    if named is None:
        return reply(query, end, kind, [], REFUSED)  # an unlisted name is never asked for (no DNS tunnel)
    if kind not in (A, AAAA):
        return reply(query, end, kind, [])
    if name in policy.hosts:
        packed = [ipaddress.ip_address(a).packed for a in policy.hosts[name]]
        found = [(TTL_OWN_S, p) for p in packed if len(p) == (4 if kind == A else 16)]
    else:
        try:
            answer = ask(policy.servers, query, end)
            code = answer[3] & 15
            if code:
                return reply(query, end, kind, [], NO_NAME if code == NO_NAME else FAILED)
            found = records(answer, kind)
        except (OSError, Malformed, struct.error, IndexError):
            return reply(query, end, kind, [], FAILED)
    return reply(query, end, kind, permitted(policy, named, kind, found))


def permitted(policy: Policy, named: Any, kind: int, found: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The addresses Envoy may learn: all public ones; else one private one that is named; else, if there were any, one that leads nowhere.

    Public and private ones are never mixed, so whichever Envoy takes, it is of the kind it judged.
    """
    good = [(min(max(ttl, TTL_MIN_S), TTL_MAX_S), data) for ttl, data in found if policy.may_reach(data, named)]
    public = [(ttl, data) for ttl, data in good if policy.may_reach(data, [])]
    chosen = public[:ANSWERS_MAX] or good[:1]
    if chosen or not found:
        return chosen
    return [(TTL_NOWHERE_S, NOWHERE[kind])]


class Server:
    """One UDP socket on loopback; a few questions at a time."""

    def __init__(self, port: int) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", port))
        self.policy: Policy | None = None
        self.pool = ThreadPoolExecutor(16)

    def serve(self) -> None:
        while True:
            query, peer = self.sock.recvfrom(1024)
            self.pool.submit(self.one, query, peer)

    def one(self, query: bytes, peer: Any) -> None:
        if self.policy is None:
            return
        try:
            message = answer_for(self.policy, query)
        except (Malformed, IndexError, struct.error):
            return
        self.sock.sendto(message, peer)


def main(port: int) -> None:
    """Answers on 127.0.0.1:port (0: any) until standard input ends; says ``port N`` first."""
    server = Server(port)
    sys.stdout.write(f"port {server.sock.getsockname()[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=server.serve, daemon=True).start()
    for line in sys.stdin:
        server.policy = Policy(json.loads(line))
        sys.stdout.write("ok\n")
        sys.stdout.flush()
    # Not sys.exit: threads that wait for a foreign name server would keep the process until they have answered.
    os._exit(0)
