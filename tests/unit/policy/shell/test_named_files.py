"""Which files the words of a command may name, by whatever spelling."""

import pytest

from console.domain.calls.permission import Verdict
from console.policy.files.paths import FileRules, Once
from console.policy.rules.hosts import HostRules
from console.policy.shell.effects import UseRules
from console.policy.shell.named_files import denied_reads, outside, paths_in, written
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import rules

SETTINGS = rules(
    allow=["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)"], deny=["file(read:/etc/shadow)", "file(write:/etc/**)"]
)
FILES = Once(PolicyDisk())
USES = UseRules(FileRules(SETTINGS), HostRules(SETTINGS), FILES, None)


@pytest.mark.parametrize("word", ["/x/y", "-f/x/y", "-vf/x/y", "--file=/x/y", "@/x/y", "-d@/x/y", "k=@/x/y", "/a:/x/y", "file:/x/y"])
def test_a_path_is_found_in_each_spelling(word: str) -> None:
    assert "/x/y" in set(paths_in(word))


def test_what_may_not_be_read_is_denied_wherever_it_stands() -> None:
    for word in ("-f/etc/shadow", "@shadow", "-fetc/shadow", "a=b:/etc/shadow"):
        assert {part.verdict for part in denied_reads(USES, (word,), "/workspace")} == {Verdict.DENY}, word
    assert denied_reads(USES, ("-x", "a.txt", "print('/etc/shadow')", "x" * 5000 + "/"), "/workspace") == []


def test_what_is_written_by_custom_is_denied_where_a_rule_does() -> None:
    assert [part.verdict for part in written(USES, ("cc", "a.c", "-o", "/etc/x"), "/workspace")] == [Verdict.DENY]
    assert written(USES, ("cc", "a.c", "-oout.o"), "/workspace") == []


@pytest.mark.parametrize("word", ["/home/u", "/home/u/new", "../workspace-evil/x", "..", "links/out"])
def test_what_lies_outside_of_the_workspace_asks(word: str) -> None:
    assert [part.verdict for part in outside(USES, FILES, ("tool", word), "/workspace")] == [Verdict.ASK]


@pytest.mark.parametrize("word", ["a.txt", "data/x.csv", "/api/users", "/tmp/x", "/dev/null", "-I/home/u", "a/b"])  # noqa: S108
def test_what_lies_in_it_or_is_no_file_does_not(word: str) -> None:
    assert outside(USES, FILES, ("tool", word), "/workspace") == []
