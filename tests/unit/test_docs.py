"""What the documents name is there: verbs, files, and the keys of the JSON that is called stable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from console.api.messages import AgentView
from console.cli.find import find
from console.cli.syntax import Verbs
from console.cli.verbs import NOT_YET, VERBS
from console.domain.errors import UsageProblem
from console.domain.kill import Receipt, Step, Target
from tests.fakes.pages import commands_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if "://" not in t]
    assert [t for t in targets if t and not (page.parent / t).exists()] == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings_that_are_there(page: Path) -> None:
    links = [t.split("#") for t in re.findall(r"\]\(([^)\s]*#[^)\s]+)\)", page.read_text()) if "://" not in t]
    assert [f"{file}#{heading}" for file, heading in links if heading not in _anchors(page.parent / file if file else page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_verbs_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"`watchfloor ([a-z][a-z-]*)", page.read_text())) | set(
        re.findall(r"(?m)^watchfloor ([a-z-]+)", page.read_text())
    )
    assert named - set(VERBS) - set(NOT_YET) == set()


def test_every_page_can_be_found_from_the_readme() -> None:
    """By links alone, over other pages too. A link to a folder leads to its pages; CHANGELOG.md leads to anything."""
    found, to_read = set(), [ROOT / "README.md"]
    while to_read:
        page = to_read.pop()
        if page.is_dir():
            to_read += sorted(page.glob("*.md"))
        if page in found or page.suffix != ".md" or not page.is_file() or page.name == "CHANGELOG.md":
            continue
        found.add(page)
        links = [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if "://" not in t]
        to_read += [(page.parent / link).resolve() for link in links if link]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in found and page.name != "CHANGELOG.md"] == []


def test_stable_keys_are_on_their_page() -> None:
    words = set(re.findall(r"[a-z_]+", (ROOT / "docs" / "reference" / "json.md").read_text()))
    for kind in (AgentView, Receipt, Step, Target):
        fields = getattr(kind, "__struct_fields__", None) or kind.__dataclass_fields__
        assert set(fields) - words == set(), f"docs/reference/json.md says nothing of these keys of {kind.__name__}"


PRACTICE = [
    page for page in PAGES if page.parent.name in ("tutorial", "how-to", "explanation") or page.name in ("README.md", "command-line.md")
]


@pytest.mark.parametrize("page", PRACTICE, ids=lambda page: f"{page.parent.name}-{page.name}")
def test_commands_that_a_reader_copies_are_understood(page: Path) -> None:
    for words in commands_of(page.read_text()):
        if words:
            found, rest = find(words[0]), words[1:]
            while isinstance(found, Verbs):
                assert rest and rest[0] in found.verbs, words
                found, rest = found.verbs[rest[0]], rest[1:]
            found.read("watchfloor", rest)


def test_a_command_that_is_misspelled_is_found() -> None:
    text = "```sh\nwatchfloor run -- sh -c '\n  a; b'; watchfloor kill A --resaon R  # why\n```\n"
    assert commands_of(text) == [["run", "--", "sh", "-c", "\n  a; b"], ["kill", "A", "--resaon", "R"]]
    kill = find("kill")
    assert not isinstance(kill, Verbs)
    with pytest.raises(UsageProblem):
        kill.read("watchfloor", ["A", "--resaon", "R"])
