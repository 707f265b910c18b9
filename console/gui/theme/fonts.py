"""The bundled faces (Inter, JetBrains Mono): no hinting, tabular figures, so that pictures repeat on every machine."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtGui import QFont, QFontDatabase, QFontMetrics

from console.domain.errors import ConsoleError
from console.settings.assets import resource

UI = "Inter"
MONO = "JetBrains Mono"
FILES = ("Inter-Regular.otf", "Inter-Medium.otf", "Inter-SemiBold.otf", "JetBrainsMono-Regular.ttf", "JetBrainsMono-Medium.ttf")
REGULAR, MEDIUM, SEMIBOLD = 400, 500, 600
_WEIGHTS = {400: QFont.Weight.Normal, 500: QFont.Weight.Medium, 600: QFont.Weight.DemiBold}


def load_fonts() -> None:
    """Registers the bundled faces with the running application; ConsoleError when a file is missing."""
    for name in FILES:
        path = resource("fonts", name)
        if not path.is_file() or QFontDatabase.addApplicationFont(str(path)) < 0:
            raise ConsoleError(f"The font {name} is missing or damaged.", "Install Watchfloor again.")


@lru_cache(maxsize=128)
def ui(size: int = 13, weight: int = REGULAR) -> QFont:
    """Inter at ``size`` pixels, weight 400, 500 or 600."""
    return _font(UI, size, weight)


@lru_cache(maxsize=64)
def mono(size: int = 12, weight: int = REGULAR) -> QFont:
    """JetBrains Mono at ``size`` pixels: hosts, paths, commands, times, hashes."""
    return _font(MONO, size, weight)


@lru_cache(maxsize=192)
def metrics(font: QFont) -> QFontMetrics:
    """Metrics of a font of this module, kept."""
    return QFontMetrics(font)


def _font(family: str, size: int, weight: int) -> QFont:
    font = QFont(family)
    font.setPixelSize(size)
    font.setWeight(_WEIGHTS[weight])
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    font.setFeature(QFont.Tag("tnum"), 1)
    if family == MONO:
        font.setFeature(QFont.Tag("calt"), 0)  # ligatures would hide what a command really says
        font.setFeature(QFont.Tag("liga"), 0)
    return font
