"""What a call is a step of, and what completes a pattern."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from console.api.policy import policy_data
from console.domain.calls.lineage import UNKNOWN, Match, Seen
from console.policy.judge import Call, judge, tool_named
from console.policy.sequences.find import MARKS_MAX, advance, matches_of, things_of
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import context, rules, tools

ALLOWED = rules(
    allow=[
        *(f"shell({name}:*)" for name in ("cat", "grep", "timeout", "mv", "cp", "curl", "id", "sudo", "chmod", "bash", "ls")),
        *(f"file({action}:/workspace/**)" for action in ("read", "write", "delete")),
        "network(outbound:*)",
    ]
)


def steps(tool: str, argument: str, detail: str = "") -> dict[str, tuple[Seen, ...]]:
    """Of the built-in patterns: what a call may be."""
    found = judge(Call(tool, argument), context(ALLOWED))
    things = things_of(tool, argument, detail, tool_named(Call(tool, argument), tools()), found, PolicyDisk())
    return {match.pattern: match.seen for match in matches_of(policy_data.sequences(), things)}


CREDENTIAL = "credential-then-network"


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("read_file", ".env"),
        ("file", "read:.env"),
        ("Read", "/workspace/deep/er/.ssh/id_rsa"),
        ("shell", "cat .env"),
        ("shell", "cat ./x/../.env"),
        ("shell", "timeout 5 cat a.txt .env"),
        ("shell", "mv .env innocent.txt"),
        ("shell", "cp .env innocent.txt"),
        ("shell", "cat < .env"),
        ("shell", "grep -r TOKEN ."),
        ("argv", '["cat", ".env"]'),
        ("read_secret", "name"),
        ("mcp__vault__get_secret", "name"),
        ("shell", "vault kv get x"),
    ],
)
def test_every_way_to_read_a_credential_is_the_first_step(tool: str, argument: str) -> None:
    assert [seen.step for seen in steps(tool, argument)[CREDENTIAL]][0] == 0


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("http_request", "POST https://x.example/"),
        ("network", "outbound:x.example"),
        ("WebFetch", "https://x.example/"),
        ("send_email", "to a@x.example"),
        ("shell", "curl https://x.example/"),
        ("shell", "timeout 5 curl -d @a https://x.example/"),
        ("mcp__slack__post", "hello"),
        ("WebSearch", "words"),
    ],
)
def test_every_way_out_is_the_second(tool: str, argument: str) -> None:
    assert {seen.step for seen in steps(tool, argument)[CREDENTIAL]} >= {1}


@pytest.mark.parametrize(
    ("tool", "argument"), [("shell", "cat a.txt"), ("shell", "ls -la"), ("read_file", "env"), ("Task", "x"), ("write_file", ".env")]
)
def test_what_is_neither_is_no_step(tool: str, argument: str) -> None:
    assert CREDENTIAL not in steps(tool, argument)


def test_a_listing_is_no_elevation_by_itself_and_wrapped_ones_are_both_seen() -> None:
    name = "listing-then-elevation"
    assert {seen.step for seen in steps("shell", "id")[name]} == {0}
    assert {seen.step for seen in steps("shell", "timeout 5 chmod u+s a")[name]} == {1}
    listing = judge(Call("shell", "sudo -l"), context(ALLOWED))
    assert listing.verdict == "deny"


def tables(argument: str, detail: str = "", tool: str = "update_db") -> tuple[str, ...]:
    return steps(tool, argument, detail)["write-then-verify"][0].values


@pytest.mark.parametrize(
    ("argument", "detail", "expected"),
    [
        ("UPDATE users SET a = 1", "", ("users",)),
        ('insert into "public"."Users" values (1)', "", ("users",)),
        ("insert/**/into/* from x */users values(1)", "", ("users",)),
        ("x", '{"table": "Users"}', ("users",)),
        ("save it", "", (UNKNOWN,)),
        ("EXECUTE 'update ' || name", "", (UNKNOWN,)),
        ("UPDATE users SET a = 1; DELETE FROM orders", "", ("users", "orders")),
    ],
)
def test_the_table_of_a_write_is_told_or_taken_for_any(argument: str, detail: str, expected: tuple[str, ...]) -> None:
    assert tables(argument, detail) == expected


def match(*seen: Seen, same: bool = False, steps: tuple[str, ...] = ("one", "two")) -> Match:
    return Match("p", "why", steps, same, seen)


def test_the_last_step_completes_only_after_those_before_it() -> None:
    assert advance((), [match(Seen(1, 0))]).completes is None
    assert advance((("p", "one", ""),), [match(Seen(1, 0))]).completes is not None
    assert advance((("q", "one", ""),), [match(Seen(1, 0))]).completes is None, "another pattern's"
    three = ("one", "two", "three")
    assert advance((("p", "one", ""),), [match(Seen(2, 0), steps=three)]).completes is None
    assert advance((("p", "one", ""),), [match(Seen(1, 0), Seen(2, 1), steps=three)]).completes is not None, "two things of one call"


def test_one_thing_takes_no_two_steps_and_two_things_of_a_call_do() -> None:
    assert advance((), [match(Seen(0, 0), Seen(1, 0))]).completes is None
    assert advance((), [match(Seen(0, 0), Seen(1, 1))]).completes is not None
    assert advance((("p", "one", ""),), [match(Seen(0, 0), Seen(1, 0))]).completes is not None


def test_the_same_table_is_asked_for_and_what_is_not_known_is_any() -> None:
    marks = (("p", "one", "users"),)
    assert advance(marks, [match(Seen(1, 0, ("orders",)), same=True)]).completes is None
    assert advance(marks, [match(Seen(1, 0, ("users",)), same=True)]).completes is not None
    assert advance(marks, [match(Seen(1, 0, (UNKNOWN,)), same=True)]).completes is not None
    assert advance((("p", "one", UNKNOWN),), [match(Seen(1, 0, ("v",)), same=True)]).completes is not None


def test_no_flood_of_names_makes_it_forget() -> None:
    marks = [("p", "one", f"t{n}") for n in range(MARKS_MAX)]
    taken = advance(marks, [match(Seen(0, 0, ("new",)), same=True)]).taken
    assert [value for _match, _step, value in taken] == [UNKNOWN]


def marks_of(tool: str, argument: str) -> list[tuple[str, str, str]]:
    taken = advance((), seen_in(tool, argument)).taken
    return [(one.pattern, name, value) for one, name, value in taken if one.pattern == "write-then-verify"]


def seen_in(tool: str, argument: str) -> list[Match]:
    found = judge(Call(tool, argument), context(ALLOWED))
    return list(
        matches_of(policy_data.sequences(), things_of(tool, argument, "", tool_named(Call(tool, argument), tools()), found, PolicyDisk()))
    )


@pytest.mark.parametrize("tool", ["sql_query", "mcp__postgres__query", "execute_sql"])
def test_a_table_that_was_written_is_not_verified_whatever_the_tool_is_called(tool: str) -> None:
    marks = marks_of(tool, "INSERT INTO payroll SELECT * FROM hours")
    assert marks == [("write-then-verify", "writes a table", "payroll")]
    assert completes(marks, "query_db", "SELECT * FROM public.payroll")
    assert completes(marks, "query_db", "WITH x AS (SELECT * FROM payroll) SELECT * FROM x")
    assert not completes(marks, "query_db", "SELECT * FROM hours WHERE note = 'payroll'"), "a word is no table"
    assert not completes(marks, tool, "UPDATE payroll SET a = 1")
    assert completes(marks, tool, "UPDATE payroll SET a = 1 RETURNING *")
    assert completes([], tool, "INSERT INTO t VALUES (1); SELECT * FROM t")
    assert not completes([], tool, "UPDATE t SET a = 1 RETURNING *"), "one statement is no sequence"
    assert not marks_of(tool, "BEGIN; SELECT 1; COMMIT")


def completes(marks: Iterable[tuple[str, str, str]], tool: str, argument: str) -> bool:
    found = advance(list(marks), seen_in(tool, argument)).completes
    return found is not None and found.pattern == "write-then-verify"
