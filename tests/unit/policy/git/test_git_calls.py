"""What git would run without having been told to, on real repositories made by the real git."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from console.api.policy.policy_data import default_rules
from console.domain.calls.permission import Verdict
from console.policy.files.disk import Disk
from console.policy.git.calls import Trigger, judge_discard
from console.policy.rules.loading import read_settings
from console.policy.rules.profiles import Standing
from console.policy.rules.verdicts import Judgement
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import context, told
from tests.unit.policy.rules.test_profiles import context as coding_context
from tests.unit.policy.rules.test_profiles import policy as coding

ORDINARY = (
    "git status",
    "git diff",
    "git log",
    "git log -p",
    "git show",
    "git add -A",
    "git add .",
    "git commit -m x",
    "git grep x",
    "git -C src status",
)
PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
Judge = Callable[[str], Judgement]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *words], cwd=folder, env=PLAIN, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def append(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


def later() -> None:
    """The next tick of the file system's clock: what changes from here on has another time."""
    time.sleep(0.02)


@dataclass
class Before:
    """A session that began when this was made: what stands in files that did not change since was there."""

    began: int
    there: set[tuple[str, str]] = field(default_factory=set)

    def was_there(self, trigger: Trigger, changed_ns: int) -> bool:
        if 0 < changed_ns < self.began:
            self.there.add((trigger.file, trigger.mark))
        return (trigger.file, trigger.mark) in self.there


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "w"
    (made / "src").mkdir(parents=True)
    (made / "src/a.py").write_text("x\n")
    git(made, "init", "-q", ".")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "first")
    return made


@pytest.fixture
def judged(repository: Path) -> Judge:
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())
    return lambda text: told(made, "shell", text)


def asks(judged: Judge, text: str, *words: str) -> None:
    found = judged(text)
    reasons = " ".join(part.reason for part in found.parts if part.rule == "programs of git")
    assert found.verdict is Verdict.ASK and all(word in reasons for word in words), (text, found)


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_repository_never_asks(judged: Judge, text: str) -> None:
    assert judged(text).verdict is Verdict.ALLOW, judged(text)


def test_a_clone_with_a_remote_a_worktree_and_a_submodule_is_ordinary(repository: Path, tmp_path: Path) -> None:
    made = tmp_path / "c"
    git(tmp_path, "clone", "-q", str(repository), "c")
    git(made, "submodule", "add", "-q", str(repository), "mod")
    git(made, "commit", "-qm", "mod")
    git(made, "worktree", "add", "-q", "../c/tree", "-b", "other")
    ours = context(read_settings(default_rules(), workspace=str(made)), Disk())
    for text in (*ORDINARY, "cd mod && git status", "cd tree && git diff", "git -C mod log"):
        assert told(ours, "shell", text).verdict is Verdict.ALLOW, text
    append(made / ".git/modules/mod/config", "[core]\n\tfsmonitor = ./evil\n")
    for text in ("git status", "git diff", "cd mod && git log"):
        found = told(ours, "shell", text)
        assert found.verdict is Verdict.ASK and "modules/mod/config" in found.reason, text
    assert "./evil" in told(ours, "shell", "cd tree && git status").reason or told(ours, "shell", "cd tree && git status").verdict


def test_a_folder_that_git_takes_for_a_repository_is_protected(judged: Judge, repository: Path) -> None:
    sub = repository / "sub"
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())

    def write(path: str) -> Verdict:
        return told(made, "write_file", f"{repository}/{path}").verdict

    assert write("sub/config") is Verdict.ALLOW and write("sub/HEAD") is Verdict.ASK
    (sub / "objects").mkdir(parents=True)
    (sub / "HEAD").write_text("ref: refs/heads/x\n")
    assert write("sub/config") is Verdict.ALLOW, "not one yet"
    assert write("sub/refs") is Verdict.ASK and write("sub/refs/heads/x") is Verdict.ASK and write("sub/commondir") is Verdict.ASK
    assert told(made, "shell", "mkdir sub/refs").verdict is Verdict.ASK
    (sub / "refs").mkdir()
    for path in ("sub/config", "sub/hooks/pre-commit", "sub/info/attributes", "sub/config.worktree", "sub/any"):
        assert write(path) is Verdict.ASK, path
    assert write("src/config") is Verdict.ALLOW


