"""The bundled faces (Inter, JetBrains Mono): no hinting, tabular figures, so that pictures repeat on every machine."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtGui import QFont, QFontMetrics

from console.panic import fonts

UI = fonts.UI
MONO = "JetBrains Mono"
FILES = ("Inter-Regular.otf", *fonts.FILES, "JetBrainsMono-Regular.ttf", "JetBrainsMono-Medium.ttf")
REGULAR, MEDIUM, SEMIBOLD = fonts.REGULAR, fonts.MEDIUM, fonts.SEMIBOLD
ui = fonts.ui


def load_fonts() -> None:
    """Registers the bundled faces with the running application; ConsoleError when a file is missing."""
    fonts.load(FILES)


@lru_cache(maxsize=64)
def mono(size: int = 12, weight: int = REGULAR) -> QFont:
    """JetBrains Mono at ``size`` pixels: hosts, paths, commands, times, hashes."""
    font = fonts.plain(MONO, size, weight)
    font.setFeature(QFont.Tag("calt"), 0)  # ligatures would hide what a command really says
    font.setFeature(QFont.Tag("liga"), 0)
    return font


@lru_cache(maxsize=192)
def metrics(font: QFont) -> QFontMetrics:
    """Metrics of a font of this module, kept."""
    return QFontMetrics(font)
