"""List the sockets and folders of the operator's session through which a process of the same uid could start programs.

An agent that shares the operator's files and uid could use them to start a process outside its namespaces and cgroup (``systemd-run
--user``, a container engine, a terminal multiplexer). Where the agent has a mount namespace, they are masked. The list holds those we know,
so every agent that shares the operator's uid carries a label.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

AGENTS_MAX = 64
"""Folders of ssh agents that are masked. A process that may write to /tmp can make any number, and bwrap takes 9,000 arguments."""
_ENGINES = ("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock")
_SHARED = ("/run/dbus", "/run/screen", "/tmp/.X11-unix", "/tmp/.ICE-unix")  # noqa: S108 - where others put their sockets


def folders(root: Path = Path("/")) -> tuple[Path, ...]:
    """Folders of sockets to mask: the session's runtime folder (systemd, D-Bus, Wayland), the system bus, displays, multiplexers."""
    uid = os.geteuid()
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    own = [root / f"run/user/{uid}", root / f"tmp/tmux-{uid}", *_ssh_agents(root)[:AGENTS_MAX]]
    if named.startswith("/") and Path(named) != Path("/"):
        own.append(Path(named))
    shared = [root / name.lstrip("/") for name in _SHARED]
    return tuple(dict.fromkeys(folder.resolve() for folder in (*own, *shared) if _is_folder(folder)))


def unmasked(root: Path = Path("/")) -> int:
    """Return how many folders of ssh agents of this uid are not masked. The caller who wants a sandbox is told."""
    return max(0, len(_ssh_agents(root)) - AGENTS_MAX)


def _ssh_agents(root: Path) -> list[Path]:
    """Return our own folders of ssh agents: the one in use first, then the oldest, because decoys are younger than what they hide."""
    used = Path(os.environ.get("SSH_AUTH_SOCK", "")).parent
    uid = os.geteuid()
    found = [folder for folder in root.glob("tmp/ssh-*") if _is_folder(folder) and _owner(folder) == uid]
    return sorted(found, key=lambda folder: (folder != used, _age(folder), folder.name))


def files(root: Path = Path("/")) -> tuple[Path, ...]:
    """Sockets to cover where their folder holds more: container engines, and what DOCKER_HOST and SSH_AUTH_SOCK name."""
    named = [os.environ.get("DOCKER_HOST", "").removeprefix("unix://"), os.environ.get("SSH_AUTH_SOCK", "")]
    places = [root / name.lstrip("/") for name in _ENGINES] + [Path(name) for name in named if name.startswith("/")]
    hidden = folders(root)
    found = (place.resolve() for place in places if _is_socket(place))
    return tuple(dict.fromkeys(file for file in found if not any(folder in file.parents for folder in hidden)))


def _owner(path: Path) -> int:
    """uid; -1 when it is gone."""
    try:
        return path.lstat().st_uid
    except OSError:
        return -1


def _age(path: Path) -> int:
    """When it last changed, nanoseconds since the epoch: the kernel's word (ctime)."""
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _is_socket(path: Path) -> bool:
    try:
        return path.is_socket()
    except OSError:
        return False
