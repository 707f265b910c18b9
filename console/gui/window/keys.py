"""Every key from one list: actions that work everywhere, and those of the page in front."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from console.gui.actions import ActionSpec

EVERYWHERE = (
    ActionSpec("console.find", "Find an agent or command", "Ctrl+K"),
    ActionSpec("console.new-agent", "New agent…", "Ctrl+N"),
    ActionSpec("console.help", "Help: the document of this page", "F1"),
    ActionSpec("console.keys", "Show all keys", "?", "all keys"),
    ActionSpec("console.panic", "Unlock the panic control (then hold Space to kill)", "Ctrl+Shift+Backspace"),
    ActionSpec("console.theme", "Switch between dark and light", "Ctrl+T"),
    ActionSpec("console.columns", "Columns of this list: show, hide, sort, move, width…", "Ctrl+L"),
    ActionSpec("console.line-back", "Detail pane wider: the line between two parts goes left, or up", "Ctrl+Shift+Left"),
    ActionSpec("console.line-on", "Detail pane narrower: the line between two parts goes right, or down", "Ctrl+Shift+Right"),
    ActionSpec("console.dismiss", "Dismiss the notice", "Ctrl+D"),
    ActionSpec("console.reload", "Read everything again", "F5"),
)


class Shortcuts:
    """Letters act only when no field has the focus: fields take them first."""

    def __init__(self, window: QWidget, do: Callable[[str], None]) -> None:
        self._window, self._do = window, do
        self._all: list[tuple[str, QShortcut]] = []

    def add(self, verbs: Iterable[ActionSpec], page: str = "") -> None:
        """``page`` empty: they work on every page."""
        for spec in verbs:
            if spec.key:
                shortcut = QShortcut(QKeySequence(spec.key), self._window)
                shortcut.setContext(Qt.ShortcutContext.WindowShortcut)
                shortcut.setAutoRepeat(False)
                shortcut.activated.connect(self._runner(spec.id))
                self._all.append((page, shortcut))

    def front(self, page: str) -> None:
        """Only this page's keys and those of everywhere act."""
        for owner, shortcut in self._all:
            shortcut.setEnabled(not owner or owner == page)

    def _runner(self, action_id: str) -> Callable[[], None]:
        return lambda: self._do(action_id)
