"""The one entry point: settings, scopes, matrix, sensitivity and sources joined; the worst decides."""

import json
from typing import Any

import pytest

from console.domain.calls.permission import Verdict
from console.domain.network import Sensitivity
from console.policy.judge import Call, Context, judge
from console.policy.matrix import read_matrix
from console.policy.rules.declared import Declared
from console.policy.scopes import ALL, Scope
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import context, rules, told, tools

RULES = rules(
    allow=[
        "shell(cat:*)",
        "shell(cp:*)",
        "shell(wget:*)",
        "file(read:${WORKSPACE}/**)",
        "file(write:${WORKSPACE}/**)",
        "file(delete:${WORKSPACE}/**)",
        "network(outbound:a.example)",
    ],
    deny=["file(read:/etc/shadow)", "network(outbound:evil.example)"],
)


def verdict(tool: str, argument: str, **more: Any) -> tuple[str, str]:
    found = told(context(RULES, **more), tool, argument)
    return found.verdict.value, next(part.step for part in found.parts if part.verdict is found.verdict)


@pytest.mark.parametrize(
    ("tool", "argument", "wanted"),
    [
        ("read_file", "a.txt", "allow"),
        ("Read", "/etc/shadow", "deny"),
        ("file", "read:a.txt", "allow"),
        ("file", "write:/etc/x", "ask"),
        ("file", "chmod:a.txt", "ask"),
        ("write_file", "n.txt", "allow"),
        ("delete_file", "a.txt", "allow"),
        ("apply_patch", "*** Begin Patch\n*** Add File: n.txt\n+x\n*** Update File: sub/m.txt\n@@\n-a\n+b\n*** End Patch", "allow"),
        ("apply_patch", "*** Begin Patch\n*** Add File: n.txt\n+*** Add File: /etc/x\n*** Delete File: a.txt\n*** End Patch\n", "allow"),
        ("apply_patch", "*** Begin Patch\n*** Add File: n.txt\n+x\n*** Add File: /etc/x\n+y\n*** End Patch", "ask"),
        ("apply_patch", "*** Begin Patch\n*** Update File: n.txt\n*** Move to: /etc/x\n*** End Patch", "ask"),
        ("apply_patch", "*** Begin Patch\n*** Add File: n.txt\n \t*** Delete File: /etc/x\n*** End Patch", "ask"),
        ("apply_patch", "*** Begin Patch\n*** Add File: n.txt\r\n*** Copy File: /etc/x\n*** End Patch", "ask"),
        ("apply_patch", "*** Begin Patch\n*** Add File: n.txt\x0b/../../../etc/x\n*** End Patch", "ask"),
        ("apply_patch", "*** Begin Patch\n*** Add File: ~/x\n*** End Patch", "ask"),
        ("apply_patch", "*** Add File: n.txt", "ask"),
        ("apply_patch", "n.txt", "ask"),
        ("http_request", "https://a.example/x", "allow"),
        ("http_request", "POST https://a.example/x", "allow"),
        ("http_request", "evil.example", "deny"),
        ("network", "outbound:evil.example", "deny"),
        ("network", "outbound:a.example:443", "allow"),
        ("shell", "cat a.txt", "allow"),
        ("Bash", "cat /etc/shadow", "deny"),
        ("argv", '["cat", "a.txt"]', "allow"),
        ("argv", '["cat", "$(x)"]', "allow"),
        ("argv", '["cat", "/etc/shadow"]', "deny"),
        ("argv", "cat a.txt", "deny"),
        ("argv", "[]", "deny"),
        ("argv", '["cat", "a\\u0000"]', "deny"),
        ("run_python", "print(1)", "ask"),
        ("mcp__x__y", "z", "ask"),
        ("", "x", "deny"),
        ("shell", "cat a\0b", "deny"),
        ("x\n", "y", "deny"),
        ("read_file", "x" * 2_000_000, "deny"),
        ("read_file", "\ud800", "deny"),
    ],
)
def test_tools(tool: str, argument: str, wanted: str) -> None:
    assert verdict(tool, argument)[0] == wanted


def test_no_policy_denies_everything() -> None:
    made = Context(None, PolicyDisk(), tools(), ALL, Sensitivity.PUBLIC, None, problem="line 1 is broken")
    found = judge(Call("read_file", "a.txt"), made)
    assert (found.verdict, found.reason) == (Verdict.DENY, "line 1 is broken")


