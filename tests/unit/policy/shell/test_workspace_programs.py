"""Which programs run what the agent can write, and which texts around them are read."""

from __future__ import annotations

import pytest

from console.policy.files.paths import FileRules, Once
from console.policy.rules.profiles import Profile
from console.policy.shell.commands import find_program
from console.policy.shell.workspace_programs import WorkspacePrograms, script_of
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import catalogue, rules

SETTINGS = rules(allow=["file(read:${WORKSPACE}/**)"])
PROFILE = Profile("coding", "t", "w", {}, work=frozenset({"make", "python", "bash"}))


def made(profile: Profile | None = PROFILE) -> WorkspacePrograms:
    return WorkspacePrograms(profile, "/workspace", FileRules(SETTINGS), Once(PolicyDisk()), catalogue())


def runs(*argv: str, of: WorkspacePrograms | None = None) -> bool:
    return (of or made()).runs(argv, find_program(argv[0], "/workspace", PolicyDisk()), "/workspace")


def test_a_program_of_the_list_or_in_the_workspace_runs_what_the_agent_writes() -> None:
    assert runs("make", "all") and runs("python3.11", "x.py") and runs("./run.sh") and runs("bash", "run.sh") and runs("bash", "-c", "ls")
    assert not runs("bash") and not runs("bash", "-s"), "what it reads from its input, nobody has seen"
    assert not runs("rocket") and not runs("/opt/tool/make-it") and not runs("../workspace-evil/x")
    assert not runs("./mycurl", "e"), "a link out of the workspace is what it leads to"
    assert not runs("make", of=made(None))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("A=1 B=x/y make all", ("make all", False)),
        ("A=$(id) make", ("", False)),
        ("A='x y' make", ("", False)),
        ("git commit -m \"$(cat <<'EOF'\nit's $HOME\nEOF\n)\" && ls", ("git commit -m 'it'\"'\"'s $HOME' && ls", True)),
        ("bash -c 'x \"$(cat <<'EOF'\n$(id)\nEOF\n)\"'", ("", False)),
        ('git commit -m "$(cat <<EOF\n$(id)\nEOF\n)"', ("", False)),
    ],
)
def test_a_text_is_made_plainer_only_where_it_means_the_same(text: str, plain: tuple[str, bool]) -> None:
    assert made().plainer(text) == plain
    assert made(None).plainer(text) == ("", False)


def test_the_script_of_a_shell() -> None:
    assert script_of(("sh", "-ec", "ls")) == "ls" and script_of(("sh", "x.sh")) == ""
