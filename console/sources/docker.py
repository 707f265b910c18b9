"""Find agents in containers that this instance did not start: other Watchfloor instances, dev containers, labelled agents."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from pathlib import Path
from typing import Any

from console.domain.agent import ProcessIdentity, Sighting, SourceReport
from console.sources.interface import MAX_SIGHTINGS, UNVERIFIED, Confinement, Pids
from console.sources.processes import ProcessTable
from console.sources.text import plain

LABEL_INSTANCE = "io.watchfloor.instance"
LABEL_AGENT = "io.watchfloor.agent"
LABEL_CONTEXT = "io.watchfloor.context"
_CONTAINER_ID = re.compile(r"^[0-9a-f]{64}\Z")
_ANSWER_CAP = 16 * 1024 * 1024
_YOUNG_S = 60.0
"""Seconds for which a container with our own label may be starting. After that it is known to the supervisor, or it is not ours."""
_OURS_BY_LABEL = "Carries this instance's label. Unless an agent here is shown with this container, this instance did not start it"
_SEEN_ONLY = "Seen through its container's labels: Watchfloor shows it and has no control over it."


class DockerSource:
    """List the engine's running containers by label. Only the supervisor's own records tell which containers with our label are our
    agents."""

    # A label is a claim, so a forged label must not hide an agent.

    name = "docker"
    can_see = (
        f"Running containers labelled as an agent ({LABEL_AGENT}, kagenti.io/type, apphub.cloud.google.com/functional-type) and dev "
        "containers. Not what happens inside them, what they cost, or containers without such a label."
    )
    can_stop = "Nothing by itself: containers that Watchfloor started are stopped with proof, others by the engine's own commands."

    def __init__(
        self,
        engine_socket: Path | str,
        instance_id: str,
        pids: Pids = "all",
        table: ProcessTable | None = None,
        timeout_s: float = 2.0,
    ) -> None:
        self._instance_id = instance_id
        self._socket = Path(engine_socket)
        self._confinement = Confinement(pids=pids)
        self._table = table or ProcessTable()
        self._timeout_s = timeout_s
        self._pids: dict[str, int] = {}
        """Container id -> pid of its init, asked once per container and again when that process is gone."""

    def folders(self) -> list[Path]:
        """None: the engine is asked."""
        return []

    def look(self) -> SourceReport:
        """Every labelled agent container. Never raises."""
        try:
            listed = self._get("/containers/json")
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            return SourceReport(self.name, False, f"Not available, because {_why(error, self._socket)}.")
        if not isinstance(listed, list):
            return SourceReport(self.name, False, "Not available, because the engine's list of containers has another form than expected.")
        rows = [row for row in listed if isinstance(row, dict) and _is_id(row.get("Id"))]
        mine = {row["Id"] for row in rows}
        self._pids = {key: pid for key, pid in self._pids.items() if key in mine}
        found = [sighting for row in rows if (sighting := self._sighting(row)) is not None]
        words = f"Looks at the containers of {plain(str(self._socket))}."
        if len(found) > MAX_SIGHTINGS:
            words += f" {len(found) - MAX_SIGHTINGS} more containers are not shown."
        return SourceReport(self.name, True, words, tuple(found[:MAX_SIGHTINGS]))

    def _sighting(self, row: dict[str, Any]) -> Sighting | None:
        labels = row.get("Labels")
        kind = _kind(labels, self._instance_id, _age_s(row)) if isinstance(labels, dict) else ""
        if not kind or not isinstance(labels, dict):
            return None
        container_id = row["Id"]
        pid = self._pid(container_id)
        if self._confinement.pids != "all" and (pid == 0 or not self._confinement.admits(pid)):
            return None
        process, why = self._verify(container_id, pid)
        names = row.get("Names")
        shown = plain(names[0], 100).lstrip("/") if isinstance(names, list) and names else container_id[:12]
        status = plain(row.get("State"), 20) or "running"
        return Sighting(
            source=self.name,
            key=container_id,
            name=plain(labels.get(LABEL_AGENT), 100) or shown,
            process=process,
            session=plain(labels.get(LABEL_CONTEXT), 64),
            cwd=plain(labels.get("devcontainer.local_folder"), 500),
            seen_at=time.time(),
            container_id=container_id,
            status=status if process is not None else UNVERIFIED,
            detail=f"{kind}. {why}",
        )

    def _verify(self, container_id: str, pid: int) -> tuple[ProcessIdentity | None, str]:
        """The engine's word for the pid, checked against the kernel: that process must be in that container's cgroup."""
        start = self._table.start_ticks(pid) if pid else None
        if start is None:
            return None, "Its first process is not visible from here."
        if container_id not in self._table.cgroup(pid) or self._table.start_ticks(pid) != start:
            return None, "Its first process is not in the container's cgroup as seen from here (an engine in another machine?)."
        return ProcessIdentity(pid, start), _SEEN_ONLY

    def _pid(self, container_id: str) -> int:
        known = self._pids.get(container_id, 0)
        if known and container_id in self._table.cgroup(known):
            return known
        try:
            answer = self._get(f"/containers/{container_id}/json")
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            return 0
        state = answer.get("State") if isinstance(answer, dict) else None
        pid = state.get("Pid") if isinstance(state, dict) else 0
        if isinstance(pid, bool) or not isinstance(pid, int) or not 0 < pid < 2**22:
            return 0
        self._pids[container_id] = pid
        return pid

    def _get(self, path: str) -> Any:
        connection = _EngineConnection(self._socket, self._timeout_s)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read(_ANSWER_CAP + 1)
            if answer.status != 200:
                raise http.client.HTTPException(f"the engine answered {answer.status}")
            if len(body) > _ANSWER_CAP:
                raise http.client.HTTPException("the engine's answer is larger than 16 MiB")
            return json.loads(body)
        finally:
            connection.close()


class _EngineConnection(http.client.HTTPConnection):
    """HTTP over the engine's unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _CONTAINER_ID.match(value) is not None


def _age_s(row: dict[str, Any]) -> float:
    """Since it was made; of one that does not say, for ever."""
    made = row.get("Created")
    return time.time() - made if isinstance(made, int | float) and not isinstance(made, bool) else float("inf")


def _kind(labels: dict[str, Any], own_instance: str, age_s: float) -> str:
    """What the labels say it is, or empty: not an agent, or one of our own that may be starting."""
    if LABEL_INSTANCE in labels or LABEL_AGENT in labels:
        other = plain(labels.get(LABEL_INSTANCE), 16)
        if other == own_instance:
            return _OURS_BY_LABEL if age_s >= _YOUNG_S else ""
        return f"Agent of another Watchfloor instance ({other or 'unnamed'})"
    if "devcontainer.local_folder" in labels or "devcontainer.config_file" in labels:
        return "Dev container"
    if labels.get("kagenti.io/type") == "agent":
        return "Agent by the label kagenti.io/type"
    if labels.get("apphub.cloud.google.com/functional-type") == "AGENT":
        return "Agent by the label apphub.cloud.google.com/functional-type"
    return ""


def _why(error: Exception, path: Path) -> str:
    where = plain(str(path))
    match error:
        case FileNotFoundError():
            return f"there is no engine socket at {where}"
        case ConnectionRefusedError():
            return f"no engine answers at {where}"
        case PermissionError():
            return f"this account may not use {where} (join the group docker, or run as root)"
        case TimeoutError():
            return f"the engine at {where} did not answer in time"
        case OSError():
            return f"the engine at {where} cannot be used: {plain(error.strerror or str(error))}"
    return f"the engine at {where} did not answer as an engine: {plain(str(error))}"
