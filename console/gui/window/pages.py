"""The pages of a window. A page is made when it is first asked for, so that the first one is on screen at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QStackedWidget

from console.gui.pages.interface import Desk, Page
from console.gui.pages.registry import PageKind
from console.gui.timers import once
from console.gui.window.sync import Sync

SOON = ("approvals", "budgets")
"""Pages whose badge a person must not miss: made as soon as the first one is on the screen."""
REST_MS, PAUSE_MS = 1500, 100
"""When the others begin to be made after these, for their badges, and how long the window is left alone between two."""


class Pages(QObject):
    """By name, in the order of the navigation. To look one up makes it."""

    made = Signal(object)
    """A page was made: it is in the stack and hears of every change from now on."""

    def __init__(self, kinds: Sequence[PageKind], desk: Desk, stack: QStackedWidget, sync: Sync) -> None:
        super().__init__(stack)
        self.kinds: Mapping[str, PageKind] = {kind.spec.name: kind for kind in kinds}
        self.there: dict[str, Page] = {}
        """Those that were made."""
        self._desk, self._stack, self._sync = desk, stack, sync
        self._begun = False
        self._rest = once(self, REST_MS, self._make_next)

    def __getitem__(self, name: str) -> Page:
        if name not in self.there:
            page = self.there[name] = self.kinds[name].load()(self._desk, self._stack)
            self._stack.addWidget(page)
            self._sync.delta.connect(page.handle)
            self._sync.resynced.connect(page.resync)
            self.made.emit(page)
            if self._begun:
                page.resync()
        return self.there[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def values(self) -> list[Page]:
        """Every page, made now if it has to be."""
        return [self[name] for name in self.kinds]

    def items(self) -> list[tuple[str, Page]]:
        """The same with their names."""
        return [(name, self[name]) for name in self.kinds]

    def begin(self) -> None:
        """The window begins to talk; the first page was made. What is painted first waits for no other page."""
        self._begun = True
        once(self, 0, lambda: self._rest.start(PAUSE_MS if self._left(SOON) else REST_MS)).start()

    def close(self) -> None:
        """The window closes."""
        self._rest.stop()
        for page in self.there.values():
            page.on_close()

    def _make_next(self) -> None:
        soon = self._left(SOON)
        for name in (soon or self._left(self.kinds))[:1]:
            self[name]
            self._rest.start(REST_MS if len(soon) == 1 else PAUSE_MS)

    def _left(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self.kinds and name not in self.there]
