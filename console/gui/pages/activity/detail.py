"""One entry whole: what was asked for, how it was judged, what came of it; and where it leads."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from console.api.agents.activity import ActivityRow
from console.gui.kit.layout import PANE, STRETCH, column, row
from console.gui.kit.pane import Offer, Pane
from console.gui.pages.activity.book import Item
from console.gui.pages.activity.rows import lines_of, money, own_words
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Chips, ChipSpec, Fact, Facts, Rule
from console.gui.widgets.reading import PlainView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, day_clock

OFFERS = (
    Offer("activity.agent", "Agent", "fleet", "J"),
    Offer("activity.audit", "Audit", "audit", "O"),
    Offer("activity.rollback", "Undo", "rollback", "U"),
)
_MARKS = {"allow": ("check", "ok"), "deny": ("ban", "danger"), "ask": ("triangle", "warn")}
_CHIPS = {"allow": ("allowed", "check", "plain"), "deny": ("denied", "ban", "danger"), "ask": ("asked", "warning", "warn")}
_FIRST = {"tool_call": "Arguments", "tool_result": "Result", "verdict": "Reason", "spend": "Used", "file": "What", "spawn": "Name"}


_CHUNK = 1000


def whole_text(text: str) -> str:
    """Every line of it safe to show and none cut: a long one is made safe piece by piece."""
    return "\n".join(_line(line.replace("\t", "    ")) for line in text.split("\n"))


def _line(line: str) -> str:
    return "".join(safe_text(line[at : at + _CHUNK], _CHUNK * 16) for at in range(0, len(line), _CHUNK))


class Part(QWidget):
    """A title, the text below it, and what of it is not shown."""

    whole_asked = Signal(int)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row: ActivityRow | None = None
        self._title = Text(name, 13, fonts.SEMIBOLD)
        self.more = Button("Show all", small=True, parent=self)
        self.more.clicked.connect(lambda: self.whole_asked.emit(self.row.seq if self.row else 0))
        self._left = Text("", 11, role="text2", wrap=True)
        self.view = PlainView(name, parent=self)
        column(row(self._title, STRETCH, self.more, spacing=-1), (self.view, 1), self._left, spacing=6, on=self)

    def say(self, name: str, row: ActivityRow | None, text: str = "", *, failed: bool = False) -> None:
        """The text of ``row``, or ``text`` where it is known whole."""
        self.row = row
        self._title.say(name, "danger" if failed else "text")
        shown = text or (row.text if row else "")
        made = whole_text(shown) or "(nothing)"
        if made != self.view.toPlainText():
            self.view.setPlainText(made)
        rest = row.size - len(row.text) if row is not None and not text else 0
        self.more.setVisible(rest > 0)
        words = [f"{rest:,} more characters are kept" if rest > 0 else ""]
        words += [f"{row.left_out:,} characters were not kept" if row is not None and row.left_out else ""]
        self._left.setText("; ".join(w for w in words if w))
        self._left.setVisible(any(words))


class EntryPane(Pane):
    """``whole_asked`` carries the number of an entry whose whole text is wanted."""

    whole_asked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.item: Item | None = None
        self._whole: dict[int, str] = {}
        self._crumb = Text("", 11, role="text2")
        self._what = Text("", 14, fonts.MEDIUM, mono=True)
        self._chips = Chips()
        self.verdicts = Facts(22)
        self.first, self.second = Part("Arguments", self), Part("Result", self)
        head = (self._crumb, 4, self._what, 7, self._chips, Rule(9), self.verdicts, 4)
        body = column(*head, (self.first, 1), 8, (self.second, 1), margins=PANE)
        self.lay((body, 1), offers=OFFERS)
        for one in (self.first, self.second):
            one.whole_asked.connect(self.whole_asked)

    def show_item(self, item: Item) -> None:
        """The entry, and for a call what came of it by now."""
        if item is not self.item:
            self._whole.clear()
        self.item = item
        entry, said, verdict = item.row, lines_of(item), item.verdict
        turn = f"  ·  turn {entry.turn}" if entry.turn else ""
        self._crumb.setText(f"{entry.kind.replace('_', ' ')}  ·  {day_clock(entry.at)[:6]} {clock(entry.at)}{turn}")
        self._what.setText(" ".join(w for w in (said.title, (entry.ref if entry.kind != "tool_call" else "") or said.main) if w))
        chips = [ChipSpec(*_CHIPS[verdict.verdict])] if verdict is not None and verdict.verdict in _CHIPS else []
        failed = entry.failed or (item.result is not None and item.result.failed)
        chips += [ChipSpec("failed", "alert", "danger")] if failed else []
        chips += [ChipSpec(money(entry), "", "warn" if entry.cost_usd is None else "plain")] if entry.kind == "spend" else []
        chips += [ChipSpec(entry.who)] if entry.who else []
        self._chips.say(chips)
        facts = [Fact(v.who or v.verdict, own_words(v) or v.verdict, *_MARKS.get(v.verdict, ("ring", "text2"))) for v in item.verdicts[-4:]]
        self.verdicts.say(facts)
        self.verdicts.setVisible(bool(facts))
        self.first.say(_FIRST.get(entry.kind, "Text"), entry, self._whole.get(entry.seq, ""), failed=entry.kind == "error")
        is_call = entry.kind == "tool_call"
        self.second.setVisible(is_call)
        if is_call:
            result = item.result
            title = "Result" if result is None or not result.failed else "Result: failed"
            text = "" if result is not None else "No result yet, or none is kept."
            whole = self._whole.get(result.seq, "") if result is not None else text
            self.second.say(title, result, whole, failed=result is not None and result.failed)

    def show_whole(self, row: ActivityRow) -> None:
        """All that is kept of one of the entry's texts."""
        self._whole[row.seq] = row.text
        if self.item is not None:
            self.show_item(self.item)

    def plain(self) -> str:
        """What is copied: exactly what is seen."""
        parts = [self._crumb.text(), self._what.text(), self.first.view.toPlainText()]
        parts += [self.second.view.toPlainText()] if self.second.isVisibleTo(self) else []
        return "\n".join(parts)
