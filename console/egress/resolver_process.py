"""Runs ``resolver.py`` beside Envoy and tells it what the list allows."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from console.domain.errors import Unavailable
from console.domain.network import AllowlistEntry
from console.egress.addresses import GLOBAL, NEVER, PRIVATE, host_addresses
from console.egress.children import Child, Identity, KeptProcess, launch, readable

_READY_S, _TELL_S = 10.0, 2.0


def system_servers(resolv_conf: Path = Path("/etc/resolv.conf")) -> list[tuple[str, int]]:
    """The name servers of resolv.conf(5)."""
    try:
        text = resolv_conf.read_text()
    except OSError:
        return []
    return [(ip, 53) for ip in re.findall(r"^nameserver\s+([0-9a-fA-F.:]+)\s*$", text, re.MULTILINE)]


def policy(
    entries: Iterable[AllowlistEntry], hosts: Mapping[str, Sequence[str]], servers: Sequence[tuple[str, int]], own: Sequence[str]
) -> dict[str, Any]:
    """The line ``resolver.Policy`` reads. ``own``: this host's addresses as CIDR."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        names.setdefault(entry.host, []).extend(entry.private_networks)
    return {
        "names": names,
        "hosts": {name: list(addresses) for name, addresses in hosts.items()},
        "servers": [list(server) for server in servers],
        "never": [*NEVER, *own],
        "private": list(PRIVATE),
        "global": list(GLOBAL),
    }


class ResolverProcess:
    """One name server for one Envoy, in the same network namespace, without privilege."""

    def __init__(self, who: Identity, netns: Path | None, hosts: Mapping[str, Sequence[str]], servers: Sequence[tuple[str, int]]) -> None:
        self._who, self._netns = who, netns
        self._hosts, self._servers = hosts, servers
        self._kept = KeptProcess("the name server", self._spawn)
        self._lock = threading.Lock()
        self._line = b""
        self._port = 0
        self._ready = threading.Event()

    @property
    def address(self) -> tuple[str, int]:
        """Where it answers; the same for its whole life, restarts included."""
        return "127.0.0.1", self._port

    @property
    def pid(self) -> int | None:
        return self._kept.pid

    def start(self) -> None:
        """Starts it; no name is listed yet. Raises Unavailable."""
        self._line = self._policy_line(())
        self._kept.start()
        if not self._ready.wait(_READY_S):
            self.stop()
            raise Unavailable(
                f"The name server of the proxy does not start: {self._kept.failure}.", "watchfloor doctor looks at what is missing."
            )

    def stop(self) -> None:
        """Ends it for good."""
        self._kept.stop()

    def allow(self, entries: Iterable[AllowlistEntry]) -> None:
        """Answers for these entries from now on; a name server that does not take it in time is started again with it."""
        with self._lock:
            self._line = self._policy_line(entries)
            process = self._kept.process
            if process is not None and process.poll() is None and not self._tell(process):
                # A name server with an old list could answer for a name that was just taken away; without one nothing resolves.
                process.kill()

    def _policy_line(self, entries: Iterable[AllowlistEntry]) -> bytes:
        return json.dumps(policy(entries, self._hosts, self._servers, host_addresses())).encode() + b"\n"

    def _spawn(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        # The same port after a restart: it is part of Envoy's configuration, which is not written for it.
        process = launch(self._who, Path("/"), [self._port], program="resolver.py", netns=self._netns, stdin=pipe, stdout=pipe)
        assert process.stdout is not None
        first = process.stdout.readline().split()
        if len(first) == 2 and first[0] == b"port":
            with self._lock:
                self._port = int(first[1])
                if self._tell(process):
                    self._ready.set()
        return process

    def _tell(self, process: Child) -> bool:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self._line)
            process.stdin.flush()
            return readable(process.stdout.fileno(), _TELL_S) and process.stdout.readline() == b"ok\n"
        except (OSError, ValueError):
            return False