def test_a_repository_that_is_a_plain_folder_asks(judged: Judge, repository: Path) -> None:
    """The one that was seen: sub/HEAD and sub/config, then git -C sub status."""
    git(repository, "init", "-q", "--bare", "sub")
    assert judged("git -C sub log").verdict is Verdict.ALLOW
    append(repository / "sub/config", '[core]\n\tfsmonitor = "touch /tmp/never"\n\tbare = false\n\tworktree = ..\n')
    asks(judged, "git -C sub status", "core.fsmonitor", "touch /tmp/never", f"{repository}/sub/config")
    asks(judged, "cd sub && git log")
    asks(judged, "cd sub/refs && git log")
    asks(judged, "timeout 5 git -C sub status")
    assert judged("git status").verdict is Verdict.ALLOW, "its own repository is as it was"


@pytest.mark.parametrize(
    "line",
    [
        "[core]\nfsmonitor = x",
        "[core]\nhooksPath = x",
        "[core]\nsshCommand=x",
        "[CORE]\npager = x",
        "[core]\neditor = x",
        "[core]askpass=x",
        "[diff]\nexternal = x",
        '[diff "d"]\ntextconv = x',
        '[diff "d"]\ncommand = x',
        "[diff.d]\ntextconv = x",
        '[filter "f"]\nclean = x',
        '[filter "f"]\nprocess = x',
        '[merge "m"]\ndriver = x',
        "[pager]\nlog = x",
        "[credential]\nhelper = !x",
        '[credential "https://e.example"]\nhelper = x',
        "[gpg]\nprogram = x",
        '[gpg "ssh"]\nprogram = x',
        "[alias]\nst = !x",
        "[include]\npath = ../other",
        '[includeIf "gitdir:/"]\npath = ../other',
        "[interactive]\ndiffFilter = x",
        '[remote "r"]\nurl = ext::sh -c x',
        '[url "ext::sh -c x"]\ninsteadOf = https://e',
        '[protocol "ext"]\nallow = always',
        '[submodule "s"]\nupdate = !x',
        '[tar "x"]\ncommand = x',
        '[hook "h"]\ncommand = x',
        "[init]\ntemplateDir = x",
        "[gc]\nrecentObjectsHook = x",
        "[core]\nattributesFile = x",
        "[sequence]\neditor = x",
        "[core]\nfsmonitor = \\\n  x",
        '[core]\nfsmonitor = "x # y"',
        "[core] ; comment\n\t# more\n fsmonitor=x ; y",
        "[core\nbroken",
        '[core]\nx = "open',
    ],
)
def test_every_value_that_runs_a_program_asks_until_it_was_there(repository: Path, judged: Judge, line: str) -> None:
    append(repository / ".git/config", line + "\n")
    asks(judged, "git status", f"{repository}/.git/config")
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())
    began = (repository / ".git/config").stat().st_ctime_ns + 1
    known = replace(made, known=Before(began))
    assert told(known, "shell", "git status").verdict is Verdict.ALLOW, "it was there when the session began"
    later()
    append(repository / ".git/config", "\n[user]\nname = b\n" if "broken" not in line and "open" not in line else "")
    assert told(known, "shell", "git status").verdict is Verdict.ALLOW, "the file changed, what it names did not"


@pytest.mark.parametrize(
    "line",
    [
        "[core]\nfsmonitor = true",
        "[pager]\nlog = false",
        "[credential]\nhelper =",
        "[alias]\nst = status",
        '[remote "o"]\nurl = git@e.example:a/b.git',
        "[user]\nname = x",
        "# [core]\n# fsmonitor = x",
        '[protocol "https"]\nallow = always',
    ],
)
def test_what_runs_nothing_does_not_ask(repository: Path, judged: Judge, line: str) -> None:
    append(repository / ".git/config", line + "\n")
    assert judged("git status").verdict is Verdict.ALLOW


