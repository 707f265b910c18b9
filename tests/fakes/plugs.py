"""A secret of another program, kept in a folder: what it accepts now is a file of the secret's name."""

from __future__ import annotations

import secrets
from pathlib import Path

from console.domain.errors import ConsoleError


class FolderPlug:
    """Survives a crash of whoever rotates it. ``fault`` makes it misbehave in one way."""

    issues = False

    def __init__(self, folder: Path, name: str, value: str | None) -> None:
        self.name, self.fault, self._file = name, "", folder / name
        folder.mkdir(exist_ok=True, parents=True)
        if value is not None:
            self._file.write_text(value)
        self._before: list[str] = []

    def old(self) -> str | None:
        return self._file.read_text() if self._file.exists() else None

    def change(self, old: str, new: str) -> str:
        if self.fault == "breaks":
            raise ConsoleError("The service is down.", "Start it.")
        if self.fault == "same":
            return new
        if self.issues:
            new = f"issued-{secrets.token_hex(8)}"
        self._before.append(old)
        log = self._file.with_suffix(".log")
        seen = set(log.read_text().split()) if log.exists() else set()
        log.write_text("\n".join(seen | {new}))
        self._file.write_text(new)
        return new

    def changes(self) -> int:
        """How many different values were ever set."""
        log = self._file.with_suffix(".log")
        return len(log.read_text().split()) if log.exists() else 0

    def present(self, value: str) -> bool | None:
        if self.fault == "silent":
            return None
        if self.fault == "down":
            raise ConsoleError("The service is down.", "Start it.")
        if self.fault == "refuses_all":
            return False
        return value == self.old() or (self.fault == "keeps_old" and value in self._before)
