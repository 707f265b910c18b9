"""Which programs run what the agent can write, and which texts around them are read."""

from __future__ import annotations

from console.policy.files.paths import FileRules, Once
from console.policy.rules.profiles import Profile
from console.policy.shell.commands import find_program
from console.policy.shell.fronts import Started
from console.policy.shell.lines import simple_commands
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


def test_a_text_is_rewritten_only_where_a_profile_allows_programs_of_the_workspace() -> None:
    plain = made().plainer("A=1 make", "/workspace")
    assert plain is not None and plain.text == "make" and made(None).plainer("A=1 make", "/workspace") is None


def test_the_script_of_a_shell() -> None:
    assert script_of(("sh", "-ec", "ls")) == "ls" and script_of(("sh", "x.sh")) == ""


def test_the_names_that_a_pattern_means_take_its_place_but_never_all_of_the_workspace() -> None:
    def expanded(text: str, cwd: str = "/workspace") -> tuple[str, ...] | None:
        return made().expanded(simple_commands(text)[0].words, cwd)

    assert expanded("rm logs/* data/x.*") == ("rm", "logs/app.log", "data/x.csv")
    assert expanded("rm *", "/workspace/logs") == ("rm", "app.log") and expanded("rm [ab].txt") == ("rm", "a.txt", "b.txt")
    assert expanded("rm none*") == ("rm", "none*"), "the shell leaves a pattern that means nothing as it is"
    assert expanded("cat d*/x.csv l*/i?/*") == ("cat", "data/x.csv", "links/in/x.csv"), "links are passed on the way"
    assert expanded("ls da*/") == ("ls", "data/")
    for text in (
        "rm *",
        "rm **",
        "rm ?*",
        "rm ./*",
        "rm */*",
        "rm 'a'*",
        "rm a.txt",
        "rm [[:lower:]]*",
        "rm [^b]*",
        "rm .*",
        "cat d*/../a",
    ):
        assert expanded(text) is None, text
    assert made(None).expanded(simple_commands("rm logs/*")[0].words, "/workspace") is None


def test_a_program_that_would_be_fetched_is_started_where_it_is_known_or_installed() -> None:
    def started(line: str) -> Started:
        return made().started(tuple(line.split()), find_program("npx", "/workspace", PolicyDisk()), "/workspace")

    assert started("npx make all").inner == ("make", "all")
    assert started("npx cowsay").asks and started("npx make@1").asks
