"""The relays: opens a port inside each sandbox's network namespace, hands it to an unprivileged process, cuts it for certain."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from console.domain.errors import Conflict, ConsoleError, TimedOut
from console.egress.children import Identity, end, launch, python
from console.egress.portal import EXIT_DETACHED, EXIT_SANDBOX_GONE

PORT = 3128
_HELPER_S, _READY_S, _REQUEST_S = 10.0, 10.0, 1.0


def open_port(pid: int, start_ticks: int, userns: bool) -> tuple[int, int]:
    """(listening socket, pidfd) from ``nsbind.py``. Raises Conflict when the sandbox is not fit, TimedOut."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        # Root enters any network namespace; an ordinary user only together with the user namespace it made.
        enter_user = int(userns and os.geteuid() != 0)
        helper = python("nsbind.py", theirs.fileno(), pid, start_ticks, PORT, enter_user, pass_fds=[theirs.fileno()])
        theirs.close()
        ours.settimeout(_HELPER_S)
        try:
            message, fds, _, _ = socket.recv_fds(ours, 4096, 2)
        except TimeoutError as error:
            raise TimedOut(
                "The sandbox's network namespace could not be entered in time.", "The agent was not started; try again."
            ) from error
        finally:
            end(helper)
    why = json.loads(message)["error"] if message else "the helper ended without an answer"
    if why or len(fds) != 2:
        for fd in fds:
            os.close(fd)
        raise Conflict(f"No proxy port could be opened in the sandbox: {why}.", "The agent was not started; start it again.")
    return fds[0], fds[1]


