"""A state directory that is moved or deleted under a running guard: the guard records elsewhere and listens there too.

The other place is a folder of the account's own below /run (or /tmp) that names the state directory, so that ``panic`` finds it.
Once the state directory is back the guard records there again.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from console.killswitch.store.atomic_file import Damaged, Witness, read_sealed, write_whole

if TYPE_CHECKING:  # a panic looks for what was moved, and need not wait for what a guard is made of
    from console.killswitch.guard.state import Guard

NOTICE = "state-dir"
PLACE_FILE = "place.json"
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
