"""A running container's network, taken away and given back: each looked at from outside, through its interfaces."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from docker import APIClient
from docker.errors import DockerException, NotFound
from requests.exceptions import RequestException

from console.domain.errors import ConsoleError
from console.sandbox.docker import find_socket

ENGINE_S = 10
PROOF_S = 3.0
_API = "1.41"  # named, so that the engine is not asked for its version first
BRIDGE = "bridge"


def interfaces(pid: int) -> list[str]:
    """Names of the network interfaces in a process's namespace (/proc/PID/net/dev, proc(5))."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    return sorted(line.partition(":")[0].strip() for line in lines)


def namespaces_of(pid: int) -> tuple[bool, bool]:
    """(a network namespace of its own with nothing but ``lo``, a user namespace of its own), as the kernel says. OSError when gone."""

    def own(kind: str) -> bool:
        return Path(f"/proc/{pid}/ns/{kind}").readlink() != Path(f"/proc/self/ns/{kind}").readlink()

    return own("net") and interfaces(pid) == ["lo"], own("user")


def cut_container(engine_socket: str | None, container_id: str, pid: int) -> None:
    """Ends every network of a container; returns only when its namespace holds nothing but ``lo``. Raises ConsoleError otherwise."""
    try:
        client = APIClient(base_url=f"unix://{find_socket(engine_socket)}", version=_API, timeout=ENGINE_S)
        with contextlib.closing(client):
            networks = client.inspect_container(container_id)["NetworkSettings"]["Networks"]
            for name in networks:
                if name not in ("none", "host"):
                    with contextlib.suppress(NotFound):
                        client.disconnect_container_from_network(container_id, name, force=True)
    except (DockerException, RequestException, OSError) as error:
        raise ConsoleError(f"The engine did not disconnect it: {str(error)[:200]}", "Kill the agent, or try again.") from error
    until = time.monotonic() + PROOF_S
    try:
        while interfaces(pid) != ["lo"]:
            if time.monotonic() > until:
                raise ConsoleError(f"Interfaces are left: {', '.join(interfaces(pid))[:100]}.", "Kill the agent.")
            time.sleep(0.005)
    except OSError as error:
        raise ConsoleError("It ended meanwhile.", "") from error


def join_container(engine_socket: str | None, container_id: str, pid: int) -> None:
    """Connects a container that was cut to the engine's default bridge, its only network ever; returns once an interface is there.

    Raises ConsoleError.
    """
    try:
        client = APIClient(base_url=f"unix://{find_socket(engine_socket)}", version=_API, timeout=ENGINE_S)
        with contextlib.closing(client):
            networks = client.inspect_container(container_id)["NetworkSettings"]["Networks"]
            if BRIDGE not in networks:
                client.connect_container_to_network(container_id, BRIDGE)
    except (DockerException, RequestException, OSError) as error:
        raise ConsoleError(f"The engine did not connect it: {str(error)[:200]}", "Start the agent again.") from error
    until = time.monotonic() + PROOF_S
    try:
        while interfaces(pid) == ["lo"]:
            if time.monotonic() > until:
                raise ConsoleError("It is connected but has no interface.", "Start the agent again.")
            time.sleep(0.02)
    except OSError as error:
        raise ConsoleError("It ended meanwhile.", "") from error
