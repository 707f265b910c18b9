"""The list of rows: nobody is selected whom nobody chose."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

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
