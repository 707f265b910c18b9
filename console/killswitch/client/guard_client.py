"""Asks the guard: one JSON line each way over its unix socket. Synchronous and thread-safe."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from console.domain import errors
from console.domain.errors import ConsoleError, TimedOut, TooMany, Unreachable
from console.domain.guard import ANSWER_S, HELPER_S, LINE_LIMIT, MOVE_S, SILENT_S, cut, decode, encode
from console.killswitch.client import patience
from console.killswitch.kernel import processes

_KINDS: dict[str, type[ConsoleError]] = {
    kind.__name__: kind
    for kind in (
        errors.UsageProblem,
        errors.TooLarge,
        errors.NotFound,
        errors.Denied,
        errors.Frozen,
        errors.Conflict,
        errors.Killed,
        errors.Unavailable,
        errors.NotRecorded,
        errors.TooMany,
    )
}


_HELPED_S = {
    **dict.fromkeys(("adoptable", "doubts", "prove"), HELPER_S + 5),
    "unlatch": 2 * HELPER_S + 5,
    "passphrase": 3 * HELPER_S + 5,
    "adopt": 2 * MOVE_S + 5,
}
"""Operations for which the guard asks its helpers, with the time of all of them: who gives up sooner calls failed what is done."""
_ALONE = frozenset(("soft_stop", "lease"))
"""Operations that stop at once and are recorded by the clerk: neither waits behind another call, and no call waits behind them."""
_QUICK = frozenset(
    ("freeze", "freezing", "isolate", "hold", "heartbeat", "status", "procs", "counts", "connections", "progress", "receipt")
)
"""Operations that the guard answers at once. All others wait for its clerk, and may wait there behind a helper."""
PAUSE_S = 0.01
BUSY = "The guard is busy: it accepts no connection."
_REASON_BYTES = 1000
"""Of one line: a letter may take twelve of them, and no reason may keep a press from going out."""


def order_lines(fields: dict[str, Any], scope: str | list[str]) -> list[bytes]:
    """An order in as many lines as its agents take; every line but the last says that more follow, and nothing begins before the last."""
    if isinstance(scope, str):
        return [encode({**fields, "scope": scope})]
    own = {key: fields[key] for key in ("op", "kill_id")} | {"more": True}
    room = LINE_LIMIT - len(encode({**fields, "asked_at": 0.0, "scope": []})) - 64
    lines, part, size = list[bytes](), list[str](), 0
    for agent_id in scope:
        cost = len(json.dumps(agent_id)) + 1
        if part and size + cost > room:
            lines.append(encode({**own, "scope": part}))
            part, size = [], 0
        part.append(agent_id)
        size += cost
    return [*lines, encode({**fields, "asked_at": round(time.monotonic(), 3), "scope": part})]


class _Ordering:
    """One order, on a connection of its own: said once, asked after, and said again only to a guard that does not have it."""

    def __init__(self, path: Path, lines: list[bytes], kill_id: str, timeout_s: float) -> None:
        self._path, self._lines, self._kill_id = path, lines, kill_id
        self._until = time.monotonic() + timeout_s
        self._done: tuple[int, ...] = ()
        """What the guard's process had done when it was last looked at."""

    def send(self) -> str:
        """The id of the kill that it became. Raises as ``GuardClient.press``."""
        while True:
            try:
                return self._said()
            except EOFError:  # it ended in the middle, or refused the connection
                if time.monotonic() > self._until:
                    raise Unreachable("The guard closes every connection.", "watchfloor panic works without it.") from None
            if self._has_it():  # a successor that read of it
                return self._kill_id
            time.sleep(PAUSE_S)

    def _said(self) -> str:
        """EOFError when the connection broke before the guard answered."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            try:
                _connect(sock, self._path, max(0.0, self._until - time.monotonic()))
                sock.settimeout(ANSWER_S)
            except TimeoutError as error:
                raise TimedOut(BUSY, "watchfloor panic works without it.") from error
            except OSError as error:
                raise Unreachable(f"The guard cannot be reached: {error}.", "watchfloor panic works without it.") from error
            inbox, left = b"", len(self._lines)
            try:
                sock.sendall(b"".join(self._lines))
                while left:
                    while b"\n" not in inbox:
                        data = self._next(sock)
                        if not data:
                            return self._kill_id
                        inbox += data
                    line, _, inbox = inbox.partition(b"\n")
                    answer, left = _checked(decode(line)), left - 1
            except (BrokenPipeError, ConnectionResetError, TooMany) as error:
                raise EOFError from error
            except (OSError, ValueError) as error:
                raise Unreachable(f"The guard cannot be reached: {error}.", "watchfloor panic works without it.") from error
        return str(answer["kill_id"])

    def _next(self, sock: socket.socket) -> bytes:
        """More of the answer; nothing when the guard says elsewhere that it has the order, and is only too busy to answer here."""
        while True:
            try:
                if data := sock.recv(LINE_LIMIT):
                    return data
                raise EOFError
            except TimeoutError as error:
                if self._has_it():
                    return b""
                if time.monotonic() > self._until or self._stands_still(sock):
                    raise TimedOut("The guard did not answer in time.", "watchfloor panic works without it.") from error

    def _has_it(self) -> bool:
        """Whether the guard says that it has the order. No answer is no."""
        client = GuardClient(self._path, ANSWER_S)
        try:
            client.progress(self._kill_id)
        except ConsoleError:
            return False
        finally:
            client.close()
        return True

    def _stands_still(self, sock: socket.socket) -> bool:
        """Whether its process is stopped, or has done nothing since the last look. A pid that is not seen from here says nothing."""
        pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if pid <= 0:
            return False
        letter, done = processes.state(pid), patience.done_by(pid)
        # No wait makes a stopped or ended guard answer, so the caller kills by itself at once.
        if letter in ("T", "t", "Z", "X", ""):
            return True
        is_still, self._done = bool(self._done) and done == self._done and letter != "R", done
        return is_still


def _connect(sock: socket.socket, path: Path, timeout_s: float) -> None:
    """TimeoutError while its backlog stays full (unix(7), EAGAIN): a guard that lives, and is busy."""
    until = time.monotonic() + timeout_s
    while True:
        try:
            sock.settimeout(max(PAUSE_S, timeout_s))
            sock.connect(str(path))
            return
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise TimeoutError from error
            time.sleep(PAUSE_S)


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, unless it is a refusal: then its kind is raised."""
    if answer.get("ok") is not True:
        kind = _KINDS.get(str(answer.get("kind")), ConsoleError)
        raise kind(str(answer.get("error", "The guard refused.")), str(answer.get("remedy", "")))
    return answer


