"""What is not secret about tokens but must not be lost: the epoch, and whose tokens are revoked. Lost or damaged refuses all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.domain.errors import ConsoleError
from console.domain.process.durable import make_folder, replace_file

_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TokenState:
    """The current epoch and the agents whose tokens are refused (until the next rotation, which kills every token)."""

    epoch: int
    revoked: frozenset[str]
    barred: frozenset[str] = frozenset()
    """Revoked by a person: these get no new token after a rotation either."""


class TokenStateFile:
    """The state of tokens on disk. It is read again at every call, and changed under a lock, durably."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> TokenState:
        """ConsoleError when it is missing or damaged: without it no token can be told from a revoked one."""
        try:
            # Read at each call: a revocation by another process must count for the very next request.
            with self._path.open("rb") as file:
                data = json.loads(file.read(_LIMIT))
            epoch, lists = data["epoch"], (data["revoked"], data.get("barred", []))
            sound = all(isinstance(names, list) and all(isinstance(a, str) for a in names) for names in lists)
            if type(epoch) is not int or epoch < 1 or not sound:
                raise ValueError("token state")
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConsoleError(f"The list of revoked tokens {self._path} is lost or damaged.", "Rotate the credentials.") from error
        return TokenState(epoch, *(frozenset(names) for names in lists))

    def change(self, how: Callable[[TokenState], TokenState]) -> TokenState:
        """The new state, durable when it returns; ConsoleError otherwise."""
        lock = self._lock()
        try:
            state = how(self.load())
            self._write(state)
            return state
        finally:
            os.close(lock)

    def replace(self, state: TokenState) -> None:
        """Start a new state, whatever was there. The higher epoch stays, and a barred agent stays barred."""
        lock = self._lock()
        try:
            try:
                before = self.load()
            except ConsoleError:
                before = state
            # An epoch that goes back would revive every token of before the last kill.
            self._write(TokenState(max(state.epoch, before.epoch), state.revoked, state.barred | before.barred))
        finally:
            os.close(lock)

    def _lock(self) -> int:
        try:
            make_folder(self._path.parent)
            lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _write(self, state: TokenState) -> None:
        try:
            data = {"epoch": state.epoch, "revoked": sorted(state.revoked), "barred": sorted(state.barred)}
            replace_file(self._path, json.dumps(data).encode())
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ConsoleError:
        return ConsoleError(f"{self._path} cannot be written: {error.strerror}.", "Fix its permissions, or free some space.")
