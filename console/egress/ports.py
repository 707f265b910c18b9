"""The port of a sandbox, opened from outside: in its namespace by the one privileged helper, or as a unix socket for a forwarder inside."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.domain.errors import Conflict, TimedOut
from console.egress.children import end, python

PORT = 3128
_HELPER_S = 10.0


@dataclass(frozen=True, slots=True)
class Port:
    """Three descriptors. The owner closes them."""

    listener: int
    pidfd: int
    """Of the sandbox: its end ends the relay."""
    inside: int
    """A connection to the listener that was made where the agent's are made, for a look at what answers."""

    def close(self) -> None:
        """All that is still open."""
        for fd in (self.listener, self.pidfd, self.inside):
            with suppress(OSError):
                os.close(fd)


class Helper:
    """``nsbind.py``, which waits for its one order; it ends with us too."""

    def __init__(self) -> None:
        # SEQPACKET keeps an order and its descriptors in one piece (unix(7)); a stream could split them.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel = ours
        with theirs:
            self._process: subprocess.Popen[bytes] = python("nsbind.py", theirs.fileno(), pass_fds=[theirs.fileno()])

    def waits(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    def discard(self) -> None:
        """Ends it."""
        self._channel.close()
        end(self._process)

    def bind(self, pid: int, start_ticks: int, userns: bool) -> Port:
        """Its one order; it has ended after it. Raises Conflict when the sandbox is not fit, TimedOut."""
        # Root enters any network namespace; an ordinary user only together with the user namespace it made.
        order = [pid, start_ticks, PORT, userns and os.geteuid() != 0]
        try:
            self._channel.settimeout(_HELPER_S)
            self._channel.send(json.dumps(order).encode())
            message, fds, _, _ = socket.recv_fds(self._channel, 4096, 3)
        except TimeoutError as error:
            raise TimedOut(
                "The sandbox's network namespace could not be entered in time.", "The agent was not started; try again."
            ) from error
        except OSError:
            message, fds = b"", []
        finally:
            self.discard()
        why = json.loads(message)["error"] if message else "the helper ended without an answer"
        if why or len(fds) != 3:
            for fd in fds:
                os.close(fd)
            raise Conflict(f"No proxy port could be opened in the sandbox: {why}.", "The agent was not started; start it again.")
        return Port(*fds)


def open_door(door: Path, pid: int, start_ticks: int) -> Port:
    """Return a unix socket at ``door`` as the port of a sandbox with a closed network of its own (gVisor). Raises Conflict, OSError."""
    try:
        pidfd = os.pidfd_open(pid)
        same = int(Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[19]) == start_ticks
    except OSError as error:
        raise Conflict(f"The sandbox is gone: {error.strerror}.", "The agent was not started; start it again.") from error
    if not same:
        os.close(pidfd)
        raise Conflict("The process is not the one that was started.", "The agent was not started; start it again.")
    folder = os.open(door.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener, inside = (socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(2))
    try:
        door.unlink(missing_ok=True)
        here = f"/proc/self/fd/{folder}/{door.name}"  # however long the path is
        listener.bind(here)
        door.chmod(0o666)  # whoever is in the sandbox; nobody else passes the folders above it
        listener.listen(128)
        inside.connect(here)
    except OSError:
        listener.close()
        inside.close()
        os.close(pidfd)
        raise
    finally:
        os.close(folder)
    return Port(listener.detach(), pidfd, inside.detach())
