"""The documents that lead through the code name files and functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIGNPOSTS = ROOT / "docs" / "development" / "where-to-change.md"
LIVES = sorted((ROOT / "docs" / "explanation").glob("life-of-*.md"))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
FOLDERS = "console|docs|envoy|packaging|resources|tests"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]+|pyproject\.toml)`")
STEP = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.py)`, `([A-Za-z_][\w.]*)`")


def is_defined(module: Path, name: str) -> bool:
    """Whether a module defines a class or function, or ``Class.method``."""
    body: list[ast.stmt] = ast.parse(module.read_text()).body
    for part in name.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = next((one for one in body if isinstance(one, kinds) and one.name == part), None)
        if found is None:
            return False
        body = found.body
    return True


@pytest.mark.parametrize("page", [SIGNPOSTS, *LIVES, *DECISIONS], ids=lambda page: page.name)
def test_each_file_that_is_named_is_there(page: Path) -> None:
    named = PATH.findall(page.read_text())
    assert named, f"{page.name} names no file"
    assert [path for path in named if not (ROOT / path).exists()] == [], f"docs: change the path in {page.relative_to(ROOT)}"


@pytest.mark.parametrize("page", LIVES, ids=lambda page: page.name)
def test_each_step_of_a_life_is_a_function_of_its_file(page: Path) -> None:
    steps = STEP.findall(page.read_text())
    assert len(steps) >= 10
    assert [f"{path}: {name}" for path, name in steps if not is_defined(ROOT / path, name)] == []


def test_each_decision_that_a_comment_names_is_there() -> None:
    texts = (path.read_text() for path in (ROOT / "console").rglob("*.py"))
    named = {name for text in texts for name in re.findall(r"docs/decisions/[\w./-]+\.md", text)}
    assert named, "no comment leads to a decision"
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_there_are_enough_signposts_and_each_opens_a_file() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", SIGNPOSTS.read_text(), re.MULTILINE)[1:]
    assert len(rows) >= 30
    assert [what for what, first, _then in rows if not PATH.fullmatch(first)] == []
    assert len({what for what, _first, _then in rows}) == len(rows)


def test_each_decision_has_its_four_parts_and_is_listed() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for page in DECISIONS:
        parts = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences", "Measurement"], page.name
        assert f"]({page.name})" in listed
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))
