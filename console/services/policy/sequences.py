"""Forbidden sequences in force for this instance: the built-in ones, and ``sequences.yaml`` of the state directory.

A file that breaks, or goes, changes nothing but raises an alarm; a broken one, where none was ever good, denies everything.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress

from console.api.policy import policy_data
from console.domain.calls.lineage import Match
from console.domain.calls.permission import PermissionRequest
from console.domain.errors import Denied, UsageProblem
from console.policy.files.paths import Files
from console.policy.rules.verdicts import Judgement
from console.policy.sequences.find import Pattern, matches_of, things_of
from console.policy.sequences.sequence_file import BYTES_MAX, GONE, SequenceFile, in_force, read_sequences
from console.policy.tools.catalogue import Tool
from console.services.policy.config_fallback import LastGood
from console.settings.places import Places


class SequenceDesk:
    """Thread-safe: calls are judged in threads."""

    __slots__ = ("_name", "_kept", "_lock", "_stamp", "_good", "_patterns", "problem", "_file", "_alarm")

    def __init__(self, places: Places, alarm: Callable[[str], None]) -> None:
        self._file, self._alarm = places.state_dir / "sequences.yaml", alarm
        self._name = str(self._file)
        self._kept = LastGood(self._file, self._file.with_name(".sequences-last-good.yaml"), alarm)
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._good: bytes | None = None
        self._patterns: tuple[Pattern, ...] | None = policy_data.sequences()
        self.problem = ""
        """Why the newest file is not in force; empty: it is."""
        with suppress(OSError):
            self._offer(self._kept.read())
        with suppress(Denied):  # whoever asks is told
            self.patterns()

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the patterns in force. One ``stat`` when the file is unchanged. Raises Denied when they are unknown, or would be after a
        restart."""
        with self._lock:
            if self._kept.settle() == self.problem:
                self.problem = ""
            if self._kept.trouble:
                self.problem = self._kept.trouble
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                self._take_up()
            if self._patterns is None or self._kept.trouble:
                raise Denied(f"The forbidden sequences are not known: {self.problem}", f"Fix {self._file.name}.")
            return self._patterns

    def matches(self, request: PermissionRequest, tool: Tool, found: Judgement, files: Files) -> tuple[Match, ...]:
        """What a call is a step of. ``files``: those that the agent sees. Blocks. Raises Denied."""
        things = things_of(request.tool, request.argument, request.detail, tool, found, files)
        return matches_of(self.patterns(), things, f"{request.tool} {request.argument}")

    def _look(self) -> tuple[int, ...]:
        try:
            seen = os.stat(self._name)  # noqa: PTH116 - in every judgement; of what it leads to: a file that was changed behind a link was changed
        except FileNotFoundError:
            return (1,) if self._file.is_symlink() else (0,)
        except OSError as error:
            return (-1, error.errno or 0)
        return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns

    def _take_up(self) -> None:
        before = self.problem
        try:
            data = self._read()
        except FileNotFoundError:
            self._gone()
        except OSError as error:
            self._broken(f"it cannot be read: {error.strerror}")
        else:
            if data is None:
                self._broken("it is no plain file")
            elif self._offer(data):
                self._kept.keep(data)
                self.problem = self._kept.trouble
        if self.problem and self.problem != before:
            self._alarm(f"{self._file}: {self.problem}")

    def _read(self) -> bytes | None:
        """Read the file; None: it is no plain file. Never blocks: a pipe would hold up every check of a call. Raises OSError."""
        descriptor = os.open(self._file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with open(descriptor, "rb", closefd=False) as file:  # noqa: PTH123 - it is open already
                return file.read(BYTES_MAX + 1)
        finally:
            os.close(descriptor)

    def _gone(self) -> None:
        if self._file.is_symlink():
            self._broken("it is a link to nothing")
        elif self._good is not None:
            self.problem = GONE
        else:  # none was ever in force: the built-in ones are, as before it came
            self._patterns, self.problem = policy_data.sequences(), ""

    def _offer(self, data: bytes) -> bool:
        try:
            own: SequenceFile = read_sequences(data)
            self._patterns = in_force(own, policy_data.sequences())
        except UsageProblem as error:
            self._broken(str(error))
            return False
        self._good, self.problem = data, ""
        return True

    def _broken(self, why: str) -> None:
        self.problem = why
        if self._good is None:
            self._patterns = None
