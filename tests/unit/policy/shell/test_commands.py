"""Allow rules match narrowly, deny rules widely."""

import pytest

from console.policy.files.paths import Facts
from console.policy.shell.commands import CommandRules, find_program
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import catalogue, rules

DISK = PolicyDisk()
W = "/workspace"


@pytest.mark.parametrize(
    ("called", "name", "real", "in_search"),
    [
        ("grep", "grep", "/usr/bin/grep", True),
        ("/bin/grep", "grep", "/usr/bin/grep", True),
        ("./grep", "curl", "/usr/bin/curl", False),
        ("mycurl", "mycurl", "", True),
        ("./mycurl", "curl", "/usr/bin/curl", False),
        ("awk", "awk", "/usr/bin/awk-real", True),
        ("./run.sh", "run.sh", "/workspace/run.sh", False),
        ("./nothing", "nothing", "/workspace/nothing", False),
        ("/proc/self/root/usr/bin/curl", "curl", "/usr/bin/curl", True),
    ],
)
def test_a_name_is_the_file_it_is(called: str, name: str, real: str, in_search: bool) -> None:
    found = find_program(called, W, DISK)
    assert (found.name, found.real, found.in_search) == (name, real, in_search)


def allows(rule: str, line: str, words: str | None = None) -> bool:
    argv = line.split()
    given = None if words is None else words.split()
    return CommandRules(rules(allow=[rule])).allowing(find_program(argv[0], W, DISK), argv, given, W, DISK) is not None


def denies(rule: str, line: str, words: str | None = None) -> bool:
    argv = line.split()
    given = None if words is None else words.split()
    return CommandRules(rules(deny=[rule])).forbidding("deny", find_program(argv[0], W, DISK), argv, given, W, DISK) is not None


def test_allow_is_narrow() -> None:
    assert allows("shell(grep:*)", "grep x") and allows("shell(grep:*)", "grep") and allows("shell(grep:*)", "/usr/bin/grep x")
    assert not allows("shell(grep:*)", "./grep x") and not allows("shell(grep:*)", "egrep x") and not allows("shell(grep:*)", "./run.sh")
    assert allows("shell(git status:*)", "git -C x status", "status") and not allows(
        "shell(git status:*)", "git -C x push status", "push status"
    )
    assert allows("shell(git status)", "git status") and not allows("shell(git status)", "git status -s", "status")
    assert (
        allows("shell(./run.sh:*)", "./run.sh a")
        and allows("shell(/workspace/run.sh:*)", "./run.sh")
        and not allows("shell(./run.sh:*)", "run.sh")
    )
    assert not allows("shell(curl:*)", "./curl x"), "a file of the same name in the workspace"
    assert not allows("shell(curl:*)", "./hardcurl x") and allows("shell(*)", "./run.sh")


def test_a_rule_denies_by_a_link_that_leads_to_the_program() -> None:
    assert denies("shell(awk:*)", "awk-real x") and denies("shell(awk:*)", "/usr/bin/awk-real x") and not denies("shell(awk:*)", "cat x")


def test_a_rule_for_a_path_denies_what_is_not_there_yet() -> None:
    assert denies("shell(./tool:*)", "./tool x") and denies("shell(/workspace/tool:*)", "./tool") and not denies("shell(./tool:*)", "tool")


class Stamped(PolicyDisk):
    """Its folders say when they changed, as those of a disk do; it counts how often a program's name is looked at."""

    changed, looked = 1, 0

    def look(self, path: str) -> Facts:
        self.looked += path.endswith("/vi")
        return super().look(path)

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        return (id(self), self.changed)


def test_which_names_lead_elsewhere_is_found_out_anew_when_a_folder_of_programs_changes() -> None:
    disk = Stamped()
    made = CommandRules(rules(deny=["shell(vi:*)", "shell(awk:*)"]))

    def denied(line: str) -> bool:
        return made.forbidding("deny", find_program(line, W, disk), (line,), (), W, disk) is not None

    assert not denied("vim") and disk.looked
    disk.looked = 0
    assert not denied("vim") and not disk.looked, "nothing changed: a name that was missing is not looked at again"
    disk.links["/usr/bin/vi"], disk.changed = "/usr/bin/vim", 2
    assert denied("vim"), "the folder has a new entry"
    disk.links["/usr/bin/vi"] = "/usr/bin/cat"
    assert denied("cat") and not denied("vim"), "where a link leads is never remembered"


