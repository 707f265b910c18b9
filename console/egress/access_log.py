"""Envoy's access log as records: which agent asked for what, whether it was let through, by which entry.

A tunnel has two lines, of the front door and of the gate behind it, joined by an id; only both together say what happened.
Everything but the agent id was chosen by an agent: text is cut and made printable ASCII.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from console.domain.network import MODEL, Allowlist, EgressRecord
from console.egress.url_test import judge_request

_POLL_S, _QUIET_POLL_S, _QUIET_S = 0.1, 0.5, 5.0
"""Seconds between two reads. The second value counts once nothing was written for the third."""
# Both lines are written when the tunnel ends, and each is flushed within 100 ms; on a busy machine later.
_JOIN_S = 3.0
# An agent decides how many requests it makes; without a bound its log fills the disk that a kill needs.
_ROTATE = 16 * 1024 * 1024
_LINE_MAX = 128 * 1024
_PENDING_MAX = 10_000
_HOST_MAX, _PATH_MAX, _WORDS_MAX = 260, 2000, 300
_TAKEN_AWAY = "not in the allowlist at that time, or denied to this agent by its type or its session's sensitivity"


def printable(text: object, limit: int) -> str:
    """Printable ASCII only: everything else as ``\\xNN`` or ``\\uNNNN``, cut to ``limit`` characters."""
    raw = "" if text is None else str(text)
    # A path may hold terminal codes, newlines or bidirectional marks, which would forge lines where it is shown.
    safe = raw[:limit].encode("unicode_escape").decode("ascii")
    return safe[:limit]


@dataclass(frozen=True, slots=True)
class _Half:
    """A line that waits for its counterpart."""

    line: dict[str, Any]
    since: float


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def record_of(line: dict[str, Any], gate: dict[str, Any] | None, allowlist: Allowlist) -> EgressRecord:
    """The record of one request: its line of the front door and, for a tunnel that was opened, the gate's."""
    method = printable(line.get("method"), 20)
    authority, path = printable(line.get("host"), _HOST_MAX), printable(line.get("path"), _PATH_MAX)
    status, allowed, rule = _verdict(line, gate, allowlist, (method, authority, path))
    try:
        at = float(line.get("t", ""))
    except (TypeError, ValueError):
        at = time.time()
    return EgressRecord(
        at=at,
        agent_id=printable(line.get("agent"), 63),
        method=method,
        host=authority.removesuffix(":443" if method == "CONNECT" else ":80"),
        path=path,
        status=status,
        bytes_up=_number(line.get("up")),
        bytes_down=_number(line.get("down")),
        allowed=allowed,
        rule=printable(rule, _WORDS_MAX),
    )


def _verdict(line: dict[str, Any], gate: dict[str, Any] | None, allowlist: Allowlist, asked: tuple[str, str, str]) -> tuple[int, bool, str]:
    """(status, allowed, rule). A tunnel the gate closed is refused though Envoy had answered 200 to the CONNECT."""
    route, details, code = str(line.get("route") or ""), str(line.get("details") or ""), _number(line.get("code"))
    method, authority, path = asked
    entry = f"entry {route}" if route != MODEL else "its model's address"
    if details.startswith("rbac_access_denied"):
        return code, False, f"{entry}: the name is not known, or it leads to a private, own or metadata address"
    if route in ("", "-") or route == "none" or route.startswith("outside:"):
        if details != "direct_response":
            return code, False, f"not a request Envoy accepts: {details}"
        judged = judge_request(allowlist, method, authority, path)
        return code, False, _TAKEN_AWAY if judged.allowed else judged.reason
    if code in (400, 403) and details != "via_upstream":
        return code, False, f"{entry}: not a request Envoy accepts: {details}"
    if method != "CONNECT" or code != 200:
        return code, True, entry
    if gate is None:
        return 403, False, f"{entry}: the tunnel ended before its TLS was seen"
    return _gate_verdict(gate, entry, authority)


def _gate_verdict(gate: dict[str, Any], entry: str, authority: str) -> tuple[int, bool, str]:
    end = str(gate.get("end") or "")
    name = printable(gate.get("sni"), _HOST_MAX)
    if gate.get("flags") == "NR":
        return 403, False, f"{entry}: not TLS inside the tunnel"
    if not end.startswith("rbac_access_denied"):
        return (200 if gate.get("to") else 503), True, entry
    if name.lower() != authority.rsplit(":", 1)[0].lower():
        return 403, False, f"{entry}: the TLS server name {name!r} is not the host of the tunnel"
    return 403, False, f"{entry}: the name is not known, or it leads to a private, own or metadata address"


