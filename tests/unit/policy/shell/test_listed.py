"""Names that a command lists: where they lie for certain, and what is run with them."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from console.policy.shell.listed import executed, finder, given


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("find src -name *.c -print0", "find src -name *.c"),
        ("git ls-files *.py | grep -v x | sort -u | head -5", "find . -not -path '*/.git/*'"),
        ("git diff --name-only HEAD", "find . -not -path '*/.git/*'"),
        ("rg -l foo src lib", "find src lib -not -path '*/.*'"),
        ("rg --files --hidden", "find ."),
        ("grep -rl --include=*.c foo src", "find src"),
        ("grep -rl foo", "find ."),
        ("fd -e py . src", "find src -not -path '*/.*'"),
        ("ls -1 src", "find ."),
        *((words, None) for words in ("git diff", "rg foo", "grep -c foo a", "ls -a", "cat a", "echo a", "git log", "git ls-files /x")),
        *(
            (words, None)
            for words in ("find a -printf /etc", "find a | tr a b", "ls ..", "find a | grep x b", "find a | sort b", "fd -x rm")
        ),
        *((words, None) for words in ("rg -l $X", "git -C / ls-files", "find a > b", "grep -rl --label=/x foo", "ls ~")),
    ],
)
def test_where_listed_names_lie(words: str, found: str | None) -> None:
    made = finder(words.split())
    assert (" ".join(made) if made is not None else None) == found


def test_what_xargs_runs() -> None:
    found = ["find", "a"]
    for words in ("xargs -0 -n 1 -P4 rm -f", "xargs -I % rm -f %", "xargs -r -I{} rm -f {}", "xargs -d \\n rm -f"):
        assert given(words.split(), found) == ["find", "a", "-exec", "rm", "-f", "{}", "\\;"], words
    assert given(["xargs"], found) == ["find", "a", "-exec", "echo", "{}", "\\;"]
    for words in ("xargs -a list rm", "xargs -I% sh -c rm%", "xargs -d , rm", "xargs --arg-file=x rm", "xargs rm ;"):
        assert given(words.split(), found) is None, words
    assert executed(found, ["wc", "{}", ">", "out"]) == ["find", "a", "-exec", "wc", "{}", "\\;", ">", "out"]


@pytest.mark.parametrize("words", ["git ls-files", "git grep -l x", "rg -l x", "rg --files", "grep -rl x", "ls", "find .", "fd"])
def test_a_real_lister_prints_names_below_these_folders_alone(words: str, tmp_path: Path) -> None:
    (tmp_path / "sub/deep").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt", "sub/.hidden"):
        (tmp_path / name).write_text("x\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    assert finder(words.split()) is not None
    for folder in (tmp_path, tmp_path / "sub"):
        try:
            ran = subprocess.run(shlex.split(words), cwd=folder, capture_output=True, text=True, timeout=20, check=False)
        except FileNotFoundError:
            pytest.skip("it is not installed here")
        for name in ran.stdout.splitlines():
            assert (folder / name).resolve().is_relative_to(folder), name
