"""The hook's file, the settings that name it, and what an installation would change in them."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import console
from console.api.agents.first_run import HookPreview
from console.domain.errors import ConsoleError, Denied, NotFound, UsageProblem
from console.domain.process.durable import make_folder, replace_file
from console.settings.layers import in_force
from console.settings.places import Places
from console.sources.home_dirs import read_foreign
from console.sources.hook_settings import FILE_MAX, HookCommand
from console.sources.kinds import HOOKS

SOURCE = Path(console.__file__).resolve().parent / "integrations" / "hook.py"
"""A file that is copied, never imported: it runs without this package."""
HOOK_FILE = "watchfloor-hook.py"
SHOWN_MAX = 256 * 1024
"""Largest settings file that the supervisor reads for a look or a preview, in bytes: who may write it may be an agent."""
LINES_MAX = 4000
"""Most lines it compares."""
_LINKS_MAX = 40
GRACE_S = 10
"""The hook waits so much longer than a request is kept for a human."""


def preview(places: Places, program: str) -> HookPreview:
    """What the verb would change in this user's settings now; nothing is written. Blocks; raises ConsoleError kinds."""
    hook = HOOKS.get(program)
    if hook is None:
        raise NotFound(f"{program[:40]!r} has no hook of ours.", f"Programs are {', '.join(HOOKS)}.")
    file = Path.home() / hook.place
    before = settings_of(file, SHOWN_MAX)
    after = hook.added(before, command_for(places, program), str(file))
    if len(before.splitlines()) + len(after.splitlines()) > LINES_MAX:
        raise UsageProblem(f"{file} is too long to be compared here.", f"watchfloor install-hook {program} --dry-run shows the diff.")
    return HookPreview(program=program, file=str(file), changed=before != after, diff=diff_of(file, before, after), gaps=list(hook.gaps))


def command_for(places: Places, program: str) -> HookCommand:
    """What the program is told to run: an interpreter and a file that no agent can change, and this instance's socket."""
    wait = int(in_force(places).options.approvals.ttl_s) + GRACE_S
    return HookCommand(_interpreter(), places.hooks_dir / HOOK_FILE, program, places.hooks_sock, wait)


def _interpreter() -> str:
    """The Python that the virtual environment was made of: the hook needs no package, and goes on when the environment is moved."""
    path = own = Path(sys.executable)
    for _ in range(_LINKS_MAX):
        if not path.is_relative_to(sys.prefix) or not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    is_outside = not path.is_relative_to(sys.prefix) and os.access(path, os.X_OK) and path.samefile(own)
    return str(path if is_outside else own)


def put_hook(places: Places) -> Path:
    """The hook itself, in the state directory: it runs from there, whatever becomes of this installation."""
    make_folder(places.hooks_dir, 0o755)
    file = places.hooks_dir / HOOK_FILE
    data = SOURCE.read_bytes()
    if not file.is_file() or file.is_symlink() or file.read_bytes() != data:
        replace_file(file, data, 0o644)
    return file


def put_hook_or_refuse(places: Places) -> None:
    """The same. Raises ConsoleError with what to do."""
    try:
        put_hook(places)
    except OSError as error:
        raise ConsoleError(f"The hook cannot be written to {places.hooks_dir}: {error.strerror}.", "Fix the state directory.") from error


def is_asked(places: Places) -> bool:
    """Whether a program's settings in this home name this instance's hook. Blocks."""
    ours = str(places.hooks_dir / HOOK_FILE)
    for hook in HOOKS.values():
        file = Path.home() / hook.place
        try:
            if ours in hook.installed(read_foreign(file, SHOWN_MAX).data, str(file)):
                return True
        except (ConsoleError, OSError):  # not there, or not a file of ours
            continue
    return False


def records(places: Places) -> Iterator[dict[str, Any]]:
    """What was kept before each change of a program's settings, the oldest first; one that cannot be read is passed over. Blocks."""
    for kept in sorted(places.hooks_dir.glob("record-*.json")):
        try:
            found = json.loads(kept.read_bytes())
            yield found | {"before": str(found["before"]).encode("utf-8", "surrogateescape")}
        except (OSError, ValueError, KeyError, TypeError):
            continue


def wrote(places: Places, before_sha256: str, data: bytes) -> bool:
    """Return whether install-hook of this instance makes exactly these bytes of a file with that hash; empty: of no file. Blocks.

    The bytes are made again and compared. So a forged record hides nothing but the installation itself.
    """
    befores = [r["before"] for r in records(places)] if before_sha256 else [b""]
    befores = [b for b in befores if not before_sha256 or hashlib.sha256(b).hexdigest() == before_sha256]
    for program, hook in HOOKS.items():
        try:
            command = _own(places, program, hook.installed(data, ""))
            if command is not None and any(hook.added(before, command, "") == data for before in befores):
                return True
        except (UsageProblem, ValueError):  # the settings of another program
            continue
    return False


def _own(places: Places, program: str, line: str) -> HookCommand | None:
    """The command in a program's settings where it is one of this instance. Raises ValueError for an open quote."""
    words = shlex.split(line.partition(" || ")[0])
    if len(words) != 7 or words[0] not in (sys.executable, _interpreter()) or not (words[6].isascii() and words[6].isdigit()):
        return None
    command = HookCommand(words[0], places.hooks_dir / HOOK_FILE, program, places.hooks_sock, int(words[6][:9]))
    return command if command.words() == words else None


def settings_of(file: Path, most: int = FILE_MAX) -> bytes:
    """The program's settings; b"" where there is no file. Raises ConsoleError kinds for one that is not this user's to change."""
    try:
        found = read_foreign(file, most)
    except FileNotFoundError:
        return b""
    except OSError as error:
        if file.is_symlink():
            raise UsageProblem(f"{file} is a link.", f"Name the file itself: --settings {file.resolve()}") from error
        raise ConsoleError(f"{file} cannot be read: {error.strerror or error}.", "Fix it. Nothing was changed.") from error
    if found.uid not in (os.geteuid(), 0):
        raise Denied(f"{file} belongs to uid {found.uid}, not to you.", "Run it as its owner.")
    if not found.whole:
        raise UsageProblem(f"{file} is larger than {most} bytes.", "It is left as it is.")
    return found.data


def diff_of(file: Path, before: bytes, after: bytes) -> list[str]:
    """A unified diff; nothing in it acts on a terminal."""
    old, new = (data.decode("utf-8", "backslashreplace").splitlines() for data in (before, after))
    lines = difflib.unified_diff(old, new, str(file), f"{file} (new)", lineterm="")
    return ["".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line) for line in lines]
