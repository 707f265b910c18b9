"""The files of the administrator below /etc/watchfloor: which ones count, in which order, and what each of them says.

Only a regular file of root counts that no other account may write, in folders of the same kind. Any other one is an error, never skipped:
what a person wrote to limit agents must not be lost in silence.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.domain.errors import Conflict

FOLDER = Path("/etc/watchfloor")
VARIABLE = "WATCHFLOOR_ETC"
"""Another folder instead, for root alone, who may change /etc as well: chroots and tests. Ignored for every other account."""
MAIN, DROP_INS, ENDING = "watchfloor.toml", "conf.d", ".toml"
LOCKED = "locked"
MAX_BYTES = 256 * 1024
FILES_MAX = 200
_PENDING_MAX = 200
"""Lines of one statement beyond which the lines of keys are not looked for any more; that costs a parse for each."""
_DIGITS = re.compile(r"[\d_]{4300}")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_KEPT_ASIDE = re.compile(r"README|\..*|.*(~|\.(toml|dpkg-\w+|rpm\w+|ucf-\w+|bak|old|orig))", re.DOTALL)
"""Names in the folder of drop-ins that count, or that a person does not expect to count."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a file, for a person."""

    file: str
    what: str
    """A sentence without the file's name."""
    remedy: str
    line: int = 0
    """0: not known, or the file as a whole."""
    column: int = 0

    @property
    def place(self) -> str:
        """``FILE``, ``FILE:LINE`` or ``FILE:LINE:COLUMN``."""
        return ":".join([self.file, *(str(number) for number in (self.line, self.column) if number)])

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Refused(Conflict):
    """Files that do not count, or cannot be read as TOML."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(str(faults[0]), faults[0].remedy)
        self.faults = faults


@dataclass(frozen=True, slots=True)
class AdminFile:
    """One file as TOML."""

    path: Path
    data: dict[str, Any]
    text: str

    def lines(self) -> dict[tuple[str, ...], int]:
        """The line on which each key is first written, by its path. A key in an inline table has the line of that table."""
        found: dict[tuple[str, ...], int] = {}
        for at, names in _statements(self.text):
            for end in range(1, len(names) + 1):
                found.setdefault(names[:end], at)
        return found


def folder() -> Path:
    """Where the files are."""
    named = os.environ.get(VARIABLE, "") if os.geteuid() == 0 else ""
    return Path(named) if named else FOLDER


def shown(path: Path | str) -> str:
    """A file's name as text that every program can carry, whatever bytes it is made of."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def find_files(home: Path) -> list[Path]:
    """The main file, then the drop-ins by name; files that are not there are left out. Raises Refused for a folder that does not count."""
    if not _is_folder(home):
        return []
    main, drop_ins = home / MAIN, home / DROP_INS
    found = [main] if os.path.lexists(main) else []
    if _is_folder(drop_ins):
        try:
            paths = sorted(path for path in drop_ins.iterdir() if path.name.endswith(ENDING) and not path.name.startswith("."))
        except OSError as error:
            raise Refused(_unopened(drop_ins, error)) from error
        if len(paths) > FILES_MAX:
            raise Refused(Fault(shown(drop_ins), f"holds more than {FILES_MAX} files.", "Join some of them."))
        found += paths
    return found


def find_misnamed(home: Path) -> list[str]:
    """Files beside the drop-ins that look like drop-ins to a person and are not read, because of their names."""
    try:
        return sorted(shown(path) for path in (home / DROP_INS).iterdir() if _KEPT_ASIDE.fullmatch(path.name) is None)
    except OSError:  # find_files names what is wrong with the folder
        return []


def read_file(path: Path, *, of_root: bool = True) -> AdminFile:
    """One file. ``of_root``: only one counts that root owns and no other account may write. Raises Refused; never blocks on a FIFO."""
    text = _text_of(path, of_root=of_root)
    try:
        return AdminFile(path, tomllib.loads(text), text)
    except ValueError as error:  # a number of 5,000 digits is TOML, and too long for int()
        raise Refused(_broken(path, text, str(error))) from error
    except RecursionError as error:
        raise Refused(Fault(shown(path), "is nested too deeply.", "Write it flat.")) from error


