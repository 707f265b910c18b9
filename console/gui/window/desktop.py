"""Send notifications to the desktop (org.freedesktop.Notifications 1.2) from a thread, so that no bus can hold up the window.

jeepney speaks D-Bus here, not QtDBus. PySide6 (6.11) sends every integer as a 16-bit unsigned or a 32-bit signed one. ``Notify`` takes
32-bit unsigned ones, so a daemon would refuse the call.
"""

from __future__ import annotations

import html
import os
import re
import select
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from jeepney import DBusAddress, HeaderFields, MatchRule, Message, MessageType, message_bus, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection
from jeepney.wrappers import DBusErrorResponse
from PySide6.QtCore import QObject, Signal

from console.api.alerts import AlertKind
from console.gui.widgets.safe_text import safe_text

NAME = "org.freedesktop.Notifications"
_DAEMON = DBusAddress("/org/freedesktop/Notifications", bus_name=NAME, interface=NAME)
TIMEOUT_S = 5.0
KEPT = 50
"""Notifications that wait for a daemon; older ones are dropped."""
SUBJECTS = 100
"""Subjects whose notification is replaced by the next; of more, the oldest stay where they are."""
BURST, EVERY_S = 10, 60.0
"""Notifications in such a time; what comes beyond them is counted in one more."""
URGENT = frozenset({AlertKind.PANIC, AlertKind.NOT_CONFIRMED, AlertKind.CAME_BACK, AlertKind.READINESS_LOST})
"""They concern a stop and are always shown: no number of agents that ask may hide them."""
READ_S = 1.0
"""A choice sooner than so many seconds after its notification came was meant for the one before it."""
_LONGEST = (120, 400)
_AGENT = re.compile(r"/watchfloor-[0-9a-f]{8}/agents/")
_TROUBLE = (OSError, ValueError, TypeError, KeyError, DBusErrorResponse, EOFError)


@dataclass(frozen=True, slots=True)
class Alert:
    """One notification. Both texts may hold an agent's words; they are made safe where they are sent."""

    title: str
    text: str
    urgent: bool = False
    """It stays until it is dismissed."""
    kind: AlertKind | None = None
    """By which an operator can turn it off; None: it is always shown."""
    subject: str = ""
    """One notification of the same subject replaces the one before it."""
    page: str = ""
    """The page of the window that it opens; empty: the one in front."""
    argument: str = ""
    """What that page is to show."""
    choices: tuple[tuple[str, str], ...] = ()
    """Buttons beside Open: (key, label). No label is an agent's."""
    about: object = None
    """What a choice is about."""


class Rate:
    """Lets so many through in a time, and counts the rest."""

    def __init__(self) -> None:
        self._shown: deque[float] = deque()
        self._more = 0

    def pass_on(self, alert: Alert) -> Alert:
        """The alert, or one that says how many more there were."""
        tick = time.monotonic()
        while self._shown and tick - self._shown[0] > EVERY_S:
            self._shown.popleft()
        if alert.kind in URGENT or len(self._shown) < BURST:
            self._shown.append(tick)
            self._more = 0
            return alert
        self._more += 1
        words = "1 more alert" if self._more == 1 else f"{self._more:,} more alerts"
        return Alert("Many alerts", f"{words} came within a minute. Open the window to see all.", subject="more", page="fleet")


