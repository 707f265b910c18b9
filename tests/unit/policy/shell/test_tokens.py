"""A text of the shell cut into words: ``case`` becomes a group of all that its patterns lead to."""

from __future__ import annotations

import pytest

from console.policy.shell.tokens import cut_tokens, may_show


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a 'b c' >d", ["a", "'b c'", ">", "d"]),
        ("case $1 in a|b*) ls -l;; *) esac; c", ["echo", "x", ";", "{", "ls", "-l", ";", "true", ";", "true", ";", "}", ";", "c"]),
        ("case a in\n (a)\n ls\n ;;\nesac", ["echo", "a", ";", "{", "ls", ";", "true", ";", "}"]),
        (
            "case a in a) case b in b) c;; esac;; esac",
            ["echo", "a", ";", "{", "echo", "b", ";", "{", "c", ";", "true", ";", "}", ";", "true", ";", "}"],
        ),
        ("echo case a in", ["echo", "case", "a", "in"]),
    ],
)
def test_a_text_is_cut(text: str, tokens: list[str]) -> None:
    assert cut_tokens(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        *(
            "case a in a) ls;& b) rm c;; esac",
            "case a in a) ls;;& *) rm c;; esac",
            "case a in @(a|b)) ls;; esac",
            "case a in `ls`) ls;; esac",
        ),
        *("case a in $b) ls;; esac", "case a in a) ls;;", "case a", "ls;;", "case a in (esac) ls;; esac", "case a in a|) ls;; esac"),
    ],
)
def test_what_is_not_certain_is_not_cut(text: str) -> None:
    assert cut_tokens(text) is None


def test_a_builtin_that_may_evaluate_a_word_only_compares_it_at_certain_places() -> None:
    for words, at in (
        *((["echo", "-v", "$x"], 2), (["[[", "$x", "==", "a", "]]"], 1), (["printf", "'%s'", "$x"], 2), (["printf", "--", "$x"], 2)),
        *((["[", '"$x"', "]"], 1), (["test", "-n", '"$x"'], 2), (["[", "!", '"$x"', "=", "a", "]"], 2)),
    ):
        assert may_show(words, at), words
    for words, at in (
        *((["[", "$x", "]"], 1), (["[", '"$x"', '"$y"', "]"], 1), (["test", "-v", '"$x"'], 2), (["[", '"$x"', "-a", '"$y"', "]"], 1)),
        *((["printf", "$x"], 1), (["printf", "-v", "$x"], 2), (["[", "$x", "=", "a", "]"], 1)),
    ):
        assert not may_show(words, at), words