def test_scopes_only_take_away() -> None:
    assert verdict("read_file", "a.txt", scopes=frozenset()) == ("deny", "scope")
    assert verdict("delete_file", "a.txt", scopes=frozenset({Scope.DELETE_FS})) == ("deny", "scope")
    assert verdict("shell", "cat a.txt", scopes=frozenset({Scope.RUN_CODE})) == ("deny", "scope"), "what a command reads needs READ_FS"
    assert verdict("shell", "cp a.txt n", scopes=frozenset({Scope.RUN_CODE, Scope.READ_FS})) == ("deny", "scope")
    assert verdict("shell", "cat a.txt > n", scopes=frozenset({Scope.RUN_CODE, Scope.READ_FS})) == ("deny", "scope")
    assert verdict("shell", "wget --max-redirect=0 -O n https://a.example/", scopes=ALL - {Scope.CALL_API}) == ("deny", "scope")
    assert verdict("shell", "cat a.txt", scopes=frozenset({Scope.RUN_CODE, Scope.READ_FS}))[0] == "allow"
    assert verdict("run_python", "x", scopes=ALL - {Scope.RUN_CODE}) == ("deny", "scope")


def test_private_data_stays() -> None:
    for level in (Sensitivity.CONFIDENTIAL, Sensitivity.SECRET):
        assert verdict("http_request", "https://a.example/", sensitivity=level) == ("deny", "sensitivity")
        assert verdict("shell", "wget --max-redirect=0 -O n https://a.example/", sensitivity=level) == ("deny", "sensitivity")
        assert verdict("mcp__x__y", "z", sensitivity=level) == ("deny", "sensitivity")
        assert verdict("read_file", "a.txt", sensitivity=level)[0] == "allow"
    assert verdict("http_request", "https://a.example/", sensitivity=Sensitivity.INTERNAL)[0] == "allow"


def test_the_matrix_restricts_what_settings_allow_and_decides_where_they_have_no_words() -> None:
    matrix = read_matrix(
        {"tools": {"read_file": {"paths": ["/workspace/data/**"]}, "query_db": {"databases": ["a"], "write": False}}}, "/workspace"
    )
    assert verdict("read_file", "data/x.csv", matrix=matrix)[0] == "allow"
    assert verdict("read_file", "a.txt", matrix=matrix) == ("deny", "matrix")
    assert verdict("write_file", "n", matrix=matrix) == ("deny", "matrix")
    assert verdict("shell", "cat a.txt", matrix=matrix) == ("deny", "matrix")
    made = context(RULES, matrix=matrix)
    assert told(made, "query_db", "select 1", params={"database": "a"}).verdict is Verdict.ALLOW
    assert told(made, "query_db", "select 1", params={"database": "b"}).verdict is Verdict.DENY
    assert told(made, "query_db", "update", action="write", params={"database": "a"}).verdict is Verdict.DENY
    assert told(context(RULES), "query_db", "select 1").verdict is Verdict.ASK


OF_THE_DOCUMENTS = read_matrix(
    {
        "tools": {
            "file_read": {"paths": ["/workspace/**"]},
            "file_write": {"max_size": "1KB"},
            "db_query": {"databases": ["a"], "write": False},
            "email": {"action": "draft_only", "send": False},
            "http": {"methods": ["GET"], "domains": ["a.example"]},
            "mcp__shop__do": {"actions": ["list"]},
            "shell": {},
        }
    },
    "/workspace",
)


@pytest.mark.parametrize(
    ("tool", "argument", "detail", "wanted"),
    [
        ("read_file", "a.txt", "", "allow"),
        ("Read", "a.txt", "", "allow"),
        ("delete_file", "a.txt", "", "deny"),
        ("write_file", "n.txt", "", "deny"),
        ("write_file", "n.txt", '{"content": "x"}', "allow"),
        ("Write", "n.txt", '{"content": "' + "x" * 1025 + '"}', "deny"),
        ("query_db", "", '{"database": "a", "sql": "select 1"}', "allow"),
        ("query_db", "", '{"database": "a", "sql": "delete from t"}', "deny"),
        ("query_db", "", '{"database": "a", "sql": "select * from t where note = 1 and word = \'delete\'"}', "allow"),
        ("execute_sql", "", '{"database": "a", "sql": "select 1"}', "allow"),
        ("mcp__postgres__query", "", '{"database": "a", "sql": "select 1"}', "allow"),
        ("mcp__postgres__query", "", '{"database": "b", "sql": "select 1"}', "deny"),
        ("mcp__postgres__query", "", '{"database": "a", "sql": "delete from t"}', "deny"),
        ("query_db call", "", '{"database": "a", "sql": "select 1"}', "allow"),
        ("query_db call", "", '{"database": "a", "sql": "delete from t"}', "deny"),
        ("mcp__x__sql_thing", "", '{"database": "a", "sql": "select 1"}', "deny"),
        ("gmail_send", "", "{}", "deny"),
        ("mcp__gmail__create_draft", "", "{}", "allow"),
        ("update_db", "", '{"database": "a", "action": "read"}', "deny"),
        ("draft_email", "", "{}", "allow"),
        ("email", "", '{"action": "draft"}', "allow"),
        ("email", "", '{"action": "send"}', "deny"),
        ("email", "", "{}", "deny"),
        ("send_email", "", '{"action": "draft"}', "deny"),
        ("http_request", "https://a.example/", "", "allow"),
        ("http_request", "https://a.example/", '{"method": "POST"}', "deny"),
        ("http_request", "GET https://a.example/", '{"method": "POST"}', "deny"),
        ("mcp__shop__do", "", '{"action": "list"}', "allow"),
        ("mcp__shop__do", "", '{"action": "buy"}', "deny"),
        ("mcp__shop__do", "", '{"action": "list", "action_name": "buy"}', "deny"),
        ("mcp__other", "", '{"action": "list"}', "deny"),
        ("shell", "cat a.txt", "", "allow"),
        ("shell", "cat /etc/shadow", "", "deny"),
    ],
)
def test_a_row_bounds_every_tool_that_does_the_same_by_all_that_its_call_says(tool: str, argument: str, detail: str, wanted: str) -> None:
    assert judge(Call(tool, argument, detail=detail), context(RULES, matrix=OF_THE_DOCUMENTS)).verdict.value == wanted


