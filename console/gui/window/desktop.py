"""Send notifications to the desktop (org.freedesktop.Notifications 1.2) from a thread, so that no bus can hold up the window.

jeepney speaks D-Bus here, not QtDBus. PySide6 (6.11) sends every integer as a 16-bit unsigned or a 32-bit signed one. ``Notify`` takes
32-bit unsigned ones, so a daemon would refuse the call.
"""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread

from jeepney import DBusAddress, MessageType, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection
from jeepney.wrappers import DBusErrorResponse, unwrap_msg
from PySide6.QtCore import QObject, Signal

from console.gui.widgets.safe_text import safe_text

NAME = "org.freedesktop.Notifications"
_DAEMON = DBusAddress("/org/freedesktop/Notifications", bus_name=NAME, interface=NAME)
TIMEOUT_S = 5.0
KEPT = 50
"""Notifications that wait for a daemon; older ones are dropped."""
_LONGEST = (120, 400)
_TROUBLE = (OSError, ValueError, TypeError, KeyError, DBusErrorResponse, EOFError)


@dataclass(frozen=True, slots=True)
class Alert:
    """One notification. Both texts may hold an agent's words; they are made safe where they are sent."""

    title: str
    text: str
    urgent: bool = False
    """It stays until it is dismissed."""


def body_of(text: str, *, markup: bool) -> str:
    """The body as it is sent. The specification lets a daemon read it as markup: what an agent wrote must come out as it is.

    A daemon that says it reads none gets no character that could begin a tag, should it read some all the same.
    """
    shown = safe_text(text, _LONGEST[1])
    return html.escape(shown, quote=True) if markup else shown.replace("<", "‹").replace(">", "›")


class Desktop(QObject):
    """``told`` with every change of ``why_not``: why no notification can be shown here, or empty once a daemon has answered."""

    told = Signal(str)

    def __init__(self, address: str | None = None, parent: QObject | None = None) -> None:
        """``address`` of the session bus; None: the one of the environment."""
        super().__init__(parent)
        self._address = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "") if address is None else address
        self._queue: SimpleQueue[Alert | None] = SimpleQueue()
        self._stopped = Event()
        self._thread: Thread | None = None
        self.why_not = "not asked yet"

    def start(self) -> None:
        """Begins, and asks the daemon who it is."""
        if self._thread is None:
            self._queue, self._stopped = SimpleQueue(), Event()
            self._thread = Thread(target=self._work, name="console-desktop", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread; what waits is dropped, what is being sent has two answers of at most TIMEOUT_S to wait for."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopped.set()
            self._queue.put(None)
            thread.join()

    def show(self, alert: Alert) -> None:
        """Sends it, as soon as a daemon answers."""
        if self._thread is not None and self._queue.qsize() < KEPT:
            self._queue.put(alert)

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        talk = _Talk(self._address)
        self._say(talk.greet())
        while (alert := self._queue.get()) is not None and not self._stopped.is_set():
            self._say(talk.send(alert))
        talk.close()

    def _say(self, why_not: str) -> None:
        if why_not != self.why_not:
            self.why_not = why_not
            self.told.emit(why_not)


class _Talk:
    """One connection to the bus, made again after it broke. Only the thread of Desktop uses it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._bus: DBusConnection | None = None
        self._markup = True

    def greet(self) -> str:
        """Why not, or empty."""
        if not self._address:
            return "there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)"
        try:
            self._capabilities()
        except _TROUBLE as error:
            return self._broke(error)
        return ""

    def send(self, alert: Alert) -> str:
        """Why not, or empty."""
        if self._bus is None and (why_not := self.greet()):
            return why_not
        hints = {"urgency": ("y", 2 if alert.urgent else 1), "desktop-entry": ("s", "watchfloor")}
        body = body_of(alert.text, markup=self._markup)
        title = safe_text(alert.title, _LONGEST[0]).replace("<", "‹").replace(">", "›")
        arguments: tuple[object, ...] = ("Watchfloor", 0, "", title, body, [], hints, 0 if alert.urgent else 10_000)
        try:
            self._call("Notify", "susssasa{sv}i", arguments)
        except _TROUBLE as error:
            return self._broke(error)
        return ""

    def close(self) -> None:
        if self._bus is not None:
            self._bus.close()
            self._bus = None

    def _capabilities(self) -> None:
        self._bus = open_dbus_connection(self._address)
        [found] = self._call("GetCapabilities", None, ())
        self._markup = "body-markup" in found

    def _call(self, method: str, signature: str | None, arguments: tuple[object, ...]) -> tuple[list[str], ...]:
        assert self._bus is not None
        reply = self._bus.send_and_get_reply(new_method_call(_DAEMON, method, signature, arguments), timeout=TIMEOUT_S)
        if reply.header.message_type is MessageType.error:
            raise DBusErrorResponse(reply)
        return tuple(unwrap_msg(reply))

    def _broke(self, error: Exception) -> str:
        self.close()
        if isinstance(error, DBusErrorResponse):
            return f"no notification daemon answers ({error.name.rsplit('.', 1)[-1]})"
        return f"the session bus does not answer ({type(error).__name__})"
