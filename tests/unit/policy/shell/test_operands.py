"""Programs whose words mean more than a description can say: archives, clients of databases, what runs what it finds."""

from __future__ import annotations

from console.policy.shell.argv import read_argv
from tests.fakes.policy_world import catalogue
from tests.unit.policy.shell.test_argv import read, uses


def test_what_an_archive_is_unpacked_to_is_a_folder_and_names_in_it() -> None:
    for text in ("tar -xf a.tgz -C out x/y", "unzip -q a.zip x/y -d out"):
        made = uses(text)
        assert {("make", "out/x/y"), ("make", "out/.")} <= set(made) and "ask" in dict(made), text
    assert ("make", ".") in uses("tar xf a") and ("ask", "") in uses("tar -xf a -C b -C c")
    assert uses("unzip a.zip -l") == [("read", "a.zip")] and ("make", "./.") in uses("unzip a.zip")
    assert uses("gunzip a.gz") == [("move", "a.gz"), ("write", "a.gz"), ("write", "a")] and uses("gzip -dc a.gz") == [("read", "a.gz")]


def test_a_client_of_a_database_reads_by_its_statement_alone() -> None:
    def kinds(*argv: str) -> set[str]:
        described = catalogue().of(argv[0])
        assert described is not None
        return {use.kind for use in read_argv(argv, described).uses}

    assert kinds("psql", "-h", "localhost", "-c", "select 1") == {"host", "sql"}
    asked: tuple[tuple[str, ...], ...] = (
        *(("psql",), ("psql", "-f", "a"), ("psql", "-c", "\\! id"), ("psql", "-c", "\\dt `id`"), ("psql", "-c", "copy a to program 'sh'")),
        *(("psql", "-c", "select 1; drop table a"), ("mysql", "-e", "select 1;\nsystem id"), ("mysql", "-e", "tee x"), ("redis-cli",)),
        *(("redis-cli", "set", "a", "b"), ("psql", "host=e.example", "-c", "select 1"), ("psql", "-o", "|sh", "-c", "select 1")),
    )  # fmt: skip
    reading = (
        ("psql", "-c", "select 1"),
        ("psql", "-c", "\\dt"),
        ("psql", "-l"),
        ("mysql", "-e", "show tables"),
        ("redis-cli", "get", "a"),
    )
    assert [argv for argv in reading if kinds(*argv) != {"sql"}] == [] == [argv for argv in asked if "ask" not in kinds(*argv)]


def test_what_fd_runs_gets_the_names_that_it_finds() -> None:
    made = read("fd -e py x src -x wc -l")
    assert (made.inners, made.places, made.way.only, made.exact) == ([("wc", "-l", "{}")], ("src",), "*.py", False)
    assert read("fd -x rm {} ; a").inners == [("rm", "{}")] and any(use.kind == "ask" for use in read("fd -x rm {//}").uses)
