"""The folder bound at /.watchfloor: the container's first program, and the gate where it tells what it sees and waits for its orders."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError, TimedOut
from console.sandbox import launcher, seccomp
from console.sandbox.interface import PREPARE_S

INIT = Path(__file__).with_name("container_init.py")
PORTAL = "portal.sock"
_FACTS_MAX = 65536


class Gate:
    """One container's gate. Its end in the container closes without orders: nothing is started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listener: socket.socket | None = None
        self._init: socket.socket | None = None

    def furnish(self) -> None:
        """Makes the folder: readable by any uid, writable by none but ours. Raises OSError."""
        self.folder.mkdir(mode=0o755)
        # mkdir applies the umask, and the container's account is not ours: it must be able to read its first program.
        self.folder.chmod(0o755)
        for source, name in ((INIT, "init.py"), (launcher.LOOK, "look.py")):
            shutil.copyfile(source, self.folder / name)
        (self.folder / "filter").write_bytes(seccomp.program(strict=True))
        for name in ("init.py", "look.py", "filter"):
            (self.folder / name).chmod(0o644)
        self._listener = listen(self.folder / "gate.sock")

    def await_facts(self, look: Callable[[], None]) -> dict[str, Any]:
        """What the init saw from inside, once it is at its gate; ``look`` raises when the container has ended meanwhile.

        Raises ConsoleError, TimedOut.
        """
        assert self._listener is not None
        deadline = time.monotonic() + PREPARE_S
        while self._init is None:
            if time.monotonic() > deadline:
                raise TimedOut("The container did not come to its gate in time.", "Try again; look at the machine's load.")
            self._listener.settimeout(1.0)
            try:
                self._init, _ = self._listener.accept()
            except TimeoutError:
                look()
        # The first to come was the init: nobody else runs in there yet, and nobody else may come.
        self._listener.close()
        self._listener = None
        (self.folder / "gate.sock").unlink(missing_ok=True)
        return self._read_facts(self._init, deadline)

    def _read_facts(self, sock: socket.socket, deadline: float) -> dict[str, Any]:
        text = b""
        try:
            while b"\n" not in text and len(text) < _FACTS_MAX:
                sock.settimeout(max(0.1, deadline - time.monotonic()))
                part = sock.recv(65536)
                if not part:
                    break
                text += part
            facts = json.loads(text)["facts"]
        except TimeoutError as error:
            raise TimedOut("The container did not say what it sees in time.", "Try again; look at the machine's load.") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConsoleError("The container ended before it was looked at from inside.", "Look at the engine's log.") from error
        if not isinstance(facts, dict):
            raise ConsoleError("What was seen from inside the container cannot be read.", "Launch the agent again.")
        return facts

    def is_open(self) -> bool:
        """Whether orders can still be given."""
        return self._init is not None

    def give(self, orders: bytes) -> None:
        """Hands over the orders and shuts the gate. Raises OSError, TimedOut."""
        assert self._init is not None
        try:
            launcher.send(self._init.fileno(), orders, time.monotonic() + PREPARE_S)
        finally:
            self.shut()

    def shut(self) -> None:
        """A container that has no orders yet then ends."""
        for sock in (self._listener, self._init):
            if sock is not None:
                sock.close()
        self._listener = self._init = None

    def remove(self) -> None:
        """Shuts it and takes the folder away."""
        self.shut()
        shutil.rmtree(self.folder, ignore_errors=True)


def listen(path: Path) -> socket.socket:
    """A listening unix socket that any uid may connect to, however long its path is. Raises OSError."""
    # A socket's path may have 107 bytes at most (unix(7)); by way of /proc/self/fd the folder costs only a few of them.
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        sock.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o666)
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    finally:
        os.close(folder)
    return sock