def test_hooks_of_the_folder_that_is_in_force(repository: Path, judged: Judge) -> None:
    (repository / ".git/hooks").mkdir(exist_ok=True)
    (repository / ".git/hooks/pre-commit.sample").write_text("x")
    (repository / ".git/hooks/README").write_text("x")
    assert judged("git commit -m x").verdict is Verdict.ALLOW
    hook = repository / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    asks(judged, "git commit -m x", "the hook pre-commit", str(hook))
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())
    known = replace(made, known=Before(hook.stat().st_ctime_ns + 1))
    assert told(known, "shell", "git commit -m x").verdict is Verdict.ALLOW
    later()
    hook.write_text("#!/bin/sh\nevil\n")
    assert told(known, "shell", "git commit -m x").verdict is Verdict.ASK


def test_the_shims_of_a_hook_manager(repository: Path) -> None:
    (repository / ".husky/_").mkdir(parents=True)
    (repository / ".husky/_/pre-commit").write_text(". ../pre-commit")
    (repository / ".husky/pre-commit").write_text("npm test")
    git(repository, "config", "core.hooksPath", ".husky/_")
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())
    known = replace(made, known=Before((repository / ".git/config").stat().st_ctime_ns + 1))
    assert told(known, "shell", "git commit -m x").verdict is Verdict.ALLOW
    later()
    (repository / ".husky/pre-commit").write_text("evil")
    found = told(known, "shell", "git commit -m x")
    assert found.verdict is Verdict.ASK and f"{repository}/.husky/pre-commit" in found.reason


def test_an_attribute_that_chooses_a_driver_from_before(repository: Path) -> None:
    append(repository / ".git/config", '[filter "own"]\nclean = cat\n')
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())
    known = replace(made, known=Before((repository / ".git/config").stat().st_ctime_ns + 1))
    assert told(known, "shell", "git add -A").verdict is Verdict.ALLOW
    (repository / ".gitattributes").write_text("* text=auto\n*.bin filter=lfs\n")
    assert told(known, "shell", "git add -A").verdict is Verdict.ALLOW, "no program is set for these"
    later()
    (repository / "src/.gitattributes").write_text("*.py filter=own\n")
    git(repository, "add", "src/.gitattributes")
    found = told(known, "shell", "git add -A")
    assert found.verdict is Verdict.ASK and "filter=own for *.py" in found.reason


def test_attributes_that_are_not_tracked_choose_a_driver_as_well(repository: Path) -> None:
    append(repository / ".git/config", '[diff "old"]\n\ttextconv = ./old\n')
    git(repository, "status")
    later()
    ours = replace(context(read_settings(default_rules(), workspace=str(repository)), Disk()), known=Before(time.time_ns()))
    assert told(ours, "shell", "git diff").verdict is Verdict.ALLOW
    later()
    (repository / "src/.gitattributes").write_text("*.py diff=old\n")
    found = told(ours, "shell", "git diff")
    assert found.verdict is Verdict.ASK and "src/.gitattributes" in found.reason


def test_what_is_included_is_read_too(repository: Path, judged: Judge) -> None:
    (repository / "inc").write_text("[user]\nname = x\n")
    append(repository / ".git/config", "[include]\npath = ../inc\n")
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())
    known = replace(made, known=Before((repository / ".git/config").stat().st_ctime_ns + 1))
    assert told(known, "shell", "git status").verdict is Verdict.ALLOW
    later()
    (repository / "inc").write_text("[core]\nfsmonitor = x\n")
    found = told(known, "shell", "git status")
    assert found.verdict is Verdict.ASK and f"{repository}/inc" in found.reason


def test_a_new_link_to_an_old_file_was_not_there(repository: Path) -> None:
    (repository / "evil").write_text("[core]\nfsmonitor = x\n")
    (repository / "inc").write_text("[user]\nname = x\n")
    append(repository / ".git/config", "[include]\npath = ../inc\n")
    made = context(read_settings(default_rules(), workspace=str(repository)), Disk())
    known = replace(made, known=Before((repository / ".git/config").stat().st_ctime_ns + 1))
    assert told(known, "shell", "git status").verdict is Verdict.ALLOW
    (repository / "inc").unlink()
    (repository / "inc").symlink_to("evil")
    assert told(known, "shell", "git status").verdict is Verdict.ASK


