"""The permission matrix in force for this instance: ``matrix.json`` of the state directory, and ``matrix/TYPE.json`` for agents of a type.

Without a file there is none, and the rules decide alone. A file that breaks, or is removed, changes nothing but raises an alarm: the last
good bytes are kept beside it. Without any good bytes every call of the agents under it is denied.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from console.domain.agent import Agent
from console.domain.errors import Denied, UsageProblem
from console.policy.matrix import Matrix, read_matrix
from console.policy.rules.loading import MAX_BYTES, read_json
from console.services.policy.config_fallback import LastGood
from console.settings.places import Places

NOWHERE = "/nonexistent"
"""A workspace to try a file with."""
COMPILED_MAX = 64
"""Matrices of one file kept compiled: one for each workspace that asks."""


class _File:
    """One file: what of it is in force."""

    __slots__ = ("_kept", "_stamp", "good", "problem", "_compiled", "_lost", "path", "_name", "_alarm")

    def __init__(self, path: Path, alarm: Callable[[str], None]) -> None:
        self.path, self._name, self._alarm = path, str(path), alarm
        self._kept = LastGood(path, path.with_name(f".{path.stem}-last-good.json"), alarm)
        self._stamp: tuple[int, ...] | None = None
        self.good: bytes | None = None
        self.problem = ""
        self._compiled: dict[tuple[bytes, str], Matrix | None] = {}
        try:
            self._offer(self._kept.read())
        except FileNotFoundError:
            pass
        except OSError as error:
            self.problem = f"{self._kept.name}, the last good one, cannot be read: {error.strerror}."
        self._lost, self.problem = self.problem, ""
        """Why a matrix that was in force is unknown now; empty: it is known."""

    def look(self) -> None:
        """Read the file again when it has changed. One ``stat`` when it has not."""
        before = self.problem
        if self._kept.settle() == self.problem:
            self.problem = ""
        try:
            seen = os.stat(self._name)  # noqa: PTH116 - in every judgement
            stamp = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            if not stat.S_ISREG(seen.st_mode):
                self.problem = "it is no plain file."
            elif self._offer(_content(self.path)):
                self._kept.keep(self.good or b"")
                self.problem = self._kept.trouble
        except FileNotFoundError:
            self._stamp = None
            if os.path.islink(self._name):  # noqa: PTH114 - in every judgement
                self.problem = "it is a link to nothing."
            elif self.good is None:
                self.problem = self._lost
            else:  # bounds that were in force are gone: that is no reason to bound nobody
                self.problem = 'it is gone; the last good one stays in force. Put it back; {"tools": null} there takes all bounds away.'
        except OSError as error:
            self._stamp, self.problem = None, f"it cannot be read: {error.strerror}."
        if self.problem and self.problem != before:
            self._alarm(f"{self.path}: {self.problem}")

    def matrix(self, workspace: str) -> Matrix | None:
        """Return the matrix for a workspace; None: no bounds. Raises Denied when it is unknown, or would be after a restart."""
        if self._kept.trouble:
            raise Denied(f"The permission matrix is not in force: {self._kept.trouble}", f"Make room for it beside {self.path.name}.")
        if self.good is None:
            if self.problem:
                raise Denied(f"The permission matrix is not known: {self.problem}", f"Fix {self.path.name}.")
            return None
        key = (self.good, workspace)
        if key not in self._compiled:
            found = _read(self.good, self.path.name, workspace)
            while len(self._compiled) >= COMPILED_MAX:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = found
        return self._compiled[key]

    def is_there(self) -> bool:
        return self.good is not None or bool(self.problem)

    def _offer(self, data: bytes) -> bool:
        try:
            _read(data, self.path.name, NOWHERE)
        except UsageProblem as error:
            self.problem = str(error)
            return False
        self._lost = ""
        if data != self.good:
            self._compiled.clear()
        self.good, self.problem = data, ""
        return True


class MatrixDesk:
    """Thread-safe: calls are judged in threads."""

    __slots__ = ("_lock", "_all", "_types", "_folder", "_alarm", "_type_of")

    def __init__(self, places: Places, alarm: Callable[[str], None], type_of: Callable[[Agent], str] = lambda _agent: "") -> None:
        self._folder, self._alarm, self._type_of = places.state_dir / "matrix", alarm, type_of
        self._lock = threading.Lock()
        self._all = _File(places.state_dir / "matrix.json", alarm)
        self._types: dict[str, _File] = {}
        with self._lock:
            self._all.look()

    @property
    def problem(self) -> str:
        """Why the newest ``matrix.json`` is not in force; empty: it is, or there is none."""
        with self._lock:
            self._all.look()
            return self._all.problem

    def of(self, agent: Agent, workspace: str) -> Matrix | None:
        """What bounds an agent's calls: its type's own, else everybody's. Blocks. Raises ConsoleError when that is not known."""
        kind = self._type_of(agent)
        with self._lock:
            if kind:
                own = self._types.get(kind)
                if own is None:
                    own = self._types[kind] = _File(self._folder / f"{kind}.json", self._alarm)
                own.look()
                if own.is_there():
                    return own.matrix(workspace)
            self._all.look()
            return self._all.matrix(workspace)

    def general(self) -> Matrix | None:
        """Everybody's. Raises Denied when it is not known."""
        with self._lock:
            self._all.look()
            return self._all.matrix(NOWHERE)


def _read(data: bytes, name: str, workspace: str) -> Matrix | None:
    document = read_json(data, name)
    if document == {"tools": None}:
        return None
    return read_matrix(document, workspace)


def _content(path: Path) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - a pipe by now waits for nobody
        return file.read(MAX_BYTES + 1)
