"""Fusion, an own palette and one generated style sheet: setColorScheme has no effect offscreen, so the palette is injected."""

from __future__ import annotations

import re
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from console.domain.process.assets import resource
from console.gui.theme import fonts
from console.gui.theme.tokens import DARK, LIGHT, Ink

Choice = Literal["dark", "light", "system"]
_FUSION = "watchfloor-fusion"
"""Property of an application that has the style: beneath a style sheet its name is not to be read any more."""


def chosen(choice: Choice, app: QApplication) -> Ink:
    """The theme a choice means now; an unknown system scheme reads as dark."""
    if choice == "system":
        return LIGHT if app.styleHints().colorScheme() is Qt.ColorScheme.Light else DARK
    return LIGHT if choice == "light" else DARK


def apply(app: QApplication, theme: Ink) -> None:
    """Makes ``theme`` the look of the application; may be called again at any time: only what differs polishes every widget."""
    if not app.property(_FUSION):
        app.setStyle("Fusion")
        app.setProperty(_FUSION, True)
    font, colours, text = fonts.ui(13), palette(theme), sheet(theme)
    if app.font() != font:
        app.setFont(font)
    if app.palette() != colours:
        app.setPalette(colours)
    if app.styleSheet() != text:
        app.setStyleSheet(text)


def palette(theme: Ink) -> QPalette:
    """The palette of a theme, for all colour groups."""
    made = QPalette()
    role = QPalette.ColorRole
    colours = {
        role.Window: theme.bg1,
        role.WindowText: theme.text,
        role.Base: theme.bg2,
        role.AlternateBase: theme.bg1,
        role.Text: theme.text,
        role.Button: theme.bg2,
        role.ButtonText: theme.text,
        role.BrightText: theme.danger,
        role.ToolTipBase: theme.bg3,
        role.ToolTipText: theme.text,
        role.PlaceholderText: theme.text3,
        role.Highlight: theme.accent,
        role.HighlightedText: theme.on_accent,
        role.Link: theme.accent,
        role.LinkVisited: theme.accent,
        role.Accent: theme.accent,
        role.Light: theme.bg3,
        role.Midlight: theme.bg3,
        role.Mid: theme.line2,
        role.Dark: theme.line,
        role.Shadow: theme.line,
    }
    for which, colour in colours.items():
        made.setColor(which, QColor(colour))
    for which in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, which, QColor(theme.text3))
    return made


def sheet(theme: Ink) -> str:
    """The generated style sheet: resources/theme/console.qss with the tokens put in."""
    text = resource("theme", "console.qss").read_text(encoding="utf-8")
    text = text.replace("@check_picture", resource("theme", f"check-{theme.name}.svg").as_posix())
    return re.sub(r"@([a-z0-9_]+)", lambda found: str(getattr(theme, found.group(1))), text)