def test_deny_is_wide() -> None:
    for line in ("curl x", "/usr/bin/curl", "./mycurl x", "./grep x", "./hardcurl x", "/workspace/data/../mycurl"):
        assert denies("shell(curl:*)", line), line
    assert not denies("shell(curl:*)", "grep curl")
    assert denies("shell(awk-real:*)", "awk x") and denies("shell(python:*)", "python3.11 x")
    assert denies("shell(/usr/bin/curl:*)", "./mycurl") and denies("shell(*)", "ls")


@pytest.mark.parametrize(
    "line", ["rm -rf /", "rm -fr /", "rm -r -f /", "rm --recursive --force /", "rm -f -v -R /", "rm / -rf", "rm -rf -- /", "rm -rfv / x"]
)
def test_a_denial_is_not_evaded_by_spelling(line: str) -> None:
    assert denies("shell(rm -rf /:*)", line) and denies(
        "shell(rm -rf /:*)", line, " ".join(w for w in line.split()[1:] if not w.startswith("-"))
    )


@pytest.mark.parametrize(
    ("line", "is_denied"),
    [
        ("head -n 5 x", True), ("head -n5 x", True), ("head x -n 5", True), ("head x -qn5", True), ("head -" + "q" * 60 + "n05 x", True),
        ("head --lines=5 x", True), ("head -n 5 x --", True), ("head -n15 x", False), ("head -n 50 x", False), ("head -c5 x", False),
    ],
)  # fmt: skip
def test_a_denial_of_an_options_value_means_it_however_it_is_written(line: str, is_denied: bool) -> None:
    made = CommandRules(rules(deny=["shell(head -n 5:*)"]), {"head": {"--lines": "-n"}})
    assert (made.forbidding("deny", find_program("head", W, DISK), line.split(), ["x"], W, DISK) is not None) is is_denied


def test_the_end_of_options_before_nothing_is_nothing() -> None:
    assert denies("shell(cat)", "cat --") and denies("shell(cat x)", "cat x --") and not denies("shell(cat)", "cat -- x", "x")


def test_a_denial_of_more_is_no_denial_of_less() -> None:
    assert (
        not denies("shell(rm -rf /:*)", "rm -r x")
        and not denies("shell(rm -rf /:*)", "rm -rf /home")
        and not denies("shell(git push:*)", "git log")
    )
    assert not denies("shell(git status)", "git status -s", "status") and denies("shell(git push:*)", "git -C x push", "push")


def test_an_unconfined_rule_goes_first() -> None:
    made = CommandRules(rules(allow=["shell(bash x:*)", "shell(bash:*)"], unconfined=["shell(bash:*)"]))
    found = made.allowing(find_program("bash", W, DISK), ["bash", "x"], None, W, DISK)
    assert found is not None and found.unconfined


def test_names_of_denied_programs_are_known_among_words() -> None:
    made = CommandRules(rules(deny=["shell(curl:*)", "shell(rm -rf /:*)"]))
    assert (
        made.names_denied("/usr/bin/curl") and made.names_denied("curl7.88") and not made.names_denied("rm") and not made.names_denied("x")
    )


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("sort -o", "sort --output=x a"),
        ("sort -o", "sort --output"),
        ("sort --output", "sort -ox a"),
        ("sort -o", "sort --outp x a"),
        ("curl --data", "curl -dx u"),
        ("curl -d", "curl --data x u"),
        ("sed -i", "sed --in-place=.b s/a/b/ x"),
        ("git commit --no-verify", "git commit -n -m x"),
        ("npm install -g", "npm install --global x"),
    ],
)
def test_a_denial_means_an_option_by_its_long_its_short_and_its_cut_name(rule: str, line: str) -> None:
    assert spelled(rule, line)


def test_one_option_is_no_other() -> None:
    assert (
        not spelled("sort -o", "sort --unique a") and not spelled("sort --output-x", "sort -o a") and not spelled("cat --output", "cat -o")
    )


def spelled(rule: str, line: str) -> bool:
    argv = tuple(line.split())
    made = CommandRules(rules(deny=[f"shell({rule}:*)"]), catalogue().spellings)
    return made.forbidding("deny", find_program(argv[0], W, DISK), argv, None, W, DISK) is not None