class Joiner:
    """Joins the two lines of a tunnel. Without clock of its own, so that tests need none."""

    def __init__(self) -> None:
        self._front: dict[str, _Half] = {}
        self._gate: dict[str, _Half] = {}
        self.unreadable = 0

    def take(self, raw: bytes, now: float) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
        """The complete pairs a further line makes: one, or none yet."""
        try:
            line = json.loads(raw)
        except ValueError:
            line = None
        if not isinstance(line, dict) or line.get("k") not in ("http", "gate") or len(raw) > _LINE_MAX:
            self.unreadable += 1
            return []
        ident = str(line.get("id") or "")
        if line["k"] == "gate":
            half = self._front.pop(ident, None)
            if half is not None:
                return [(half.line, line)]
            self._keep(self._gate, ident, line, now)
            return []
        if line.get("method") != "CONNECT" or line.get("code") != 200:
            return [(line, None)]
        gate = self._gate.pop(ident, None)
        if gate is not None:
            return [(line, gate.line)]
        self._keep(self._front, ident, line, now)
        return []

    def _keep(self, halves: dict[str, _Half], ident: str, line: dict[str, Any], now: float) -> None:
        if len(halves) >= _PENDING_MAX:
            halves.pop(next(iter(halves)))
            self.unreadable += 1
        halves[ident] = _Half(line, now)

    def overdue(self, now: float) -> list[tuple[dict[str, Any], None]]:
        """Front lines whose gate line never came: not known to have passed, so not shown as passed."""
        late = [k for k, h in self._front.items() if now - h.since > _JOIN_S]
        for key in [k for k, h in self._gate.items() if now - h.since > 10 * _JOIN_S]:
            del self._gate[key]
        return [(self._front.pop(k).line, None) for k in late]


class AccessLog:
    """Follows the file in a thread and tells every record once."""

    def __init__(
        self, path: Path, on_record: Callable[[EgressRecord], None], allowlist: Callable[[], Allowlist], reopen: Callable[[], None]
    ) -> None:
        self._path, self._on_record, self._allowlist, self._reopen = path, on_record, allowlist, reopen
        self._joiner = Joiner()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._file: IO[bytes] | None = None
        self._rest = b""
        self._ours: set[str] = set()

    def overlook(self, host: str) -> None:
        """Skip the one request for this host. Its name is random, so the request is our own and no agent's."""
        if len(self._ours) >= _PENDING_MAX:
            self._ours.clear()
        self._ours.add(host)

    @property
    def following(self) -> bool:
        """Whether the log is being read."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def unreadable(self) -> int:
        """Lines that could not be understood, since the start."""
        return self._joiner.unreadable

    def start(self) -> None:
        """Forgets an earlier run's log and follows the new one."""
        self._path.unlink(missing_ok=True)
        self._stopping.clear()
        self._thread = threading.Thread(target=self._follow, name="egress-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Reads what is there and ends."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _follow(self) -> None:
        written = time.monotonic()
        try:
            while not self._stopping.wait(_POLL_S if time.monotonic() - written < _QUIET_S else _QUIET_POLL_S):
                if self._read():
                    written = time.monotonic()
                self._rotate()
            self._read()
            self._tell(self._joiner.overdue(time.monotonic() + 10 * _JOIN_S))
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _read(self) -> bool:
        """Read what is new; return whether there was anything."""
        is_new = False
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return False
        now = time.monotonic()
        while chunk := self._file.read(1 << 20):
            is_new = True
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for raw in lines:
                self._tell(self._joiner.take(raw, now))
            if len(self._rest) > 2 * _LINE_MAX:
                self._rest = b""
        self._tell(self._joiner.overdue(now))
        return is_new

    def _tell(self, pairs: list[Any]) -> None:
        for line, gate in pairs:
            record = record_of(line, gate, self._allowlist())
            if record.host in self._ours and not record.allowed:
                self._ours.discard(record.host)
            else:
                self._on_record(record)

    def _rotate(self) -> None:
        if self._file is None or self._file.tell() < _ROTATE:
            return
        with contextlib.suppress(OSError):  # Envoy is down: later
            old = self._path.with_suffix(".old")
            self._path.rename(old)
            self._reopen()
            time.sleep(0.3)  # what Envoy still had for the old file (flushed every 100 ms)
            self._read()
            self._file.close()
            self._file = None
            old.unlink()
