"""settings.json is read strictly: in doubt it is refused, with what and where."""

from pathlib import Path

import pytest

from console.domain.errors import UsageProblem
from console.policy.rules.loading import read_settings

GOOD = b'{"permissions": {"allow": ["shell(ls:*)"], "deny": ["shell(curl:*)"]}}'
SEED = Path(__file__).resolve().parents[3] / "data" / "policy" / "settings.json"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"{}", "permissions"),
        (b"[]", "a list"),
        (b"null", "missing"),
        (b'{"permissions": {}}', "no rule"),
        (b'{"permissions": {"allow": []}}', "no rule"),
        (b'{"permissions": []}', "a list"),
        (b'{"permissions": {"allow": "shell(ls:*)"}}', "a string"),
        (b'{"permissions": {"allow": [1]}}', r"allow\[0\]"),
        (b'{"permissions": {"alow": ["shell(ls:*)"]}}', "alow"),
        (b'{"permissons": {}}', "permissons"),
        (b'{"permissions": {"allow": ["shell(ls:*)"], "allow": ["shell(id:*)"]}}', "twice"),
        (b'{"permissions": {"deny": ["shell(a:*)"]}, "permissions": {"allow": ["shell(a:*)"]}}', "twice"),
        (b'{"permissions": {"allow": ["shell(ls:*)"], "unconfined": ["shell(bash:*)"]}}', "unconfined"),
        (b'{"permissions": {"allow": ["shell(ls:*)"], "unconfined": "x"}}', "unconfined"),
        (GOOD[:-1], "line 1"),
        (GOOD + b"x", "Extra"),
        (b"\xff" + GOOD, "UTF-8"),
        (b"\xef\xbb\xbf" + GOOD, "BOM|Expecting"),
        (b'{"permissions": {"allow": [NaN]}}', "NaN"),
        (b'{"context_workspace": "work", "permissions": {"allow": ["shell(ls:*)"]}}', "context_workspace"),
        (b'{"context_workspace": "/", "permissions": {"allow": ["shell(ls:*)"]}}', "workspace"),
        (b'{"context_workspace": "/a/../b", "permissions": {"allow": ["shell(ls:*)"]}}', "context_workspace"),
        (b"[" * 100_000, "cannot be read|line"),
        (b" " * (1024 * 1024 + 1), "bytes"),
    ],
)
def test_what_is_not_certain_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(UsageProblem, match=words):
        read_settings(data)


def test_a_good_file() -> None:
    read = read_settings(GOOD)
    assert [rule.text for rule in read.allow] == ["shell(ls:*)"] and [rule.text for rule in read.deny] == ["shell(curl:*)"]
    assert read.workspace == "/workspace"


def test_the_mark_reaches_the_rule_it_names_only() -> None:
    read = read_settings(b'{"permissions": {"allow": ["shell(bash:*)", "shell(sh:*)"], "unconfined": ["shell(bash:*)"]}}')
    assert [rule.unconfined for rule in read.allow] == [True, False]


def test_the_source_documents_example_loads() -> None:
    read = read_settings(SEED.read_bytes(), "ctx-abc123")
    assert read.workspace == "/workspace/ctx-abc123"
    assert (len(read.allow), len(read.deny)) == (39, 16)
    assert read_settings(SEED.read_bytes(), "c1", "/srv/w/").workspace == "/srv/w"


@pytest.mark.parametrize("context_id", ["x/../../precious", "y /p", "$(id)", "-rf", "a\0", "a" * 300, ".", "..", "\u0430bc", "A"])
def test_a_hostile_context_id_is_refused(context_id: str) -> None:
    with pytest.raises(UsageProblem):
        read_settings(GOOD, context_id)


def test_without_a_session_its_variable_matches_none() -> None:
    read = read_settings(b'{"permissions": {"allow": ["file(read:/w/${CONTEXT_ID}/**)"]}}')
    assert read.allow[0].covers_path("/w/-/x") and not read.allow[0].covers_path("/w/c1/x")
