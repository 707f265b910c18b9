"""Each command, key, limit, promise and warning that the documents had before they were rewritten is still in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "tests" / "data" / "docs" / "facts.txt"


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"[`*]", "", text)).strip().lower()


def _pages() -> str:
    return "\n\n".join(page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])


def _facts() -> list[str]:
    return [line for line in FACTS.read_text().splitlines() if line.strip() and not line.startswith("#")]


def missing(facts: list[str], text: str) -> list[str]:
    """Return the facts that the text does not have. A word counts only as a whole word."""
    paragraphs = [_flat(part) for part in re.split(r"\n\s*\n", text)]
    words = set(re.findall(r"[\w.$/:<>=+~@-]+", _flat(text))) | set(re.findall(r"\w+", _flat(text)))
    whole = _flat(text)

    def found(fact: str) -> bool:
        parts = [_flat(part) for part in fact.split(" & ")]
        if len(parts) > 1:
            return any(all(part in paragraph for part in parts) for paragraph in paragraphs)
        return parts[0] in words if re.fullmatch(r"\w+", parts[0]) else parts[0] in whole

    return [fact for fact in facts if not found(fact)]


def test_every_fact_is_still_told() -> None:
    facts = _facts()
    assert len(facts) >= 250
    assert missing(facts, _pages()) == []


def test_a_fact_that_is_gone_is_found() -> None:
    text = "A kill is proven\nwithin 5 s.\n\nThe guard has a `lease_left_s`, and 60 s of it."
    assert missing(["proven within 5 s", "lease_left_s", "guard & 60 s"], text) == []
    assert missing(["lease", "kill & 60 s", "within 6 s"], text) == ["lease", "kill & 60 s", "within 6 s"]
