"""The icon in the desktop's tray: the armed light as a shape and in words, and a way back to the window."""

from __future__ import annotations

from PySide6.QtCore import QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from console.gui.theme.tokens import DARK
from console.gui.timers import every
from console.gui.widgets.safe_text import safe_text
from console.gui.window.desktop import Alert
from console.panic.marks import draw_mark

_LIGHTS = {
    "armed": ("dot", "ok"),
    "in_doubt": ("triangle", "warn"),
    "unknown": ("triangle", "warn"),
    "killing": ("diamond", "danger"),
    "killed": ("cross", "danger"),
}
SIDE = 44
LOOK_MS = 10_000
"""How often a desktop that had no tray is asked again: at a login the console may be there before the panel is."""


def light_icon(state: str) -> QIcon:
    """A dark plate with the light's shape: readable on a light and on a dark panel; an unknown state is doubt."""
    shape, role = _LIGHTS.get(state, ("triangle", "warn"))
    picture = QPixmap(QSize(SIDE, SIDE))
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(DARK.bg1))
    painter.drawRoundedRect(QRectF(0, 0, SIDE, SIDE), 9, 9)
    draw_mark(painter, shape, QRectF(11, 11, 22, 22), getattr(DARK, role))
    painter.end()
    return QIcon(picture)


class Tray(QObject):
    """``asked``: a person wants the window; ``panic_asked``: the panic window. ``came``: the icon is shown.

    Closing the window ends the console; the icon goes with it. Hiding it does not: alerts still come.
    """

    asked = Signal()
    alert_clicked = Signal(object)
    panic_asked = Signal()
    came = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.icon: QSystemTrayIcon | None = None
        self._menu: QMenu | None = None
        self._state = ""
        self._words = ""
        self._alert: Alert | None = None
        """Of the message that is shown."""
        self._window = window
        self._again = every(self, LOOK_MS, self.start)

    @property
    def why_not(self) -> str:
        """Why there is no icon, or empty."""
        return "" if self.icon is not None else "this desktop has no tray"

    def start(self) -> None:
        """Shows it, where there is a tray; where there is none, as soon as one has come."""
        if self.icon is not None:
            return
        if not QSystemTrayIcon.isSystemTrayAvailable():
            self._again.start()
            return
        self._again.stop()
        self._menu = QMenu(self._window)
        self._menu.addAction("Open Watchfloor").triggered.connect(lambda: self.asked.emit())
        self._menu.addAction("Hide the window; alerts still come").triggered.connect(self._window.hide)
        self._menu.addAction("Panic window").triggered.connect(lambda: self.panic_asked.emit())
        self.icon = QSystemTrayIcon(light_icon(self._state), self)
        self.icon.setContextMenu(self._menu)
        self.icon.activated.connect(lambda _reason: self.asked.emit())
        self.icon.messageClicked.connect(self._clicked)
        self._hint()
        self.icon.show()
        self.came.emit()

    def say(self, state: str, words: str) -> None:
        """The armed light now."""
        is_other, self._state, self._words = state != self._state, state, words
        if self.icon is not None and is_other:
            self.icon.setIcon(light_icon(state))
        self._hint()

    def show_alert(self, alert: Alert) -> None:
        """A message of the icon's, where no notification daemon took the alert. Without an icon nothing is shown."""
        if self.icon is not None:
            self._alert = alert
            kind = QSystemTrayIcon.MessageIcon.Critical if alert.urgent else QSystemTrayIcon.MessageIcon.Information
            self.icon.showMessage(safe_text(_no_tags(alert.title), 120), safe_text(_no_tags(alert.text), 400), kind, 10_000)

    def _clicked(self) -> None:
        if self._alert is not None:
            self.alert_clicked.emit(self._alert)

    def _hint(self) -> None:
        if self.icon is not None and self._words:
            self.icon.setToolTip(safe_text(_no_tags(f"Watchfloor: {self._words}"), 140))

    def stop(self) -> None:
        """Takes it away, and looks for none any more."""
        self._again.stop()
        if self.icon is not None:
            self.icon.hide()
            self.icon = None


def _no_tags(text: str) -> str:
    """A tray may read markup, and shows Qt's own tags as is: nothing in the text can begin a tag."""
    return text.replace("<", "‹").replace(">", "›")
