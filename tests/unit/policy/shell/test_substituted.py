"""What the shell would put in place of words: every command that prints it is among those that are judged."""

from __future__ import annotations

import pytest

from console.policy.shell.plain import plainer


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
