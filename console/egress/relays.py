"""The relays: each carries one sandbox's port as an unprivileged process, and is cut for certain."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError
from console.egress.children import Identity, end, launch
from console.egress.envoy.prestart import Warm
from console.egress.portal import EXIT_DETACHED, EXIT_SANDBOX_GONE
from console.egress.ports import Helper, Port, open_door

# A relay that does not answer a cut within this is killed, which cuts the same: waiting longer only leaks more.
_READY_S, _REQUEST_S = 10.0, 1.0
_WORDS = 300


@dataclass(frozen=True, slots=True)
class Told:
    """Who hears of a relay, in a thread of its own."""

    on_end: Callable[[Relay, int], None]
    on_words: Callable[[str, str], None]
    """What people should know of it."""


class Relay:
    """The process that carries one sandbox's connections: started ahead, given its port once. It ends with us, its sandbox, or when told.

    Raises ConsoleError when it does not start, or not without privileges; then nothing is left.
    """

    def __init__(self, who: Identity, folder: Path) -> None:
        self.agent_id = ""
        self._told = self._over = False
        self._idle = 0
        self._after: Callable[[], None] = _nothing
        self._lock, self._ending = threading.Lock(), threading.Lock()
        self._answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._watcher: threading.Thread | None = None
        self._leaf: Path | None = None
        self._control, theirs = socket.socketpair()
        self._control.settimeout(_READY_S)
        self._lines = self._control.makefile("rb")
        with theirs:
            self._process: subprocess.Popen[bytes] = launch(who, folder, [], program="portal.py", stdin=theirs.fileno())
        try:
            ready = json.loads(self._lines.readline() or b"{}")
            if not ready.get("ok") or (os.geteuid() == 0 and (ready["uid"] != who.uid or int(ready["capabilities"], 16) != 0)):
                raise ConsoleError(
                    "The relay of the sandbox did not start without privileges.", "watchfloor doctor looks at what is missing."
                )
        except (OSError, ValueError) as error:
            self.discard()
            raise _broken(error) from error
        except ConsoleError:
            self.discard()
            raise
        self._control.settimeout(None)  # it answers; a thread of its own reads

    @property
    def pid(self) -> int | None:
        """Its pid while it runs."""
        return self._process.pid if self._process.poll() is None else None

    def waits(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    def carry(self, agent_id: str, port: Port, upstream: str, cgroup: Path | None, most: int, told: Told) -> None:
        """Gives it the port, whose listener and pidfd are closed here; ``most`` bytes go one way on one connection (0: no bound).

        Raises ConsoleError; then it has ended.
        """
        self.agent_id = agent_id
        try:
            if cgroup is not None:
                # A leaf of its own: whoever isolates this sandbox kills just this relay, through the kernel.
                self._leaf = cgroup / agent_id
                self._leaf.mkdir(exist_ok=True)
                # Before it gets its port: a relay that carries traffic and is in no group could not be cut by the guard.
                (self._leaf / "cgroup.procs").write_text(str(self._process.pid))
            order = {"upstream": upstream, "most": most}
            self._idle = self._descriptors() + 3  # two that it is given now, and the one it waits with
            with self._lock:
                # Only descriptors cross: the relay needs no right to enter a namespace, and the helper sees no byte of an agent.
                socket.send_fds(self._control, [json.dumps(order).encode()], [port.listener, port.pidfd])
                self._watcher = threading.Thread(target=self._watch, args=(told,), name=f"relay-{agent_id}", daemon=True)
                self._watcher.start()
        except OSError as error:
            self.discard()
            raise _broken(error) from error
        finally:
            for fd in (port.listener, port.pidfd):
                os.close(fd)

    def cut(self) -> int:
        """Resets every connection and keeps listening; how many. A relay that does not answer is ended: no network."""
        return self._request("revoke")

    def close(self, after: Callable[[], None]) -> int:
        """Ends the process by SIGKILL: with it the kernel closes the port and resets every connection (portal.RESET), hung or not. It has
        ended when this returns. How many were cut, as near as that can be seen; ``after`` is called once behind that, in a thread."""
        with self._ending:
            is_over, self._told, self._after = self._over, True, after
        count = max(0, self._descriptors() - self._idle) // 2
        self._process.kill()
        self._process.wait()
        if is_over:
            after()
        return count

    def _descriptors(self) -> int:
        try:
            return sum(1 for _ in Path(f"/proc/{self._process.pid}/fd").iterdir())
        except OSError:
            return 0

    def is_closing(self) -> bool:
        """Whether something comes yet after its close."""
        return self._watcher is not None and self._watcher.is_alive()

    def join(self) -> None:
        """Returns once what comes after a close is done."""
        if self._watcher is not None:
            self._watcher.join()

    def discard(self) -> None:
        """End the relay, and remove what is left of a closed one. Its watcher reads no more."""
        self._told = True
        end(self._process)
        if self._leaf is not None:
            with suppress(OSError):  # removed already, or the next relay of this sandbox lives in it
                self._leaf.rmdir()
        self._lines.close()
        self._control.close()

    def _request(self, op: str) -> int:
        with self._lock:
            if self._watcher is None:  # what it waits for is its order; it carries nothing yet
                return 0
            try:
                self._control.sendall(op.encode() + b"\n")
                return int(self._answers.get(timeout=_REQUEST_S).get("cut", 0))
            except (OSError, ValueError, queue.Empty):
                self._process.kill()  # hung or gone: the kernel closes every socket it had
                return 0

    def _watch(self, told: Told) -> None:
        with suppress(OSError, ValueError):
            for line in self._lines:
                said = json.loads(line)
                if "words" in said:
                    told.on_words(self.agent_id, str(said["words"])[:_WORDS])
                else:
                    self._answers.put(said)
        self._answers.put({})  # whoever waits for an answer gets none
        code = self._process.wait()
        with self._ending:
            self._over, was_told = True, self._told
        if was_told:
            self._after()
        else:
            told.on_end(self, code)


def _broken(error: Exception) -> ConsoleError:
    return ConsoleError(f"The relay of the sandbox did not start: {error}.", "watchfloor doctor looks at what is missing.")


class Relays:
    """The relays of all attached sandboxes. Cutting never waits for anything but the relay itself."""

    def __init__(
        self,
        who: Identity,
        folder: Path,
        cgroup: Path | None,
        on_gone: Callable[[str], None],
        on_death: Callable[[str], None],
        on_words: Callable[[str, str], None],
    ) -> None:
        self._folder, self._cgroup = folder, cgroup
        self._on_gone, self._on_death = on_gone, on_death
        self._told = Told(self._ended, on_words)
        self._lock = threading.Lock()
        self._relays: dict[str, Relay] = {}
        self._closing: set[Relay] = set()
        self._helpers = Warm("helper", Helper)
        self._spares = Warm("relay", lambda: Relay(who, folder))
        for leaf in cgroup.iterdir() if cgroup is not None and cgroup.is_dir() else ():
            with suppress(OSError):  # empty ones that a crash left behind
                leaf.rmdir()

    def __contains__(self, agent_id: object) -> bool:
        with self._lock:
            return agent_id in self._relays

    def names(self) -> list[str]:
        """The agents that have one."""
        with self._lock:
            return sorted(self._relays)

    def pids(self) -> dict[str, int]:
        """The process of each."""
        with self._lock:
            return {agent_id: relay.pid for agent_id, relay in self._relays.items() if relay.pid is not None}

    def start(self) -> None:
        """From now on a helper and a relay are kept started ahead."""
        self._helpers.open()
        self._spares.open()

    def open(self, agent_id: str, upstream: str, pid: int, start_ticks: int, userns: bool, door: Path | None, most: int) -> socket.socket:
        """Opens the sandbox's port and relays it to ``upstream``; a connection to it from inside. Raises ConsoleError, OSError; then
        nothing is left."""
        port = open_door(door, pid, start_ticks) if door is not None else self._helpers.take().bind(pid, start_ticks, userns)
        try:
            relay = self._spares.take()
        except (ConsoleError, OSError):
            port.close()
            raise
        inside = socket.socket(fileno=port.inside)
        with self._lock:
            self._relays[agent_id] = relay
        try:
            relay.carry(agent_id, port, upstream, self._cgroup, most, self._told)
        except ConsoleError:
            with self._lock:
                self._relays.pop(agent_id, None)
            inside.close()
            raise
        return inside

    def cut(self, agent_id: str) -> int:
        """Resets the connections of one sandbox, which keeps its port."""
        with self._lock:
            relay = self._relays.get(agent_id)
        return relay.cut() if relay is not None else 0

    def cut_all(self) -> int:
        """Resets the connections of every sandbox."""
        return sum(self.cut(agent_id) for agent_id in self.names())

    def close(self, agent_id: str, after: Callable[[], None] = lambda: None) -> int:
        """Takes one sandbox's port and connections away: how many. ``after`` is called behind that, here where it had none."""
        with self._lock:
            relay = self._relays.pop(agent_id, None)
            if relay is not None:
                self._closing = {r for r in self._closing if r.is_closing()} | {relay}
        if relay is None:
            after()
            return 0

        def clear() -> None:
            relay.discard()
            after()

        return relay.close(clear)

    def close_all(self) -> None:
        """All of them, and what was started ahead; returns when nothing of it is left."""
        for agent_id in self.names():
            self.close(agent_id)
        with self._lock:
            closing, self._closing = self._closing, set()
        for relay in closing:
            relay.join()
        self._helpers.close()
        self._spares.close()

    def _ended(self, relay: Relay, code: int) -> None:
        with self._lock:
            is_it = self._relays.get(relay.agent_id) is relay
            if is_it:
                del self._relays[relay.agent_id]
        if is_it:
            relay.discard()
        if code not in (EXIT_DETACHED, EXIT_SANDBOX_GONE):
            self._on_death(relay.agent_id)
        self._on_gone(relay.agent_id)  # whoever opens it again meanwhile keeps what is known of it


def _nothing() -> None:
    """Nothing comes after it."""
