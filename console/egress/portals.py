"""Who has a proxy: given, seen to refuse, cut, taken away. What is slow about it comes before, or after, never in between."""

from __future__ import annotations

import re
import secrets
import socket
import threading
from pathlib import Path

from console.domain.errors import Conflict, ConsoleError, Unavailable, UsageProblem
from console.domain.ids import AGENT_ID
from console.domain.network import Narrowing, Sensitivity
from console.egress.access_log import AccessLog
from console.egress.envoy.fragments import Slot
from console.egress.live import LiveConfig
from console.egress.relays import Relays


class Portals:
    """The sandboxes' half of egress; every method may be called from any thread and blocks."""

    _live: LiveConfig
    _log: AccessLog
    _relays: Relays

    def __init__(self) -> None:
        self._config_lock = threading.RLock()
        self._started = False

    def ready(self, agent_id: str, narrowing: Narrowing | None = None, level: Sensitivity = Sensitivity.PUBLIC) -> None:
        """Makes everything of an ``attach`` that needs no port yet, so that it is quick. ``detach`` takes it back. Raises as ``attach``."""
        with self._config_lock:
            self._must_run(agent_id)
            self._slot(agent_id, narrowing, level)

    def attach(
        self,
        agent_id: str,
        pid: int,
        start_ticks: int,
        userns: bool,
        door: Path | None = None,
        narrowing: Narrowing | None = None,
        level: Sensitivity = Sensitivity.PUBLIC,
    ) -> None:
        """Gives a loopback-only sandbox its proxy on 127.0.0.1:3128, or at ``door`` (a unix socket's path) where a forwarder inside has
        that port. Call it before the agent runs. ``narrowing``: what is taken away from the list for this one; ``level``: the class of the
        data in its session, which an entry must be allowed to receive.

        Returns once a name that nothing allows was asked for through that very port, and refused. Raises Conflict (attached already, not
        loopback-only, port taken, another process), Unavailable, Refused, ConsoleError (not seen to refuse); then it has no network.
        """
        with self._config_lock:
            self._must_run(agent_id)
            if agent_id in self._relays:
                raise Conflict(f"{agent_id} is attached already.", "Detach it first.")
            try:
                slot = self._slot(agent_id, narrowing, level)
                most = narrowing.most_bytes if narrowing else 0
                # A relative path from the egress folder: a unix socket's path may have 107 bytes at most (unix(7)).
                with self._relays.open(agent_id, f"sock/{slot.name}.sock", pid, start_ticks, userns, door, most) as inside:
                    name = forbidden_name()
                    self._log.overlook(name)
                    must_refuse(inside, name)
            except (ConsoleError, OSError) as error:
                self._relays.close(agent_id)
                self._live.remove(agent_id)
                if isinstance(error, ConsoleError):
                    raise
                raise Unavailable(
                    f"{agent_id} got no proxy: {error}.", "The agent was not started; fix the cause and try again."
                ) from error

    def _must_run(self, agent_id: str) -> None:
        if not AGENT_ID.match(agent_id):
            raise UsageProblem(f"{agent_id[:80]!r} is not an agent id.", "watchfloor fleet lists the ids.")
        if not self._started:
            raise Unavailable("Envoy was not started.", "Start the proxy first.")

    def _slot(self, agent_id: str, narrowing: Narrowing | None, level: Sensitivity) -> Slot:
        slot = self._live.slots.get(agent_id)
        if slot is not None and (slot.narrowing, slot.level) != (narrowing, level):
            self._live.remove(agent_id)
            slot = None
        return slot or self._live.add(agent_id, narrowing, level)

    def classify(self, agent_id: str, level: Sensitivity) -> int:
        """Data of ``level`` came into its session: from here on only entries that may receive it, and every connection is cut; how many.

        Raises ConsoleError when Envoy does not confirm it; then it has no network.
        """
        with self._config_lock:
            slot = self._live.slots.get(agent_id)
            # The class only rises (ratchet): a lower one asked for later opens nothing again.
            if slot is None or agent_id not in self._relays or level.level <= slot.level.level:
                return 0
            try:
                self._live.classify(agent_id, level)
            except (ConsoleError, OSError) as error:
                self._relays.close(agent_id)
                self._live.remove(agent_id)
                raise Unavailable(
                    f"{agent_id} lost its proxy, which did not take the class of its data: {error}.", "Start it again."
                ) from error
        return self._relays.cut(agent_id)

    def detach(self, agent_id: str) -> int:
        """Takes the network away: port closed, every connection reset, the relay gone before this returns; how many. Not attached:
        nothing to do. What Envoy knew of it goes behind that."""
        return self._relays.close(agent_id, lambda: self._forget(agent_id))

    def attached(self) -> list[str]:
        """The agents that have a proxy now."""
        return self._relays.names()

    def relay_pids(self) -> dict[str, int]:
        """The relay process of each attached agent."""
        return self._relays.pids()

    def _forget(self, agent_id: str) -> None:
        with self._config_lock:
            if self._started and agent_id not in self._relays:  # else it got a new one meanwhile
                self._live.remove(agent_id)

    def _end_portals(self) -> None:
        """No port is left, nothing is to be cleared away any more, and no port is opened from here on."""
        self._relays.close_all()
        with self._config_lock:
            self._started = False
        self._relays.close_all()  # one that was being opened meanwhile


# --- Whether a sandbox's own port leads to a proxy that refuses: one request for a name that nothing can allow, made from inside it.


PROBE_S = 10.0
"""Longest wait for an answer, on a machine that is busy with everything else."""
_MOST = 16384


def forbidden_name() -> str:
    """Return a random destination that no entry allows."""
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
