"""Whether a sandbox's own port leads to a proxy that refuses: one request for a name that nothing can allow, made from inside it.

The name is new each time and has no dot, so no entry covers it. Whatever else answers at that port, or lets it through, is no proxy of
ours.
"""

from __future__ import annotations

import re
import secrets
import socket

from console.domain.errors import ConsoleError

PROBE_S = 10.0
"""Longest wait for an answer, on a machine that is busy with everything else."""
_MOST = 16384


def forbidden_name() -> str:
    """A destination that nobody allowed."""
    return f"watchfloor-probe-{secrets.token_hex(12)}"


def must_refuse(inside: socket.socket, name: str) -> None:
    """Asks for ``name`` over a connection to the port. Raises ConsoleError unless the answer is the proxy's refusal."""
    try:
        inside.settimeout(PROBE_S)
        inside.sendall(f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        answer = b""
        while len(answer) < _MOST and not _is_whole(answer) and (data := inside.recv(_MOST)):
            answer += data
    except OSError as error:
        raise _unproven(f"no answer ({error})") from error
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 403 ") or b"Destination not in allowlist" not in body or name.encode() not in body:
        raise _unproven(f"it answered {head.splitlines()[0][:80].decode('ascii', 'backslashreplace') if head else 'nothing'}")


def _is_whole(answer: bytes) -> bool:
    """Whether everything its head announced is there: Envoy leaves a connection open for a second longer than it needs to."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *(\d{1,6})\r?$", head)
    return bool(end) and length is not None and len(body) >= int(length[1])


def _unproven(what: str) -> ConsoleError:
    return ConsoleError(
        f"Whether its proxy refuses is not proven: a name that nothing allows was asked for from inside, and {what}.",
        "It gets no proxy; watchfloor doctor looks at Envoy.",
    )
