"""The panic process: hidden until raised through its socket, one for each instance, ended with the last console unless it is in use.

A console attends it by a connection that stays open. A console that is stopped or hangs keeps that connection, so the window can be raised
all the same; a console that dies closes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QSocketNotifier, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from console.panic.paint import tray_picture
from console.panic.raising import RAISED, SOCKET, display, is_ours, shares_display
from console.panic.window import PanicWindow

FIRST_CONSOLE_MS = 10_000
"""A hidden process that no console attends by then ends."""
TRAY_MS = 30_000
"""How often a desktop that had no tray is asked again."""
MOST_CONNECTIONS = 16
LONGEST_LINE = 256


def take_place(run_dir: Path) -> int | None:
    """The lock of the one panic process of this instance, as a descriptor to keep; None: another one has it. OSError without a folder."""
    lock = os.open(run_dir / "panic.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


class _Connection:
    """One peer. ``attends``: it is a console."""

    def __init__(self, line: socket.socket, owner: QObject, ready: Callable[[_Connection], None]) -> None:
        self.line, self.inbox, self.attends = line, b"", False
        self._notifier = QSocketNotifier(line.fileno(), QSocketNotifier.Type.Read, owner)
        self._notifier.activated.connect(lambda: ready(self))

    def close(self) -> None:
        self._notifier.setEnabled(False)
        self._notifier.deleteLater()
        self.line.close()


class Door(QObject):
    """The socket (0600) through which the window is raised. Lines: ``raise DISPLAY``, answered; ``attend``, which holds the line."""

    raise_asked = Signal()
    left = Signal()
    """A console has gone."""

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._connections: list[_Connection] = []
        # Only the holder of the lock comes here, so a socket that is left belongs to a process that has ended.
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        before = os.umask(0o177)
        try:
            self._listener.bind(str(path))
        finally:
            os.umask(before)
        self._listener.listen(MOST_CONNECTIONS)
        self._notifier = QSocketNotifier(self._listener.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._accept)

    @property
    def consoles(self) -> int:
        """How many attend."""
        return sum(c.attends for c in self._connections)

    def close(self) -> None:
        """Ends every connection and takes the socket away."""
        self._notifier.setEnabled(False)
        self._listener.close()
        self._path.unlink(missing_ok=True)
        for connection in self._connections:
            connection.close()
        self._connections = []

    def _accept(self) -> None:
        try:
            line, _ = self._listener.accept()
        except OSError:
            return
        # The folder is closed to others already; the kernel's word on the peer holds even where its mode was changed.
        if not is_ours(line):
            line.close()
            return
        line.setblocking(False)
        # A console that attends is never dropped: the process would end with it while an operator still needs the window.
        others = [c for c in self._connections if not c.attends]
        if len(self._connections) >= MOST_CONNECTIONS and others:
            self._drop(others[0])
        if len(self._connections) >= MOST_CONNECTIONS:
            line.close()
            return
        self._connections.append(_Connection(line, self, self._read))

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.line.recv(LONGEST_LINE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        connection.inbox += data
        if not data or len(connection.inbox) > LONGEST_LINE:
            self._drop(connection)
            return
        *lines, connection.inbox = connection.inbox.split(b"\n")
        for line in lines:
            self._obey(connection, line.decode("utf-8", "replace"))

    def _obey(self, connection: _Connection, line: str) -> None:
        verb, _, asked = line.partition(" ")
        if verb == "attend":
            connection.attends = True
        elif verb == "raise":
            seen = shares_display(asked, display())
            if seen:
                self.raise_asked.emit()
            with contextlib.suppress(OSError):
                connection.line.send(RAISED if seen else b"another display\n")

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            connection.close()
            if connection.attends:
                self.left.emit()


class Resident(QObject):
    """Joins window, door and tray, and ends the program once nothing needs it."""

    def __init__(self, window: PanicWindow, run_dir: Path) -> None:
        super().__init__(window)
        self._window = window
        self.door = Door(run_dir / SOCKET, self)
        self._icon: QSystemTrayIcon | None = None
        self._menu = QMenu(window)
        self._menu.addAction("Panic window").triggered.connect(window.bring)
        self._tray = QTimer(self)
        self._tray.timeout.connect(self._look_for_tray)
        self.door.raise_asked.connect(window.bring)
        self.door.left.connect(self._judge)
        window.closed.connect(self._judge)

    def start(self) -> None:
        """Begins to serve; a process that nothing has used by then ends."""
        QTimer.singleShot(FIRST_CONSOLE_MS, self, self._judge)
        self._tray.start(TRAY_MS)
        self._look_for_tray()

    def stop(self) -> None:
        """Takes socket and icon away."""
        self._tray.stop()
        self.door.close()
        if self._icon is not None:
            self._icon.hide()

    def _judge(self) -> None:
        if not self.door.consoles and not self._window.isVisible():
            QGuiApplication.quit()

    def _look_for_tray(self) -> None:
        """An icon of its own: that of a console which is stopped would not answer."""
        if self._icon is not None or not QSystemTrayIcon.isSystemTrayAvailable():
            return
        self._tray.stop()
        self._icon = QSystemTrayIcon(QIcon(tray_picture()), self)
        self._icon.setToolTip("Watchfloor: panic window")
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(lambda _reason: self._window.bring())
        self._icon.show()
