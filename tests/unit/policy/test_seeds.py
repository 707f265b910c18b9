"""The source documents' own settings.json and sources.json: they load, are found fault with where they deserve it, and answer as meant.

The files are the documents' own, word for word; ``settings_verdicts.json`` (test_shell.py) is the table of settings.json alone.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.api.policy import policy_data
from console.domain.calls.permission import Verdict
from console.domain.errors import UsageProblem
from console.policy.review.expected_verdicts import Case, read_table
from console.policy.review.lint import Severity, lint
from console.policy.rules.loading import read_settings
from console.settings.sources_file import parse_sources
from tests.fakes.policy_world import DATA, catalogue, context, told

SETTINGS = (DATA / "settings.json").read_bytes()
SOURCES = parse_sources((DATA.parent / "python-data-agent.json").read_text(), "sources.json", "python-data-agent")
SWALLOW = ("find", "python", "python3", "sh", "bash")
"""Programs of the documents' allow list that run whatever they are given."""
WARNED = {
    "shell(pip install:*)": "a package runs code of its own",
    "shell(git clone:*)": "network(outbound:*) denies them all",
    "file(read:/etc/shadow:*)": "it is read as /etc/shadow",
    "file(write:/etc/**:*)": "it is read as /etc/**",
    "file(read:/proc/**:*)": "it is read as /proc/**",
}


def changed(**lists: list[str]) -> bytes:
    """Their settings with some lists of permissions replaced."""
    data: dict[str, Any] = json.loads(SETTINGS)
    data["permissions"] |= lists
    return json.dumps(data).encode()


def opened() -> bytes:
    lists = json.loads(SETTINGS)["permissions"]
    network = "network(outbound:*)"
    return changed(deny=[rule for rule in lists["deny"] if rule != network], allow=[*lists["allow"], network])


def table(name: str) -> list[Case]:
    return list(read_table((DATA / "seeds" / name).read_bytes(), name))


def test_the_lint_finds_what_they_deserve_and_nothing_else() -> None:
    found = lint(read_settings(SETTINGS), catalogue())
    refused = {one.rule: one for one in found if one.severity is Severity.REFUSED}
    assert list(refused) == [f"shell({name}:*)" for name in SWALLOW]
    assert [len(one.swallows) for one in refused.values()] == [13, 16, 16, 16, 16]
    warned = {one.rule: one.what for one in found if one.severity is Severity.WARNING}
    assert list(warned) == list(WARNED) and all(words in warned[rule] for rule, words in WARNED.items())
    marked = lint(read_settings(changed(unconfined=list(refused))), catalogue())
    assert not [one for one in marked if one.severity is Severity.REFUSED]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "settings.json is empty; an empty policy denies everything."),
        (SETTINGS[:-9], "settings.json: line "),
        (changed(allow=[], deny=[]), "settings.json: there is no rule in it; an empty policy denies everything."),
        (changed(allow=["shell(ls"]), "settings.json: permissions.allow[0]: 'shell(ls' is no rule."),
        (SETTINGS.replace(b'"permissions"', b'"permission"'), "settings.json: 'permission' is not known."),
    ],
)
def test_damaged_they_are_refused_in_words(data: bytes, words: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        read_settings(data)
    assert str(caught.value).startswith(words), str(caught.value)


@pytest.mark.parametrize("case", table("joined_verdicts.json"), ids=lambda case: ascii(case.argument[:60]))
def test_both_files_as_they_are_written(case: Case) -> None:
    same(case, SETTINGS)


@pytest.mark.parametrize("case", table("opened_verdicts.json"), ids=lambda case: ascii(case.argument[:60]))
def test_what_is_left_to_sources_json_once_the_network_is_opened(case: Case) -> None:
    same(case, opened())


def same(case: Case, settings: bytes) -> None:
    made = context(read_settings(settings, "ctx-abc123", "/workspace"), declared=policy_data.declared(SOURCES))
    found = told(made, case.tool, case.argument)
    assert (found.verdict, found.rule) == (case.verdict, case.rule or found.rule), found.reason


def test_there_are_enough_of_them() -> None:
    alone = read_table((DATA / "settings_verdicts.json").read_bytes(), "settings_verdicts.json")
    assert len(alone) >= 40 and len(table("joined_verdicts.json")) + len(table("opened_verdicts.json")) >= 40
    assert {case.verdict for case in alone} == set(Verdict)
