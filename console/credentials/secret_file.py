"""The fallback for secrets: one JSON file, 0600, replaced whole and durably, refused when others could have touched it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from console.domain.errors import ConsoleError
from console.domain.process.durable import make_folder, replace_file, sweep_drafts

_LIMIT = 4 * 1024 * 1024


class SecretFile:
    """name -> value. Safe between processes (flock beside the file). Every call raises ConsoleError when the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, name: str) -> str | None:
        """The value as it is on disk now, or None."""
        return self._read().get(name)

    def set(self, name: str, value: str) -> None:
        """Durable when it returns."""
        with self._locked():
            self._write({**self._read(), name: value})

    def delete(self, name: str) -> None:
        """Durable when it returns; an unknown name is no error."""
        with self._locked():
            values = self._read()
            if values.pop(name, None) is not None:
                self._write(values)

    def _read(self) -> dict[str, str]:
        try:
            # O_NONBLOCK: a FIFO in its place would hold up every request that checks a token.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from error
        try:
            seen = os.fstat(descriptor)
            if not stat.S_ISREG(seen.st_mode) or stat.S_IMODE(seen.st_mode) & 0o077 or seen.st_uid != os.geteuid():
                raise self._unusable("is open to other accounts, or belongs to one")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                raw = file.read(_LIMIT + 1)
        finally:
            os.close(descriptor)
        values = self._decoded(raw)
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            raise self._unusable("is damaged")
        return values

    def _write(self, values: dict[str, str]) -> None:
        try:
            replace_file(self.path, self._encoded(values))
        except OSError as error:
            raise self._unusable(f"cannot be written: {error.strerror}") from error

    def _decoded(self, raw: bytes) -> object:
        try:
            return json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise self._unusable("is damaged") from error

    def _encoded(self, values: dict[str, str]) -> bytes:
        return json.dumps(values).encode()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_folder(self.path.parent)
            # A file beside it: the secrets' own file is replaced at each write, and a lock on the old one would guard nothing.
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(f"cannot be locked: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):
                sweep_drafts(self.path)  # values that were rotated away since must not lie there
            yield
        finally:
            os.close(lock)

    def _unusable(self, why: str) -> ConsoleError:
        return ConsoleError(
            f"The file of secrets {self.path} {why}.", "Set its owner and mode (0600), or remove it: then new tokens are made."
        )
