"""What an argument does, handed to the judge that knows."""

import pytest

from console.domain.calls.permission import Verdict
from console.policy.files.paths import FileRules
from console.policy.rules.declared import Declared
from console.policy.rules.hosts import HostRules
from console.policy.shell.effects import UseRules
from console.policy.shell.operands import Use
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import rules

MADE = rules(
    allow=["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)", "file(delete:${WORKSPACE}/**)", "network(outbound:github.com)"],
    deny=["network(outbound:evil.example)", "file(write:/workspace/data/x.csv)"],
)
SOURCES = Declared(
    managers={"pip": True}, blocked_packages=("bad_one",), web_enabled=True, git_enabled=True, allowed_remotes=("https://github.com/me/*",)
)


def judged(kind: str, value: str, names: tuple[str, ...] = (), declared: Declared | None = None) -> Verdict:
    judge = UseRules(FileRules(MADE), HostRules(MADE), PolicyDisk(), declared)
    return judge.judge(Use(kind, value, "why", names), "/workspace", False).verdict


@pytest.mark.parametrize(
    ("kind", "value", "verdict"),
    [
        ("read", "a.txt", "allow"),
        ("maybe", "HEAD", "allow"),
        ("maybe", "feature/x", "allow"),
        ("maybe", "/etc/hosts", "ask"),
        ("maybe", "../x", "ask"),
        ("move", "a.txt", "allow"),
        ("run", "sh", "deny"),
        ("ask", "x", "ask"),
        ("url", "github.com/x", "allow"),
        ("url", "evil.example", "deny"),
        ("host", "me@github.com", "allow"),
        ("remote", "https://github.com/a/b", "allow"),
        ("remote", "git@github.com:a/b", "allow"),
        ("remote", "git@evil.example:a/b", "deny"),
        ("remote", "ssh://git@github.com/a", "allow"),
        ("remote", "ext::sh -c x", "deny"),
        ("remote", "/etc", "ask"),
        ("remote", "file:///etc", "deny"),
        ("package", "pandas", "allow"),
        ("package", "pandas[a]>=2,<3", "allow"),
        ("package", "./x", "ask"),
        ("package", "https://x/y.whl", "ask"),
        ("package", "-x", "ask"),
    ],
)
def test_kinds(kind: str, value: str, verdict: str) -> None:
    assert judged(kind, value) == verdict


def test_what_is_put_into_a_folder_is_judged_by_its_name_there() -> None:
    assert judged("into", "data", ("y",)) == "allow" and judged("into", "data", ("x.csv",)) == "deny"
    assert judged("into", "data", ("..",)) != "allow" and judged("into", "new", ("x.csv",)) == "allow"


def test_what_is_declared_only_denies() -> None:
    assert judged("package", "Bad.One", declared=SOURCES) == "deny" and judged("package", "fine", declared=SOURCES) == "allow"
    assert judged("package", "fine", declared=Declared()) == "deny", "no pip was declared"
    assert judged("remote", "https://github.com/me/x", declared=SOURCES) == "allow"
    assert judged("remote", "https://github.com/you/x", declared=SOURCES) == "deny"
    assert judged("url", "https://github.com/x", declared=SOURCES) == "deny", "no domain was declared"
