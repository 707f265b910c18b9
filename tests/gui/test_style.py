"""The look is put on once: a theme that is on already polishes nothing anew, another one everything."""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from console.gui.app import make_application
from console.gui.theme import style
from console.gui.theme.tokens import DARK, LIGHT


class _Counts(QWidget):
    changes = 0

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        if event.type() in (QEvent.Type.StyleChange, QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.changes += 1
        super().changeEvent(event)


def test_only_what_differs_is_put_on(qtbot: QtBot) -> None:
    app = make_application("dark")
    widget = _Counts()
    qtbot.addWidget(widget)
    widget.show()
    for theme, is_new in ((DARK, False), (LIGHT, True), (LIGHT, False), (DARK, True)):
        widget.changes = 0
        style.apply(app, theme)
        QApplication.processEvents()
        assert (widget.changes > 0) is is_new, theme.name
        assert app.palette() == style.palette(theme) and app.styleSheet() == style.sheet(theme)
