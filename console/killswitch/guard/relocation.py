"""A state directory that is moved or deleted under a running guard: the guard records elsewhere and listens there too.

The other place is a folder of the account's own below /run (or /tmp) that names the state directory, so that ``panic`` finds it.
Once the state directory is back the guard records there again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from console.domain.errors import ConsoleError, NotFound
from console.domain.guard import SILENT_S
from console.killswitch.kernel import processes
from console.killswitch.kernel.peers import find_peer, inside_an_agent
from console.killswitch.store.atomic_file import Damaged, read_sealed, write_whole
from console.killswitch.store.guard_marker import Witness

if TYPE_CHECKING:  # a panic looks for what was moved, and need not wait for what a guard is made of
    from console.killswitch.guard.state import Guard

NOTICE = "state-dir"
PLACE_FILE = "place.json"
_ID = re.compile(r"[0-9a-f]{8}")
_CGROUP = re.compile(r"/watchfloor-([0-9a-f]{8})/")
_WORKSPACE, _SOCKET, _INSTANCE = b"WATCHFLOOR_WORKSPACE", b"WATCHFLOOR_AGENT_SOCKET", b"WATCHFLOOR_INSTANCE"
Listen = Callable[[Path], None]


def bases() -> tuple[Path, ...]:
    """Where such a folder may be, the best first: a file system in memory that no agent can write, else /tmp."""
    uid = os.geteuid()
    return (Path("/run") if uid == 0 else Path(f"/run/user/{uid}"), Path("/tmp"))  # noqa: S108 - made with mkdir, owner checked


def folder_in(base: Path, instance_id: str) -> Path:
    """The folder of one instance of this account."""
    return base / f"watchfloor-{os.geteuid()}-{instance_id}-guard"


def is_own(folder: Path) -> bool:
    """Return whether it is a folder of this account that no other account can write; no link."""
    try:
        seen = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & 0o022


def make_folder(instance_id: str, state_dir: Path, *, was_in_use: bool = False) -> Path:
    """Make the folder with its note of the state directory. Raises OSError when none of the places can be used.

    ``was_in_use``: the guard's record is lost. So what is missing in the folder proves nothing.
    """
    trouble = OSError("no place for it")
    for base in bases():
        folder = folder_in(base, instance_id)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if not is_own(folder):
                raise PermissionError(f"{folder} belongs to another account")
            (folder / "guard").mkdir(mode=0o700, exist_ok=True)
            write_whole(folder / PLACE_FILE, json.dumps({"instance_id": instance_id, "state_dir": str(state_dir)}).encode())
            if was_in_use:
                Witness(folder / "guard").ensure()
        except OSError as error:
            trouble = error
        else:
            return folder
    raise trouble


class Relocation:
    """Looks whether the state directory is still there; called once a second, on the clerk's thread."""

    def __init__(self, guard: Guard, listen: Listen) -> None:
        self._guard, self._listen = guard, listen
        self._home = guard.config.guard_dir
        self._identity = _identity(self._home)
        self.folder: Path | None = None
        """Where it records instead; None: at home."""

    def look(self) -> None:
        """Moves what is recorded when the state directory went away or came back. Trouble is a notice, and tried again."""
        is_home = _identity(self._home) == self._identity
        try:
            if is_home != (self.folder is None):
                self._go_home() if is_home else self._leave_home()
        except OSError as error:
            self._guard.notices[NOTICE] = f"The state directory {self._home.parent} is gone, and nothing is recorded: {error}."
        if not is_home and not self._guard.latch.state.latched and self._is_successor_killed():
            self._guard.press("all", f"The instance in {self._home.parent}, which took the place of this one, was killed", "guard")

    def _is_successor_killed(self) -> bool:
        """Whether the latch is set in the directory that stands in the place of the state directory now.

        Every window opens the instance of that directory. A person who presses Panic there means the agents of this one too.
        """
        try:
            body = read_sealed(self._home / self._guard.latch.path.name)
        except Damaged:
            return True
        except OSError:
            return False
        return body is not None and body.get("latched") is not False

    def must_end(self) -> bool:
        """Whether a guard without its state directory has nothing left to hold: it ends and leaves nothing behind."""
        is_gone = _identity(self._home) != self._identity
        from console.killswitch.guard.state import is_over

        return is_gone and not self._guard.latch.state.latched and is_over(self._guard)

    def _leave_home(self) -> None:
        folder = make_folder(self._guard.config.instance_id, self._home.parent)
        self._keep_in(folder / "guard")
        self.folder = folder
        self._guard.notices[NOTICE] = f"The state directory {self._home.parent} was moved or deleted; the guard records in {folder}."
        self._guard.record_line("state_dir_gone", state_dir=str(self._home.parent), folder=str(folder))
        self._listen(folder)

    def _go_home(self) -> None:
        """What was pressed meanwhile goes with it: memory and the files at home are merged by the latch itself."""
        left, self.folder = self.folder, None
        self._keep_in(self._home)
        self._guard.notices.pop(NOTICE, None)
        self._guard.record_line("state_dir_back", state_dir=str(self._home.parent), folder=str(left))
        if left is not None:
            for receipt in (left / "guard" / "receipts").glob("*.json"):
                write_whole(self._home / "receipts" / receipt.name, receipt.read_bytes())
        self.clear(left)

    def _keep_in(self, folder: Path) -> None:
        guard = self._guard
        guard.folder = folder
        guard.reserve.path = folder / guard.reserve.path.name
        guard.journal.path = folder / guard.journal.path.name
        guard.causes.path = folder / guard.causes.path.name
        guard.unheld.path = folder / guard.unheld.path.name
        guard.seen.path = folder / guard.seen.path.name
        guard.latch.move_to(folder)
        guard.registry.move_to(folder)
        guard.respawners.move_to(folder)
        guard.record("state", guard.latch.save, guard.registry.save, guard.causes.save, guard.respawners.watch.save)

    def clear(self, folder: Path | None = None) -> None:
        """Removes the other folder when nothing in it is needed any more; a latch in it is."""
        folder = folder or (self.folder if not self._guard.latch.state.latched else None)
        if folder is not None and is_own(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        seen = folder.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


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
    return NotFound(f"There is no instance in {state_dir}; nothing was ever started there.", "Name another folder with --state-dir.")


def found_for(state_dir: Path) -> Iterator[tuple[str, Path]]:
    """(instance, folder) of every guard of this account that records elsewhere because this state directory went away."""
    for base in bases():
        with contextlib.suppress(OSError):
            for folder in sorted(base.glob(f"watchfloor-{os.geteuid()}-*-guard")):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    body = json.loads((folder / PLACE_FILE).read_bytes()) if is_own(folder) else {}
                    if body.get("state_dir") == str(state_dir):
                        yield str(body["instance_id"]), folder
