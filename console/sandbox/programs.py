"""Where programs that can be started are: named by a setting, else as they are installed; never one that an agent could change."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from console.domain.conversation import PROGRAMS_IN_BOX
from console.domain.errors import Unavailable
from console.domain.process.asked import ASKED

MANAGERS = (
    *(".npm-global/bin", ".bun/bin", ".local/share/pnpm", ".local/share/pnpm/bin", ".volta/bin", ".local/bin", ".nvm/versions/node/*/bin"),
    *("/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin"),
)
"""Where package managers put programs, below the same home where it is no whole path: npm, bun, pnpm, Volta, pipx and uv, nvm, Homebrew."""
_FOLDERS_MAX = 100
# A program that hangs must not hold a launch for ever.
VERSION_S = 30.0
_SAID_MAX = 2000
"""Bytes that are read of what a program says."""
_VERSION = re.compile(r"\d+\.\d+\.\d+[\w.+-]{0,30}")


class Installed(Protocol):
    """How a kind of program is installed."""

    @property
    def name(self) -> str:
        """As ``run --agent`` takes it."""
        ...

    @property
    def usual(self) -> tuple[str, ...]:
        """Whole paths at which installers put it; never empty."""
        ...

    @property
    def in_home(self) -> tuple[str, ...]:
        """The same below the home of the supervisor's account."""
        ...

    @property
    def native(self) -> Callable[[Path], Path]:
        """The program that a resolved file leads to. Raises ValueError where there is none."""
        ...

    @property
    def needs(self) -> Callable[[Path], tuple[Path, ...]]:
        """What of this machine the program needs beside its file: the folder of a script first, then what runs it."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A program that may be started."""

    program: str
    """As ``run --agent`` takes it."""
    path: Path
    """Resolved."""
    note: str = ""
    """What a person should know about the file, or empty."""
    needs: tuple[Path, ...] = ()
    """What it needs beside that file: its folder first."""

    def binds(self, in_box: bool) -> tuple[tuple[Path, str], ...]:
        """(source, path inside) for a sandbox that does not show this machine's files; ``in_box``: an image's, else at its own place."""
        shown = self.needs or (self.path,)
        if not in_box:
            return tuple((path, str(path)) for path in shown)
        return ((shown[0], PROGRAMS_IN_BOX if self.needs else f"{PROGRAMS_IN_BOX}/{self.path.name}"),)


def find(program: Installed, named: str, home: Path, uid: int, gid: int, never_in: Iterable[Path], path: str = "") -> Found:
    """Find the program. ``named``: a setting's path or empty; ``uid``, ``gid``: agents'; ``never_in``: folders that agents write.

    ``path``: the PATH of the supervisor's account.

    Raises Unavailable, which names every place that was tried and why it was refused.
    """
    usual = [*program.usual, *(str(home / name) for name in program.in_home)]
    places = [named] if named else list(dict.fromkeys((*usual, *installed_at(Path(usual[0]).name, home, path))))
    refused = []
    for place in places:
        try:
            return _judge(program, Path(place), uid, gid, list(never_in))
        except FileNotFoundError:
            refused.append(f"{place}: not there")
        except (OSError, ValueError) as error:
            refused.append(f"{place}: {getattr(error, 'strerror', None) or error}")
    raise Unavailable(
        f"{program.name} is not available, because no program of it may be started ({'; '.join(refused)[:1500]}).",
        f"Install it, or name its file with the setting programs.{program.name.replace('-', '_')}.",
    )


def installed_at(name: str, home: Path, path: str) -> list[str]:
    """Where else a program of this name is: in a folder of PATH, or where a package manager puts it."""
    folders = [folder for folder in path.split(":") if folder.startswith("/")]
    for folder in MANAGERS:
        folders += [folder] if folder.startswith("/") else sorted(map(str, home.glob(folder)), reverse=True)  # the newest version first
    return [f"{folder}/{name}" for folder in folders[:_FOLDERS_MAX] if os.path.lexists(f"{folder}/{name}")]  # noqa: PTH110


