"""Tables: a cell that is too wide goes on in the next line."""

from __future__ import annotations

import pytest

from console.cli import out
from console.cli.tables import new_table


def test_a_cell_that_is_too_wide_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    table = new_table("ID", "PATH")
    path = "".join(f"/folder-{n}" for n in range(60))
    table.add_row("r1", path)
    out.show(table)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "PATH"]
    assert "".join(row.removeprefix("r1").strip() for row in rows) == path
