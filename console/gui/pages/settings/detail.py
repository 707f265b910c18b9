"""One setting: what it is, its value now and after a start, what it takes, where the value is from, and what locks it."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api.settings import SettingRow
from console.gui.kit.layout import Part, scrolled
from console.gui.kit.pane import Offer, Pane
from console.gui.pages.settings.rows import LAYERS, shown
from console.gui.theme import fonts
from console.gui.widgets.text import Text

CAPTIONS = ("In force", "After the next start", "Default", "Takes", "From", "Locked by")


OFFERS = (Offer("settings.change", "Change…", keys="E"), Offer("settings.reset", "Reset…", keys="R"))


class SettingPane(Pane):
    """One setting; what is not known of it has no caption."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.group = Text("", 11, fonts.REGULAR, "text2", wrap=True)
        self.name = Text("", 14, fonts.MEDIUM, mono=True, wrap=True)
        self.words = Text("", 13, fonts.REGULAR, wrap=True)
        self.facts = {caption: (Text(caption, 11, fonts.MEDIUM, "text2"), Text("", 12, fonts.REGULAR, wrap=True)) for caption in CAPTIONS}
        facts: list[Part] = [part for head, value in self.facts.values() for part in (6, head, value)]
        body = scrolled(self, self.group, 4, self.name, 8, self.words, 10, *facts, margins=(19, 13, 20, 12))
        self.lay((body, 1), offers=OFFERS, wide=False)

    def show_row(self, row: SettingRow) -> None:
        """All that is known of one setting."""
        self.group.setText(row.group_words)
        self.name.setText(row.key)
        self.words.setText(row.words)
        whose = LAYERS.get(row.layer, row.layer)
        said = {
            "In force": shown(row.value, row.unit),
            "After the next start": shown(row.next_value, row.unit) if row.is_waiting else "",
            "Default": shown(row.default, row.unit),
            "Takes": row.takes + (f", in {row.unit}" if row.unit else ""),
            "From": whose if row.layer in ("default", "last") else f"{whose}: {row.origin}",
            "Locked by": row.locked_by,
        }
        for caption, (head, value) in self.facts.items():
            value.say(said[caption], "warn" if caption == "After the next start" else "text")
            head.setVisible(bool(said[caption]))
            value.setVisible(bool(said[caption]))
