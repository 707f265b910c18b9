"""Keeps the panic process of this instance there: hidden, ready to be raised, and started again when it ended."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from time import monotonic

from PySide6.QtCore import QObject, QProcess, QSocketNotifier

from console.gui.timers import once
from console.panic import raising
from console.settings.places import Places

LOOK_MS = 500
"""How often a process that was started is asked for, until it listens."""
START_S = 30.0
"""A start that has not come to listening by then is tried again."""
BRIEF_S = 10.0
"""A process that ended sooner than this is started again later each time, up to a minute."""
LONGEST_S = 60.0


class PanicProcess(QObject):
    """``start`` once the instance is known. The process outlives a stopped console, and ends with this one unless its window is open."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state_dir: Path | None = None
        self._socket = Path()
        self._line: socket.socket | None = None
        self._notifier: QSocketNotifier | None = None
        self._started_at = -LONGEST_S
        self._attended_at = 0.0
        self._failures = 0
        self._timer = once(self, 0, self._attend)

    def start(self, places: Places) -> None:
        """Finds the one that runs, or starts one."""
        self._state_dir, self._socket = places.state_dir, places.run_dir / raising.SOCKET
        self._attend()

    def bring(self) -> None:
        """Shows the panic window; opens one when none can be raised."""
        if self._state_dir is not None and not raising.raise_window(str(self._socket)):
            self._launch(hidden=False)

    def stop(self) -> None:
        """Leaves it: it ends, unless its window is open."""
        self._timer.stop()
        self._state_dir = None
        self._leave()

    def _attend(self) -> None:
        if self._line is not None or self._state_dir is None:
            return
        self._line = raising.connect(str(self._socket), timeout_s=0.1)
        if self._line is None:
            if monotonic() - self._started_at > START_S:
                self._launch(hidden=True)
                self._started_at = monotonic()
            self._timer.start(LOOK_MS)
            return
        self._line.setblocking(False)
        try:
            self._line.send(b"attend\n")
        except OSError:
            self._leave()
            self._timer.start(LOOK_MS)
            return
        self._attended_at = monotonic()
        self._notifier = QSocketNotifier(self._line.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._heard)

    def _heard(self) -> None:
        """It never speaks to a console that attends: what comes is its end."""
        if self._line is None:
            return
        try:
            gone = not self._line.recv(64)
        except BlockingIOError:
            return
        except OSError:
            gone = True
        if gone:
            self._leave()
            self._failures = self._failures + 1 if monotonic() - self._attended_at < BRIEF_S else 0
            self._started_at = -LONGEST_S
            self._timer.start(int(1000 * min(LONGEST_S, 2.0**self._failures)))

    def _leave(self) -> None:
        if self._notifier is not None:
            self._notifier.setEnabled(False)
            self._notifier.deleteLater()
            self._notifier = None
        if self._line is not None:
            self._line.close()
            self._line = None

    def _launch(self, *, hidden: bool) -> None:
        """In a session of its own: neither Ctrl-Z nor Ctrl-C in the console's terminal reaches it."""
        arguments = ["-m", "console.panic", "--state-dir", str(self._state_dir), "--run-dir", str(self._socket.parent)]
        process = QProcess()
        process.setProgram(sys.executable)
        process.setArguments([*arguments, "--hidden"] if hidden else arguments)
        process.setStandardInputFile(QProcess.nullDevice())
        process.setStandardOutputFile(QProcess.nullDevice())
        process.setStandardErrorFile(QProcess.nullDevice())
        process.startDetached()
