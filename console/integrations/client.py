"""How an agent speaks to Watchfloor: the standard library alone, over the agent's own socket. Copy this file beside your agent.

Every call returns the answer as a dict, or raises Refused with Watchfloor's words. The socket is the identity: no token is needed.
Run as a program it prints who it is: ``python -I -S client.py``.
"""

import base64
import contextlib
import http.client
import json
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any


class Refused(Exception):
    """Watchfloor said no, or did not answer (status 0). ``status`` is the HTTP status."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status


class Agent:
    """This agent's side of the connection to the supervisor that started it. Usable from several threads, and after a fork.

    One connection is kept from call to call. It ends after half a minute of silence, or when the supervisor restarts; the next call then
    makes a new one. No request is carried out twice: one is sent again only where the kernel reports that it was never read. Where that is
    unknown the call is Refused with status 0, as when there is no supervisor.
    """

    def __init__(self, path: str = "", timeout_s: float = 60) -> None:
        self.path = path or os.environ.get("WATCHFLOOR_AGENT_SOCKET", "WATCHFLOOR_AGENT_SOCKET (not set)")
        self.timeout_s = timeout_s
        self._line = _Line()

    def __reduce__(self) -> tuple[type["Agent"], tuple[str, float]]:
        return Agent, (self.path, self.timeout_s)

    def close(self) -> None:
        """Ends the connection that is kept. The next call makes a new one."""
        self._line.close()

    def call(self, method: str, route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request; ``body`` goes as JSON."""
        try:
            status, text = self._line.exchange(self.path, self.timeout_s, method, _letter(method, route, body))
            data: dict[str, Any] = json.loads(text or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Refused(0, f"no supervisor at {self.path}: {error}") from error
        if status >= 400:
            raise Refused(status, f"{data.get('error', '')} {data.get('remedy', '')}".strip())
        return data

    def spawn(self, argv: list[str], **options: Any) -> dict[str, Any]:
        """Starts a child agent; options: name, context_id, sandbox, sensitivity, network_mode, limits. Answers with its id."""
        return self.call("POST", "/v1/spawn", {"argv": argv, **options})

    def usage(self, **increments: Any) -> dict[str, Any]:
        """Adds to what was used: iterations, tokens, tool_calls, cost_usd, errors since the last report, and ``action`` in words."""
        return self.call("POST", "/v1/usage", increments)

    def reserve(self, **estimate: Any) -> dict[str, Any]:
        """Sets aside what a call may use: iterations, tokens, tool_calls, cost_usd; tool, key, ttl_s. Refused: do not make the call."""
        return self.call("POST", "/v1/reserve", estimate)

    def settle(self, reservation_id: str, **used: Any) -> dict[str, Any]:
        """What the call really used, and ``errors``; the answer of ``reserve`` has the id. What is not settled is counted in full."""
        return self.call("POST", "/v1/settle", {"id": reservation_id, **used})

    def permission(self, tool: str, argument: str = "", **more: Any) -> dict[str, Any]:
        """Asks before acting. Go ahead only when the answer's ``verdict`` is ``allow``.

        more: cwd, detail, says, call_id; ``wait_s``: so long for a human, then ``ask`` with ``approval_id``, and the same request later.
        """
        return self.call("POST", "/v1/permission", {"tool": tool, "argument": argument, **more})

    def asked(self, approval_id: str) -> dict[str, Any]:
        """What became of one's own request: ``state`` is waiting, approved, used, denied, expired or void. To act, ask again."""
        return self.call("GET", f"/v1/approvals/{approval_id}")

    def execute(
        self, tool: str, argument: str, tell: Callable[[str, bytes], Any] = lambda stream, data: None, **more: Any
    ) -> dict[str, Any]:
        """Has Watchfloor run a judged call in a sandbox: tool shell, argv (a JSON list) or python; more: cwd, timeout_s, says, call_id.

        ``tell("stdout" | "stderr", bytes)`` hears what it writes at once. The answer says how it ended: ``code``, ``signal``, ``limit``,
        ``ms``, and which files can be put back (``rollback``, ``not_kept``); ``stdout`` and ``stderr`` are bytes. Refused with the rule
        when it is not allowed; to leave is to end it.
        """
        kept: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        told: dict[str, Any] = {}
        for line in self._lines("/v1/execute", {"tool": tool, "argument": argument, **more}):
            if line["event"] == "output":
                data = base64.b64decode(line["b64"])
                kept[line["stream"]] += data
                tell(line["stream"], data)
                continue
            told |= line
            if line["event"] == "ended":
                return {**told, **kept}
        raise Refused(0, "the connection ended before the call did: what became of it is not known")

    def _lines(self, route: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The answer line by line, however long a human, or the call, takes."""
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(self.path)
                connection = http.client.HTTPConnection("localhost")
                connection.sock = sock
                connection.request("POST", route, json.dumps(body), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                if answer.status >= 400:
                    data = json.loads(answer.read() or b"{}")
                    raise Refused(answer.status, f"{data.get('error', '')} {data.get('remedy', '')}".strip())
                while line := answer.readline():
                    yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Refused(0, f"no supervisor at {self.path}: {error}") from error

    def private_data(self, dataset: str, sensitivity: str, source: str = "") -> dict[str, Any]:
        """Says that data of this sensitivity is about to enter the session; the network may tighten before it answers."""
        return self.call("POST", "/v1/private-data", {"dataset": dataset, "sensitivity": sensitivity, "source": source})

    def notices(self, after: int = 0) -> dict[str, Any]:
        """What Watchfloor tells this agent; pass the answer's ``next`` as ``after``."""
        return self.call("GET", f"/v1/notices?after={after}")

    def me(self) -> dict[str, Any]:
        """This agent as Watchfloor sees it."""
        return self.call("GET", "/v1/self")


class _Line:
    """The connection that is kept; at most one, and taken out while it is in use."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, socket.socket]] = []
        """With the process that made it."""

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self.kept.pop()[1].close()

    def exchange(self, path: str, timeout_s: float, method: str, letter: bytes) -> tuple[int, bytes]:
        """Status and body of the answer."""
        sock, is_kept = self._take(path, timeout_s)
        try:
            try:
                _send(sock, letter)
            except (BrokenPipeError, ConnectionResetError):
                if not is_kept:
                    raise
                sock.close()
                sock = self.connect(path, timeout_s)
                _send(sock, letter)
            answer = http.client.HTTPResponse(sock, method=method)
            answer.begin()
            text = answer.read()
        except BaseException:
            sock.close()
            raise
        if answer.will_close:
            sock.close()
        else:
            self._keep(sock)
        return answer.status, text

    def connect(self, path: str, timeout_s: float) -> socket.socket:
        """A new one."""
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(timeout_s)
            sock.connect(path)
        except BaseException:
            sock.close()
            raise
        return sock

    def _take(self, path: str, timeout_s: float) -> tuple[socket.socket, bool]:
        """Return a connection that no other call uses, and whether it was used before."""
        with contextlib.suppress(IndexError):
            while True:
                maker, sock = self.kept.pop()
                if maker == os.getpid() and _is_silent(sock):  # the other end of a fork goes on with it
                    sock.settimeout(timeout_s)
                    return sock, True
                sock.close()
        return self.connect(path, timeout_s), False

    def _keep(self, sock: socket.socket) -> None:
        self.kept.append((os.getpid(), sock))
        with contextlib.suppress(IndexError):
            while len(self.kept) > 1:
                self.kept.pop(0)[1].close()


class _Paper:
    """Takes down what http.client would send: its checks of every word, and one piece on the wire."""

    def __init__(self) -> None:
        self.text = b""

    def sendall(self, data: bytes) -> None:
        self.text += data


def _letter(method: str, route: str, body: dict[str, Any] | None) -> bytes:
    """A request as it goes over the wire."""
    connection, paper = http.client.HTTPConnection("localhost"), _Paper()
    connection.sock = paper
    connection.request(method, route, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    return paper.text


def _send(sock: socket.socket, letter: bytes) -> None:
    """Send the request; return when the answer begins. BrokenPipeError, ConnectionResetError: it was not read whole, so nothing came of it.

    A unix socket that is closed with unread bytes resets its peer. One that had read everything just ends (unix(7)). Then the result is
    unknown, and another error is raised.
    """
    sock.sendall(letter, getattr(socket, "MSG_NOSIGNAL", 0))  # an agent that asked to die of SIGPIPE does not mean this one
    if not sock.recv(1, socket.MSG_PEEK):
        raise ConnectionAbortedError("the connection ended before the answer: what became of the request is not known")


def _is_silent(sock: socket.socket) -> bool:
    """Return whether the connection is open, with no unexpected bytes in it."""
    sock.setblocking(False)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


if __name__ == "__main__":
    print(json.dumps(Agent().me()))
