"""The page of the endpoints says what the table says."""

from __future__ import annotations

from pathlib import Path

from console.api.endpoints import ENDPOINTS
from console.api.reference import page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "endpoints.md"


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text() == page(), "make it again: python -m console.api.reference > docs/reference/endpoints.md"


def test_every_endpoint_has_a_sentence_of_its_own() -> None:
    said = [row.what for row in ENDPOINTS]
    assert all(text.endswith(".") and text[0].isupper() for text in said)
    assert len(said) == len(set(said))