def _judge(program: Installed, place: Path, uid: int, gid: int, never_in: list[Path]) -> Found:
    """Raises ValueError with why this file is not started, FileNotFoundError."""
    if not place.is_absolute():
        raise ValueError("the path is not absolute")
    path = program.native(Path(os.path.realpath(place, strict=True)))  # Path.resolve() answers a loop with an error of another kind
    if any(path.is_relative_to(folder.resolve()) for folder in never_in):
        raise ValueError("it lies where agents write")
    seen = path.stat()
    if not stat.S_ISREG(seen.st_mode) or not seen.st_mode & 0o111:
        raise ValueError("it is no program")
    own = uid == os.geteuid()
    # A folder above that can be written is as good as the file: it can be renamed and another one put in its place.
    for checked in (path, *path.parents):
        if _writable(checked.stat(), uid, gid, is_folder=checked != path):
            if not own:
                raise ValueError(f"agents' uid {uid} may write {checked}")
            note = f"{checked} can be changed by an agent without a container, which has your own rights: best effort"
            return Found(program.name, path, note, program.needs(path))
    return Found(program.name, path, needs=program.needs(path))


def _writable(seen: os.stat_result, uid: int, gid: int, *, is_folder: bool) -> bool:
    """Whether that user may change the file, or put another in its place (a sticky folder keeps others' files)."""
    if is_folder and seen.st_mode & stat.S_ISVTX and seen.st_uid != uid:
        return False
    if seen.st_uid == uid:
        return True  # the owner can always give itself the right
    if seen.st_gid == gid:
        return bool(seen.st_mode & stat.S_IWGRP)
    return bool(seen.st_mode & stat.S_IWOTH)


_versions: dict[tuple[str, int, int], str] = {}


def version(found: Found, uid: int, gid: int, *, may_ask: bool) -> str:
    """What the program says with --version, asked as an agent's user with nothing of our environment; ``unknown`` where it says none.

    Blocks; asked once for each file as it is. ``may_ask``: no program may run while everything is stopped, and this is one.
    """
    seen = found.path.stat()
    key = (str(found.path), seen.st_mtime_ns, seen.st_ino)
    if key not in _versions and not may_ask:
        return "unknown"
    if key not in _versions:
        _versions[key] = (_packaged(found.needs[0]) if found.needs else "") or _ask(found.path, uid, gid)
    return _versions[key]


def _packaged(folder: Path) -> str:
    """What the package of a script says of its version, or empty. A script that is run to ask it would be seen as an agent."""
    try:
        said = json.loads((folder.parent / "package.json").read_bytes())["version"]
        return str(said) if _VERSION.fullmatch(str(said)) else ""
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _ask(path: Path, uid: int, gid: int) -> str:
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as home:  # some say nothing without a home that they may write
        if is_root:
            os.chown(home, uid, gid)
        return _asked(path, home, (uid, gid) if is_root else (None, None))


@contextlib.contextmanager
def _shown_nowhere(pid: int) -> Iterator[None]:
    """What we run for a moment is no agent. Its number may be an agent's afterwards, so it is forgotten whatever goes wrong."""
    ASKED.add(pid)
    try:
        yield
    finally:
        ASKED.discard(pid)


def _asked(path: Path, home: str, whose: tuple[int | None, int | None]) -> str:
    try:
        program = subprocess.Popen(
            [str(path), "--version"],
            env={"PATH": "/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            user=whose[0],
            group=whose[1],
            extra_groups=None if whose[0] is None else [],
            start_new_session=True,
        )
    except OSError:
        return "unknown"
    with program, _shown_nowhere(program.pid):
        said, until, waiting = b"", time.monotonic() + VERSION_S, select.poll()
        waiting.register(out := program.stdout.fileno() if program.stdout else -1, select.POLLIN)
        while len(said) < _SAID_MAX and waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            if not (more := os.read(out, _SAID_MAX)):
                break
            said += more
        # The whole group: what the program started would otherwise stay behind.
        os.killpg(program.pid, signal.SIGKILL)  # not reaped yet, so that the number is its own
    told = _VERSION.search(said.decode("utf-8", "replace"))
    return told[0] if told else "unknown"
