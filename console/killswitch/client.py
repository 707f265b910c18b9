"""Asks the guard: one JSON line each way over its unix socket. Synchronous and thread-safe."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

from console.domain import errors
from console.domain.errors import ConsoleError, TimedOut, Unreachable
from console.domain.guard import ANSWER_S, LINE_LIMIT, decode, encode

_KINDS: dict[str, type[ConsoleError]] = {
    kind.__name__: kind
    for kind in (
        errors.UsageProblem,
        errors.TooLarge,
        errors.NotFound,
        errors.Denied,
        errors.Conflict,
        errors.Killed,
        errors.Unavailable,
        errors.NotRecorded,
    )
}


_REASON_BYTES = 1000
"""Of one line: a letter may take twelve of them, and no reason may keep a press from going out."""


def _short(reason: str) -> str:
    kept = reason[:500]
    while len(json.dumps(kept)) > _REASON_BYTES:
        kept = kept[: len(kept) * 3 // 4]
    return kept


class GuardClient:
    """One connection, made at the first call and again after it broke; presses use one of their own."""

    def __init__(self, sock_path: Path, timeout_s: float = 5.0) -> None:
        self._path = sock_path
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._inbox = b""

    def call(self, op: str, *, timeout_s: float | None = None, **fields: Any) -> dict[str, Any]:
        """The answer to one operation. Unreachable, TimedOut, or the kind of ConsoleError the guard refused with."""
        try:
            line = encode({"op": op, **fields})
        except ValueError as error:
            raise errors.TooLarge("The request does not fit into one line of 4 KiB.", "Name fewer agents at once.") from error
        with self._lock:
            try:
                answer = self._exchange(line, timeout_s if timeout_s is not None else self._timeout_s)
            except (OSError, ValueError) as error:
                self._close()
                if isinstance(error, TimeoutError):
                    raise TimedOut("The guard did not answer in time.", "watchfloor panic works without it.") from error
                raise Unreachable(f"The guard cannot be reached: {error}.", "watchfloor panic works without it.") from error
        if answer.get("ok") is not True:
            kind = _KINDS.get(str(answer.get("kind")), ConsoleError)
            raise kind(str(answer.get("error", "The guard refused.")), str(answer.get("remedy", "")))
        return answer

    def _exchange(self, line: bytes, timeout_s: float) -> dict[str, Any]:
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
            self._sock.settimeout(timeout_s)
            self._sock.connect(str(self._path))
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

    # --- operations -----------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The guard's answer to ``status``: latch, holds, agents, the newest kill, the lease."""
        return self.call("status")

    def press(self, scope: str | list[str], reason: str, by: str, order: str = "", timeout_s: float = ANSWER_S) -> str:
        """Kills; gives the kill's id once the first SIGKILL wave went out. Never waits behind another call."""
        own = GuardClient(self._path, timeout_s)
        try:
            return str(own.call("press", scope=scope, reason=_short(reason), by=by[:100], order=order[:200])["kill_id"])
        finally:
            own.close()

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

    def halt(self, scope: list[str], reason: str, by: str = "budget") -> str:
        return str(self.call("halt", scope=scope, reason=_short(reason), by=by)["kill_id"])

    def soft_stop(self, on: bool, why: str = "") -> dict[str, Any]:
        return self.call("soft_stop", on=on, why=why[:300])
