"""Read Envoy's admin interface over its unix socket: what Envoy accepted, in its own counters. Only the supervisor can reach it."""

from __future__ import annotations

import http.client
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from console.egress.envoy.config import ADMIN_SOCKET

_STATS = r"\.(version_text|update_rejected|update_failure)$"
TIMEOUT_S = 2.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, folder: Path) -> None:
        super().__init__("envoy", timeout=TIMEOUT_S)
        self._folder = folder

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        # sun_path holds 108 bytes (unix(7)); a folder's descriptor stands for a path of any length.
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        try:
            self.sock.connect(f"/proc/self/fd/{folder}/{ADMIN_SOCKET}")
        finally:
            os.close(folder)


@dataclass(frozen=True, slots=True)
class Taken:
    """What Envoy says it took of one subscription (``lds``, ``cds`` or a sandbox's routes)."""

    version: str = ""
    refused: int = 0
    """update_rejected + update_failure, since Envoy started."""


class Admin:
    """Reads Envoy's admin interface. Every method raises OSError when it does not answer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def taken(self) -> dict[str, Taken]:
        """By subscription: ``lds``, ``cds``, ``s1`` ..."""
        seen: dict[str, dict[str, str]] = {}
        for stat in json.loads(self.get(f"/stats?format=json&filter={quote(_STATS)}")).get("stats", ()):
            if "name" in stat and (key := _subscription(stat["name"])):
                seen.setdefault(key, {})[stat["name"].rsplit(".", 1)[1]] = str(stat["value"])
        return {
            key: Taken(v.get("version_text", ""), int(v.get("update_rejected", 0)) + int(v.get("update_failure", 0)))
            for key, v in seen.items()
        }

    def refusals(self) -> list[str]:
        """Envoy's words for listeners and clusters it refused."""
        found: list[str] = []
        _error_states(json.loads(self.get("/config_dump")), found)
        return found

    def ready(self) -> bool:
        """Whether Envoy serves."""
        try:
            # Envoy answers here before its listeners are up; LIVE alone means that it serves.
            return self.get("/ready").strip() == b"LIVE"
        except OSError:
            return False

    def reopen_logs(self) -> None:
        """Makes Envoy write to a new file where the log was."""
        self.get("/reopen_logs", "POST")

    def get(self, path: str, method: str = "GET") -> bytes:
        connection = _UnixConnection(self._folder)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"Envoy's admin interface: {error!r}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise OSError(f"Envoy's admin interface answered {answer.status}")
        return body


def _subscription(name: str) -> str:
    """``http.s1.rds.s1.version_text`` -> ``s1``; ``listener_manager.lds.update_rejected`` -> ``lds``."""
    parts = name.split(".")
    if parts[0] in ("listener_manager", "cluster_manager") and len(parts) == 3:
        return parts[1]
    if parts[0] == "http" and len(parts) == 5 and parts[2] == "rds" and parts[1] == parts[3]:
        return parts[1]
    return ""


def _error_states(value: object, found: list[str]) -> None:
    if isinstance(value, dict):
        state = value.get("error_state")
        if isinstance(state, dict) and state.get("details"):
            found.append(str(state["details"]))
        for inner in value.values():
            _error_states(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _error_states(inner, found)
