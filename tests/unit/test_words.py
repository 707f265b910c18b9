"""Sentences that people read are plain: no banned phrase, and few words each, in texts, docstrings and documents."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RESOURCES = [path for path in sorted((ROOT / "resources" / "policy").rglob("*")) if path.suffix in (".json", ".yaml")]
IN_STRING, IN_DOCSTRING, IN_DOCUMENT, MEAN = 25, 30, 35, 18
"""Words of a sentence, at most; and their mean in the documents."""
BANNED = re.compile(
    r"\b(whom|whoever|whomever|anew|of now|it is said|says so|told of|nobody|somebody|let go of|gives way|gets on)\b", re.IGNORECASE
)
STORED = "ledger/migrations"
"""Names of migrations are written into each ledger, and stay."""
OLD_LABELS = re.compile(
    "|".join(
        r"\b" + re.escape(line)
        for line in (ROOT / "tests" / "data" / "words" / "old_labels.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ),
    re.IGNORECASE,
)
EXCEPTIONS: dict[tuple[str, str], str] = {
    # (module, beginning of the text): why it stays. At most 40, each one reviewed.
    ("cli/completion", "_watchfloor_words() {"): "a script of a shell",
    ("cli/completion", "# watchfloor: verbs and options."): "a script of a shell",
    ("sandbox/containers/image", "sh ash cat chmod"): "a list of programs",
    ("sources/opencode/hook", "import { spawn }"): "a script in JavaScript",
}
_PROSE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")
_SQL = re.compile(r"\s*(create|insert|select|after (insert|update|delete) on)\b")


@cache
def _texts() -> tuple[tuple[str, int, str, bool], ...]:
    """(module, line, text, whether it is a docstring) of every text in the package; a value in an f-string counts as one word."""
    return tuple(found for path in sorted((ROOT / "console").rglob("*.py")) for found in _of(path))


def _of(path: Path) -> Iterator[tuple[str, int, str, bool]]:
    module, nodes = path.relative_to(ROOT / "console").as_posix()[:-3], [*ast.walk(ast.parse(path.read_text()))]  # a walk takes longest
    documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    pieces = {id(piece) for node in nodes if isinstance(node, ast.JoinedStr) for piece in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield module, node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values), False
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield module, node.lineno, node.value, id(node) in documented


def _lengths(text: str) -> list[int]:
    """Words of each sentence. Code, tables, headings and pictures are no sentences; a line of a list is one."""
    text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"^(\||#).*$|!\[[^\]]*\]\([^)]*\)", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "x", text))
    parts = re.split(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*0-9]+[.)]?\s", text)
    return [len(part.split()) for part in parts if len(part.split()) > 2]


def _is_excepted(module: str, text: str) -> bool:
    return any(module == where and text.startswith(beginning) for where, beginning in EXCEPTIONS)


def test_texts_and_docstrings_hold_no_banned_phrase() -> None:
    found = {f"{m}:{line}": BANNED.findall(text) for m, line, text, _ in _texts() if BANNED.search(text) and not _is_excepted(m, text)}
    assert found == {}


def test_no_label_that_was_replaced_is_shown_again() -> None:
    found = {
        f"{m}:{n}": OLD_LABELS.findall(text)
        for m, n, text, is_docstring in _texts()
        if not is_docstring and m != STORED and OLD_LABELS.search(text)
    }
    found |= {page.name: said for page in [*DOCUMENTS, *RESOURCES] if (said := OLD_LABELS.findall(page.read_text()))}
    assert found == {}


def test_a_sentence_of_a_text_is_short() -> None:
    found = {
        f"{module}:{line}": max(_lengths(text))
        for module, line, text, is_docstring in _texts()
        if not is_docstring
        and _PROSE.search(text)
        and not _SQL.match(text)
        and max(_lengths(text), default=0) > IN_STRING
        and not _is_excepted(module, text)
    }
    assert found == {}


def test_a_sentence_of_a_docstring_is_short() -> None:
    found = {
        f"{module}:{line}": max(_lengths(text))
        for module, line, text, is_docstring in _texts()
        if is_docstring and max(_lengths(text), default=0) > IN_DOCSTRING
    }
    assert found == {}


@pytest.mark.parametrize("page", [*DOCUMENTS, *RESOURCES], ids=lambda page: page.name)
def test_documents_and_rules_hold_no_banned_phrase(page: Path) -> None:
    assert [line for line in page.read_text().splitlines() if BANNED.search(line)] == []


def test_sentences_of_documents_are_short() -> None:
    lengths = {page: _lengths(page.read_text()) for page in DOCUMENTS}
    assert {page.name: max(found) for page, found in lengths.items() if max(found, default=0) > IN_DOCUMENT} == {}
    every = [n for found in lengths.values() for n in found]
    assert sum(every) / len(every) <= MEAN


def test_the_exceptions_are_few_and_each_one_is_needed() -> None:
    assert len(EXCEPTIONS) <= 40
    unused = {
        key
        for key in EXCEPTIONS
        if not any(
            module == key[0] and text.startswith(key[1]) and max(_lengths(text), default=0) > IN_STRING for module, _, text, _ in _texts()
        )
    }
    assert unused == set()
