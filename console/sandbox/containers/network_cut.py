"""A running container's network, taken away and given back: each looked at from outside, through its interfaces."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from docker.errors import NotFound

from console.domain.errors import ConsoleError
from console.sandbox.containers.engine import Engine

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
    with Engine(engine_socket).calls("disconnect it", ENGINE_S, "Kill the agent, or try again.", _API) as client:
        for name in client.inspect_container(container_id)["NetworkSettings"]["Networks"]:
            if name not in ("none", "host"):
                with contextlib.suppress(NotFound):
                    client.disconnect_container_from_network(container_id, name, force=True)
    if left := _settled(pid, lambda found: found == ["lo"]):
        raise ConsoleError(f"Interfaces are left: {', '.join(left)[:100]}.", "Kill the agent.")


def join_container(engine_socket: str | None, container_id: str, pid: int) -> None:
    """Connects a container that was cut to the engine's default bridge, its only network ever; returns once an interface is there.

    Raises ConsoleError.
    """
    with Engine(engine_socket).calls("connect it", ENGINE_S, "Start the agent again.", _API) as client:
        if BRIDGE not in client.inspect_container(container_id)["NetworkSettings"]["Networks"]:
            client.connect_container_to_network(container_id, BRIDGE)
    if _settled(pid, lambda found: found != ["lo"]):
        raise ConsoleError("It is connected but has no interface.", "Start the agent again.")


def _settled(pid: int, is_good: Callable[[list[str]], bool]) -> list[str]:
    """Looks until its interfaces are good: nothing, or those it had when the time was over. Raises ConsoleError when it is gone."""
    until = time.monotonic() + PROOF_S
    try:
        while not is_good(found := interfaces(pid)):
            if time.monotonic() > until:
                return found
            time.sleep(0.005)
    except OSError as error:
        raise ConsoleError("It ended meanwhile.", "") from error
    return []
