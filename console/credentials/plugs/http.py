"""Requests of the plan: to this machine or over TLS, without proxy and redirect, within their time."""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from console.credentials.plan import Http
from console.domain.errors import ConsoleError, TimedOut, Unavailable

GRACE_S = 1.0
"""The socket's own time-out says more, so it comes first."""
ANSWER_LIMIT = 64 * 1024


def ask(spec: Http, values: Mapping[str, str]) -> tuple[int, bytes]:
    """(status, the first 64 KiB of the body). ``values``: placeholder -> value. Raises ConsoleError; TimedOut after its time."""
    parts = urlsplit(spec.url)
    where = f"{parts.scheme}://{parts.netloc}{parts.path}"
    # A resolver has its own idea of time, and nothing to cut it by: it is left to itself.
    thread = ThreadPoolExecutor(1, "rotation-http")
    call = thread.submit(_asked, spec, values, where)
    thread.shutdown(wait=False)
    try:
        return call.result(spec.timeout_s + GRACE_S)
    except TimeoutError as error:
        raise _too_late(where, spec) from error


def _asked(spec: Http, values: Mapping[str, str], where: str) -> tuple[int, bytes]:
    parts = urlsplit(spec.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {name: _filled(text, values) for name, text in spec.headers.items()}
    body = _body(spec, values)
    if isinstance(spec.body, dict):
        headers.setdefault("Content-Type", "application/json")
    connection = _connection(spec, parts.scheme, str(parts.hostname), parts.port)
    over = threading.Event()
    watch = threading.Timer(spec.timeout_s, _cut, (connection, over))
    watch.start()
    try:
        connection.connect()
        if over.is_set():
            raise TimeoutError  # it came too late: whoever asked was told so, and nothing is sent behind his back
        if parts.scheme == "http":
            _check_loopback(connection.sock)
        connection.request(spec.method, target, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_LIMIT)
    except (OSError, http.client.HTTPException) as error:
        if over.is_set() or isinstance(error, TimeoutError):
            raise _too_late(where, spec) from error
        raise Unavailable(f"{where} did not answer: {type(error).__name__}.", "See whether it runs.") from error
    except ValueError as error:
        raise ConsoleError(
            "A value cannot be put into a header: it holds characters that no header has.", "Put it into the body."
        ) from error
    finally:
        watch.cancel()
        watch.join()
        connection.close()


def _too_late(where: str, spec: Http) -> TimedOut:
    return TimedOut(f"{where} did not answer within {spec.timeout_s:g} s.", "See whether it runs.")


def field_of(body: bytes, dotted: str) -> str:
    """The text at ``dotted`` of a JSON body. Raises ConsoleError when there is none."""
    try:
        found: Any = json.loads(body)
        for name in dotted.split("."):
            found = found[name]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConsoleError(f"The answer has no {dotted}.", "Check answer_field in the plan.") from error
    if not isinstance(found, str) or not found:
        raise ConsoleError(f"{dotted} of the answer is no text.", "Check answer_field in the plan.")
    return found


def _connection(spec: Http, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "http":
        # http.client knows neither proxies nor redirects: a secret goes to the address in the plan and nowhere else.
        return http.client.HTTPConnection(host, port, timeout=spec.timeout_s)
    try:
        context = ssl.create_default_context(cafile=spec.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ConsoleError(f"The certificates in {spec.ca_file} cannot be used.", "Check ca_file in the plan.") from error
    return http.client.HTTPSConnection(host, port, timeout=spec.timeout_s, context=context)


def _check_loopback(sock: socket.socket) -> None:
    """What "localhost" leads to is the resolver's word; the peer's address is the kernel's."""
    if not ipaddress.ip_address(sock.getpeername()[0].partition("%")[0]).is_loopback:
        raise OSError("it is not on this machine")


def _cut(connection: http.client.HTTPConnection, over: threading.Event) -> None:
    """Ends a talk whose other side drips: each byte would begin a new time-out of the socket's."""
    over.set()
    sock = connection.sock
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already


def _body(spec: Http, values: Mapping[str, str]) -> bytes | None:
    if spec.body is None:
        return None
    if isinstance(spec.body, str):
        return _filled(spec.body, values).encode()
    return json.dumps(_filled_deep(spec.body, values)).encode()


def _filled(text: str, values: Mapping[str, str]) -> str:
    # In one pass: a value that itself holds "{new}" is not filled again.
    out, rest = "", text
    while rest:
        spots = [(at, mark) for mark in values if (at := rest.find(f"{{{mark}}}")) >= 0]
        if not spots:
            return out + rest
        at, mark = min(spots)
        out, rest = out + rest[:at] + values[mark], rest[at + len(mark) + 2 :]
    return out


def _filled_deep(data: Any, values: Mapping[str, str]) -> Any:
    if isinstance(data, str):
        return _filled(data, values)
    if isinstance(data, dict):
        return {key: _filled_deep(value, values) for key, value in data.items()}
    if isinstance(data, list):
        return [_filled_deep(value, values) for value in data]
    return data
