"""The policy in force: the last file that could be read. A broken one changes nothing but is told; with none, everything is denied."""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.domain.errors import UsageProblem
from console.policy.rules.loading import Settings, read_settings


@dataclass(frozen=True, slots=True)
class Kept:
    """What is in force, and what is wrong with the newest file."""

    settings: Settings | None = None
    """None: no file was ever good; everything is denied."""
    good: bytes = b""
    """The bytes ``settings`` came from, to be written beside the file: they are offered first after a restart."""
    problem: str = ""
    """Why the newest file is not in force; empty when it is. To be shown as an alarm."""

    def offered(self, data: bytes) -> Kept:
        """What is in force once ``data`` was found as the file's content."""
        try:
            return Kept(read_settings(data), data)
        except UsageProblem as error:
            return replace(self, problem=str(error))

    def lost(self, why: str) -> Kept:
        """What is in force once the file cannot be read at all."""
        return replace(self, problem=why)
