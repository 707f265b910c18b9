"""Line icons (resources/icons, 24 px grid) tinted and kept as pixmaps."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from console.domain.process.assets import resource


def icon_pixmap(name: str, colour: str, size: int = 16) -> QPixmap:
    """The icon ``name`` in ``colour``, ``size`` logical pixels square, at the screen's ratio."""
    return _pixmap(name, colour, size, QGuiApplication.primaryScreen().devicePixelRatio())


@lru_cache(maxsize=64)
def _source(name: str) -> str:
    return resource("icons", f"{name}.svg").read_text(encoding="utf-8")


@lru_cache(maxsize=1024)
def _pixmap(name: str, colour: str, size: int, ratio: float) -> QPixmap:
    pixmap = QPixmap(round(size * ratio), round(size * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode()))
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return pixmap
