"""A page that never heard from a supervisor claims nothing: no figure is zero, no list is empty, and it says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from console.gui.pages.registry import PAGES
from console.gui.window.main import Window

_CLAIMS = re.compile(r"(?<![\w.,$])0(?![\w.,:])|\b(No|Nothing)\b.* yet\b|\bever made\b|\bis empty\b|\bNothing (was|is)\b|\bReading…")
_TABS = {"network": ("list", "marked", "sandboxes", "history", "config"), "approvals": ("waiting", "decided", "given")}


def _seen(page: QWidget) -> list[str]:
    """What a person or a screen reader finds on it."""
    shown = [page, *(one for one in page.findChildren(QWidget) if one.isVisible())]
    return [*(one.text() for one in shown if isinstance(one, QLabel)), *(one.accessibleName() for one in shown)]


def _says_what_to_do(page: QWidget) -> bool:
    return any("does not answer" in words and "watchfloor supervisor" in words for words in _seen(page))


@pytest.mark.parametrize("name", [kind.spec.name for kind in PAGES if kind.spec.name not in ("receipt", "fleet")])
def test_what_was_never_read_is_not_said_to_be_nothing(name: str, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    window = open_window("fleet", (800, 560), wait=False)
    window.goto(name, "a-1" if name == "activity" else "")
    page = window.page
    assert page is not None
    if name != "kill-switch":
        qtbot.waitUntil(lambda: _says_what_to_do(page))
    page.on_tick(page.desk.clock())
    assert [words for words in _seen(page) if _CLAIMS.search(words)] == []
    for tab in _TABS.get(name, ()):
        bar = page.tabs.bar.tabs if name == "network" else page.inbox.tabs  # type: ignore[attr-defined]
        bar.pills[tab].click()
        assert [words for words in _seen(page) if _CLAIMS.search(words)] == [], tab
        if tab != "config":  # a text, not a label
            qtbot.waitUntil(lambda: _says_what_to_do(page))
