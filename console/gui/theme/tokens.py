"""Colours of both themes and sizes of the grid: the numbers everything is drawn with."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QGuiApplication, QPalette

from console.panic import paint

TOP_BAR = 72
BANNER_SMALL = 44
NAV = 204
NAV_RAIL = 60
STATUS_BAR = 32
PAGE_HEADER = 96
FILTER_BAR = 44
ROW = 30
DETAIL = 332
DETAIL_FOOT = 58
ANSWER_BAR = 42
NARROW = 1200
"""Below this window width the navigation is a rail and detail panes open over the table."""


@dataclass(frozen=True, slots=True)
class Ink:
    """One theme: every colour as #RRGGBB."""

    name: str
    bg0: str
    bg1: str
    bg2: str
    bg3: str
    line: str
    line2: str
    text: str
    text2: str
    text3: str
    accent: str
    sel: str
    warn: str
    warnbg: str
    warnfill: str
    danger: str
    dangerbg: str
    dangerfill: str
    ok: str
    bar: str
    track: str
    kill: str

    @property
    def is_dark(self) -> bool:
        return self.name == "dark"

    @property
    def on_accent(self) -> str:
        """Text on a filled accent."""
        return "#0B1117" if self.is_dark else "#FFFFFF"


DARK = Ink(
    name="dark",
    bg0="#0E1115",
    bg1="#14181D",
    bg2="#1A1F26",
    bg3="#232A33",
    line="#2A323C",
    line2="#3A4450",
    text=paint.TEXT,
    text2=paint.TEXT2,
    text3="#8693A3",
    accent="#62B0F0",
    sel="#1B3550",
    warn=paint.WARN,
    warnbg="#33270F",
    warnfill="#E8A13A",
    danger="#FF7262",
    dangerbg="#3A1613",
    dangerfill="#F4604F",
    ok=paint.OK,
    bar="#6F8296",
    track="#262E38",
    kill="#6E1710",
)
LIGHT = Ink(
    name="light",
    bg0="#EEF1F4",
    bg1="#F9FAFB",
    bg2="#FFFFFF",
    bg3="#E9EEF3",
    line="#D9DFE6",
    line2="#BFC8D2",
    text="#161D26",
    text2="#475465",
    text3="#5D6A7A",
    accent="#0B63B0",
    sel="#DBEAF8",
    warn="#8F5200",
    warnbg="#FFF0D2",
    warnfill="#D48806",
    danger="#B3261E",
    dangerbg="#FDE4E1",
    dangerfill="#C8372D",
    ok="#0A6B57",
    bar="#7B8DA0",
    track="#E3E8EE",
    kill="#B3261E",
)

_LIGHT_ACCENT = QColor(LIGHT.accent)


def ink() -> Ink:
    """The theme in force: the application's palette decides, so a live switch needs nothing but a new palette."""
    accent = QGuiApplication.palette().color(QPalette.ColorRole.Accent)
    return LIGHT if accent == _LIGHT_ACCENT else DARK
