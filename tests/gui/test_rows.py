"""The list of rows: nobody is selected whom nobody chose; what is repainted is what changed, and all of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPixmap
from pytestqt.qtbot import QtBot

from console.api.messages import AgentView
from console.gui.models.row import Row
from console.gui.pages.fleet.rows import beside_name, cell_words, row_sign
from console.gui.theme import fonts
from console.gui.theme.tokens import DARK, ROW
from console.gui.widgets.canvas import ROWS_KEPT, Brush, Canvas, Look, Pictures
from console.gui.widgets.marks import _elided
from console.gui.widgets.rows import Column, RowModel, RowView


def test_when_the_selected_row_leaves_nobody_takes_its_place(qtbot: QtBot) -> None:
    view = RowView(RowModel((Column("name", "Name"),), lambda row, _key: str(row)), lambda _canvas, _row: None, str)
    qtbot.addWidget(view)
    told: list[object] = []
    view.chosen.connect(told.append)
    view.show_rows(["a", "b", "c"])
    assert view.choose("b")
    view.show_rows(["x", "a", "b"])
    assert (view.current(), told) == ("b", ["b"])
    for left in (["x", "a", "c"], ["x", "a", "c", "d"], ["a"]):
        view.show_rows(left)
        assert (view.current(), told[-1]) == (None, None)
        view.show_rows(["x", "a", "b"])
        assert view.choose("b")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"dry_run": "a"}),
        ({"control_level": "observed"}, {"control_level": "observed", "seen_status": "unverified"}),
        ({"control_level": "observed", "seen_status": "unverified"}, {"control_level": "adopted", "seen_status": "unverified"}),
        ({}, {"state": "waiting"}),
        ({"ended_at": None}, {"ended_at": None, "profile_note": "rules only, not contained"}),
        ({"network_mode": "NONE"}, {"network_mode": "NONE", "network_enforced": True}),
    ],
)
def test_a_row_whose_state_reads_otherwise_is_painted_again(before: dict[str, object], after: dict[str, object]) -> None:
    """What is in dry-run, or not proven to run, must not go on looking as it did."""
    facts = {"id": "a", "name": "a", "state": "running", "started_at": 1.0, "ended_at": 2.0}
    old, new = (Row(AgentView.read({**facts, **more})) for more in (before, after))
    assert row_sign(old) != row_sign(new) and row_sign(old) == row_sign(Row(old.view))


def test_a_row_says_that_its_rules_alone_bound_it_as_long_as_it_lives() -> None:
    note = "rules only, not contained"
    row = Row(AgentView(id="a", name="a", state="running", control_level="managed", profile="coding", profile_note=note))
    assert beside_name(row) == note and cell_words(row, "agent").endswith(f", {note}")
    over = Row(row.view.replaced(state="ended", ended_at=2.0))
    assert beside_name(over) == "" and "rules" not in cell_words(over, "agent")


@dataclass
class _Light:
    """A row that is one colour."""

    name: str
    colour: str = "#102030"


def _lights(qtbot: QtBot, number: int) -> tuple[RowView, list[_Light], list[str]]:
    """A view of six rows' height over so many lights, and who is painted."""
    painted: list[str] = []

    def paint(canvas: Canvas, row: _Light) -> None:
        painted.append(row.name)
        canvas.shared(QRectF(0, 0, 60, ROW), row.colour, lambda on: on.painter.fillRect(on.box, QColor(row.colour)))

    rows = [_Light(f"l{at}") for at in range(number)]
    view = RowView(
        RowModel((Column("name", "Name"),), lambda row, _key: str(row.name)), paint, lambda row: str(row.name), sign=lambda r: r.colour
    )
    qtbot.addWidget(view)
    view.resize(300, 7 * ROW)
    view.show_rows(list(rows))
    view.show()
    qtbot.waitUntil(lambda: len(painted) >= min(6, number))
    settled(painted, qtbot)
    return view, rows, painted


def settled(painted: list[str], qtbot: QtBot) -> None:
    """Until nothing more is painted of what was asked for before."""
    before = -1
    while before != len(painted):
        before = len(painted)
        qtbot.wait(50)


