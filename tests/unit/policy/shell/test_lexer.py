"""Words as bash makes them, and what is refused because bash would do more."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.policy.shell.lexer import Operator, Refused, Target, Word, check_text, cut


def words(text: str) -> list[str]:
    return [token.value for token in cut(text) if isinstance(token, Word)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("c''url", ["curl"]),
        ("cu\\rl", ["curl"]),
        ("'a b'\"c d\"e", ["a bc de"]),
        ("a\\ b", ["a b"]),
        ('"a\\"b\\\\c\\$d\\x"', ['a"b\\c$d\\x']),
        ("'a'\\''b'", ["a'b"]),
        ("a\\\nb", ["ab"]),
        ('"a\\\nb"', ["ab"]),
        ("a # b", ["a"]),
        ("a#b", ["a#b"]),
        ("''", [""]),
        ("x$", ["x$"]),
        ('"x$"', ["x$"]),
        ("'$x`y`'", ["$x`y`"]),
        ("{}", ["{}"]),
        ("=a", ["=a"]),
    ],
)
def test_quotes_are_removed_as_bash_does(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "$x",
        "${x}",
        "$(x)",
        "`x`",
        "$'x'",
        '$"x"',
        '"$x"',
        '"$(x)"',
        '"`x`"',
        "$((1))",
        "$[1]",
        "{a,b}",
        "{1..2}",
        "<(x)",
        ">(x)",
        "<<E",
        "<<<x",
        "<>x",
        "(x)",
        "x(",
        ")",
        "'",
        '"',
        "x\\",
        "3>x",
        "10>x",
        "{fd}>x",
        ">",
        "> ;",
        ";;",
        "$@",
        "$1",
        "$\\\nx",
    ],
)
def test_what_is_not_static_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        cut(text)


@pytest.mark.parametrize(
    "char", ["\0", "\r", "\x0b", "\x1b", "\x7f", "\x85", "\u00a0", "\u2028", "\u202e", "\u200b", "\ufeff", "\ud800", "\ue000"]
)
def test_characters_that_are_read_otherwise_than_they_look(char: str) -> None:
    with pytest.raises(Refused):
        check_text(f"ls {char}x")


def test_size_is_judged_before_anything_is_read() -> None:
    check_text("x" * 8192)
    for text in ("x" * 8193, "(" * 10_000, "é" * 5000, "a" * 1_000_000):
        with pytest.raises(Refused, match="bytes"):
            check_text(text)


def test_operators_and_redirects() -> None:
    kinds = [token.text for token in cut("a && b || c | d |& e; f & g\nh") if isinstance(token, Operator)]
    assert kinds == ["&&", "||", "|", "|&", ";", "&", "\n"]
    redirects = [(t.operator, t.descriptor, t.word.value) for t in cut("a >b 2>>c <d >|e &>f 2>&1 2>&-") if isinstance(t, Target)]
    assert redirects == [
        (">", None, "b"),
        (">>", 2, "c"),
        ("<", None, "d"),
        (">|", None, "e"),
        ("&>", None, "f"),
        (">&", 2, "1"),
        (">&", 2, "-"),
    ]


def test_what_the_shell_would_put_in_is_marked() -> None:
    [plain, pattern, quoted, home, inner] = [token for token in cut("a *.py '*' ~/x a=~") if isinstance(token, Word)]
    assert (plain.pattern, pattern.pattern, quoted.pattern) == (False, True, False)
    assert home.tilde and inner.tilde and not plain.tilde


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab '\"\\\t#=~/.-%@+,:{}", max_size=14))
def test_bash_makes_the_same_words_of_what_is_not_refused(text: str) -> None:
    try:
        found = [token for token in cut(f"printf '<%s>' {text}") if isinstance(token, Word)]
    except Refused:
        return
    if any(word.tilde or word.pattern for word in found):
        return
    asked = subprocess.run(
        ["bash", "--norc", "-c", f"printf '<%s>' {text}"], capture_output=True, text=True, env={"LC_ALL": "C.UTF-8"}, check=True
    )
    assert asked.stdout == "".join(f"<{word.value}>" for word in found[2:]) or (not found[2:] and asked.stdout == "<>")
