"""Actions are data: palette, shortcut sheet, status bar and buttons all come from these lists."""

from console.gui.actions.catalogue import ActionSpec, search

__all__ = ["ActionSpec", "search"]
