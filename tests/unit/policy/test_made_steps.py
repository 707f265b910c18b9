"""What is executed: the file that was judged, with the variables that keep it, and what it runs in its turn, from running others."""

from console.policy.rules.verdicts import Redirect
from console.policy.shell.check import DEPTH, StepMaker
from console.policy.shell.commands import find_program
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import catalogue

DISK = PolicyDisk()
MAKER = StepMaker(catalogue(), DISK)


def environment(*argv: str, depth: int = 0) -> dict[str, str]:
    return dict(MAKER.environment(argv, find_program(argv[0], "/workspace", DISK), "/workspace", depth))


def test_a_step_is_the_file_as_it_was_looked_at() -> None:
    curl = find_program("curl", "/workspace", DISK)
    step = MAKER.made(("curl", "-I", "https://h"), curl, "/workspace", "&&", (Redirect(1, "/workspace/a", "write"),))
    assert (step.argv, step.program, step.cwd, step.joined) == (("curl", "-I", "https://h"), "/usr/bin/curl", "/workspace", "&&")
    assert step.file is not None and step.file[:2] == DISK.inodes["/usr/bin/curl"]
    nobody = MAKER.made(("nothing-of-this-name",), find_program("nothing-of-this-name", "/workspace", DISK), "/workspace")
    assert (nobody.program, nobody.file, nobody.environment) == ("", None, ())


def test_variables_are_those_of_the_program_and_of_whatever_it_runs_but_not_without_end() -> None:
    own = environment("git", "log")
    assert own["GIT_CONFIG_GLOBAL"] == "/dev/null"
    assert environment("timeout", "5", "nice", "git", "log") == own
    assert environment("timeout", "5", "cat", "a.txt") == {} == environment("cat", "a.txt")
    assert environment("timeout", "5", "git", "log", depth=DEPTH) == own
    assert environment("timeout", "5", "git", "log", depth=DEPTH + 1) == {}
