"""The bundled face (Inter): no hinting, tabular figures, so that pictures repeat on every machine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from PySide6.QtGui import QFont, QFontDatabase

from console.domain.errors import ConsoleError
from console.domain.process.assets import resource

UI = "Inter"
FILES = ("Inter-Medium.otf", "Inter-SemiBold.otf")
"""What the panic window shows; the console has more."""
REGULAR, MEDIUM, SEMIBOLD = 400, 500, 600
_WEIGHTS = {400: QFont.Weight.Normal, 500: QFont.Weight.Medium, 600: QFont.Weight.DemiBold}


def load(names: Iterable[str]) -> None:
    """Registers these files of resources/fonts with the running application; ConsoleError when one is missing."""
    for name in names:
        path = resource("fonts", name)
        if not path.is_file() or QFontDatabase.addApplicationFont(str(path)) < 0:
            raise ConsoleError(f"The font {name} is missing or damaged.", "Install Watchfloor again.")


def plain(family: str, size: int, weight: int) -> QFont:
    """``family`` at ``size`` pixels, weight 400, 500 or 600."""
    font = QFont(family)
    font.setPixelSize(size)
    font.setWeight(_WEIGHTS[weight])
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


@lru_cache(maxsize=128)
def ui(size: int = 13, weight: int = REGULAR) -> QFont:
    """Inter at ``size`` pixels, weight 400, 500 or 600."""
    return plain(UI, size, weight)
