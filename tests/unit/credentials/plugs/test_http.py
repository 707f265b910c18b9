"""Requests of the plan: to this machine or over TLS, no redirect, no proxy, within their time, values in headers and body only."""

from __future__ import annotations

import http.client as http_client
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from console.credentials.plan import Http
from console.credentials.plugs import http
from console.credentials.plugs.http import ask, field_of
from console.domain.errors import ConsoleError, TimedOut, Unavailable

Asked = list[tuple[str, str, dict[str, str], bytes]]


@pytest.fixture
def server() -> Iterator[tuple[str, Asked, dict[str, Any]]]:
    asked: Asked = []
    says: dict[str, Any] = {"status": 200, "body": b"{}", "headers": {}}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            asked.append((self.command, self.path, dict(self.headers.items()), self.rfile.read(length)))
            self.send_response(says["status"])
            for name, value in says["headers"].items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(says["body"])

        do_GET = do_POST  # noqa: N815 - http.server's name

        def log_message(self, *_: object) -> None:
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}", asked, says
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_values_go_into_headers_and_body_each_once(server: tuple[str, Asked, dict[str, Any]]) -> None:
    url, asked, _ = server
    spec = Http(
        url=f"{url}/v1/keys?kind=api", headers={"Authorization": "Bearer {old}"}, body={"n": 1, "keys": ["{new}", {"was": "{old}"}]}
    )
    hostile = '{old}"\n\u00e9'
    assert ask(spec, {"old": "value-1", "new": hostile}) == (200, b"{}")
    [(method, path, headers, body)] = asked
    assert (method, path, headers["Authorization"], headers["Content-Type"]) == (
        "POST",
        "/v1/keys?kind=api",
        "Bearer value-1",
        "application/json",
    )
    assert json.loads(body) == {"n": 1, "keys": [hostile, {"was": "value-1"}]}, "a value that looks like a placeholder is a value"


def test_a_value_that_would_break_out_of_its_header_is_refused(server: tuple[str, Asked, dict[str, Any]]) -> None:
    url, asked, _ = server
    for value in ("x\r\nX-Admin: yes", "x\ny", "\u2603"):
        with pytest.raises(ConsoleError, match="cannot be put into a header") as caught:
            ask(Http(url=url, headers={"X-Key": "{value}"}), {"value": value})
        assert value not in str(caught.value)
    assert not asked


def test_a_redirect_is_an_answer_and_never_followed(server: tuple[str, Asked, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    url, asked, says = server
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    says |= {"status": 302, "headers": {"Location": f"{url}/elsewhere"}}
    assert ask(Http(url=url, body="{value}"), {"value": "v"})[0] == 302 and len(asked) == 1 and asked[0][3] == b"v"


def listener(talk: Callable[[socket.socket], None]) -> tuple[int, threading.Thread, socket.socket]:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            peer, _ = listening.accept()
            with peer:
                talk(peer)
        except OSError:
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    return listening.getsockname()[1], thread, listening


def drip(peer: socket.socket) -> None:
    for _ in range(200):
        peer.sendall(b"X")
        time.sleep(0.05)


@pytest.mark.parametrize("talk", [lambda peer: peer.recv(1 << 20) and peer.recv(1), drip], ids=["silent", "drips"])
def test_its_time_is_bounded_whatever_the_other_side_does(talk: Callable[[socket.socket], None]) -> None:
    port, thread, listening = listener(talk)
    with pytest.raises(TimedOut, match=r"within 0\.4 s"):
        ask(Http(url=f"http://127.0.0.1:{port}/", timeout_s=0.4), {})
    listening.close()
    thread.join()


def test_a_name_that_nobody_resolves_in_time_holds_up_nothing_and_nothing_is_sent_later(
    server: tuple[str, Asked, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked, _ = server
    gate, real, done = threading.Event(), socket.getaddrinfo, threading.Event()

    def hangs(*args: Any, **fields: Any) -> Any:
        gate.wait(60)
        return real(*args, **fields)

    def closes(connection: http_client.HTTPConnection) -> None:
        close(connection)
        done.set()

    close = http_client.HTTPConnection.close
    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    monkeypatch.setattr(http_client.HTTPConnection, "close", closes)
    monkeypatch.setattr(http, "GRACE_S", 0.05)
    try:
        with pytest.raises(TimedOut, match="did not answer within 0.1 s"):
            ask(Http(url=url, timeout_s=0.1, body="{new}"), {"new": "value-1"})
        assert not done.is_set(), "it still waits for the name"
    finally:
        gate.set()
    assert done.wait(60) and asked == []


def test_nobody_there_or_nonsense_is_unavailable() -> None:
    port, thread, listening = listener(lambda peer: peer.sendall(b"SSH-2.0-x\r\n"))
    for _ in range(2):
        with pytest.raises(Unavailable, match="did not answer"):
            ask(Http(url=f"http://127.0.0.1:{port}/", timeout_s=60), {})
        listening.close()
    thread.join()


def test_a_name_that_only_claims_to_be_this_machine_is_not_believed(
    server: tuple[str, Asked, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked, _ = server
    monkeypatch.setattr(ipaddress, "ip_address", lambda text: ipaddress.IPv4Address("192.0.2.1"))
    with pytest.raises(Unavailable):
        ask(Http(url=url), {})
    assert not asked, "nothing was sent"


def test_a_plain_server_does_not_pass_for_tls(server: tuple[str, Asked, dict[str, Any]]) -> None:
    url, asked, _ = server
    with pytest.raises(Unavailable):
        ask(Http(url=url.replace("http:", "https:"), timeout_s=60), {})
    with pytest.raises(ConsoleError, match="cannot be used"):
        ask(Http(url="https://127.0.0.1:9/", ca_file="/nonexistent.pem"), {})
    assert not asked


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": {"key": 7}}', b'{"data": {"key": ""}}', b'{"data": []}', b"[" * 100_000])
def test_a_field_that_is_not_there_is_said(body: bytes) -> None:
    assert field_of(b'{"data": {"key": "v"}}', "data.key") == "v"
    with pytest.raises(ConsoleError):
        field_of(body, "data.key")