def _text_of(path: Path, *, of_root: bool) -> str:
    try:
        # O_NONBLOCK: the open of a FIFO without a writer would wait for ever (open(2)).
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise Refused(_unopened(path, error)) from error
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            kind = "a folder" if stat.S_ISDIR(seen.st_mode) else "no regular file"
            raise Refused(Fault(shown(path), f"is {kind}.", "Put a plain file in its place, or remove it."))
        if of_root:
            _check_owner(path, seen, "0644")
        data = b""
        while len(data) <= MAX_BYTES and (more := os.read(descriptor, MAX_BYTES + 1 - len(data))):
            data += more
    except OSError as error:
        raise Refused(Fault(shown(path), f"cannot be read: {error.strerror}.", "Look at the disk.")) from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise Refused(Fault(shown(path), f"is longer than {MAX_BYTES // 1024} KiB.", "Shorten it, or split it into drop-ins."))
    if data.startswith(codecs.BOM_UTF8):
        raise Refused(Fault(shown(path), "begins with a byte order mark.", "Save it as UTF-8 without a byte order mark.", 1))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Refused(Fault(shown(path), "is not UTF-8.", "Save it as UTF-8.", line)) from error


def _unopened(path: Path, error: OSError) -> Fault:
    if error.errno == errno.ELOOP:
        return Fault(shown(path), "is a symbolic link.", "Put the file itself in its place.")
    if error.errno == errno.EACCES:
        return Fault(shown(path), "cannot be read by this account.", f"As root: chmod 0644 {shown(path)}; chmod 0755 {shown(path.parent)}")
    return Fault(shown(path), f"cannot be opened: {error.strerror}.", "Put a plain file in its place, or remove it.")


def _is_folder(path: Path) -> bool:
    """False: there is none. Raises Refused for one that does not count."""
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Refused(_unopened(path, error)) from error
    if not stat.S_ISDIR(seen.st_mode):
        raise Refused(Fault(shown(path), "is not a folder.", "Make it a folder, or remove it."))
    _check_owner(path, seen, "0755")
    if not os.access(path, os.R_OK | os.X_OK):
        raise Refused(Fault(shown(path), "cannot be read by this account.", f"As root: chmod 0755 {shown(path)}"))
    return True


def _check_owner(path: Path, seen: os.stat_result, mode: str) -> None:
    if seen.st_uid != 0:
        raise Refused(Fault(shown(path), f"belongs to uid {seen.st_uid}, not to root.", f"As root: chown root:root {shown(path)}"))
    if seen.st_mode & _OTHERS_WRITE:
        raise Refused(Fault(shown(path), "can be written by other accounts than root.", f"As root: chmod {mode} {shown(path)}"))


def _broken(path: Path, text: str, words: str) -> Fault:
    """What tomllib says, with the place it names, in words for a person."""
    at = _AT.search(words)
    line, column = (int(at[1]), int(at[2])) if at is not None and at[1] else (text.count("\n") + 1, len(text.rpartition("\n")[2]) + 1)
    said = words[: at.start()] if at is not None else words
    if said.startswith(("Cannot overwrite", "Cannot declare", "Cannot mutate")):
        return Fault(shown(path), "this key or table is there twice.", "Keep one of them.", line, column)
    if said.startswith("Exceeds the limit"):  # int() says it in words for a programmer, and without a place
        return Fault(shown(path), "a number has too many digits.", "Fix that line.", next(_long_number(text), 0))
    return Fault(shown(path), f"is not TOML: {said}.", "Fix that line.", line, column)


def _long_number(text: str) -> Iterator[int]:
    """The lines with a number that int() refuses."""
    return (at for at, line in enumerate(text.split("\n"), 1) if _DIGITS.search(line))


def _statements(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(line, path of the key or table) of each statement of a text that is TOML. Ends early where one is very long."""
    header: tuple[str, ...] = ()
    pending: list[str] = []
    for at, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not pending and not line.strip():
            continue
        pending.append(line)
        if len(pending) > _PENDING_MAX:
            return
        try:
            found = tomllib.loads("\n".join(pending))
        except ValueError:
            continue
        if pending[0].lstrip().startswith("["):
            header = _path_of(found)
            yield at - len(pending) + 1, header
        elif found:
            yield at - len(pending) + 1, (*header, *_path_of(found))
        pending = []


def _path_of(found: dict[str, Any]) -> tuple[str, ...]:
    """The names along a statement's only branch."""
    names: list[str] = []
    here: Any = found
    while isinstance(here, dict) and len(here) == 1:
        name, here = next(iter(here.items()))
        names.append(name)
    return tuple(names)
