"""What the shell would put in place of words: every command that prints it is among those that are judged."""

from __future__ import annotations

import pytest

from console.policy.shell.plain import plainer
from console.policy.shell.substituted import are_numbers, computed
from console.policy.shell.tokens import cut_tokens

MARK = "${99}"


@pytest.mark.parametrize(
    "text",
    [
        *("echo $(rm a)", 'echo "$(rm a)"', "x=$(rm a)", "export x=$(rm a); ls", "[ -n \"$(rm a)\" ]", "diff <(rm a) b"),
        "for f in $(find . -name \"$(rm a)\"); do ls; done",
        *("echo $(echo $(rm a))", "echo \"$(echo \"$(rm a)\")\"", "cd b && echo $(rm a)", "if [ $(rm a) ]; then ls; fi"),
        "echo $(ls | (rm a))",
        *("ls | while read -r f; do echo $(rm a) $f; done", "echo $(rm a > /dev/null; ls)", "x=1 y=$(rm a) make", "cat < <(rm a)"),
    ],
)  # fmt: skip
def test_a_command_that_runs_for_its_output_is_never_lost(text: str) -> None:
    found = plainer(text)
    assert found is None or " rm a " in f" {found.text} ", found


@pytest.mark.parametrize(
    "text",
    [
        "echo $(case x in x) rm a;; esac)",
        *("echo $(ls # )\nrm a)", "echo $(cat <<E\n)\nE\nrm a)", "echo $((1+a[$(ls)]))", "echo $(`rm a`)"),
        *("echo $(echo '\ue0000\ue001')", "$(ls)", "$(ls) a", "sh -c $(ls)", "ls > $(cat a)", "rm <(ls)", "tee >(ls)"),
        "echo " + "$(ls)" * 20,
        *("echo $(echo $(echo $(echo $(echo $(ls)))))", "cat <<E\n$(ls)\nE", "cp a $(git rev-parse /etc/passwd)",),
        "cat $(git rev-parse --git-dir)",
    ],
)  # fmt: skip
def test_what_is_not_certain_is_left_as_it_is(text: str) -> None:
    assert plainer(text) is None


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
