"""A container's whole configuration as data (Engine API, ContainerCreate): the hardened set of which no part is optional."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from console.domain.errors import UsageProblem
from console.sandbox import launcher
from console.sandbox.hardening import TMP_BYTES
from console.sandbox.interface import LaunchSpec

INSTANCE_LABEL, AGENT_LABEL, OUTPUT_LABEL = "io.watchfloor.instance", "io.watchfloor.agent", "io.watchfloor.output"
CONTROL = "/.watchfloor"
SHM_BYTES = 64 * 1024 * 1024
DEFAULT_PIDS, DEFAULT_MEMORY, DEFAULT_CPUS = 256, 1024**3, 2.0
LOG_SIZE = "64m"
FILES = 4096
"""Open files of one process: the kernel's own hard limit, which every engine may set."""
# Any of these is the right to start a privileged container, which is root on this host.
_ENGINE_SOCKETS = ("docker.sock", "containerd.sock", "podman.sock", "crio.sock")


def container_config(spec: LaunchSpec, image: str, control: Path, runtime: str = "") -> dict[str, Any]:
    """The body of ``POST /containers/create``; ``image`` is a digest (``sha256:...``), so that no tag can move under it.

    ``runtime`` is the engine's name of it; empty: the engine's default.
    Raises UsageProblem without an instance label or with an engine's socket bound in."""
    labels = {**spec.labels, AGENT_LABEL: str(spec.agent_id), OUTPUT_LABEL: str(spec.output)}
    if not labels.get(INSTANCE_LABEL):
        raise UsageProblem("A container needs its instance's label: the guard finds it by that.", f"Set {INSTANCE_LABEL}.")
    return {
        "Image": image,
        "User": f"{spec.uid}:{spec.gid}",
        "Hostname": "sandbox",
        "Entrypoint": ["/usr/bin/python3", "-I", "-S", "-X", "utf8", f"{CONTROL}/init.py"],
        "Cmd": [],
        "Env": [],
        "WorkingDir": "/",
        "Labels": labels,
        # runsc gives what a process starts with to the process's user: a pipe of its own must stand there, not the host's /dev/null.
        "OpenStdin": bool(runtime),
        "Tty": False,
        "HostConfig": _host_config(spec, control) | ({"Runtime": runtime} if runtime else {}),
    }


def _host_config(spec: LaunchSpec, control: Path) -> dict[str, Any]:
    memory = spec.memory_max_bytes or DEFAULT_MEMORY
    cpus = min(spec.cpus or DEFAULT_CPUS, float(os.cpu_count() or 1))
    is_full = not spec.network_mode.is_restricted
    return {
        # FULL is the engine's default bridge: the resolver of user-defined networks outlives a disconnect
        # (docs/decisions/0006-loopback-only-sandboxes.md).
        "NetworkMode": "bridge" if is_full else "none",
        # Nothing answers there: measured, the engine's own resolver carried a name out of a network without a way out (CVE-2024-29018).
        "Dns": [] if is_full else ["127.0.0.1"],
        "ReadonlyRootfs": True,
        "Privileged": False,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "PidsLimit": spec.pids_max or DEFAULT_PIDS,
        "Memory": memory,
        # This number is memory and swap together (Engine API): equal to Memory means no swap.
        "MemorySwap": memory,
        "NanoCpus": int(cpus * 1_000_000_000),
        # Without memory the kernel ends agents before the guard and the desktop.
        "OomScoreAdj": 500,
        # A shared IPC namespace would be a way between sandboxes that no network mode closes.
        "IpcMode": "private",
        "ShmSize": SHM_BYTES,
        "Tmpfs": {"/tmp": f"rw,noexec,nosuid,nodev,size={TMP_BYTES},mode=1777"},  # noqa: S108 - the container's own
        # Measured: with any other policy a container whose init was killed by the kernel runs again.
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}, {"Name": "nofile", "Soft": FILES, "Hard": FILES}],
        "ExtraHosts": [],
        # The engine keeps all output without a bound by default; one agent could fill the host's disk.
        "LogConfig": {"Type": "json-file", "Config": {"max-size": LOG_SIZE, "max-file": "1"}},
        "PublishAllPorts": False,
        "Mounts": _mounts(spec, control),
    }


def _mounts(spec: LaunchSpec, control: Path) -> list[dict[str, Any]]:
    wanted = [*launcher.keeps(spec), (str(control), CONTROL, True)]
    for source, _, _ in wanted:
        if Path(source).name in _ENGINE_SOCKETS:
            raise UsageProblem(f"{source} is an engine's socket: an agent with it would be root on this host.", "Remove that bind.")
    return [
        # rprivate: a mount that the host makes below a bound folder later must not appear inside the sandbox.
        {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only, "BindOptions": {"Propagation": "rprivate"}}
        for source, target, read_only in wanted
    ]


def engine_lacks(info: dict[str, Any]) -> tuple[str, ...]:
    """What an engine says that it cannot give (``GET /info``), in words."""
    wanted = {"MemoryLimit": "memory limit", "SwapLimit": "swap limit", "PidsLimit": "pids limit", "CpuCfsQuota": "cpu quota"}
    lacks = [words for key, words in wanted.items() if not info.get(key)]
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    if not any("name=seccomp" in option for option in options):
        lacks.append("seccomp profile")
    return tuple(lacks)


def described(found: dict[str, Any]) -> dict[str, Any]:
    """What the engine's own description of a container (``GET /containers/ID/json``) says of its hardening."""
    host = found["HostConfig"]
    return {
        "restart": host["RestartPolicy"]["Name"],
        "extra_hosts": list(host.get("ExtraHosts") or ()),
        "privileged": host["Privileged"],
        "image": str(found["Config"]["Image"]),
    }
