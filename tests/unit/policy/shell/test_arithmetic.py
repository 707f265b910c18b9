"""Arithmetic of the shell: what is only computed, and what might run a command."""

from __future__ import annotations

import pytest

from console.policy.shell.arithmetic import are_numbers, computed
from console.policy.shell.tokens import cut_tokens

MARK = "${99}"


def is_computed(text: str) -> bool:
    found = computed(text, MARK)
    tokens = cut_tokens(found[0]) if found is not None else None
    return found is not None and tokens is not None and are_numbers(found[1], tokens, MARK)


def test_each_computation_is_one_mark_and_its_names_are_told() -> None:
    assert computed('echo "$((a + 2))" $(( $b*3 ))', MARK) == ('echo "${99}" ${99}', frozenset({"a", "b"}))
    assert computed("echo '$((a))' $((RANDOM % 6))", MARK) == ("echo '$((a))' ${99}", frozenset())


@pytest.mark.parametrize(
    "text",
    [
        *("echo $((2*3))", "n=0; echo $((n+1))", "n=1; n=$((n+1)); echo $((n))", "for n in 1 2; do echo $((n)); done"),
        *("for n in {1..3}; do echo $((n)); done", "export n=-1; echo $((n))"),
    ],
)
def test_numbers_that_the_text_sets_are_computed_with(text: str) -> None:
    assert is_computed(text)


@pytest.mark.parametrize(
    "text",
    [
        *("echo $((n))", "n='a[$(ls)]'; echo $((n))", "n=1; read n; echo $((n))", "echo $((a[$(ls)]))", "n=1; n+=x; echo $((n))"),
        *("for n in a; do echo $((n)); done", "n=1; : ${n:=a}; echo $((n))", "n=1; n=a; echo $((n))", "n[0]=1; n=2; echo $((n))"),
        *(
            "for n in $x; do echo $((n)); done",
            "printf -v n x; n=1; echo $((n))",
            "n=$x; echo $((n))",
            "n=1 env; echo $((n))",
            "make n=1; echo $((n))",
        ),
    ],
)
def test_what_may_hold_more_than_a_number_is_not(text: str) -> None:
    assert not is_computed(text)
