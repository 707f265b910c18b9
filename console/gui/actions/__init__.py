"""Actions are data: palette, shortcut sheet, status bar and buttons all come from these lists."""

from console.gui.actions.catalogue import ActionSpec, Risk, search

__all__ = ["ActionSpec", "Risk", "search"]
