"""Tools by their names."""

import pytest

from console.domain.errors import UsageProblem
from console.policy.scopes import Scope
from console.policy.tools.catalogue import read_tools, tool_of, words_of
from tests.fakes.policy_world import tools


@pytest.mark.parametrize(
    ("name", "family", "action"),
    [
        ("shell", "shell", ""),
        ("Bash", "shell", ""),
        ("read_file", "file", "read"),
        ("Edit", "file", "write"),
        ("delete_file", "file", "delete"),
        ("WebFetch", "network", ""),
    ],
)
def test_known_names(name: str, family: str, action: str) -> None:
    found = tool_of(tools(), name)
    assert (found.family, found.action) == (family, action)


def test_an_unknown_tool_connects_and_needs_what_nobody_grants_by_chance() -> None:
    found = tool_of(tools(), "mcp__x__y")
    assert found.family == "other" and found.connects and found.scopes == {Scope.RUN_CODE, Scope.CALL_API}


def test_the_scopes_of_the_source_documents() -> None:
    assert tool_of(tools(), "delete_file").scopes == {Scope.DELETE_FS, Scope.WRITE_FS}
    assert tool_of(tools(), "send_email").scopes == {Scope.SEND_EMAIL} and tool_of(tools(), "update_db").action == "write"


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        {"tools": [], "kinds": [{"kind": "x"}]},
        {"tools": [], "kinds": [1]},
        {"tools": [1]},
        {"tools": [{"names": "a", "family": "x"}]},
        {"tools": [{"names": "a", "typo": "b"}]},
    ],
)
def test_mistakes_are_refused(wrong: object) -> None:
    with pytest.raises(UsageProblem):
        read_tools(wrong)


def test_a_name_is_its_words() -> None:
    assert words_of("sendEmails") == words_of("send_emails") == words_of("SEND-EMAIL") == ("send", "email")
    assert words_of("k8s_pods") == ("k8s", "pod") and words_of("runSQL") == ("run", "sql")


def test_names_without_end_are_not_all_kept() -> None:
    known = read_tools({"tools": []})
    for number in range(3000):
        tool_of(known, f"t{number}")
    assert len(known.found) <= 1000
