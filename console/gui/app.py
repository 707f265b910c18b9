"""Starting the console: display, theme, fonts, window, and the one door where errors become words."""

from __future__ import annotations

import os

from PySide6.QtCore import QCoreApplication, QObject, QSocketNotifier, Qt, QTimer
from PySide6.QtWidgets import QApplication

from console.gui.garbage import collect_in_thread_of
from console.gui.models.switch import Switch
from console.gui.notices import Notices
from console.gui.theme import fonts, style
from console.gui.theme.tokens import DARK, LIGHT, ink
from console.gui.widgets.safe_text import safe_text
from console.gui.window.main import Window
from console.gui.window.remembered import Remembered
from console.panic.display import check_display
from console.settings.places import find_places

_SET_UP = "watchfloorSetUp"


def make_application(theme: style.Choice) -> QApplication:
    """The application with fonts and theme; ConsoleError when there is no display or a font is missing."""
    check_display(dict(os.environ))
    running = QApplication.instance()
    app = running if isinstance(running, QApplication) else QApplication(["watchfloor"])
    QCoreApplication.setApplicationName("Watchfloor")
    app.setDesktopFileName("watchfloor")
    app.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # the words are English and much is painted: half a mirror would be read wrong
    if not app.property(_SET_UP):
        fonts.load_fonts()
        collect_in_thread_of(app)
        app.setProperty(_SET_UP, True)
    style.apply(app, style.chosen(theme, app))
    return app


def open_window(state_dir: str | None, page: str, notices: Notices, *, preparing: bool = False) -> Window:
    """A window on the instance of ``state_dir``, showing ``page``, talking already. ``preparing``: see ``run``."""
    places = find_places(state_dir, create=False)
    window = Window(places, notices)
    window.start(page)
    if places is None:
        if not preparing:
            notices.say("amber", "There is no instance here yet.", "Start one: watchfloor supervisor, or watchfloor run -- COMMAND")
        _look_for_places(state_dir, window)
    return window


def _look_for_places(state_dir: str | None, window: Window) -> None:
    """Looks every second until a supervisor has made its instance, then leads the window there."""
    timer = QTimer(window)

    def look() -> None:
        found = find_places(state_dir, create=False)
        if found is not None:
            timer.stop()
            window.adopt(found)

    timer.timeout.connect(look)
    timer.start(1000)


def switch_theme(app: QApplication) -> str:
    """Dark to light and back, live; returns the name of the theme in force."""
    style.apply(app, LIGHT if ink().is_dark else DARK)
    return ink().name


def show_lines(notices: Notices, switch: Switch, parent: QObject, descriptor: int = 0) -> None:
    """Shows each line that comes on a descriptor as a notice and on the empty fleet page, until its other end is closed."""
    switch.preparation.say("two hosts start")
    notifier = QSocketNotifier(descriptor, QSocketNotifier.Type.Read, parent)
    rest = b""

    def read() -> None:
        nonlocal rest
        data = os.read(descriptor, 4096)
        if not data:
            notifier.setEnabled(False)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            words = safe_text(line.decode("utf-8", "replace"), 200)
            switch.preparation.say(words)
            notices.say("info", words)

    notifier.activated.connect(read)


def run(state_dir: str | None, page: str, theme: style.Choice, *, preparing: bool = False) -> int:
    """Opens the console and returns its exit code.

    ``preparing``: another program makes the instance meanwhile, and writes what it does to standard input, a line for each step.
    """
    app = make_application("system")
    remembered = Remembered()
    theme = remembered.theme(theme)
    style.apply(app, style.chosen(theme, app))
    notices = Notices()
    notices.catch_slot_errors()
    window = open_window(state_dir, remembered.page(page), notices, preparing=preparing)
    if preparing:
        show_lines(notices, window.switch, window)
    remembered.restore(window)
    app.aboutToQuit.connect(lambda: remembered.keep(window))
    window.theme_asked.connect(lambda: remembered.keep_theme(switch_theme(app)))
    if theme == "system":
        app.styleHints().colorSchemeChanged.connect(lambda scheme: _follow(app, scheme))
    window.show()
    app.processEvents()  # the window is painted before what stands outside it is loaded
    from console.gui.window.outside import Outside

    outside = Outside(window)
    outside.start()
    if not preparing and not remembered.is_set_up():
        _offer_set_up(window, remembered)
    window.instance_found.connect(outside.panic.start)
    if window.places is not None:
        outside.panic.start(window.places)
    try:
        return app.exec()
    finally:
        outside.stop()


def _offer_set_up(window: Window, remembered: Remembered) -> None:
    """Opens the set-up once the supervisor has spoken, the first time that this account opens a window."""
    timer = QTimer(window)

    def look() -> None:
        if window.switch.status is not None and window.fleet.loaded:
            timer.stop()
            remembered.keep_set_up()
            window.goto("fleet", "")
            window.do("fleet.setup")

    timer.timeout.connect(look)
    timer.start(300)


def _follow(app: QApplication, scheme: Qt.ColorScheme) -> None:
    style.apply(app, LIGHT if scheme is Qt.ColorScheme.Light else DARK)
