"""Run Envoy in a container where no Envoy is installed: with the image of ``envoy/build_image.py`` and the egress folder of the host.

It sees the host's network as a process would, because our name server answers on loopback. It has no capability, no writable file except
sockets and log, and no way to gain privileges. It does not outlive a ``kill``: the next start first removes an older container of the same
folder.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import DockerException, NotFound
from docker.types import LogConfig
from requests import RequestException

from console.domain.process.assets import envoy_asset
from console.domain.process.durable import make_folder, replace_file
from console.egress.children import Identity, readable

LABEL = "io.watchfloor.envoy"
"""On the image: the SHA-256 of its Envoy. On a container: which folder it serves."""
WHERE = "/egress"
API = "1.41"
ENGINE_S = 20
"""Longest wait in seconds for one answer of the engine."""
_WRITABLE = ("sock", "admin", "log")
_LOG_MAX = 1_000_000
Failure = (DockerException, RequestException, OSError)


def find_image(engine_socket: str, state_dir: Path | None) -> tuple[str, str]:
    """(id of the Envoy image that was built for this instance, where it comes from) or ("", why there is none)."""
    if not engine_socket.startswith("/"):
        return "", "no local container engine is named"
    if state_dir is None:
        return "", "this instance has no state directory in which an image could have been noted"
    built, why = noted(state_dir)
    if built is None:
        return "", why
    try:
        with _engine(engine_socket) as engine:
            found = engine.inspect_image(built.image)  # type: ignore[no-untyped-call]
    except NotFound:
        return "", f"the engine on {engine_socket} does not have the image {built.image[:19]} any more that was built for this instance"
    except Failure as error:
        return "", f"the engine on {engine_socket} does not answer: {_words(error)}"
    labels = (found.get("Config") or {}).get("Labels") or {}
    if tuple((found.get("RootFS") or {}).get("Layers") or ()) != built.layers or labels.get(LABEL) != built.envoy:
        return "", f"the image {built.image[:19]} is not the one that was built for this instance"
    names = found.get("RepoTags") or [built.image[:19]]
    return built.image, f"image {names[0]}, built for this instance"


def _connect(engine_socket: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(ENGINE_S)
        sock.connect(engine_socket)
    except OSError:
        sock.close()
        raise
    return sock


def _engine(engine_socket: str) -> APIClient:
    _connect(engine_socket).close()  # docker-py would leave its own attempt's socket open
    return APIClient(base_url=f"unix://{engine_socket}", version=API, timeout=ENGINE_S)


class Child:
    """A running container with what is used of ``subprocess.Popen``. Its end is the kernel's word about its process, not the engine's.

    One thread waits; any may poll and kill. Raises OSError when its process is not to be seen from here.
    """

    stdin = stdout = stderr = None

    def __init__(self, engine_socket: str, engine: APIClient, container: str, log: Path | None) -> None:
        self._socket, self._engine, self._container = engine_socket, engine, container
        self._lock = threading.Lock()
        self._code: int | None = None
        self._said = ""
        self.pid = _first_process(engine, container)
        try:
            self._pidfd = _open(self.pid, container) if self.pid else -1  # 0: it has ended already
        except OSError:
            if _first_process(engine, container):
                raise
            self.pid, self._pidfd = 0, -1  # it ended while it was looked at
        self._copier: threading.Thread | None = None
        if log is not None:
            self._copier = threading.Thread(target=self._copy, args=(log,), name="egress-envoy-log", daemon=True)
            self._copier.start()

    def poll(self) -> int | None:
        """Its exit status, -1 until that is known; None while it runs."""
        with self._lock:
            if self._code is not None or self._pidfd < 0:
                return self._code if self._code is not None else -1
            return -1 if readable(self._pidfd, 0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end and takes it away. Raises TimeoutError."""
        if self._code is None:
            if self._pidfd >= 0 and not readable(self._pidfd, timeout):
                raise TimeoutError
            self._finish()
        assert self._code is not None
        return self._code

    def kill(self) -> None:
        """Send SIGKILL through its pidfd: that needs no engine, and no other process can be hit."""
        with self._lock:
            if self._pidfd >= 0:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def output(self) -> str:
        """The last lines it wrote, once it has ended."""
        return self._said

    def _finish(self) -> None:
        """Exit status and last words, then it is taken away."""
        code = -1
        with suppress(*Failure):
            code = int(self._engine.wait(self._container, timeout=ENGINE_S)["StatusCode"])
            self._said = bytes(self._engine.logs(self._container, tail=20)).decode(errors="replace")
        if self._copier is not None:
            self._copier.join(ENGINE_S)
        with suppress(*Failure):
            self._engine.remove_container(self._container, force=True, v=True)
        self._engine.close()
        with self._lock:
            self._code = code
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1

    def _copy(self, log: Path) -> None:
        """What it says goes into a file that it cannot touch itself; no more than ``_LOG_MAX`` bytes."""
        with suppress(OSError, http.client.HTTPException), log.open("ab", buffering=0) as file, _connect(self._socket) as sock:
            connection = http.client.HTTPConnection("engine")
            connection.sock = sock
            connection.request("GET", f"/v{API}/containers/{self._container}/logs?follow=1&stdout=1&stderr=1")
            sock.settimeout(None)  # silent for as long as all is well; it ends with the container
            with closing(connection.getresponse()) as stream:
                written = 0
                while len(head := stream.read(8)) == 8:  # "Stream format": one byte of kind, three of nothing, a length
                    piece = stream.read(int.from_bytes(head[4:], "big"))
                    written += len(piece)
                    if written <= _LOG_MAX:
                        file.write(piece)


