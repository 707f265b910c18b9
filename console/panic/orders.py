"""Carries the panic control's orders out: through the guard's socket, or without it by a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QProcess, Signal

from console.domain.errors import ConsoleError
from console.domain.process.account import operator
from console.panic.guard_link import GuardLink, ask_beside

NO_START = -1
SUSPECTS_S = 10.0


class GuardPort(QObject):
    """``finished`` tells how a kill without the guard ended: the documented exit code (-1: it did not start) and what it printed."""

    finished = Signal(int, str)
    said = Signal(str)
    """A line of that process while it still sees the later steps through: the proof comes before the end."""
    refused = Signal(object)
    """A ConsoleError: the guard answered, and said no."""

    def __init__(self, guard: GuardLink, state_dir: Path | None, place: str, reason: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._guard, self._state_dir, self._by, self._reason = guard, state_dir, f"{operator()}, {place}", reason
        self._process: QProcess | None = None
        self._heard = ""

    def lead_to(self, state_dir: Path) -> None:
        """An instance appeared."""
        self._state_dir = state_dir

    def hold(self, held_s: float, done: Callable[[str | None], None]) -> None:
        """Freezes everything; the guard kills after the hold unless it is let go."""
        self._guard.call(
            "hold",
            lambda answer: done(str(answer.get("hold_id", "")) or None),
            lambda _error: done(None),
            by=self._by,
            held_s=round(held_s, 3),
        )

    def let_go(self, hold_id: str, done: Callable[[bool], object]) -> None:
        """Thaws what the hold froze."""

        def failed(error: ConsoleError) -> None:
            done(False)
            self.refused.emit(error)

        self._guard.call("let_go", lambda _answer: done(True), failed, hold_id=hold_id)

    def end_suspects(
        self, kill_id: str, pids: list[int], answered: Callable[[dict[str, Any]], object], failed: Callable[[ConsoleError], object]
    ) -> None:
        """Kills these suspects of a kill; the answer says of each what became of it."""
        ask_beside(self._guard, SUSPECTS_S, "suspects", answered, failed, kill_id=kill_id, pids=pids, by=self._by)

    def press(self) -> None:
        """Kills everything now."""
        self._guard.call("press", failed=self._press_failed, scope="all", reason=self._reason, by=self._by)

    def make_sure(self) -> None:
        """Asks whether the hold has killed; presses when it has not, or when the answer cannot be read."""

        def judge(answer: dict[str, Any]) -> None:
            # Anything but a plain yes counts as no: a second kill does no harm, a missing one does.
            if answer.get("latched") is not True:
                self.press()

        self._guard.call("status", judge, self._press_failed)

    def without_guard(self) -> None:
        """``python -m console panic``: asks the guard once more, then kills from the registry on disk."""
        # One at a time: a second press while the first still kills adds nothing, and both would write the same files.
        if self._process is not None:
            return
        process = QProcess(self)
        self._process = process
        # A process of its own: what a kill is made of is not loaded into the window, which has to be up within 150 ms.
        process.setProgram(sys.executable)
        arguments = ["-m", "console", "panic", "--reason", f"{self._reason} ({self._by}, no guard answered)"]
        process.setArguments(arguments + (["--state-dir", str(self._state_dir)] if self._state_dir else []))
        process.readyReadStandardError.connect(self._hear)
        process.finished.connect(lambda code, _status: self._ended(int(code)))
        process.errorOccurred.connect(self._process_failed)
        process.start()

    def _hear(self) -> None:
        if self._process is not None:
            self._heard += bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
            *_, last = self._heard.strip().splitlines() or [""]
            self.said.emit(last)

    def _process_failed(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._ended(NO_START)

    def _ended(self, code: int) -> None:
        process, self._process = self._process, None
        words, self._heard = self._heard, ""
        if process is not None:
            words += bytes(process.readAllStandardError().data()).decode("utf-8", "replace")
            process.deleteLater()
        self.finished.emit(code, words)

    def _press_failed(self, _error: ConsoleError) -> None:
        self.without_guard()
