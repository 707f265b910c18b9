"""File rules on real paths: link and target both judged, folders with all below them."""

import pytest

from console.domain.calls.permission import Verdict
from console.policy.files.paths import FileRules, NoFiles, absolute
from console.policy.rules.rule import Family
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import rules

ALL = ["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)", "file(delete:${WORKSPACE}/**)"]


def judged(use: str, path: str, **lists: list[str]) -> Verdict:
    made = rules(**(lists or {"allow": ALL, "deny": ["file(read:/etc/shadow)", "file(write:/etc/**)", "file(read:/workspace/secrets/**)"]}))
    return FileRules(made).judge(use, path, "/workspace", PolicyDisk()).verdict


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("a.txt", "allow"),
        ("/workspace/a.txt", "allow"),
        ("/workspace//a.txt", "allow"),
        ("./data/../a.txt", "allow"),
        ("inside/x.csv", "allow"),
        ("new/file", "allow"),
        ("/workspace-evil/x", "ask"),
        ("/workspace/../workspace-evil/x", "ask"),
        ("etc/passwd", "ask"),
        ("shadow", "deny"),
        ("etc/shadow", "deny"),
        ("/etc/shadow", "deny"),
        ("data/../../etc/shadow", "deny"),
        ("hard", "deny"),
        ("pipe", "deny"),
        ("sock", "deny"),
        ("disk", "deny"),
        ("loop", "deny"),
        ("gone", "deny"),
        ("odd", "deny"),
        ("/dev/tcp/h/80", "deny"),
        ("/dev/sda", "deny"),
        ("", "deny"),
        ("a\0b", "deny"),
        ("\u202ex", "deny"),
        ("\ud800", "deny"),
        ("x" * 300, "deny"),
        ("a/" * 2100, "deny"),
        ("secrets/key", "deny"),
        (".", "ask"),
        ("secrets", "deny"),
        ("/dev/null", "allow"),
        ("/proc/self/fd/0", "deny"),
    ],
)
def test_reading(path: str, verdict: str) -> None:
    assert judged("read", path) == verdict


def test_a_folder_is_looked_at_without_what_is_below_it() -> None:
    assert judged("list", ".") == "allow" and judged("list", "secrets") == "deny" and judged("list", "/etc") == "ask"


def test_a_folder_may_be_read_only_where_all_that_may_lie_below_it_may() -> None:
    near = {"allow": ["file(read:${WORKSPACE}/*)", "file(read:${WORKSPACE}/*/*)"]}
    assert judged("read", "data", **near) is Verdict.ASK and judged("list", "data", **near) is Verdict.ALLOW
    assert judged("read", "data/x.csv", **near) is Verdict.ALLOW and judged("read", "inside", **near) is Verdict.ASK
    assert judged("read", "data", allow=["file(read:${WORKSPACE}/data/**)"]) is Verdict.ALLOW
    assert judged("read", ".", allow=["file(read:${WORKSPACE}/data/**)", "file(read:${WORKSPACE}/*)"]) is Verdict.ASK


def test_writing_and_removing() -> None:
    assert judged("write", "new") == "allow" and judged("write", "out/x") == "deny" and judged("write", "etc/x") == "deny"
    assert judged("delete", "/etc/hosts") == "deny", "what may not be written may not be removed"
    assert judged("write", "/workspace") == "ask" and judged("delete", "/workspace") == "ask", "the workspace itself is not in it"
    assert judged("write", "/proc/sys/kernel/core_pattern") == "deny"


def test_deny_before_ask_before_allow_whatever_is_narrower() -> None:
    path = "file(read:/workspace/a.txt)"
    assert judged("read", "a.txt", allow=[path], deny=ALL[:1]) == "deny"
    assert judged("read", "a.txt", allow=[path], ask=ALL[:1]) == "ask"
    assert judged("read", "b.txt", allow=[path]) == "ask"
    assert judged("write", "a.txt", allow=[path]) == "ask"


def test_files_that_make_programs_run_ask() -> None:
    protected = rules(allow=["file(write:**/.git/**)"]).allow
    part = FileRules(rules(allow=ALL), protected).judge("write", ".git/config", "/workspace", PolicyDisk())
    assert part.verdict is Verdict.ASK
    assert FileRules(rules(allow=ALL), protected).judge("read", ".git/config", "/workspace", PolicyDisk()).verdict is Verdict.ALLOW
    assert FileRules(rules(allow=ALL), protected).judge("write", "data", "/workspace", PolicyDisk()).verdict is Verdict.ASK


def test_without_a_disk_paths_are_what_they_say() -> None:
    assert NoFiles().look("/a/../b").real == "/b"
    assert absolute("./a//b/.", "/w/") == "/w/a/b" and absolute("/a/../b", "/w") == "/a/../b"


def test_a_rule_is_found_by_the_folders_above_a_path_wherever_its_glob_begins() -> None:
    globs = ["/a/b", "/a/b/", "/a/*/c", "/a/b/**", "**/k", "/", "/s/{x,y}/z", "/w\\*d/**", "/a/bc/**"]
    paths = [
        "/",
        "/a",
        "/a/",
        "/a/b",
        "/a/b/",
        "/a/b/c",
        "/a/b/c/",
        "/a/q/c",
        "/a/bc/d",
        "/q/k",
        "/s/x/z",
        "/s/q/z",
        "/w*d/e",
        "/wad/e",
        "/k",
    ]
    made = rules(deny=[f"file(read:{one})" for one in globs])
    written, compiled = made.of("deny", Family.FILE), FileRules(made)
    for path in paths:
        assert compiled._first("deny", "read", (path,)) == next((rule for rule in written if rule.covers_path(path)), None), path
        assert compiled._lying_below("deny", "read", (path,)) == [rule for rule in written if rule.may_lie_below(path)], path
