"""What lies below a folder, on a real disk: found by the way that the program goes, within bounds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from console.api.policy.policy_data import default_rules
from console.domain.calls.permission import Verdict
from console.policy.files import disk, walk
from console.policy.files.disk import Disk
from console.policy.files.paths import Once
from console.policy.rules.loading import read_settings
from console.policy.rules.verdicts import Judgement
from tests.fakes.policy_world import context, rules, told

Judge = Callable[[str], Judgement]
RECURSIVE = (
    "grep -rn x",
    "grep -R x .",
    "rg x",
    "rg --hidden x",
    "fd x",
    "find . -name x",
    "find -L .",
    "tree",
    "tree -l",
    "du -sh .",
    "du -L",
    "ls -R",
)
OF_GIT = (
    "git status",
    "git diff",
    "git show",
    "git add -A",
    "git add .",
    "git log -p",
    "git commit -m x",
    "git diff HEAD~1",
    "git blame a.py",
)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """A folder of a project, as it is after a clone."""
    made = tmp_path / "w"
    for name in ("a.py", "src/b.py", ".gitignore", ".git/HEAD", ".git/objects/ab/cd", ".github/workflows/ci.yml"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("x\n")
    return made


@pytest.fixture
def judged(clean: Path) -> Judge:
    made = context(read_settings(default_rules(), workspace=str(clean)), Disk())
    return lambda text: told(made, "shell", text)


@pytest.mark.parametrize("text", [*RECURSIVE, *OF_GIT])
def test_the_default_rules_allow_ordinary_work(judged: Judge, text: str) -> None:
    found = judged(text)
    assert found.verdict is Verdict.ALLOW, found


@pytest.mark.parametrize("text", [text for text in RECURSIVE if text not in ("rg x", "fd x")])
def test_what_is_protected_asks_with_its_name(clean: Path, judged: Judge, text: str) -> None:
    (clean / "src/.ssh").mkdir()
    (clean / "src/.ssh/id").write_text("key")
    found = judged(text)
    assert (found.verdict, found.rule) == (Verdict.ASK, "file(read:**/.ssh/**)") and f"{clean}/src/.ssh" in found.reason
    assert judged("rg x").verdict is Verdict.ALLOW, "it passes over hidden names"
    assert judged("cat src/.ssh/id").verdict is Verdict.DENY, "what is named stays denied"


@pytest.mark.parametrize("text", ["rg x", "fd x"])
def test_an_ignore_file_that_takes_names_back_is_believed(clean: Path, judged: Judge, text: str) -> None:
    (clean / ".ssh").mkdir()
    assert judged(text).verdict is Verdict.ALLOW
    (clean / ".gitignore").write_text("!.ssh\n")
    assert judged(text).verdict is Verdict.ASK
    (clean / ".gitignore").write_text("x\n")
    (clean.parent / ".ignore").write_text("!.ssh\n")
    assert judged(text).verdict is Verdict.ASK, "a file of a folder above holds too"
    (clean.parent / ".ignore").unlink()
    assert judged(f"{text} -g a" if text == "rg x" else f"{text} -H").verdict is Verdict.ASK


def test_links_are_followed_by_who_follows_them(clean: Path, judged: Judge, tmp_path: Path) -> None:
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (clean / "src/keys").symlink_to(tmp_path / "home/.ssh")
    for text in ("grep -r x", "find . -name x", "tree", "du -s .", "git add -A"):
        assert judged(text).verdict is Verdict.ALLOW, text
    for text in ("grep -R x", "find -L .", "find . -follow", "tree -l", "du -L", "rg -L x", "fd -L x", "diff -r src src"):
        found = judged(text)
        assert found.verdict is Verdict.ASK and f"{clean}/src/keys leads to {tmp_path}/home/.ssh" in found.reason, (text, found)
    (clean / "src/keys").unlink()
    (clean / "src/round").symlink_to("..")
    (clean / "src/near").symlink_to("b.py")
    assert judged("grep -R x").verdict is Verdict.ALLOW, "links that stay inside"
    (clean / "src/gone").symlink_to("/nowhere/x")
    assert judged("grep -R x").verdict is Verdict.ASK and judged("grep -r x").verdict is Verdict.ALLOW, "it may lead somewhere soon"
    (clean / "src/gone").unlink()
    (clean / "src/pipe").symlink_to("/dev/zero")
    assert judged("grep -R x").verdict is Verdict.ASK


def test_links_of_links_end(clean: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one/to").symlink_to(tmp_path / "two")
    (tmp_path / "two/to").symlink_to(tmp_path / "one")
    (clean / "to").symlink_to(tmp_path / "one")
    made = context(rules(allow=["shell(grep:*)", f"file(read:{tmp_path}/**)"], deny=["file(read:**/.ssh/**)"]), Disk())
    assert told(made, "shell", f"grep -R x {clean}").verdict is Verdict.ALLOW
    (tmp_path / "two/.ssh").mkdir()
    assert f"{tmp_path}/one/to/.ssh" in told(made, "shell", f"grep -R x {clean}").reason
    assert told(made, "shell", f"grep -r x {clean}").verdict is Verdict.ALLOW
    for at in range(300):
        (tmp_path / f"f{at}").write_text("x")
        (clean / f"l{at}").symlink_to(tmp_path / f"f{at}")
    (tmp_path / "two/.ssh").rmdir()
    assert "more links below" in told(made, "shell", f"grep -R x {clean}").reason


def test_too_much_or_unreadable_asks(clean: Path, judged: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.policy.files.paths.ENTRIES_MAX", 5)
    found = judged("grep -rn x")
    assert (found.verdict, found.rule) == (Verdict.ASK, "recursive read") and "than is looked at" in found.reason
    monkeypatch.undo()
    plain = disk._listing
    monkeypatch.setattr(disk, "_listing", lambda folder: walk.Listing(state="unreadable") if folder.endswith("src") else plain(folder))
    found = judged("find . -name x")
    assert (found.verdict, found.rule) == (Verdict.ASK, "recursive read") and f"{clean}/src cannot be read" in found.reason


def test_all_walks_of_a_call_share_a_bound(clean: Path) -> None:
    times = iter([0.0, 0.0, 61.0])
    once = Once(Disk(), (lambda: 0.0, lambda: next(times)))
    assert once.listing(str(clean)).state == "" and once.listing(f"{clean}/src").state == "limit"
    assert once.listing(str(clean)).state == "", "what was seen stays"
    many = Once(Disk())
    many._left = 3
    assert many.listing(str(clean)).state == "limit" and many.listing(f"{clean}/src").state == "limit"


def test_a_folder_is_listed_again_once_it_changed(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_SETTLED_NS", 0)
    looked: list[str] = []
    plain = disk._listing
    monkeypatch.setattr(disk, "_listing", lambda folder: looked.append(folder) or plain(folder))  # type: ignore[func-returns-value]
    found = [Disk().listing(str(clean)) for _ in range(3)]
    assert len(looked) == 1 and found[0] is found[2]
    time.sleep(0.02)  # a tick of the file system's clock: the change must have a time of its own
    (clean / ".netrc").write_text("x")
    os.utime(clean, ns=(1, 1))  # the time that agents can set
    assert ".netrc" in Disk().listing(str(clean)).names and len(looked) == 2
    monkeypatch.setattr(disk, "_LISTED_MAX", 0)
    assert Disk().listing(f"{clean}/src").names == {"b.py"}
    assert Disk().listing(f"{clean}/none").state == "unreadable"


def test_what_a_folder_holds_is_bounded(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "ENTRIES_MAX", 2)
    assert Disk().listing(str(clean)).state == "limit"


def test_text_is_read_of_plain_files_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\xff")
    os.mkfifo(tmp_path / "p")
    (tmp_path / "large").write_bytes(b"x" * (256 * 1024 + 1))
    assert Disk().text(f"{tmp_path}/f") == "a\udcff"
    assert [Disk().text(f"{tmp_path}/{name}") for name in ("p", "large", "none", ".")] == [None] * 4


@pytest.mark.parametrize(
    ("deny", "path", "hit"),
    [
        ("**/*.pem", "a/b/c.pem", True),
        ("**/*.pem", "a/b/c.pem.txt", False),
        ("{w}/**/keys/*", "a/keys/x", True),
        ("{w}/**/w/x", "w/x", True),
        ("{w}/secrets/**", "secrets/x", True),
        ("{w}/*/x.txt", "a/x.txt", True),
        ("{w}/*/x.txt", "a/b/x.txt", False),
        ("**/{a,b}/key", "c/b/key", True),
        ("**/?ey", "a/key", True),
        ("**/[k]ey", "a/key", True),
        ("**/w/**/id", "q/id", True),
        ("/**/deep/**", "a/deep/x", True),
        ("**/.ssh/**", "a/.ssh/x", True),
    ],
)
def test_rules_find_what_they_cover(tmp_path: Path, deny: str, path: str, hit: bool) -> None:
    there = tmp_path / "w" / path
    there.parent.mkdir(parents=True)
    there.write_text("x")
    made = context(rules(allow=["shell(grep:*)", "file(read:/**)"], deny=[f"file(read:{deny.replace('{w}', f'{tmp_path}/w')})"]), Disk())
    found = told(made, "shell", f"grep -r x {tmp_path}/w")
    assert (found.verdict is Verdict.ASK) is hit, found
    (tmp_path / "link").symlink_to("w")
    assert (told(made, "shell", f"grep -r x {tmp_path}/link").verdict is Verdict.ASK) is hit, "by whichever name the folder has"


def test_a_change_of_what_is_denied_below_is_denied(clean: Path) -> None:
    lists = {"allow": ["shell(rm:*)", f"file(delete:{clean}/**)"], "deny": ["file(delete:**/keep)"]}
    made = context(rules(**lists), Disk())
    assert told(made, "shell", f"rm -r {clean}/src").verdict is Verdict.ALLOW, "nothing that is denied lies there"
    (clean / "src/keep").write_text("x")
    found = told(made, "shell", f"rm -r {clean}/src")
    assert found.verdict is Verdict.DENY and f"{clean}/src/keep lies below" in found.reason


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("-name '*.pyc' -delete", Verdict.ALLOW),
        ("-type f -name '*.pyc' -delete", Verdict.ALLOW),
        ("-name 'kee*' -delete", Verdict.DENY),
        ("-delete", Verdict.DENY),
        ("-name '*.pyc' -o -name keep -delete", Verdict.DENY),
        ("! -name '*.pyc' -delete", Verdict.DENY),
    ],
)
def test_a_search_that_deletes_is_judged_by_the_names_that_it_deletes(clean: Path, words: str, verdict: Verdict) -> None:
    (clean / "src/keep").write_text("x")
    lists = {"allow": ["shell(find:*)", f"file(read:{clean}/**)", f"file(delete:{clean}/**)"], "deny": ["file(delete:**/keep)"]}
    assert told(context(rules(**lists), Disk()), "shell", f"find {clean}/src {words}").verdict is verdict