class _Line:
    """One connection, made at its first use and again after it broke; one call at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._inbox = b""

    def exchange(self, line: bytes, timeout_s: float) -> dict[str, Any]:
        with self._lock:
            try:
                return self._again(line, timeout_s)
            except (OSError, ValueError) as error:
                self._close()
                if isinstance(error, TimeoutError):
                    raise TimedOut("The guard is busy: it did not answer in time.", "watchfloor panic works without it.") from error
                raise Unreachable(f"The guard cannot be reached: {error}.", "watchfloor panic works without it.") from error

    def _again(self, line: bytes, timeout_s: float) -> dict[str, Any]:
        is_old = self._sock is not None
        try:
            return self._once(line, timeout_s)
        except (BrokenPipeError, ConnectionResetError, EOFError):
            self._close()
            if not is_old:
                raise ConnectionError("it closed the connection") from None
        try:
            return self._once(line, timeout_s)  # a guard that was restarted since the last call
        except EOFError as error:
            raise ConnectionError("it closed the connection") from error

    def _once(self, line: bytes, timeout_s: float) -> dict[str, Any]:
        if self._sock is None:
            self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._inbox = b""
            _connect(self._sock, self._path, timeout_s)
        self._sock.settimeout(timeout_s)
        self._sock.sendall(line)
        while b"\n" not in self._inbox:
            data = self._sock.recv(LINE_LIMIT)
            if not data:
                raise EOFError
            self._inbox += data
        answer, _, self._inbox = self._inbox.partition(b"\n")
        return decode(answer)

    def _close(self) -> None:
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.close()
        self._sock = None

    def close(self) -> None:
        """Ends the connection; the next call makes a new one."""
        with self._lock:
            self._close()


class GuardClient:
    """Keeps two connections, which outlive a state directory that is moved: a freeze or a heartbeat never waits behind what the guard's
    clerk does. What its helpers do has a connection of its own, and so have a press, a soft stop and a lease."""

    def __init__(self, sock_path: Path, timeout_s: float = 5.0) -> None:
        self._path = sock_path
        self._timeout_s = timeout_s
        self._quick, self._slow = _Line(sock_path), _Line(sock_path)

    def call(self, op: str, *, timeout_s: float | None = None, **fields: Any) -> dict[str, Any]:
        """The answer to one operation. Unreachable, TimedOut, or the kind of ConsoleError the guard refused with.

        ``timeout_s``: instead of the client's own, or what helpers of the guard take for this operation.
        """
        try:
            line = encode({"op": op, **fields})
        except ValueError as error:
            raise errors.TooLarge("The request does not fit into one line of 4 KiB.", "Name fewer agents at once.") from error
        timeout_s = timeout_s or _HELPED_S.get(op, self._timeout_s)
        if op not in _HELPED_S and op not in _ALONE:
            return _checked((self._quick if op in _QUICK else self._slow).exchange(line, timeout_s))
        own = _Line(self._path)
        try:
            return _checked(own.exchange(line, timeout_s))
        finally:
            own.close()

    def close(self) -> None:
        """Ends the connections that are kept; the next call makes a new one."""
        self._quick.close()
        self._slow.close()

    # --- operations -----------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The guard's answer to ``status``: latch, holds, agents, the newest kill, the lease."""
        return self.call("status")

    def press(
        self,
        scope: str | list[str],
        reason: str,
        by: str,
        order: str = "",
        timeout_s: float = SILENT_S,
        kill_id: str = "",
        op: str = "press",
    ) -> str:
        """Kills; gives the kill's id once the first SIGKILL wave went out. Never waits behind another call.

        ``kill_id``: the id of the order, made by the caller (``new_kill_id``) before the first try. The guard carries an order out once,
        however often it hears its id. A guard that does not answer is asked whether it has the order; nothing is repeated beside it.
        Unreachable: no guard runs. TimedOut: it stands still, or did not take the order within ``timeout_s``.
        """
        from console.killswitch.kill.receipt import new_kill_id

        kill_id = kill_id or new_kill_id()
        fields = {"op": op, "reason": cut(reason, _REASON_BYTES, 500), "by": by[:100], "order": order[:200], "kill_id": kill_id}
        return _Ordering(self._path, order_lines(fields, scope), kill_id, timeout_s).send()

    def end_suspects(self, kill_id: str, pids: Sequence[int], by: str) -> dict[str, Any]:
        """Kills the suspects of a kill that are named, or its preselected ones; says of each what became of it."""
        return self.call("suspects", kill_id=kill_id, pids=list(pids), by=by[:100])

    def progress(self, kill_id: str) -> dict[str, Any]:
        return self.call("progress", kill_id=kill_id)

    def receipt_text(self, kill_id: str) -> str:
        """The receipt as the guard has it in memory (JSON), whatever the disk says."""
        text, offset = "", 0
        while True:
            piece = self.call("receipt", kill_id=kill_id, offset=offset)
            text += str(piece["text"])
            if piece["next"] is None:
                return text
            offset = int(piece["next"])

    def freeze(self, scope: str | list[str], cause: str = "operator", by: str = "") -> dict[str, Any]:
        return self.call("freeze", scope=scope, cause=cause, by=by)

    def thaw(self, scope: str | list[str], cause: str = "operator", by: str = "") -> dict[str, Any]:
        return self.call("thaw", scope=scope, cause=cause, by=by)

    def halt(self, scope: list[str], reason: str, by: str = "budget", kill_id: str = "") -> str:
        """As ``press``, of agents that a limit stopped."""
        return self.press(scope, reason, by, kill_id=kill_id, op="halt")

    def soft_stop(self, on: bool, why: str = "") -> dict[str, Any]:
        return self.call("soft_stop", on=on, why=why[:300])
