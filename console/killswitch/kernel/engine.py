"""The container engine over its unix socket, with http.client: every call has a time-out and none of them is believed.

Endpoints: Docker Engine API v1.41 (docs.docker.com/engine/api/v1.41). What an engine answers is evidence; proof is the kernel's.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from console.domain.errors import ConsoleError
from console.domain.guard import AGENT_LABEL, INSTANCE_LABEL

CALL_S = 2.0
QUIET_S = 10.0
MOST_BYTES = 4 * 1024 * 1024
CONTAINER_ID = re.compile(r"^[0-9a-f]{12,64}\Z")


class EngineSilent(Exception):
    """The engine is down, hung, or talks nonsense."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("engine", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise


@dataclass(frozen=True, slots=True)
class Running:
    """A container the engine says is running."""

    container_id: str
    agent_id: str


class Engine:
    """One engine, asked about the containers of one instance only."""

    def __init__(self, path: Path, instance_id: str, call_s: float = CALL_S) -> None:
        self.path = path
        self._label = f"{INSTANCE_LABEL}={instance_id}"
        self._instance_id = instance_id
        self._call_s = call_s

    def kill(self, container_id: str) -> str:
        """What the engine answered ("204", "409 ...") or why it did not; never raises."""
        return self._order(f"/containers/{container_id}/kill?signal=SIGKILL")

    def pause(self, container_id: str) -> str:
        return self._order(f"/containers/{container_id}/pause")

    def unpause(self, container_id: str) -> str:
        return self._order(f"/containers/{container_id}/unpause")

    def forbid_restart(self, container_id: str) -> str:
        """Takes its restart policy away: "always" brings a killed container back when the engine itself is started again."""
        return self._order(f"/containers/{container_id}/update", {"RestartPolicy": {"Name": "no"}})

    def running(self) -> list[Running]:
        """Containers of this instance that the engine says are running. EngineSilent when it does not say."""
        filters = quote(json.dumps({"label": [self._label], "status": ["running", "paused", "restarting"]}))
        answer = self._ask("GET", f"/containers/json?filters={filters}")
        try:
            return [_running(c["Id"], c["Labels"].get(AGENT_LABEL, "")) for c in answer]
        except (KeyError, TypeError, AttributeError) as error:
            raise EngineSilent("its list of containers has an unknown shape") from error

    def init_pid(self, container_id: str) -> int:
        """Host pid of the container's init, 0 when it says it is not running or not ours. EngineSilent otherwise."""
        answer = self._ask("GET", f"/containers/{container_id}/json")
        try:
            if answer["Config"]["Labels"].get(INSTANCE_LABEL) != self._instance_id:
                return 0
            return int(answer["State"]["Pid"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EngineSilent("its view of a container has an unknown shape") from error

    def is_paused(self, container_id: str) -> bool:
        """Whether it says that the container is paused. EngineSilent when it does not say."""
        answer = self._ask("GET", f"/containers/{container_id}/json")
        try:
            return answer["State"]["Paused"] is True
        except (KeyError, TypeError) as error:
            raise EngineSilent("its view of a container has an unknown shape") from error

    def starts(self, since: float) -> Iterator[Running]:
        """Containers of this instance as they start, from ``since`` (epoch seconds) on.

        Ends when the engine has been quiet for 10 s. EngineSilent when it is away.
        """
        filters = quote(json.dumps({"label": [self._label], "type": ["container"], "event": ["start", "unpause"]}))
        connection = _Connection(self.path, QUIET_S)
        try:
            connection.request("GET", f"/events?since={since:.0f}&filters={filters}")
            response = connection.getresponse()
            if response.status != 200:
                raise EngineSilent(f"events: HTTP {response.status}")
            while True:
                line = response.readline(MOST_BYTES)
                if not line:
                    return
                event = json.loads(line)
                actor = event.get("Actor") or {}
                yield _running(actor.get("ID", ""), (actor.get("Attributes") or {}).get(AGENT_LABEL, ""))
        except TimeoutError:
            return
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            raise EngineSilent(_words(error)) from error
        finally:
            connection.close()

    def _order(self, path: str, body: dict[str, Any] | None = None) -> str:
        try:
            self._ask("POST", path, body)
        except EngineSilent as error:
            return str(error)
        return "204"

    def _ask(self, method: str, path: str, sent: dict[str, Any] | None = None) -> Any:
        connection = _Connection(self.path, self._call_s)
        deadline = time.monotonic() + 2 * self._call_s
        try:
            if sent is None:
                connection.request(method, path)
            else:
                connection.request(method, path, json.dumps(sent), {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = b""
            while chunk := response.read1(65536):
                body += chunk
                if len(body) > MOST_BYTES or time.monotonic() > deadline:
                    raise EngineSilent("its answer is too long or too slow")
            if response.status >= 300:
                raise EngineSilent(f"HTTP {response.status}")
            return json.loads(body) if body.strip() else None
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise EngineSilent(_words(error)) from error
        finally:
            connection.close()


def _running(container_id: object, agent_id: object) -> Running:
    """EngineSilent for an id that no container has: it is put into paths."""
    if not isinstance(container_id, str) or not CONTAINER_ID.match(container_id):
        raise EngineSilent("it names a container by something that is no id")
    return Running(container_id, str(agent_id)[:63])


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}"[:200]


FOLLOWER_FAULTS = (EngineSilent, OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError, ConsoleError)


class Follower(threading.Thread):
    """Follows the engine's events for the guard's whole life: ``on_start`` for every container of ours that starts,
    and for every one that already runs, at each reconnect."""

    def __init__(self, engine: Engine, on_start: Callable[[Running], None]) -> None:
        super().__init__(name="engine-events", daemon=True)
        self._engine = engine
        self._on_start = on_start
        self._stopped = threading.Event()
        self.state = "starting"
        self.detail = ""

    def run(self) -> None:
        pause = 0.2
        while not self._stopped.is_set():
            since = time.time() - 1  # events from before the list: nothing falls between the two
            try:
                for container in self._engine.running():
                    self._on_start(container)
                self.state, self.detail, pause = "ok", "", 0.2
                for container in self._engine.starts(since):
                    self._on_start(container)
            except FOLLOWER_FAULTS as error:  # the thread must outlive whatever an answer or a container does to it
                self.state, self.detail = (
                    "down",
                    str(error) if isinstance(error, EngineSilent) else f"{type(error).__name__}: {error}"[:200],
                )
                self._stopped.wait(pause)
                pause = min(pause * 2, 5.0)

    def stop(self) -> None:
        self._stopped.set()
