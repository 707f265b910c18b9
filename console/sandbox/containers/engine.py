"""A container engine on this machine: every call bounded in time, whatever goes wrong between us and it an error with words."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import DockerException, NotFound
from requests import RequestException

from console.domain.errors import ConsoleError, Unavailable
from console.sandbox.containers.config import engine_lacks
from console.sandbox.containers.output import Follower
from console.sandbox.interface import Availability

ENGINE_S = 30
"""Longest wait in seconds for one answer of the engine."""
LOOK_S = 5
"""Seconds where only the engine's presence is asked for. A hung engine then holds up no caller."""
DEFAULT_SOCKET = "/var/run/docker.sock"
_REMEDY = "Start the Docker engine, or name its socket in DOCKER_HOST."
Failure = (DockerException, RequestException, OSError, KeyError, TypeError, ValueError)
"""Errors of an engine that is absent, silent, refuses, or gives an answer without sense."""


def find_socket(engine_socket: str | None) -> str:
    """The engine's socket path: as given, else DOCKER_HOST, else the usual place. Raises Unavailable for a remote engine."""
    named = engine_socket or os.environ.get("DOCKER_HOST", "") or DEFAULT_SOCKET
    path = named.removeprefix("unix://")
    # The kernel's way to kill needs the container's processes on this machine; a remote engine's are out of reach.
    if not path.startswith("/"):
        raise Unavailable(f"{named[:100]} is not a local engine.", "Only an engine on this machine can be held: name its unix socket.")
    return path


class Engine:
    """One container engine. It is connected to again for every few calls."""

    def __init__(self, engine_socket: str | None = None) -> None:
        """None or empty: ``find_socket`` chooses at each call."""
        self._socket = engine_socket

    @contextlib.contextmanager
    def calls(self, what: str, timeout_s: int = ENGINE_S, remedy: str = _REMEDY, version: str = "auto") -> Iterator[APIClient]:
        """A client for a few calls. Raises ConsoleError: the engine did not do ``what``. ``version``: named, it is not asked for."""
        path = find_socket(self._socket)
        try:
            _knock(path, timeout_s)
            with contextlib.closing(APIClient(base_url=f"unix://{path}", version=version, timeout=timeout_s)) as client:
                yield client
        except Failure as error:
            words = str(getattr(error, "explanation", "") or error)[:300]
            raise ConsoleError(f"The Docker engine did not {what}: {words}", remedy) from error

    def available(self) -> Availability:
        """Whether it answers, and what it cannot give."""
        try:
            with self.calls("answer", LOOK_S) as client:
                version = str(client.version().get("Version", ""))
                lacks = engine_lacks(client.info())
        except ConsoleError as error:
            return Availability(False, error.what[:1].lower() + error.what[1:].rstrip("."), error.remedy)
        without = f" It cannot give: {', '.join(lacks)}." if lacks else ""
        return Availability(True, f"Docker {version[:40]} answers on {find_socket(self._socket)}.{without}")

    def info(self) -> dict[str, Any]:
        """What it says of itself. Raises ConsoleError."""
        with self.calls("say what it is", LOOK_S) as client:
            return dict(client.info())

    def inspect(self, container_id: str) -> dict[str, Any]:
        """What it says of a container. Raises ConsoleError."""
        with self.calls("find the container") as client:
            return dict(client.inspect_container(container_id))

    def exit_code(self, container_id: str, wait_s: float) -> int | None:
        """Of a container whose init is gone; None when the engine cannot say, or still calls it running after ``wait_s``."""
        deadline = time.monotonic() + wait_s
        while True:
            try:
                with self.calls("say how the container ended") as client:
                    state = client.inspect_container(container_id)["State"]
                    code = None if state["Running"] else int(state["ExitCode"])
            except ConsoleError:
                return None
            if code is not None or time.monotonic() > deadline:
                return code
            time.sleep(0.05)

    def follow(self, container_id: str, output: Path, limit: int) -> Follower:
        """Keeps what a container writes, ``limit`` bytes of it. Raises ConsoleError."""
        try:
            return Follower(find_socket(self._socket), container_id, output, limit)
        except OSError as error:
            raise ConsoleError(f"The container's output cannot be kept: {str(error)[:300]}", _REMEDY) from error

    def remove(self, name: str) -> None:
        """Ends and removes a container by name or id; one that is not there is removed. Raises ConsoleError."""
        with self.calls("remove the container") as client, contextlib.suppress(NotFound):
            client.remove_container(name, force=True, v=True)


def _knock(path: str, timeout_s: int) -> None:
    """Raises OSError or ConsoleError when nothing listens there: docker-py would leave its own attempt's socket open."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(timeout_s)
        try:
            sock.connect(path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise ConsoleError(f"No Docker engine listens on {path}.", _REMEDY) from error
