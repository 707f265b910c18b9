"""Options and operands as getopt_long reads them; what is not described asks."""

import pytest

from console.policy.shell.argv import read_argv
from console.policy.shell.operands import Reading
from tests.fakes.policy_world import catalogue


def read(line: str) -> Reading:
    argv = tuple(line.split())
    described = catalogue().of(argv[0])
    assert described is not None
    return read_argv(argv, described)


def uses(line: str) -> list[tuple[str, str]]:
    return [(use.kind, use.value) for use in read(line).uses]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cat a b", [("read", "a"), ("read", "b")]),
        ("cat -", []),
        ("cat -- -n", [("read", "-n")]),
        ("grep x a", [("read", "a")]),
        ("grep -e x a", [("read", "a")]),
        ("grep -ex a", [("read", "a")]),
        ("grep a --regexp=x", [("read", "a")]),
        ("grep -rnf p a", [("read", "p"), ("read", "a")]),
        ("sort -o x a", [("write", "x"), ("read", "a")]),
        ("sort -uox a", [("write", "x"), ("read", "a")]),
        ("sort --output=x a", [("write", "x"), ("read", "a")]),
        ("sort -n --output x a", [("write", "x"), ("read", "a")]),
        ("touch -nr x a", [("ask", "-nr"), ("list", "x"), ("make", "x"), ("make", "a")]),
        ("touch -nrx a", [("ask", "-nrx"), ("list", "x"), ("make", "a")]),
        ("touch -nd x a", [("ask", "-nd"), ("make", "x"), ("make", "a")]),
        ("grep x -rf", [("ask", "-f"), ("read", "x"), ("read", ".")]),
        ("uniq a b", [("read", "a"), ("write", "b")]),
        ("head -5 a", [("read", "a")]),
        ("cp a b c", [("read", "a"), ("read", "b"), ("into", "c")]),
        ("cp -t d a b", [("read", "a"), ("read", "b"), ("into", "d")]),
        ("mv a b", [("move", "a"), ("into", "b")]),
        ("curl -o x u", [("write", "x"), ("url", "u")]),
        ("git clone u d", [("remote", "u"), ("write", "d")]),
        ("git diff --output=x y", [("write", "x"), ("maybe", "y"), ("tracked", ".")]),
        ("git diff -- y", [("maybe", "y")]),
        ("git show HEAD", [("maybe", "HEAD"), ("tracked", ".")]),
        # A value that is only ever glued takes no word: what follows is a file.
        ("od -c -w a", [("read", "a")]),
        ("cp --preserve a b c", [("read", "a"), ("read", "b"), ("into", "c")]),
        ("cp --reflink a b", [("read", "a"), ("into", "b")]),
        ("rm --interactive a -f", [("delete", "a")]),
        ("df --output a", [("list", "a")]),
        ("git diff -U a -- b", [("maybe", "a"), ("maybe", "b")]),
        ("git log -U a", [("maybe", "a")]),
        ("diff a -", [("follow", "a")]),
        ("diff -r --no-dereference a b", [("read", "a"), ("read", "b")]),
        ("dd if=a of=/dev/sda bs=4k", [("read", "a"), ("device", "/dev/sda")]),
        ("ls -R a", [("read", "a")]),
        ("ls a", [("list", "a")]),
        ("split a", [("read", "a"), ("make", ".")]),
        ("unzip -l a x", [("read", "a")]),
        ("wget --max-redirect=0 -O x u", [("write", "x"), ("url", "u"), ("make", ".")]),
    ],
)
def test_what_arguments_do(line: str, found: list[tuple[str, str]]) -> None:
    assert uses(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "sort --outp=x a",
        "cat -Q a",
        "cat --bogus",
        "git bogus",
        "find . -bogus",
        "sed 1e",
        "awk system()",
        "jq -f x",
        "xargs",
        "cp a",
        "pip install -r x",
        "git --git-dir=x status",
        "sort -k",
        "cat --number=3",
        "dd x",
        "dd bogus=x",
        "xxd -ps x",
        "xxd -cols -s x",
        "column -n -s x",
        "strings @x",
        "tree -Po x y",
        "awk --assign 1 2 x",
        "git fetch",
        "wget --max-redirect=0 --max-redirect=9 -O x u",
        "wget -U --max-redirect=0 -O x u",
        "wget --max-redirect=0 u",
    ],
)
def test_what_is_not_described_asks(line: str) -> None:
    assert any(kind == "ask" for kind, _ in uses(line))


