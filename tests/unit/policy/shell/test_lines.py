"""Two readings that must agree, and an allowlist of what may be in a line at all."""

import pytest

from console.policy.shell.lexer import Refused
from console.policy.shell.lines import simple_commands


def shape(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(simple.joined, simple.argv) for simple in simple_commands(text)]


def test_every_simple_command_is_there_with_its_operator() -> None:
    assert shape("a 1 && b || c | d |& e; f\ng") == [
        ("", ("a", "1")),
        ("&&", ("b",)),
        ("||", ("c",)),
        ("|", ("d",)),
        ("|&", ("e",)),
        (";", ("f",)),
        (";", ("g",)),
    ]
    assert shape("\n# x\nls # y\n\npwd\n") == [("", ("ls",)), (";", ("pwd",))]
    assert [simple.behind for simple in simple_commands("a & b")] == [True, False]


def test_words_after_a_redirect_belong_to_the_command() -> None:
    [simple] = simple_commands("2>e a >o b")
    assert simple.argv == ("a", "b") and [target.word.value for target in simple.targets] == ["e", "o"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "#x",
        "a |",
        "a &&",
        "| a",
        "; a",
        "& a",
        "> f",
        "FOO=1",
        "FOO=1 a",
        "a[0]=1 b",
        "A+=x b",
        "! a",
        "{ a; }",
        "if a; then b; fi",
        "for x in a; do b; done",
        "while a; do b; done",
        "case a in b) c;; esac",
        "function f { a; }",
        "f() { a; }",
        "[[ a ]]",
        "coproc a",
        "export A=b",
        "declare x",
        "unset x",
        "'' a",
        "*x a",
        "~/x a",
        "echo a\\\n b 'c'\\\nd",
        "a;" * 65,
        "select x in y; do z; done",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        simple_commands(text)


def test_reserved_words_are_words_when_they_are_quoted_or_arguments() -> None:
    assert shape("'if' x") == [("", ("if", "x"))]
    assert shape("echo if then done") == [("", ("echo", "if", "then", "done"))]


def test_places_are_compared_in_bytes() -> None:
    assert shape("écho 'ü' é ; b") == [("", ("écho", "ü", "é")), (";", ("b",))]