def test_a_git_file_leads_to_the_repository(repository: Path, judged: Judge, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "elsewhere")
    (repository / "linked").mkdir()
    (repository / "linked/.git").write_text(f"gitdir: {tmp_path}/elsewhere\n")
    assert judged("git -C linked log").verdict is Verdict.ALLOW
    append(tmp_path / "elsewhere/config", "[core]\nfsmonitor = x\n")
    asks(judged, "git -C linked log", f"{tmp_path}/elsewhere/config")


def test_a_path_that_ends_in_a_carriage_return_leads_where_git_goes(repository: Path, judged: Judge) -> None:
    """git takes returns away at the end of such a file (setup.c, read_gitfile_gently and get_common_dir_noenv)."""
    git(repository, "init", "-q", "--bare", "far")
    append(repository / "far/config", "[core]\n\tbare = false\n\tfsmonitor = ./evil\n")
    (repository / "src/.git").write_bytes(b"gitdir: ../far\r\n")
    asks(judged, "git -C src status", "far/config", "./evil")
    (repository / "src/.git").unlink()
    (repository / "src/.git").mkdir()
    (repository / "src/.git/HEAD").write_text("ref: refs/heads/main\n")
    (repository / "src/.git/commondir").write_bytes(b"../../far\r\n")
    asks(judged, "git -C src status", "far/config", "./evil")


def test_a_repository_with_longer_names_of_objects_is_read_as_well(tmp_path: Path) -> None:
    made = tmp_path / "long"
    made.mkdir()
    git(made, "init", "-q", "--object-format=sha256")
    (made / "plain").write_text("x\n")
    git(made, "init", "-q", "--object-format=sha256", "mod")
    (made / "mod/file").write_text("x\n")
    git(made / "mod", "add", "-A")
    git(made / "mod", "commit", "-qm", "first")
    git(made, "add", "-A")
    ours = context(read_settings(default_rules(), workspace=str(made)), Disk())
    for text in ("git status", "git diff", "git commit -m x", "git grep x"):
        assert told(ours, "shell", text).verdict is Verdict.ALLOW, text
    append(made / "mod/.git/config", "[core]\n\tfsmonitor = ./evil\n")
    assert "mod/.git/config" in told(ours, "shell", "git status").reason
    git(made / "mod", "config", "--unset", "core.fsmonitor")
    (made / ".ssh").mkdir()
    (made / ".ssh/id").write_text("x\n")
    git(made, "add", "-A")
    assert ".ssh/id" in told(ours, "shell", "git diff").reason


def test_settings_of_an_agents_own_home(repository: Path, judged: Judge) -> None:
    (repository / ".gitconfig").write_text("[core]\nfsmonitor = x\n")
    asks(judged, "git -C src status", f"{repository}/.gitconfig")


def test_what_is_tracked_is_judged_and_what_is_ignored_is_not(repository: Path, judged: Judge) -> None:
    (repository / ".gitignore").write_text("node_modules/\n")
    for at in range(30):
        (repository / f"node_modules/p{at}").mkdir(parents=True)
    (repository / "node_modules/p1/.netrc").write_text("x")
    assert all(judged(text).verdict is Verdict.ALLOW for text in ORDINARY)
    assert judged("git add -f .").verdict is Verdict.ASK and judged("grep -rn x").verdict is Verdict.ASK
    (repository / ".netrc").write_text("x")
    assert judged("git diff").verdict is Verdict.ALLOW and judged("git add -A").verdict is Verdict.ASK
    git(repository, "add", ".netrc")
    for text in ("git diff", "git show", "git log -p", "git grep x", "cd src && git diff", "git add -A"):
        found = judged(text)
        assert found.verdict is Verdict.ASK and f"{repository}/.netrc" in found.reason, text
    assert judged("git status").verdict is Verdict.ALLOW


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_of_the_index(repository: Path, judged: Judge, version: int) -> None:
    for name in ("src/b.py", "src/.netrc", "z"):
        (repository / name).write_text("x")
    git(repository, "add", "-A")
    if version == 3:
        git(repository, "add", "-N", "z")
        git(repository, "update-index", "--skip-worktree", "src/a.py")
    git(repository, "update-index", "--index-version", str(version))
    found = judged("git diff")
    assert found.verdict is Verdict.ASK and "src/.netrc is among" in found.reason, found
    (repository / ".git/index").write_bytes(b"DIRC\0\0\0\x02\0\0\0\x09damaged")
    assert judged("git status").verdict is Verdict.ASK