@pytest.mark.parametrize(
    "line", ["git -c a=b log", "git -ca=b log", "sort --compress-program x", "rg --pre=x y", "tar -Ix -tf a", "printf -v x y", "env -S x"]
)
def test_options_that_run_programs_say_so(line: str) -> None:
    assert any(kind == "run" for kind, _ in uses(line))


@pytest.mark.parametrize(
    ("setting", "runs"),
    [
        *((harmless, False) for harmless in ("user.name=a b", "user.email=a@b", "USER.Name=x", "color.ui=always", "core.quotePath=false")),
        *((harmless, False) for harmless in ("advice.detachedHead=false", "init.defaultBranch=main", "commit.gpgsign=false", "user.name")),
        *(
            (program, True)
            for program in ("core.pager=x", "core.fsmonitor=x", "alias.x=!sh", "diff.external=x", "color.x.y=1", "core.editor=x")
        ),
        *(
            (program, True)
            for program in ("commit.gpgsign=true", "log.showSignature=true", "include.path=x", "user.signingkey=x", "xuser.name=y")
        ),
    ],
)
def test_a_setting_of_git_runs_a_program_unless_it_is_known_to_name_none(setting: str, runs: bool) -> None:
    git = catalogue().of("git")
    assert git is not None
    for argv in (("git", "-c", setting, "log"), ("git", f"-c{setting}", "log"), ("git", "-C", "src", "-c", setting, "commit", "-m", "x")):
        assert any(use.kind == "run" for use in read_argv(argv, git).uses) is runs, argv


@pytest.mark.parametrize(
    ("line", "inner", "exact"),
    [
        ("timeout -k 1 5 a b", ("a", "b"), True),
        ("nice -n 5 a", ("a",), True),
        ("nice -5 a -x", ("a", "-x"), True),
        ("env -u X a", ("a",), True),
        ("xargs -n 1 a b", ("a", "b"), False),
        ("xargs --max-lines a b", ("a", "b"), False),
        ("find . -exec a {} ;", ("a", "{}"), False),
        ("find . -execdir a {} +", ("a", "{}"), False),
        ("stdbuf -oL a", ("a",), True),
        ("nohup a", ("a",), True),
        ("env X=1 a", ("X=1", "a"), True),
    ],
)
def test_wrappers_are_unwrapped(line: str, inner: tuple[str, ...], exact: bool) -> None:
    found = read(line)
    assert (found.inners, found.exact) == ([inner], exact)


def test_a_file_of_awk_with_an_equals_sign_is_a_file() -> None:
    assert uses("awk 1 x=1 a") == [("read", "a")]
    assert uses("awk 1 a\u00e9=/../x") == [("read", "a\u00e9=/../x")]


def test_find_names_what_it_removes_and_writes() -> None:
    assert ("delete", "d") in uses("find d -name x -delete")
    assert ("write", "/etc/x") in uses("find d -fprint /etc/x")
    assert len(read("find . -exec a ; -exec b ;").inners) == 2


def test_words_of_a_rule_are_subcommands_and_operands() -> None:
    assert read("git -C sub status -s x").words == ("status", "x")


@pytest.mark.parametrize("line", ["lsof -i@x.e", "lsof -i TCP@x.e:80", "ss dst x.e", "ss -t src = 1x.e", "ss dst eq 1.2.3.4.x.e"])
def test_a_filter_of_connections_that_looks_up_a_host_asks(line: str) -> None:
    assert "ask" in {kind for kind, _ in uses(line)}


@pytest.mark.parametrize("line", ["lsof -i:80", "lsof -i@127.0.0.1:80", "ss dst eq 10.0.0.1", "ss sport = :http", "ss state established"])
def test_a_filter_with_numbers_does_not(line: str) -> None:
    assert "ask" not in {kind for kind, _ in uses(line)}
