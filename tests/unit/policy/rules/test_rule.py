"""Rules as they are written, and what is no rule."""

import pytest

from console.domain.errors import UsageProblem
from console.policy.rules.rule import Rule, read_rule

KNOWN = {"WORKSPACE": "/work [x]", "CONTEXT_ID": "c1"}


def rule(text: str) -> Rule:
    return read_rule(text, "here", KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "shell",
        "shell()",
        "shell(*.py)",
        "shell(gr*p:*)",
        "Shell(ls)",
        "file(/x)",
        "file(chmod:/x)",
        "file(read:x)",
        "file(read:/a/../b)",
        "file(read:!/a)",
        "file(read:/**/**/**/**/**/x)",
        "file(read:${HOME}/x)",
        "file(read:${WORKSPACE/x)",
        "network(x)",
        "network(inbound:x)",
        "network(outbound:a b)",
        "network(outbound:)",
        "shell(a\nb)",
        "shell(\u202e:*)",
        "shell(" + "x" * 2000 + ")",
        "file(read:/{a,b}{c,d}{e,f})",
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(UsageProblem, match="^here"):
        rule(text)


@pytest.mark.parametrize("value", [None, 1, True, [], {}])
def test_a_rule_is_a_string(value: object) -> None:
    with pytest.raises(UsageProblem):
        read_rule(value, "here", KNOWN)


def test_shell_words_and_their_end() -> None:
    assert (rule("shell(git status:*)").words, rule("shell(git status:*)").open_end) == (("git", "status"), True)
    assert (rule("shell(git status)").words, rule("shell(git status)").open_end) == (("git", "status"), False)
    assert rule("shell(*)").words == () and rule("shell(*:*)").words == ()
    assert rule("shell(rm -rf /*:*)").words == ("rm", "-rf", "/*")


def test_globs_stay_in_their_folder_and_variables_are_no_globs() -> None:
    assert rule("file(read:${WORKSPACE}/**)").covers_path("/work [x]/a/b")
    assert not rule("file(read:${WORKSPACE}/**)").covers_path("/work x/a")
    assert not rule("file(read:/w/**)").covers_path("/w-evil/x")
    assert not rule("file(read:/w/**)").covers_path("/w/../etc")
    assert rule("file(read:/w/*)").covers_path("/w/.hidden") and not rule("file(read:/w/*)").covers_path("/w/a/b")
    assert rule("file(read:/w/{a,b}.txt)").covers_path("/w/b.txt")
    assert rule("file(read:**/.env)").covers_path("/a/b/.env")


def test_the_source_documents_end_of_a_glob_means_nothing() -> None:
    assert rule("file(write:/etc/**:*)").covers_path("/etc/x") and rule("file(read:/etc/shadow:*)").covers_path("/etc/shadow")


@pytest.mark.parametrize(
    ("text", "folder", "yes"),
    [
        ("/w/secret/**", "/w", True),
        ("/w/secret", "/w", True),
        ("/w/secret", "/x", False),
        ("**/.env", "/x", True),
        ("/w/*.key", "/w", True),
        ("/w/*.key", "/w/a/b", False),
        ("/w/**/k", "/w/a/b", True),
        ("/etc/shadow", "/", True),
        ("/w/secret", "/w/secret2", False),
    ],
)
def test_what_may_lie_below_a_folder(text: str, folder: str, yes: bool) -> None:
    assert rule(f"file(read:{text})").may_lie_below(folder) is yes


def test_hosts() -> None:
    assert rule("network(outbound:*)").covers_host("x.example", 443)
    under = rule("network(outbound:*.example.com)")
    assert under.covers_host("a.example.com", None) and not under.covers_host("example.com", None)
    assert not under.covers_host("evilexample.com", None)
    port = rule("network(outbound:Example.com:8443)")
    assert port.covers_host("example.com", 8443) and not port.covers_host("example.com", 443)