def open_door(door: Path, pid: int, start_ticks: int) -> tuple[int, int]:
    """(listening unix socket at ``door``, pidfd): for a sandbox whose own network nobody can enter (gVisor). Raises Conflict, OSError."""
    try:
        pidfd = os.pidfd_open(pid)
        same = int(Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[19]) == start_ticks
    except OSError as error:
        raise Conflict(f"The sandbox is gone: {error.strerror}.", "The agent was not started; start it again.") from error
    if not same:
        os.close(pidfd)
        raise Conflict("The process is not the one that was started.", "The agent was not started; start it again.")
    folder = os.open(door.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.unlink(missing_ok=True)
        listener.bind(f"/proc/self/fd/{folder}/{door.name}")  # however long the path is
        door.chmod(0o666)  # whoever is in the sandbox; nobody else passes the folders above it
        listener.listen(128)
    except OSError:
        listener.close()
        os.close(pidfd)
        raise
    finally:
        os.close(folder)
    return listener.detach(), pidfd


class Relay:
    """The process that carries one sandbox's connections. It ends with us, with the sandbox, or when told."""

    def __init__(self, agent_id: str, on_end: Callable[[str, int], None]) -> None:
        self.agent_id = agent_id
        self._on_end = on_end
        self._lock = threading.Lock()
        self._told = False
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._watcher: threading.Thread | None = None
        self._leaf: Path | None = None

    @property
    def pid(self) -> int | None:
        """Its pid while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, port: tuple[int, int], folder: Path, upstream: str, who: Identity, cgroup: Path | None, most: int = 0) -> None:
        """Starts it on ``port`` (closed here in every case); ``most`` bytes go one way on one connection (0: no bound).

        Raises ConsoleError; then nothing is left.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(_READY_S)
        self._control = ours
        try:
            with theirs:
                self._process = launch(who, folder, [*port, upstream, most], program="portal.py", stdin=theirs.fileno(), pass_fds=port)
        finally:
            for fd in port:
                os.close(fd)
        try:
            if cgroup is not None:
                # A leaf of its own: whoever isolates this sandbox kills just this relay, through the kernel.
                self._leaf = cgroup / self.agent_id
                self._leaf.mkdir(exist_ok=True)
                (self._leaf / "cgroup.procs").write_text(str(self._process.pid))
            with ours.makefile("rb") as lines:
                ready = json.loads(lines.readline() or b"{}")
            if not ready.get("ok") or (os.geteuid() == 0 and (ready["uid"] != who.uid or int(ready["capabilities"], 16) != 0)):
                raise ConsoleError(
                    "The relay of the sandbox did not start without privileges.", "watchfloor doctor looks at what is missing."
                )
        except (OSError, ValueError) as error:
            self._discard()
            raise ConsoleError(
                f"The relay of the sandbox did not start: {error}.", "watchfloor doctor looks at what is missing."
            ) from error
        except ConsoleError:
            self._discard()
            raise
        self._watcher = threading.Thread(target=self._watch, name=f"relay-{self.agent_id}", daemon=True)
        self._watcher.start()

    def cut(self) -> int:
        """Resets every connection and keeps listening; how many. A relay that does not answer is ended: no network."""
        return self._request("revoke")

    def close(self) -> int:
        """Closes the port and resets every connection, then ends the process; how many were cut."""
        self._told = True
        count = self._request("detach")
        self._discard()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join()
        return count

    def _request(self, op: str) -> int:
        with self._lock:
            if self._control is None or self._process is None:
                return 0
            try:
                self._control.settimeout(_REQUEST_S)
                self._control.sendall(op.encode() + b"\n")
                answer = json.loads(self._control.recv(4096) or b"{}")
                return int(answer.get("cut", 0))
            except (OSError, ValueError):
                self._process.kill()  # hung or gone: the kernel closes every socket it had
                return 0

    def _discard(self) -> None:
        if self._process is not None:
            end(self._process)
        if self._leaf is not None:
            with suppress(OSError):  # removed already, or the next relay of this sandbox lives in it
                self._leaf.rmdir()
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None

    def _watch(self) -> None:
        assert self._process is not None
        code = self._process.wait()
        if not self._told:
            self._on_end(self.agent_id, code)


class Relays:
    """The relays of all attached sandboxes. Cutting never waits for anything but the relay itself."""

    def __init__(
        self, who: Identity, folder: Path, cgroup: Path | None, on_gone: Callable[[str], None], on_death: Callable[[str], None]
    ) -> None:
        self._who, self._folder, self._cgroup = who, folder, cgroup
        self._on_gone, self._on_death = on_gone, on_death
        self._lock = threading.Lock()
        self._relays: dict[str, Relay] = {}
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

    def open(self, agent_id: str, upstream: str, pid: int, start_ticks: int, userns: bool, door: Path | None = None, most: int = 0) -> None:
        """Opens the sandbox's port and relays it to ``upstream``. Raises ConsoleError, OSError; then nothing is left."""
        port = open_door(door, pid, start_ticks) if door is not None else open_port(pid, start_ticks, userns)
        relay = Relay(agent_id, self._ended)
        with self._lock:
            self._relays[agent_id] = relay
        try:
            relay.start(port, self._folder, upstream, self._who, self._cgroup, most)
        except (ConsoleError, OSError):
            with self._lock:
                self._relays.pop(agent_id, None)
            raise

    def cut(self, agent_id: str) -> int:
        """Resets the connections of one sandbox, which keeps its port."""
        with self._lock:
            relay = self._relays.get(agent_id)
        return relay.cut() if relay is not None else 0

    def cut_all(self) -> int:
        """Resets the connections of every sandbox."""
        return sum(self.cut(agent_id) for agent_id in self.names())

    def close(self, agent_id: str) -> int:
        """Takes one sandbox's port and connections away."""
        with self._lock:
            relay = self._relays.pop(agent_id, None)
        return relay.close() if relay is not None else 0

    def close_all(self) -> None:
        for agent_id in self.names():
            self.close(agent_id)

    def _ended(self, agent_id: str, code: int) -> None:
        self.close(agent_id)
        if code in (EXIT_DETACHED, EXIT_SANDBOX_GONE):
            self._on_gone(agent_id)
        else:
            self._on_death(agent_id)
