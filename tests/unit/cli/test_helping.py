"""The page of all verbs says what ``--help`` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.cli.helping import page
from console.cli.verbs import VERBS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "verbs.md"


def test_the_page_is_made_from_the_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    made = page()
    assert PAGE.read_text() == made, "make it again: python -m console.cli.helping > docs/reference/verbs.md"
    assert all(f"\n### watchfloor {name}\n" in made for name in VERBS)
