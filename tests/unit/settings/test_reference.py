"""The page of the settings says what the options say."""

from __future__ import annotations

import json
from pathlib import Path

from console.settings.options import Options, merged
from console.settings.reference import page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "settings.md"


def test_the_page_is_made_from_the_options() -> None:
    assert PAGE.read_text() == page(), "make it again: python -m console.settings.reference > docs/reference/settings.md"


def test_every_option_on_it_can_be_set_by_its_name_and_has_words() -> None:
    rows = [line.split(" | ", 2) for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 40
    for name, default, words in rows:
        assert len(words.removesuffix(" |")) > 10, name
        dotted = name.removeprefix("| ").strip("`")
        if "TYPE" not in dotted and default != "-":
            assert merged(Options(), {dotted: json.loads(default.strip("`"))}) == Options()
