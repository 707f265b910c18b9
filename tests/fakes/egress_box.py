"""A sandbox for egress tests: a loopback-only network namespace with a client in it that does what the test says."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

PROXY = ("127.0.0.1", 3128)


class Box:
    """Starts the program below in a fresh network namespace. ``namespace=False``: in ours, to be refused."""

    def __init__(self, *, namespace: bool = True) -> None:
        enter = ["unshare", "-n"] if namespace else []
        command = [*enter, sys.executable, "-I", str(Path(__file__)), "lo" if namespace else "-"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid
        self.start_ticks = int(Path(f"/proc/{self.pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[19])

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def raw(self, data: bytes, wait: float = 60.0, answers: int = 1) -> str:
        """Sends bytes to the proxy; the answers that came back, each up to the end of its body. Empty: closed or refused."""
        return str(self.ask(op="raw", data=base64.b64encode(data).decode(), wait=wait, answers=answers)["got"])

    def get(self, url: str, method: str = "GET", headers: str = "") -> str:
        host = url.split("/")[2]
        return self.raw(f"{method} {url} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode("latin1"))

    def tls(self, authority: str, server_name: str) -> str:
        """CONNECT, TLS with a server name, one request: the answer, the refusal of the CONNECT, or ``closed: why``."""
        return str(self.ask(op="tls", authority=authority, name=server_name)["got"])

    def tunnels(self, asked: list[tuple[str, str]], *, old: bool = False) -> list[str]:
        """``tls`` for each (authority, server name), at the same time; ``old``: in HTTP/1.0 and without a Host, as Python before 3.12."""
        return [str(got) for got in self.ask(op="tunnels", asked=asked, old=old)["got"]]

    def hold(self, authority: str = "", host: str = "good.test") -> str:
        """Opens a stream that never ends (over TLS with an authority, else plainly from a host); "streaming" once bytes flow."""
        return str(self.ask(op="hold", authority=authority, host=host)["got"])

    def held(self) -> list[bool]:
        """For each held stream: whether a byte still comes within 20 s (read to its end first)."""
        answer: list[bool] = self.ask(op="held")["alive"]
        return answer

    def connect(self, host: str, port: int) -> str:
        return str(self.ask(op="connect", host=host, port=port)["got"])

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def read_answer(sock: socket.socket) -> str:
    return read_answers(sock, 1)


def read_answers(sock: socket.socket, count: int) -> str:
    """``count`` answers with a length each, or what there was when the connection ended."""
    got = rest = b""
    with suppress(OSError):
        for _ in range(count):
            while b"\r\n\r\n" not in rest:
                if not (data := sock.recv(65536)):
                    return (got + rest).decode("latin1")
                rest += data
            head = rest.split(b"\r\n\r\n")[0] + b"\r\n\r\n"
            size = next((int(h.split(b":")[1]) for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:")), 0)
            while len(rest) < len(head) + size and (data := sock.recv(65536)):
                rest += data
            got, rest = got + rest[: len(head) + size], rest[len(head) + size :]
    return (got + rest).decode("latin1")


def open_tls(authority: str, name: str, *, old: bool = False) -> tuple[socket.socket | None, str]:
    sock = socket.create_connection(PROXY, timeout=60)
    line = f"CONNECT {authority} HTTP/1.0\r\n" if old else f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
    sock.sendall(f"{line}\r\n".encode())
    head = read_answer(sock)
    if " 200 " not in head.split("\r\n")[0]:
        return None, head
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        return context.wrap_socket(sock, server_hostname=name or None), ""
    except OSError as error:
        return None, f"closed: {error!r}"


class Client:
    def __init__(self) -> None:
        self.held: list[socket.socket] = []

    def raw(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            with socket.create_connection(PROXY, timeout=request["wait"]) as sock:
                sock.sendall(base64.b64decode(request["data"]))
                return {"got": read_answers(sock, request["answers"])}
        except OSError as error:
            return {"got": f"closed: {error!r}"}

    def tls(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            sock, why = open_tls(request["authority"], request["name"], old=request.get("old", False))
            if sock is None:
                return {"got": why}
            with sock:
                sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
                return {"got": read_answer(sock) or "closed: nothing"}
        except OSError as error:
            return {"got": f"closed: {error!r}"}

    def tunnels(self, request: dict[str, Any]) -> dict[str, Any]:
        with ThreadPoolExecutor(len(request["asked"])) as pool:
            asked = ({"authority": a, "name": n, "old": request["old"]} for a, n in request["asked"])
            return {"got": [r["got"] for r in pool.map(self.tls, asked)]}

    def hold(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if request["authority"]:
                sock, why = open_tls(request["authority"], request["authority"].split(":")[0])
                if sock is None:
                    return {"got": why}
                sock.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
            else:
                sock = socket.create_connection(PROXY, timeout=60)
                sock.sendall(f"GET http://{request['host']}/slow HTTP/1.1\r\nHost: {request['host']}\r\n\r\n".encode())
            first = sock.recv(1000)
        except OSError as error:
            return {"got": f"closed: {error!r}"}
        self.held.append(sock)
        return {"got": "streaming" if b" 200 " in first else first.decode("latin1")}

    def alive(self, _request: dict[str, Any]) -> dict[str, Any]:
        return {"alive": [still_flowing(sock) for sock in self.held]}

    def connect(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            socket.create_connection((request["host"], request["port"]), timeout=60).close()
        except OSError as error:
            return {"got": error.strerror or repr(error)}
        return {"got": "connected"}


def still_flowing(sock: socket.socket) -> bool:
    """Whether bytes still come after everything that was on its way has been read (0.3 s)."""
    try:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            sock.settimeout(60)
            if not sock.recv(65536):
                return False
        return bool(sock.recv(1))
    except OSError:
        return False


def main(namespace: str) -> None:
    if namespace == "lo":
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    client = Client()
    operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"raw": client.raw, "tls": client.tls, "tunnels": client.tunnels}
    operations |= {"hold": client.hold, "held": client.alive, "connect": client.connect}
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(operations[request["op"]](request)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
