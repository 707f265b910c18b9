"""Finds an instance whose state directory was moved, deleted or replaced: where its guard records instead, and who may still run.

What the guard leaves behind is written by guard/relocation.py. Here it is read by who asks for a kill; the guard itself never does.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from console.domain.errors import ConsoleError, NotFound
from console.domain.guard import SILENT_S
from console.killswitch.guard.relocation import PLACE_FILE, bases, is_own
from console.killswitch.kernel import processes
from console.killswitch.kernel.peers import find_peer, inside_an_agent

_ID = re.compile(r"[0-9a-f]{8}")
_CGROUP = re.compile(r"/watchfloor-([0-9a-f]{8})/")
_WORKSPACE, _SOCKET, _INSTANCE = b"WATCHFLOOR_WORKSPACE", b"WATCHFLOOR_AGENT_SOCKET", b"WATCHFLOOR_INSTANCE"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An instance that may have run in a state directory that is gone."""

    instance_id: str
    has_guard: bool = False
    folder: Path | None = None
    """Where its guard records instead; None: nowhere yet."""
    is_heard: bool = True
    """False: what listens in that folder is not its guard."""


def candidates(state_dir: Path) -> tuple[list[Candidate], list[str]]:
    """The instances to look at, and in words what was passed over because it can be forged, or is.

    A folder counts by its owner, a guard by its account and place, an agent by its cgroup. What only a process without a cgroup of an
    instance says of itself counts where nothing better is found; an agent that names another instance hides none.
    """
    found, claims, words = dict[str, Candidate](), set[str](), list[str]()
    for instance, folder in found_for(state_dir):
        if why := _why_not_its_guard(folder / "guard.sock"):
            words.append(f"what listens in {folder} is not the guard: {why}")
        found[instance] = Candidate(instance, True, folder, not why)
    for pid, instance, is_guard in _marked(state_dir):
        place = _CGROUP.search(f"{processes.cgroup_line(pid) or ''}/")
        # Any program may carry these words as its arguments, to be taken for the guard and hide a real instance.
        if is_guard and (why := _why_not_guard(pid)):
            words.append(f"process {pid} is not the guard of {instance}: {why}")
        elif is_guard:
            found.setdefault(instance, Candidate(instance, True))
        elif place is None:
            claims.add(instance)
        else:
            found.setdefault(place[1], Candidate(place[1]))
            if place[1] != instance:
                words.append(f"process {pid} names instance {instance}, and its cgroup is of {place[1]}")
    if not found:
        return [Candidate(instance) for instance in sorted(claims)], words
    words += [f"instance {instance} is named by processes without a cgroup alone" for instance in sorted(claims - found.keys())]
    return list(found.values()), words


def candidates_beside(state_dir: Path) -> list[Candidate]:
    """The guards that record elsewhere and answer, though there is a state directory again: another one was put in its place."""
    return [Candidate(i, True, folder) for i, folder in found_for(state_dir) if _why_not_its_guard(folder / "guard.sock", "silent") == ""]


def _marked(state_dir: Path) -> Iterator[tuple[int, str, bool]]:
    """(pid, instance, whether it reads as a guard) of processes that name this state directory, by command line or environment."""
    below = f"{state_dir}/".encode()
    for pid in processes.every_pid():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            given = dict(zip(words, words[1:], strict=False))
            is_guard = b"console.killswitch" in words and given.get(b"--state-dir") == os.fsencode(state_dir)
            pairs = (v.partition(b"=") for v in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
            own = {name: value for name, _, value in pairs}
            instance = os.fsdecode(given.get(b"--instance", b"") if is_guard else own.get(_INSTANCE, b""))
            is_agent = own.get(_WORKSPACE, b"").startswith(below) or own.get(_SOCKET, b"").startswith(below)
            if (is_guard or is_agent) and _ID.fullmatch(instance):
                yield pid, instance, is_guard


def _why_not_guard(pid: int) -> str:
    """Return why the process is no guard; empty: it runs under this account, and in no cgroup of agents."""
    if processes.uids(pid) != {os.geteuid()}:
        return "it runs under another account"
    return "it is in a cgroup of agents" if inside_an_agent(pid) else ""


def _why_not_its_guard(path: Path, silent: str = "") -> str:
    """Return why the process at a socket is no guard of ours; empty: it is one; ``silent``: nothing answers."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as one:
            one.settimeout(SILENT_S)
            one.connect(str(path))
            return _why_not_guard(find_peer(one).pid)
    except OSError:
        return silent


def why_no_instance(state_dir: Path) -> ConsoleError:
    """What to say where there is no instance: whether one ran there whose guard goes on elsewhere."""
    for _, folder in found_for(state_dir):
        quoted = shlex.quote(str(state_dir))
        return NotFound(
            f"The state directory {state_dir} is gone. Its guard still runs, and records in {folder}.",
            f"Put the folder back, or stop its agents: watchfloor panic --state-dir {quoted}",
        )
    return NotFound(
        f"There is no instance in {state_dir}; nothing was ever started there.",
        f"Start one with: watchfloor supervisor --state-dir {shlex.quote(str(state_dir))}, or name another folder with --state-dir.",
    )


def found_for(state_dir: Path) -> Iterator[tuple[str, Path]]:
    """(instance, folder) of every guard of this account that records elsewhere because this state directory went away."""
    for base in bases():
        with contextlib.suppress(OSError):
            for folder in sorted(base.glob(f"watchfloor-{os.geteuid()}-*-guard")):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    body = json.loads((folder / PLACE_FILE).read_bytes()) if is_own(folder) else {}
                    if body.get("state_dir") == str(state_dir):
                        yield str(body["instance_id"]), folder
