"""The page of the endpoints says what the table says."""

from __future__ import annotations

from pathlib import Path

from console.api.agent_endpoints import AGENT_ENDPOINTS
from console.api.endpoints import ENDPOINTS
from console.api.reference import page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "endpoints.md"


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text() == page(), "make it again: python -m console.api.reference > docs/reference/endpoints.md"


def test_every_endpoint_has_a_sentence_of_its_own() -> None:
    said = [*(row.what for row in ENDPOINTS), *(row.what for row in AGENT_ENDPOINTS)]
    assert all(text.endswith(".") and text[0].isupper() for text in said)
    assert len(said) == len(set(said))
