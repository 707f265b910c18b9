"""What an agent could do at worst, shown before it starts: one paragraph a matter, amber where it is wider than one may expect."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api.agents.programs import ProgramPreview, ProgramsView, ReachView
from console.gui.kit.layout import STRETCH, column
from console.gui.theme import fonts
from console.gui.widgets.text import Text

TITLES = {
    "files": "Files",
    "hosts": "Hosts",
    "scopes": "Scopes",
    "data": "Data",
    "cost": "Cost",
    "secrets": "Secrets",
    "servers": "MCP servers",
    "program": "Program",
}
"""In the order in which they are shown."""
UNKNOWN = "What it could do is not known."
_MOST = 20


def ordered(reach: list[ReachView]) -> list[ReachView]:
    """Lines in the order of TITLES; what is new here comes last."""
    places = {what: place for place, what in enumerate(TITLES)}
    return sorted(reach, key=lambda line: places.get(line.what, len(places)))[:_MOST]


def memory_words(view: ProgramsView | None) -> tuple[str, bool]:
    """(free memory in words, whether it is short)."""
    if view is None:
        return "Free memory is not known yet.", False
    if view.memory_free_mib is None:
        return "Free memory is not known: the kernel does not say.", True
    words = f"{view.memory_free_mib:,} MiB are free"
    if not view.memory_free_min_mib:
        return f"{words}; no least is set.", False
    short = view.memory_free_mib < view.memory_free_min_mib
    return f"{words}, {view.memory_free_min_mib:,} MiB are wanted{': too short to start a program.' if short else '.'}", short


class ReachPane(QWidget):
    """The right side of the dialog. Nothing in it is green: it says what could happen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self._lines = column(spacing=2)
        self.memory = Text("", 12, fonts.REGULAR, "text", wrap=True)
        head = (Text("What it could do at worst", 13, fonts.SEMIBOLD), self.state, self._lines)
        memory = (Text("Memory", 11, fonts.MEDIUM, "text2"), self.memory)
        column(*head, 6, *memory, STRETCH, margins=(0, 0, 10, 0), spacing=2, on=self)
        self.shown: list[ReachView] = []
        self._texts: list[Text] = []
        self.waiting()

    def waiting(self) -> None:
        """The supervisor is asked; what stood here is of other fields."""
        self.state.say("The supervisor is asked…", "text2", "ring")
        self._put([])

    def none(self, why: str) -> None:
        """Nothing can be said, and why."""
        self.state.say(why, "warn", "triangle")
        self._put([])

    def say(self, preview: ProgramPreview) -> None:
        """An answer: its lines, or why it would be refused."""
        if preview.why_not:
            self.none(f"It would be refused: {preview.why_not} {preview.remedy}".strip())
            return
        if not preview.reach:
            self.none(UNKNOWN)
            return
        wide = sum(line.amber for line in preview.reach)
        words = f"Amber: wider than one may expect ({wide} of {len(preview.reach)})." if wide else "Nothing is wider than one may expect."
        self.state.say(words, "text2", "")
        self._put(ordered(preview.reach))

    def say_memory(self, view: ProgramsView | None) -> None:
        """Free memory, and what is wanted."""
        words, short = memory_words(view)
        self.memory.say(words, "warn" if short else "text", "triangle" if short else "")

    def _put(self, lines: list[ReachView]) -> None:
        for text in self._texts:
            self._lines.removeWidget(text)
            text.hide()
            text.deleteLater()
        self._texts, self.shown = [], lines
        for line in lines:
            title = Text(TITLES.get(line.what, line.what), 11, fonts.MEDIUM, "text2")
            words = Text(line.words, 12, fonts.REGULAR, "warn" if line.amber else "text", wrap=True, mark="triangle" if line.amber else "")
            for text in (title, words):
                self._lines.addWidget(text)
                text.show()
                self._texts.append(text)