def is_of_agent(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process runs in an agent's cgroup, of any instance. In doubt: yes. An agent may own the daemon's name on the bus."""
    try:
        return _AGENT.search((proc / str(int(pid)) / "cgroup").read_text(errors="replace")) is not None
    except (OSError, ValueError):
        return True


def body_of(text: str, *, markup: bool) -> str:
    """The body as it is sent. The specification lets a daemon read it as markup: what an agent wrote must come out as it is.

    A daemon that says it reads none gets no character that could begin a tag, should it read some all the same.
    """
    shown = safe_text(text, _LONGEST[1])
    return html.escape(shown, quote=True) if markup else shown.replace("<", "‹").replace(">", "›")


class Desktop(QObject):
    """``told`` with every change of ``why_not``: why no notification can be shown here, or empty once a daemon has answered.

    ``opened`` with an alert that a person clicked; ``unshown`` with one that no daemon took.
    ``chosen`` with an alert and the key of the choice that a person made.
    """

    told = Signal(str)
    opened = Signal(object)
    chosen = Signal(object, str)
    unshown = Signal(object)

    def __init__(self, address: str | None = None, parent: QObject | None = None) -> None:
        """``address`` of the session bus; None: the one of the environment."""
        super().__init__(parent)
        self._address = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "") if address is None else address
        self._queue: SimpleQueue[Alert | None] = SimpleQueue()
        self._stopped = Event()
        self._thread: Thread | None = None
        self._rate = Rate()
        self._bell: socket.socket | None = None
        self.why_not = "not asked yet"

    def start(self) -> None:
        """Begins, and asks the daemon who it is."""
        if self._thread is None:
            self._queue, self._stopped = SimpleQueue(), Event()
            self._bell, heard = socket.socketpair()
            self._bell.setblocking(False)
            self._thread = Thread(target=self._work, args=(heard,), name="console-desktop", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread; what waits is dropped, what is being sent has two answers of at most TIMEOUT_S to wait for."""
        thread, self._thread = self._thread, None
        if thread is not None and self._bell is not None:
            self._stopped.set()
            self._put(None)
            thread.join()
            self._bell.close()

    def show(self, alert: Alert) -> None:
        """Sends it, as soon as a daemon answers."""
        if self._thread is not None and (self._queue.qsize() < KEPT or alert.kind in URGENT):
            self._put(self._rate.pass_on(alert))

    def _put(self, alert: Alert | None) -> None:
        self._queue.put(alert)
        if self._bell is not None:
            with suppress(BlockingIOError, BrokenPipeError):  # it rings already, or the thread has ended by itself
                self._bell.send(b"!")

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _work(self, heard: socket.socket) -> None:
        talk = _Talk(self._address)
        self._say(talk.greet())
        with heard:
            while not self._stopped.is_set():
                for alert, key in talk.wait(heard):
                    if key:
                        self.chosen.emit(alert, key)
                    else:
                        self.opened.emit(alert)
                self._send_all(talk)
        talk.close()

    def _send_all(self, talk: _Talk) -> None:
        with suppress(Empty):
            while (alert := self._queue.get_nowait()) is not None and not self._stopped.is_set():
                self._say(why_not := talk.send(alert))
                if why_not:
                    self.unshown.emit(alert)

    def _say(self, why_not: str) -> None:
        if why_not != self.why_not:
            self.why_not = why_not
            self.told.emit(why_not)


class _Heard(deque[Any]):
    """Signals of the bus, each with the moment it was read (monotonic)."""

    def append(self, message: Message) -> None:
        super().append((time.monotonic(), message))


class _Talk:
    """One connection to the bus, made again after it broke. Only the thread of Desktop uses it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._bus: DBusConnection | None = None
        self._markup, self._actions = True, False
        self._daemon = ""
        """The daemon's own name on the bus: a click from another sender is ignored."""
        self._signals = _Heard(maxlen=KEPT)
        self._clicks: list[tuple[Alert, str]] = []
        """What was clicked while another notification was sent."""
        self._may_choose = False
        """Whether choices are offered to this daemon, and believed."""
        self._shown: dict[int, tuple[Alert, float]] = {}
        """What is on the screen and since when (monotonic), by the daemon's numbers, the oldest first."""

    def greet(self) -> str:
        """Why not, or empty."""
        if not self._address:
            return "there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)"
        try:
            self._meet()
        except _TROUBLE as error:
            return self._broke(error)
        return ""

    def wait(self, bell: socket.socket) -> list[tuple[Alert, str]]:
        """Return what a person clicked, with the key of a choice or nothing; at the latest when the bell is rung."""
        while not self._signals and not self._clicks:
            if self._bus is not None and self._read():
                continue
            poll = select.poll()  # made again: a bus that is gone must not be asked for
            poll.register(bell, select.POLLIN)
            if self._bus is not None:
                poll.register(self._bus.sock, select.POLLIN)
            if bell.fileno() in dict(poll.poll()):
                bell.recv(4096)
                break
        self._hear()
        found, self._clicks = self._clicks, []
        return found

    def _read(self) -> bool:
        """Take one message that is there already; False: there is none, or the bus is gone."""
        assert self._bus is not None
        try:
            self._bus.recv_messages(timeout=0)
        except TimeoutError:
            return False
        except _TROUBLE as error:
            self._broke(error)
            return False
        return True

    def _hear(self) -> None:
        """Takes what was clicked for what is shown now: before another text takes its number."""
        while self._signals:
            at, message = self._signals.popleft()
            member, body = message.header.fields.get(HeaderFields.member), message.body
            if message.header.fields.get(HeaderFields.sender) != self._daemon or not body or not isinstance(body[0], int):
                continue
            if member == "NotificationClosed":
                self._shown.pop(body[0], None)
            elif member == "ActionInvoked" and body[0] in self._shown and len(body) > 1:
                self._clicks += self._meant(*self._shown[body[0]], at, body[1])

    def _meant(self, alert: Alert, since: float, at: float, key: object) -> list[tuple[Alert, str]]:
        """A key that was not offered means nothing. A choice made before the text could be read means that a person wants to see it."""
        if key in ("default", "open"):
            return [(alert, "")]
        if not self._may_choose or key not in dict(alert.choices):
            return []
        return [(alert, str(key) if at - since >= READ_S else "")]

    def send(self, alert: Alert) -> str:
        """Why not, or empty."""
        if self._bus is None and (why_not := self.greet()):
            return why_not
        before = next((number for number, one in self._shown.items() if alert.subject and one[0].subject == alert.subject), 0)
        hints = {"urgency": ("y", 2 if alert.urgent else 1), "desktop-entry": ("s", "watchfloor")}
        body = body_of(alert.text, markup=self._markup)
        title = safe_text(alert.title, _LONGEST[0]).replace("<", "‹").replace(">", "›")
        actions = ["default", "Open", "open", "Open"] if self._actions else []
        if self._actions and self._may_choose:
            actions += [word for choice in alert.choices for word in choice]
        arguments: tuple[object, ...] = ("Watchfloor", before, "", title, body, actions, hints, 0 if alert.urgent else 10_000)
        try:
            reply = self._call("Notify", "susssasa{sv}i", arguments)
            [number] = reply.body
            self._hear()
            self._know(reply)
        except _TROUBLE as error:
            return self._broke(error)
        self._shown.pop(before, None)
        self._shown[number] = alert, time.monotonic()
        while len(self._shown) > SUBJECTS:
            del self._shown[next(iter(self._shown))]
        return ""

    def close(self) -> None:
        if self._bus is not None:
            self._bus.close()
            self._bus = None

    def _meet(self) -> None:
        """Connects, asks what the daemon can do, and hears what becomes of its notifications from now on."""
        self._bus = open_dbus_connection(self._address)
        self._shown.clear()
        self._signals.clear()
        self._daemon, self._may_choose = "", False  # a name on the bus may be another program's by now
        reply = self._call("GetCapabilities", None, ())
        [found] = reply.body
        self._markup, self._actions = "body-markup" in found, "actions" in found
        self._know(reply)
        self._bus.filter(MatchRule(type="signal", interface=NAME), queue=self._signals)
        rule = MatchRule(type="signal", interface=NAME, sender=NAME)
        self._answered(self._bus.send_and_get_reply(message_bus.AddMatch(rule), timeout=TIMEOUT_S))

    def _know(self, reply: Message) -> None:
        """Whose clicks count: those of the program that answers now. A daemon that was started again is another one."""
        sender = str(reply.header.fields.get(HeaderFields.sender, ""))
        if sender != self._daemon:
            self._daemon, self._may_choose = sender, False
            self._shown.clear()
            assert self._bus is not None
            [pid] = self._answered(self._bus.send_and_get_reply(message_bus.GetConnectionUnixProcessID(sender), timeout=TIMEOUT_S)).body
            self._may_choose = not is_of_agent(pid)

    def _call(self, method: str, signature: str | None, arguments: tuple[object, ...]) -> Message:
        assert self._bus is not None
        return self._answered(self._bus.send_and_get_reply(new_method_call(_DAEMON, method, signature, arguments), timeout=TIMEOUT_S))

    def _answered(self, reply: Message) -> Message:
        if reply.header.message_type is MessageType.error:
            raise DBusErrorResponse(reply)
        return reply

    def _broke(self, error: Exception) -> str:
        self.close()
        if isinstance(error, DBusErrorResponse):
            return f"no notification daemon answers ({error.name.rsplit('.', 1)[-1]})"
        return f"the session bus does not answer ({type(error).__name__})"