def _seen(view: RowView) -> list[str]:
    """The colour of each strip on the screen, as it was painted last: three looks at each row, so that half a row shows."""
    image = view.screen().grabWindow(view.winId()).toImage()  # what is on the screen; grab() would paint it all anew
    top, shift = view.viewport().y(), -view.verticalScrollBar().value() % ROW
    return [image.pixelColor(30, top + y).name() for y in range(shift + 5, view.viewport().height() - 4, ROW // 3)]


def test_only_rows_that_changed_are_painted_again(qtbot: QtBot) -> None:
    view, rows, painted = _lights(qtbot, 50)
    painted.clear()
    view.refresh()
    qtbot.wait(50)
    assert painted == []
    rows[2].colour = rows[40].colour = "#aa0000"
    view.refresh()
    qtbot.waitUntil(lambda: painted == ["l2"])
    assert _seen(view).count("#aa0000") == 3
    view.show_rows([rows[2], *rows[3:], rows[0], rows[1]])  # as many as before, in other places
    view.refresh()
    qtbot.waitUntil(lambda: _seen(view)[0] == "#aa0000")
    assert _seen(view).count("#aa0000") == 3


@pytest.mark.parametrize("keeps", [False, True])
def test_other_rows_in_the_same_number_are_what_is_seen(qtbot: QtBot, *, keeps: bool) -> None:
    """As many rows as before is no news to Qt: what stood there would go on being shown, and the keys would act on others."""
    painted: list[str] = []
    view = RowView(
        RowModel((Column("name", "Name"),), lambda row, _key: str(row)),
        lambda _canvas, row: painted.append(row),
        str,
        sign=str if keeps else None,
    )
    qtbot.addWidget(view)
    view.resize(300, 7 * ROW)
    view.show_rows(["a", "b", "c"])
    view.choose("b")
    view.show()
    qtbot.waitUntil(lambda: set(painted) == {"a", "b", "c"})
    settled(painted, qtbot)
    view.show_rows(["x", "b", "y"])
    qtbot.waitUntil(lambda: {"x", "y"} <= set(painted))


def test_a_row_of_which_only_a_part_was_painted_anew_is_painted_whole(qtbot: QtBot) -> None:
    view, rows, _ = _lights(qtbot, 50)
    for row in rows:
        row.colour = "#00aa00"
    view.viewport().repaint(0, 2 * ROW, 300, ROW // 2)  # as when a wheel or another window uncovers half a row
    view.refresh()
    qtbot.waitUntil(lambda: set(_seen(view)) == {"#00aa00"})


def test_a_theme_a_size_and_a_selection_are_part_of_what_is_known(qtbot: QtBot) -> None:
    view, _rows, painted = _lights(qtbot, 3)
    painted.clear()
    assert view.choose("l1")
    qtbot.waitUntil(lambda: "l1" in painted)
    painted.clear()
    view.resize(400, 7 * ROW)
    qtbot.waitUntil(lambda: set(painted) == {"l0", "l1", "l2"})


def test_what_is_met_once_costs_no_picture_and_what_is_asked_for_again_is_painted_no_more(qtbot: QtBot) -> None:
    """Far scrolling meets rows once: a picture of each were work for nothing. What is uncovered again and again is put down as it is."""
    painted: list[str] = []
    brush = Brush(lambda _canvas, row: painted.append(row.name), lambda row: str(row.name), lambda row: str(row.colour))
    look, row = Look(100, ROW, 1.0, DARK, DARK.bg1, (("name", 0, 100),)), _Light("a")
    screen = QPixmap(100, 4 * ROW)
    painter = QPainter(screen)

    def met(row: _Light) -> int:
        """How often it was painted for being drawn once more."""
        painted.clear()
        brush.draw(painter, ROW, row, selected=False, look=look, sign=brush.sign(row, selected=False, look=look))
        return len(painted)

    assert met(row) == 1 and not brush._rows._kept, "met for the first time: where it stands"
    assert met(row) == 1 and len(brush._rows._kept) == 1, "for the second time: a picture is made"
    assert [met(row), met(row)] == [0, 0]
    row.colour = "#ffffff"
    assert [met(row), met(row), met(row)] == [1, 1, 0], "it looks otherwise now"
    for at in range(3 * ROWS_KEPT):
        assert met(_Light(f"far-{at}")) == 1
    assert len(brush._met) <= ROWS_KEPT and len(brush._rows._kept) <= ROWS_KEPT
    painter.end()


@pytest.mark.parametrize("font", [fonts.ui(12), fonts.ui(12, fonts.SEMIBOLD), fonts.mono(11)], ids=["ui", "strong", "mono"])
@pytest.mark.parametrize(
    "text",
    ["agent-00012", "AVAVAVAVAVTo.To.To.", "a" * 200, "iiii iiii iiii", "Zoë 日本 and more of it", "x", "WWWWWWWW", "1,204.50 of 2,000.00"],
)
def test_what_is_left_out_is_left_out_as_qt_would_and_never_runs_over(qtbot: QtBot, text: str, font: QFont) -> None:
    fonts.load_fonts()
    seen = QFontMetricsF(font)
    for width in (10, 40, 75, 120, 400):
        shown = _elided(text, font, width)
        exact = fonts.metrics(font).elidedText(text, Qt.TextElideMode.ElideRight, width)
        assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))
        assert seen.horizontalAdvance(shown) <= width + 1 or shown == "…"
        assert abs(len(shown) - len(exact)) <= 2, (shown, exact)


@pytest.mark.parametrize("text", ["Kill switch ready · tested 5 s ago", "Supervisor silent for 7 s", "9 of 9"])
def test_a_text_that_has_the_room_it_was_measured_by_is_whole(qtbot: QtBot, text: str) -> None:
    fonts.load_fonts()
    for font in (fonts.ui(13, fonts.MEDIUM), fonts.ui(11), fonts.mono(11)):
        assert _elided(text, font, fonts.metrics(font).horizontalAdvance(text)) == text


def test_pictures_give_up_the_longest_unused_and_paint_over_its_memory(qtbot: QtBot) -> None:
    kept = Pictures(2)
    first = kept.blank("a", 10, 10, 1.0)
    first.fill(Qt.GlobalColor.red)
    kept.keep("a", 1, first)
    kept.keep("b", 1, kept.blank("b", 10, 10, 1.0))
    assert kept.find("a", 1) is first
    assert kept.find("a", 2) is None
    kept.keep("c", 1, kept.blank("c", 10, 10, 1.0))
    assert kept.find("b", 1) is None
    assert kept.find("a", 1) is first
    assert kept.blank("a", 10, 10, 1.0) is first
    assert kept.find("a", 1) is None, "half painted: not kept until it is done"
    assert kept.blank("d", 20, 10, 2.0).size().toTuple() == (40, 20)
