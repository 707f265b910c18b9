"""What the window remembers of its user from one start to the next: place, size, page, theme, columns, and what each page was set to."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings, QSize, QStandardPaths

from console.gui.pages.interface import Memory, Page
from console.gui.theme.style import Choice
from console.gui.widgets.buttons import Pills, SearchField
from console.gui.widgets.rows import RowView
from console.gui.widgets.split import Split
from console.gui.window.main import Window

_TITLE = 40
"""Pixels that the desktop may put above a window."""
_LONGEST = 100_000
"""Characters of what one page may remember; more is forgotten."""


class Remembered:
    """One per console that a person opened; pictures and tests of pages have none. What cannot be read is forgotten, never an error."""

    def __init__(self, file: Path | None = None) -> None:
        folder = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation))
        self._kept = QSettings(str(file or folder / "watchfloor" / "window.ini"), QSettings.Format.IniFormat)

    def theme(self, asked: Choice) -> Choice:
        """The theme that was chosen last, unless the command line asked for one."""
        kept = str(self._kept.value("window/theme", ""))
        return asked if asked != "system" else "dark" if kept == "dark" else "light" if kept == "light" else "system"

    def page(self, asked: str) -> str:
        """The page that was in front last, unless the command line asked for one."""
        return asked or str(self._kept.value("window/page", "")) or "fleet"

    def keep_theme(self, theme: str) -> None:
        """The person switched the theme."""
        self._kept.setValue("window/theme", theme)

    def is_set_up(self) -> bool:
        """Whether the set-up was offered before."""
        return str(self._kept.value("window/set_up", "")) == "yes"

    def keep_set_up(self) -> None:
        """It was offered: from now on a person opens it."""
        self._kept.setValue("window/set_up", "yes")

    def restore(self, window: Window) -> None:
        """Before the window is shown."""
        geometry = self._kept.value("window/geometry")
        if isinstance(geometry, QByteArray):
            window.restoreGeometry(geometry)  # Qt brings it onto a screen that is there
        # Qt restores nothing where the screen is another, or its text larger: Panic stands at the right, and has to be on the screen.
        room = window.screen().availableSize()
        window.resize(window.size().boundedTo(QSize(room.width(), room.height() - _TITLE)))
        for page in window.pages.there.values():
            self._recall(page)
        window.pages.made.connect(lambda page: self._recall(page))  # holds this too: a bound method would not

    def _recall(self, page: Page) -> None:
        for name, part in _parts(page):
            try:
                found = json.loads(str(self._kept.value(f"pages/{name}", "{}")))
            except ValueError:
                continue
            if isinstance(found, dict) and found:
                part.recall({str(key): value for key, value in found.items()})

    def keep(self, window: Window) -> None:
        """When the window closes. An emergency is no page to begin with."""
        self._kept.setValue("window/geometry", window.saveGeometry())
        if window.page is not None and window.page.spec.group:
            self._kept.setValue("window/page", window.page.spec.name)
        for name, part in (one for page in window.pages.there.values() for one in _parts(page)):
            words = json.dumps(part.remembered())
            self._kept.setValue(f"pages/{name}", words if len(words) <= _LONGEST else "{}")
        self._kept.sync()


def kept_parts(page: Page) -> list[Pills | SearchField]:
    """The filters and tabs of a page that are remembered: a list declares them as ``kept``."""
    found: list[Pills | SearchField] = [*page.findChildren(SearchField), *page.findChildren(Pills)]
    return [part for part in found if part.kept]


def _parts(page: Page) -> list[tuple[str, Memory]]:
    """What a page keeps itself, its filters and tabs, columns and order of every list by its name, and the lines between parts."""
    name = page.spec.name
    own = [(name, page.memory)] if page.memory is not None else []
    filters = [(f"{name}.{part.kept}", part) for part in kept_parts(page)]
    lists = [view for view in page.findChildren(RowView) if view.accessibleName()]
    lines = [(f"{name}.line{at}", line) for at, line in enumerate(page.findChildren(Split))]
    titles = [(f"{name}.{view.accessibleName()}", view.titles) for view in lists]
    orders = [(f"{name}.{view.accessibleName()}.order", view.order) for view in lists]
    return [*own, *filters, *titles, *orders, *lines]
