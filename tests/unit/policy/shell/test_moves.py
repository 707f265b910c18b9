"""A text that changes folders: each command is judged where it may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.api.policy import policy_data
from console.domain.calls.permission import Verdict
from console.policy.files.disk import Disk
from console.policy.judge import Call, judge
from console.policy.rules.profiles import Standing
from tests.unit.policy.rules.test_profiles import context, policy

INSIDE = (
    *(
        "cd web && npm test; cd ..",
        "cd web; npm test",
        "(cd web && npm test) && ls",
        "cd web || exit 1; ls",
        "pushd web && npm test && popd",
    ),
    *("for d in web docs; do (cd $d && make); done", "if [ -d web ]; then cd web && make; fi; ls", "cd web && rm -rf ../docs && ls"),
    "cd web && npm test || true",
)
OUTSIDE = (
    # Where the cd fails, or is passed over, these reach out of the workspace.
    *("cd web; rm -rf ../docs", "cd web && ls; rm -rf ../docs", "cd missing || rm -rf ../docs", "true || cd web && rm -rf ../docs"),
    *("if ls; then cd web; fi && rm -rf ../docs", "(cd web && ls); rm -rf ../docs", "cd web | rm -rf ../docs", "cd web & rm -rf ../docs"),
    *("cd web && (cd .. && rm -rf ../x)", "cd $X && ls", "cd; ls", "cd .. && rm -rf x", "(cd .. && rm -rf x) && ls"),
    "cd web; cd a; cd b; cd c; cd d; ls",
)


@pytest.mark.parametrize(("text", "is_inside"), [(text, text in INSIDE) for text in INSIDE + OUTSIDE])
def test_each_command_is_judged_in_every_folder_it_may_run_in(text: str, is_inside: bool, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    for folder in ("web", "docs"):
        (workspace / folder).mkdir(parents=True)
    made = context(policy("coding", str(workspace)), Disk(), Standing.CONTAINED)
    assert (judge(Call("Bash", text), made).verdict is Verdict.ALLOW) is is_inside


def test_rules_without_programs_of_the_workspace_need_a_sure_cd() -> None:
    assert policy_data.profile("strict").work == frozenset()
    made = context(policy("strict"), Disk(), Standing.CONTAINED)
    assert {judge(Call("Bash", text), made).verdict for text in ("cd web; ls", "cd web && ls || ls", "cd web || ls")} == {Verdict.DENY}


@pytest.mark.parametrize("standing", list(Standing))
@pytest.mark.parametrize(
    "text",
    [
        *("for f in ou*; do cat $f/x; done", "for f in ou*; do rm -rf $f/x; done", "for f in ou*; do echo a > $f/x; done"),
        *("for f in ou*; do touch $f/x; done", "for f in o*t; do cp a.txt $f; done", "for d in */*; do git -C $d log; done"),
        *("for d in we*; do (cd $d && git status); done", 'for d in we*; do git -C "$d" status; done'),
        "for f in ou*; do python3 $f/x.py; done",
    ],
)
def test_a_name_that_a_loop_finds_by_a_pattern_is_not_the_folder_it_is_looked_for_in(text: str, standing: Standing, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "web").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    made = context(policy("coding", str(workspace)), Disk(), standing)
    assert judge(Call("Bash", text), made).verdict is Verdict.ASK
    assert judge(Call("Bash", 'for f in we*; do echo "$f"; echo $f; done'), made).verdict is not Verdict.DENY
