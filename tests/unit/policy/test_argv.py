"""Options and operands as getopt_long reads them; what is not described asks."""

import pytest

from console.policy.argv import Reading, read_argv
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
        ("uniq a b", [("read", "a"), ("write", "b")]),
        ("head -5 a", [("read", "a")]),
        ("cp a b c", [("read", "a"), ("read", "b"), ("into", "c")]),
        ("cp -t d a b", [("read", "a"), ("read", "b"), ("into", "d")]),
        ("mv a b", [("move", "a"), ("into", "b")]),
        ("curl -o x u", [("write", "x"), ("url", "u")]),
        ("git clone u d", [("remote", "u"), ("write", "d")]),
        ("git diff --output=x y", [("write", "x"), ("maybe", "y"), ("read", ".")]),
        ("git diff -- y", [("maybe", "y")]),
        ("git show HEAD", [("maybe", "HEAD"), ("read", ".")]),
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
        "tar xf a",
        "tar -xf a",
        "tail -f a",
        "grep -R x",
        "find -L .",
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
        "dd if=x",
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
    ("line", "inner", "exact"),
    [
        ("timeout -k 1 5 a b", ("a", "b"), True),
        ("nice -n 5 a", ("a",), True),
        ("nice -5 a -x", ("a", "-x"), True),
        ("env -u X a", ("a",), True),
        ("xargs -n 1 a b", ("a", "b"), False),
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


def test_find_names_what_it_removes_and_writes() -> None:
    assert ("delete", "d") in uses("find d -name x -delete")
    assert ("write", "/etc/x") in uses("find d -fprint /etc/x")
    assert len(read("find . -exec a ; -exec b ;").inners) == 2


def test_words_of_a_rule_are_subcommands_and_operands() -> None:
    assert read("git -C sub status -s x").words == ("status", "x")
