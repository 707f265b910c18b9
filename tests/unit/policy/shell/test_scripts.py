"""Scripts that only compute pass; what may reach a file or a program does not."""

import pytest

from console.policy.shell.scripts import awk_trouble, jq_trouble, sed_trouble


@pytest.mark.parametrize(
    "script",
    [
        "p",
        "1p",
        "1,5p",
        "$d",
        "/x/d",
        "/a/,/b/p",
        "s/a/b/",
        "s/a/b/g",
        "s|a|b|2p",
        "s/a\\/b/c/",
        "y/ab/cd/",
        "1!d",
        "/x/{p;d}",
        "p;p",
        "5q",
        "s/[ab]/x/",
        "s/[[:alpha:]_]*/x/",
        "s/[^]]/x/",
        "s/a/[x]/",
        "$!N",
        "=",
        "1~2p",
        "2,+3p",
        "s/a$/b/",
        "s/a/\\n/",
    ],
)
def test_sed_that_computes(script: str) -> None:
    assert sed_trouble(script) == ""


@pytest.mark.parametrize(
    "script",
    [
        "1e",
        "e",
        "1e id",
        "s/a/b/e",
        "s/a/b/ge",
        "s/a/b/w x",
        "w x",
        "1w x",
        "r x",
        "R x",
        "W x",
        "1,2w x",
        "/x/e",
        "p;e",
        "p\ne",
        "a\\\nx",
        "s/a/b",
        "s/[/]/e;p/",
        "b",
        ":a",
        "t",
        "sxaxbxe",
        "s\na\nb\n",
        "v",
        "#n\ne",
        "1{e}",
        "}e",
        "\\xaxe",
        "s/[^]/]/e/g",
        "s/[[:alpha:]/]/g;s/e;/B/p",
        "s/[[.a.]/]/g;s/e;/B/p",
        "s/[[=a=]/]/g;s/e;/B/p",
        "s/[a\\]/]/g;s/e;/B/p",
        "/[[:alpha:]/]/p;s/e/x/",
        "$!e",
    ],
)
def test_sed_that_may_do_more(script: str) -> None:
    assert sed_trouble(script)


@pytest.mark.parametrize(
    "script", ["{print $1}", "NR==1", "/x/", "{s+=$1} END{print s}", 'BEGIN{FS=":"} {print $2}', '{gsub(/a/,"b"); print}', "length($0)<80"]
)
def test_awk_that_computes(script: str) -> None:
    assert awk_trouble(script) == ""


@pytest.mark.parametrize(
    "script",
    [
        'BEGIN{system("x")}',
        '{print | "x"}',
        '"x" | getline',
        '{print > "x"}',
        '{print >> "x"}',
        'getline < "x"',
        'BEGIN{ARGV[1]="x"}',
        '@load "x"',
        "@f()",
        'ENVIRON["X"]',
        'SYMTAB["ARGV"]',
        'close("x")',
        "sys\\\ntem()",
        '"/inet/tcp/0/h/80"',
        "|& x",
        'BEGIN{print "a",\n"b" > p}',
        'BEGIN{print "a", # ;\n"b" > p}',
        "{print 1 &&\n\n2 > p}",
        "PROCINFO[1]",
    ],
)
def test_awk_that_may_do_more(script: str) -> None:
    assert awk_trouble(script)


def test_jq_modules_are_files_that_nobody_named() -> None:
    assert (
        jq_trouble(".a | map(.b)") == ""
        and jq_trouble('import "x" as x; .')
        and jq_trouble('include "x";')
        and jq_trouble("env.TOKEN")
        and jq_trouble("$ENV.X")
        and jq_trouble("$ ENV.X")
    )


@pytest.mark.parametrize("script", ["length > 100", "NR>=10 && NR<=20", "$3 > 10 {print $1}", '{ if ($3 > 10) print "{" }'])
def test_a_sign_that_compares_writes_nothing(script: str) -> None:
    assert not awk_trouble(script)


@pytest.mark.parametrize("script", ['{print > "f"}', '{print "{" > "f"}', '/"/ {print "{" > "f" }', '{print $1 >> "f"}', "$1 > 2 | x"])
def test_a_sign_behind_a_print_may_write(script: str) -> None:
    assert awk_trouble(script)


def test_text_that_sed_puts_in_does_nothing_else() -> None:
    assert not any(map(sed_trouble, ("3i import os", "/x/a\\  text", "$a w /etc/x", "1c x\ns/a/b/")))
    assert all(map(sed_trouble, ("3i", "a x\\", "a x\\\ne id", "1c x\ne id", "w x", "r x")))