@pytest.mark.parametrize(
    ("tool", "argument", "detail", "wanted"),
    [
        ("network", "outbound:https://a.example/", "", "allow"),
        ("network", "outbound:POST https://a.example/", "", "deny"),
        ("network", "outbound:post https://a.example/", "", "deny"),
        ("http_request", "post https://a.example/", "", "deny"),
        ("file", "read:a.txt", "", "allow"),
        ("file", "append:a.txt", '{"path": "a.txt", "action": "read"}', "deny"),
        ("file", "write:n.txt", '{"content": "x"}', "deny"),
    ],
)
def test_file_and_network_are_bounded_by_what_they_do(tool: str, argument: str, detail: str, wanted: str) -> None:
    rows = {"network": {"methods": ["GET"]}, "http": {}, "file": {"paths": ["/workspace/**"]}, "file_read": {}, "file_write": "DENIED"}
    matrix = read_matrix({"tools": rows}, "/workspace")
    assert judge(Call(tool, argument, detail=detail), context(RULES, matrix=matrix)).verdict.value == wanted


def test_sources_join() -> None:
    none = Declared(web_enabled=False)
    assert verdict("http_request", "https://a.example/", declared=none) == ("deny", "sources")
    assert verdict("shell", "wget --max-redirect=0 -O n https://a.example/", declared=none) == ("deny", "sources")


def test_a_denied_call_has_nothing_to_execute() -> None:
    found = told(context(RULES), "shell", "cat a.txt && cat /etc/shadow")
    assert found.steps == () and len(found.parts) == 4
    allowed = told(context(RULES), "shell", "cat a.txt | cat - > n 2>&1")
    assert [(step.argv, step.program, step.joined) for step in allowed.steps] == [
        (("cat", "a.txt"), "/usr/bin/cat", ""),
        (("cat", "-"), "/usr/bin/cat", "|"),
    ]
    assert [(r.descriptor, r.path, r.mode, r.source) for r in allowed.steps[1].redirects] == [
        (1, "/workspace/n", "write", -1),
        (2, "", "copy", 1),
    ]
    assert json.dumps(allowed.as_json())


def test_what_acts_only_through_other_calls_is_allowed() -> None:
    found = told(context(RULES), "Agent", "{}")
    assert (found.verdict, found.rule) == (Verdict.ALLOW, "no effect of its own")


@pytest.mark.parametrize(
    ("tool", "argument", "lacks"),
    [
        ("query_db", "DELETE FROM payroll", Scope.WRITE_DB),
        ("sql_query", "DROP TABLE x", Scope.WRITE_DB),
        ("execute_sql", "SELECT 1", Scope.READ_DB),
        ("mcp__postgres__query", "SELECT 1", Scope.READ_DB),
        ("send_mail", "", Scope.SEND_EMAIL),
        ("gmail_send", "", Scope.SEND_EMAIL),
        ("mcp__stripe__create_refund", "", Scope.SPEND_MONEY),
        ("mcp__cloud-run__deploy-local-folder", "", Scope.DEPLOY),
    ],
)
def test_a_tool_needs_the_scope_of_what_it_does(tool: str, argument: str, lacks: Scope) -> None:
    assert verdict(tool, argument, scopes=ALL - {lacks}) == ("deny", "scope")
    assert verdict(tool, argument, scopes=frozenset({lacks}))[0] == "ask"
