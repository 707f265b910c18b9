"""Whatever Qt could take for rich text, or shows raw, goes through the product's own escaping: looked up in the source of every widget."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

GUI = Path(__file__).resolve().parents[3] / "console" / "gui"
GUESSES = frozenset(("setToolTip", "setStatusTip", "setWhatsThis", "showText", "setWindowTitle"))
"""Qt guesses from the content whether these are rich text, or hands them to the desktop as they are."""
ESCAPES = frozenset(("tooltip", "safe_text"))


def is_safe(words: ast.expr) -> bool:
    """A constant without marks, or what went through the escaping."""
    if isinstance(words, ast.Constant):
        return isinstance(words.value, str) and "<" not in words.value
    if isinstance(words, ast.IfExp):
        return is_safe(words.body) and is_safe(words.orelse)
    return isinstance(words, ast.Call) and isinstance(words.func, ast.Name) and words.func.id in ESCAPES


def raw_in(source: str) -> list[int]:
    """Lines that hand something else to such a place."""
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    of_qt = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in GUESSES]
    return [call.lineno for call in of_qt if not is_safe(call.args[1 if call.func.attr == "showText" else 0])]  # type: ignore[attr-defined]


def test_nothing_reaches_a_tooltip_or_a_title_raw() -> None:
    found = {str(p.relative_to(GUI)): lines for p in GUI.rglob("*.py") if (lines := raw_in(p.read_text()))}
    assert not found, f"pass these through tooltip() or safe_text(): {found}"


@pytest.mark.parametrize("line", ["x.setToolTip(name)", "x.setToolTip(f'{name}')", "x.setToolTip('' if a else name)", "x.setToolTip('<b>')",
                                  "QToolTip.showText(at, name, x)", "self.setWindowTitle(title)", "x.setToolTip(a or b)"])  # fmt: skip
def test_the_search_finds_what_it_should(line: str) -> None:
    assert raw_in(line) == [1]


@pytest.mark.parametrize("line", ["x.setToolTip(tooltip(name))", "x.setToolTip('' if a else tooltip(b))", "x.setToolTip('Copies it')"])
def test_the_search_finds_nothing_else(line: str) -> None:
    assert raw_in(line) == []