def test_outside_of_a_repository_nothing_is_asked_of_it(tmp_path: Path) -> None:
    made = context(read_settings(default_rules(), workspace=str(tmp_path)), Disk())
    assert told(made, "shell", "git status").verdict is Verdict.ALLOW


def test_what_is_executed_here_runs_no_program_of_the_repository(repository: Path, judged: Judge) -> None:
    """The steps that are executed, with their variables, by the real git: nothing that the repository names has run."""
    ran = repository / "ran"
    (repository / "evil").write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    (repository / "evil").chmod(0o755)
    evil = str(repository / "evil")
    (repository / ".gitattributes").write_text("*.py filter=f diff=d\n")
    (repository / ".git/hooks").mkdir(exist_ok=True)
    (repository / ".git/hooks/post-index-change").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (repository / ".git/hooks/post-index-change").chmod(0o755)
    (repository / "inc").write_text(f"[core]\nfsmonitor = {evil}\n")
    append(
        repository / ".git/config",
        f'[include]\npath = ../inc\n[filter "f"]\nclean = {evil}\nrequired = true\n[diff "d"]\ntextconv = {evil}\n',
    )
    append(repository / "src/a.py", "more\n")
    for text in ("git status", "git diff", "git add -A", "git log -p", "git commit -m x"):
        found = judged(text)
        assert found.verdict is Verdict.ASK
        [step] = found.steps
        subprocess.run(step.argv, cwd=step.cwd, env={**PLAIN, **dict(step.environment)}, capture_output=True, check=False, timeout=60)
        assert not ran.exists(), text
    subprocess.run(["git", "status"], cwd=repository, env=PLAIN, capture_output=True, check=False, timeout=60)
    assert ran.exists(), "the control: without the variables they run"


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("git checkout .", True),
        ("git checkout a.txt", True),
        ("git checkout main a.txt", True),
        ("git checkout main -- a.txt", True),
        ("git checkout '*.py'", True),
        ("git restore a.txt", True),
        ("git restore -SW a.txt", True),
        ("git checkout main", False),
        ("git checkout -b a.txt", False),
        ("git checkout -", False),
        ("git restore --staged a.txt", False),
        ("git restore -S .", False),
        ("git commit -m restore", False),
    ],
)
def test_what_throws_away_files_that_were_not_committed_asks_as_destroying(line: str, asks: bool) -> None:
    argv = line.split()
    words = [argv[1], *(word for word in argv[2:] if not word.startswith("-") or word == "-")]
    found = judge_discard(argv, words, "/workspace", PolicyDisk(), line)
    assert [(part.verdict, part.danger) for part in found] == [(Verdict.ASK, "destroys")] * asks


@pytest.mark.parametrize(
    "text",
    [
        "cp -r .git copy && cp evil copy/config && git -C copy status",
        "rsync -a .git/ copy/ && cp evil copy/config && cd copy && git log",
        "mv bare copy && git -C copy status",
        "mv vendor copy && timeout 5 git -C copy/lib diff",
        "ln -s bare copy && git -C copy status",
        "git init q && ln -s q/.git copy && cp evil copy/config && git -C copy status",
        "mkdir copy && cp -r .git/* copy/ && cp evil copy/config && git -C copy status",
    ],
)
def test_a_repository_that_the_same_call_makes_is_not_known_yet(repository: Path, text: str) -> None:
    git(repository, "init", "-q", "--bare", "bare")
    append(repository / "evil", '[core]\n\tfsmonitor = "touch /tmp/never"\n')
    made = coding_context(coding("coding", str(repository)), Disk(), Standing.CONTAINED)
    found = told(made, "shell", text)
    assert found.verdict is Verdict.ASK and "copy" in " ".join(part.reason for part in found.parts if part.rule == "programs of git"), found
    for ordinary in ("mkdir copy && git -C copy status", "git init copy && cd copy && git status", "cp a.txt src/ && git -C src add -A"):
        assert told(made, "shell", ordinary).verdict is Verdict.ALLOW, ordinary
