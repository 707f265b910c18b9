from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.errors import UsageProblem
from console.policy.files.glob_index import Sieve
from console.policy.rules.rule import Rule, read_rule
from tests.fakes.policy_world import catalogue

PATHS = ["/w/.git", "/w/.git/", "/w/.git/a/b", "/w/.gitx", "/w/a.pem", "/w/.env.local", "/w/.env.x", "/.env", "/w/.env\n", "/w/.pem", "/"]


def rule(glob: str, workspace: str = "/w") -> Rule:
    return read_rule(f"file(read:{glob})", "here", {"WORKSPACE": workspace})


def slow(rules: list[Rule], *spellings: str) -> Rule | None:
    return next((one for one in rules if any(one.covers_path(path) for path in spellings)), None)


def test_it_finds_the_first_rule_that_covers_one_of_the_spellings() -> None:
    rules = [rule(glob) for glob in ("**/*.pem", "**/.git/**", "**/.git", "**/.env.{local,test}", "**/.env", "/**")]
    for path in PATHS:
        assert Sieve(rules).first((path,)) is slow(rules, path), path
        assert Sieve(rules[:-1]).first((path, path + "/")) is slow(rules[:-1], path, path + "/"), path
    assert Sieve([]).first(PATHS) is None


def test_a_path_is_held_against_few_of_many_globs() -> None:
    made = Sieve(rule(glob) for glob in catalogue().protected)
    assert len(made._near("/workspace/logs/app.log")) <= 3 and made.first(("/w/.ssh/id",)) and made.first(("/w/x/pip.conf",))


PIECES = st.sampled_from(["**", "*", "a", ".env", "a*", "*.pem", "a?b", "[ab]c", "[!a]", "x[", "{a,b}", "{a,b/c}", "{a..c}", "{a}", "{,a}",
                          "\\a", "\\*", "\\{a,b\\}", "a\\", "a\\\\*", ".", "a]", "a}", "{a", "é", "+(a)", "a b", "\\[x", "a-[0-9]",
                          "-"])  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c", ".env", "a.pem", ".pem", "aXb", "bc", "*", "{a,b}", "x[", "a]", "a}", "{a", "", "a b", "é", "+(a)",
                         "x", "[x", "a-1", "-", "{a}", "a\\", "a\n"])  # fmt: skip


@given(st.lists(st.lists(PIECES, min_size=1, max_size=4), min_size=1, max_size=3), st.lists(NAMES, max_size=5), st.booleans())
def test_it_never_leaves_out_a_rule_that_covers(globs: list[list[str]], names: list[str], deep: bool) -> None:
    rules = []
    for pieces in globs:
        try:
            rules.append(rule(("**/" if deep else "/") + "/".join(pieces)))
        except UsageProblem:
            continue
    path = "/" + "/".join(names)
    assert Sieve(rules).first((path,)) is slow(rules, path)


@pytest.mark.parametrize(
    ("glob", "path"),
    [("/a\\/**", "/a/x"), ("/a\\/b*", "/a/bc"), ("/a\\\\*", "/a\\x"), ("/a\\\\*/x", "/a\\b/x"), ("/a\\", "/a"), ("/a", "/a\n")],
)
def test_an_escaped_letter_or_a_last_line_end_leads_where_the_glob_does(glob: str, path: str) -> None:
    made = rule(glob)
    assert made.covers_path(path) and Sieve([made]).first((path,)) is made and f"{path.strip()}/".startswith(made.stem.rstrip("/") + "/")


@pytest.mark.parametrize("workspace", ["/srv/x{y,z}", "/srv/a*b", "/srv/[ab]", "/srv/a\\b", "/srv/a\n"])
def test_a_workspace_with_magic_in_its_name_is_that_one(workspace: str) -> None:
    try:
        rules = [rule("${WORKSPACE}/**", workspace), rule("${WORKSPACE}/*.key", workspace)]
    except UsageProblem:
        return
    for name in ("a.key", "b/c.key", ""):
        path = f"{workspace}/{name}"
        assert Sieve(rules).first((path,)) is slow(rules, path) is not None, path
