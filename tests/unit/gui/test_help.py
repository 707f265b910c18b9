"""F1: every page of the window has its document, and what is shown of one is plain text."""

from __future__ import annotations

import re

import pytest

from console.domain.process.assets import documents
from console.gui.pages.interface import Page
from console.gui.pages.registry import PAGES
from console.gui.window.help import Block, blocks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.spec.name)
def test_every_page_has_a_document_and_its_heading(page: type[Page]) -> None:
    name, _, heading = page.spec.help.partition("#")
    found = list(blocks(documents()[name].read_text()))
    assert found[0].kind == "title"
    assert not heading or Block("heading", heading) in found


@pytest.mark.parametrize("name", sorted(documents()))
def test_no_markup_is_left_of_any_document(name: str) -> None:
    source = documents()[name].read_text()
    found = list(blocks(source))
    assert len(found) > 3
    spans = sorted(set(re.findall(r"`([^`\n]+)`", source)), key=len, reverse=True)
    prose = [block.text for block in found if block.kind != "code"]
    for span in spans:  # the stars of code are its own
        prose = [text.replace(span, "") for text in prose]
    assert not [text for text in prose if "](" in text or "**" in text or text.startswith(("#", "|", "- ", "```"))]


def test_paragraphs_code_lists_and_tables() -> None:
    page = "# A\n\none\ntwo [three](x.md)\n\n```sh\nls  -l\n\nrm\n```\n* `a`\n  b\n* c\n"
    page += "\n| k | v | w |\n|---|:-:|---|\n| x | y | z |\n## B\nend"
    assert [(block.kind, block.text) for block in blocks(page)] == [
        ("title", "A"), ("text", "one two three"), ("code", "ls  -l\n\nrm"), ("item", "•  a b"), ("item", "•  c"),
        ("table", "k: v · w"), ("table", "x: y · z"), ("heading", "B"), ("text", "end"),
    ]  # fmt: skip