def _first_process(engine: APIClient, container: str) -> int:
    """Its pid, 0 once it has ended."""
    return int(engine.inspect_container(container)["State"]["Pid"])


def _open(pid: int, container: str) -> int:
    """A pidfd of a container's first process; checked, because an engine may count in another PID namespace than ours."""
    pidfd = os.pidfd_open(pid)
    with suppress(OSError):
        if container in Path(f"/proc/{pid}/cgroup").read_text():
            return pidfd
    os.close(pidfd)
    raise OSError("the container's process is not seen from here: is the engine in another machine?")


class Containers:
    """Starts Envoy containers for one egress folder. Methods raise OSError.

    ``netns``: the network namespace that the engine's own must be (None: ours), since the name server that decides answers there.
    """

    def __init__(self, engine_socket: str, image: str, folder: Path, who: Identity, netns: Path | None = None) -> None:
        self._socket, self._image, self._folder, self._who = engine_socket, image, folder, who
        self._netns = netns or Path("/proc/self/ns/net")

    def serve(self, arguments: Iterable[str], log: Path) -> Child:
        """The Envoy that serves: in the host's network, sockets and log writable."""
        binds = [f"{self._folder}:{WHERE}:ro", *(f"{self._folder / name}:{WHERE}/{name}:rw" for name in _WRITABLE)]
        child = self._run("serve", arguments, binds, "host", log)
        try:
            found, wanted = Path(f"/proc/{child.pid}/ns/net").stat(), self._netns.stat()
        except FileNotFoundError:
            return child  # it has ended already: whoever waits for it says why
        except OSError:
            child.kill()
            child.wait(ENGINE_S)
            raise
        # Loopback there is another one: Envoy would ask a name server that does not hide private addresses, or none.
        if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
            child.kill()
            child.wait(ENGINE_S)
            raise OSError("the engine lives in another network namespace than the name server that Envoy asks")
        return child

    def validate(self, arguments: Iterable[str], folder: Path) -> Child:
        """An Envoy that reads a configuration in ``folder`` and ends: no network."""
        return self._run(f"check-{folder.name}", arguments, [f"{folder}:{WHERE}:rw"], "none", None)

    def _run(self, purpose: str, arguments: Iterable[str], binds: list[str], network: str, log: Path | None) -> Child:
        mark = hashlib.sha256(str(self._folder).encode()).hexdigest()[:12]
        name = f"watchfloor-envoy-{mark}-{purpose}"
        try:
            engine = _engine(self._socket)
            with suppress(NotFound):
                engine.remove_container(name, force=True, v=True)  # of a supervisor that was killed
            config = self._config(engine, list(arguments), binds, network) | {"labels": {LABEL: mark}}
            container = str(engine.create_container(name=name, **config)["Id"])
            try:
                engine.start(container)
                return Child(self._socket, engine, container, log)
            except Failure:
                engine.remove_container(container, force=True, v=True)
                raise
        except (DockerException, RequestException) as error:
            raise OSError(f"the engine: {_words(error)}") from error

    def _config(self, engine: APIClient, arguments: list[str], binds: list[str], network: str) -> dict[str, Any]:
        host = engine.create_host_config(
            binds=binds,
            network_mode=network,
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true"],
            pids_limit=128,
            mem_limit="1g",
            ipc_mode="none",
            restart_policy={"Name": "no"},
            log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        )
        return {
            "image": self._image,
            "command": ["/envoy", *arguments],
            "entrypoint": [],
            "user": f"{self._who.uid}:{self._who.gid}",
            "working_dir": WHERE,
            "host_config": host,
        }


def _words(error: BaseException) -> str:
    return str(getattr(error, "explanation", "") or error)[:300]


# --- Which Envoy image of an engine is ours: the one that was built for this instance, by this recipe, with this content.


FILE = "envoy-image.json"
_MOST = 65536


@dataclass(frozen=True, slots=True)
class Built:
    """What was noted of it."""

    image: str
    """The engine's id (``sha256:...``), which no tag can move."""
    layers: tuple[str, ...]
    """SHA-256 of each layer's content, as the engine says them (RootFS)."""
    envoy: str
    """SHA-256 of the program in it."""
    recipe: str
    """SHA-256 of the recipe that built it."""


def recipe() -> str:
    """The SHA-256 of ``envoy/build_image.py`` as it is here. Raises OSError."""
    return hashlib.sha256(envoy_asset("build_image.py").read_bytes()).hexdigest()


def note(state_dir: Path, built: Built) -> None:
    """Keeps it, durably. Raises OSError."""
    make_folder(state_dir, 0o711)
    replace_file(state_dir / FILE, json.dumps({"schema_version": 1, **asdict(built)}).encode())


def noted(state_dir: Path) -> tuple[Built | None, str]:
    """(what was built for this instance by the recipe that is here, "") or (None, why there is nothing to trust)."""
    try:
        with (state_dir / FILE).open("rb") as file:
            data = json.loads(file.read(_MOST))
        built = Built(str(data["image"]), _texts(data["layers"]), str(data["envoy"]), str(data["recipe"]))
        if built.recipe != recipe():
            return None, "its image was built by another recipe than the one that is here"
    except FileNotFoundError:
        return None, f"no image was built for this instance (there is no {FILE} in {state_dir})"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return None, f"{state_dir / FILE} cannot be read: {error}"
    return built, ""


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError("layers")
    return tuple(str(one) for one in value)
