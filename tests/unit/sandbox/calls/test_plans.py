"""What of a judged call is carried, and what is refused in words. Nothing is ever given to a shell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.errors import Denied, UsageProblem
from console.policy.rules.verdicts import Redirect, Step
from console.sandbox.calls.plans import CODE_BYTES, STEPS_MAX, plan_of
from console.sandbox.calls.steps import CODE_FD

WS = Path("/w/one")
STEP = Step(("cat", "a"), "/usr/bin/cat", "/w/one", file=(1, 2, 3))


def test_steps_are_carried_as_they_were_judged() -> None:
    step = replace(STEP, redirects=(Redirect(1, "/w/one/b", "write"), Redirect(2, mode="copy", source=1)), environment=(("A", "b"),))
    made = plan_of("shell", "cat a > b 2>&1", (step,), WS)
    assert made.programs == ["/usr/bin/cat"] and made.code is None and not made.warnings
    assert made.steps[0]["file"] == [1, 2, 3] and made.steps[0]["environment"] == [["A", "b"]]
    assert [one["mode"] for one in made.steps[0]["redirects"]] == ["write", "copy"]


@pytest.mark.parametrize(
    ("argument", "step", "word"),
    [
        ("cat a & cat b", STEP, "background"),
        ("for i in a; do cat $i; done", STEP, "expansion"),
        ("cat $(ls)", STEP, "substitution"),
        ("cat <<X\na\nX", STEP, "here-document"),
        ("f() { cat a; }", STEP, "function"),
        ("cat a", replace(STEP, program=""), "no program"),
        ("cat a", replace(STEP, file=None), "no program"),
        ("cat a", replace(STEP, program="/opt/cat"), "/opt/cat"),
        ("cat a", replace(STEP, program="/usr/../opt/cat"), "opt/cat"),
        ("cat a", replace(STEP, cwd="/home/ann"), "/home/ann"),
        ("cat a > /w/one-evil/b", replace(STEP, redirects=(Redirect(1, "/w/one-evil/b", "write"),)), "outside of the workspace"),
        ("cat a > b", replace(STEP, redirects=(Redirect(1, "", "append"),)), "nowhere certain"),
        ("cat a > b", replace(STEP, redirects=(Redirect(7, "/w/one/b", "write"),)), "descriptor 7"),
        ("cat a", None, "no step"),
    ],
)
def test_what_is_not_carried_is_named(argument: str, step: Step | None, word: str) -> None:
    with pytest.raises(Denied, match=word):
        plan_of("shell", argument, (step,) if step else (), WS)


def test_too_many_steps_and_unknown_tools() -> None:
    with pytest.raises(Denied, match="more than"):
        plan_of("argv", "[]", (STEP,) * (STEPS_MAX + 1), WS)
    with pytest.raises(UsageProblem):
        plan_of("write_file", "a", (STEP,), WS)


def test_dev_null_may_be_written() -> None:
    step = replace(STEP, redirects=(Redirect(2, "/dev/null", "write"),))
    assert plan_of("shell", "cat a 2> /dev/null", (step,), WS).steps


def test_code_comes_from_a_descriptor_and_risky_words_are_a_warning_alone() -> None:
    step = Step(("python3", "-c", "code"), "/usr/bin/python3", "/w/one", file=(1, 2, 3))
    made = plan_of("python", "import subprocess; eval('1')", (step,), WS)
    assert made.steps[0]["argv"] == ["python3", "-I", CODE_FD] and made.code == b"import subprocess; eval('1')"
    assert made.warnings == ("the code names eval", "the code names subprocess")
    with pytest.raises(Denied, match="bytes"):
        plan_of("python", "#" * (CODE_BYTES + 1), (step,), WS)
