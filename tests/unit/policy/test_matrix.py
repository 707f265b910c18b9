"""The permission matrix: what is not in it is denied, and its bounds hold."""

import json
from typing import Any

import pytest

from console.domain.calls.permission import Verdict
from console.domain.errors import UsageProblem
from console.policy.files.paths import NoFiles
from console.policy.matrix import judge_row, params_of, read_matrix
from tests.fakes.policy_disk import PolicyDisk

# As in the source documents.
ROWS = {
    "file_read": {"paths": ["/workspace/data/**"], "max_size": "1MB"},
    "file_write": "DENIED",
    "db_query": {"databases": ["analytics"], "write": False},
    "email": {"action": "draft_only", "send": False},
    "http": {"methods": ["GET"], "domains": ["api.internal", "*.example.org"]},
    "git": {"actions": ["status", "log"]},
}
MATRIX = read_matrix({"tools": ROWS}, "/workspace")


def verdict(tool: str, action: str = "", **params: Any) -> Verdict:
    return judge_row(MATRIX, tool, action, params, "/workspace", PolicyDisk()).verdict


@pytest.mark.parametrize(
    ("tool", "action", "params"),
    [
        ("file_read", "read", {"path": "data/x.csv", "size": 1024}),
        ("file_read", "read", {"path": "/workspace/data/x.csv", "size": 1048576}),
        ("db_query", "read", {"database": "analytics"}),
        ("email", "draft", {}),
        ("http", "", {"url": "https://api.internal/x"}),
        ("http", "", {"url": "https://a.example.org/", "method": "get"}),
        ("git", "log", {}),
    ],
)
def test_within_its_bounds(tool: str, action: str, params: dict[str, Any]) -> None:
    assert verdict(tool, action, **params) == "allow"


@pytest.mark.parametrize(
    ("tool", "action", "params"),
    [
        ("nothing", "", {}),
        ("file_write", "write", {"path": "data/x"}),
        ("file_read", "read", {"path": "/etc/passwd", "size": 1}),
        ("file_read", "read", {"path": "data/../a.txt", "size": 1}),
        ("file_read", "read", {"path": "inside/x.csv", "size": 1}),
        ("file_read", "read", {"path": "data/x.csv", "size": 1048577}),
        ("file_read", "read", {"path": "data/x.csv", "size": True}),
        ("file_read", "read", {"path": "data/x.csv", "size": -1}),
        ("file_read", "read", {"path": "data/x.csv"}),
        ("file_read", "read", {"size": 1}),
        ("db_query", "read", {"database": "billing"}),
        ("db_query", "read", {}),
        ("db_query", "write", {"database": "analytics"}),
        ("db_query", "", {"database": "analytics"}),
        ("email", "send", {}),
        ("email", "", {}),
        ("http", "", {"url": "https://api.internal/", "method": "PUT"}),
        ("http", "", {"url": "https://evil.example/"}),
        ("http", "", {"url": "https://api.internal@evil.example/"}),
        ("http", "", {}),
        ("git", "push", {}),
    ],
)
def test_outside_of_them(tool: str, action: str, params: dict[str, Any]) -> None:
    assert verdict(tool, action, **params) == "deny"


@pytest.mark.parametrize(
    "row",
    [
        1,
        "allowed",
        {"typo": 1},
        {"paths": "x"},
        {"paths": ["relative"]},
        {"max_size": "1XB"},
        {"max_size": -1},
        {"max_size": True},
        {"write": "no"},
        {"action": "all"},
        {"methods": [1]},
    ],
)
def test_mistakes_are_refused(row: object) -> None:
    with pytest.raises(UsageProblem, match="matrix"):
        read_matrix({"tools": {"x": row}}, "/workspace")


@pytest.mark.parametrize("document", [[], {}, {"tools": []}, {"tools": {}, "more": 1}])
def test_the_document_is_read_strictly(document: object) -> None:
    with pytest.raises(UsageProblem):
        read_matrix(document, "/workspace")


BOUND = read_matrix({"tools": {"q": {"databases": ["a"], "tables": ["stats"], "write": False}}}, "/workspace")


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ({"database": "a", "table": "stats"}, "allow"),
        ({"database": "a", "table": "stats", "sql": "select * from stats"}, "allow"),
        ({"database": "a", "table": "stats", "sql": "select * from a.stats"}, "allow"),
        ({"database": "a", "table": "stats", "sql": "select * from b.stats"}, "deny"),
        ({"database": "a", "table": "stats", "sql": "select * from secrets"}, "deny"),
        ({"database": "a", "table": "stats", "sql": "select * from stats, secrets"}, "deny"),
        ({"database": "a", "table": "stats", "more": {"deep": ["delete from stats"]}}, "deny"),
        ({"database": "a", "database_name": "b", "table": "stats"}, "deny"),
        ({"database": ["a"], "table": "stats"}, "deny"),
        ('{"database": "b", "database": "a", "table": "stats"}', "deny"),
        ({"table": "stats"}, "deny"),
        ("select * from stats", "deny"),
    ],
)
def test_a_call_is_bounded_by_all_that_it_says(detail: Any, expected: str) -> None:
    params = params_of("", detail if isinstance(detail, str) and detail.startswith("{") else json.dumps(detail))
    assert judge_row(BOUND, "q", "read", params, "/workspace", NoFiles()).verdict.value == expected


def test_a_file_is_as_large_as_what_is_written() -> None:
    assert params_of("", json.dumps({"content": "äö"}))["size"] == 4
    assert params_of("", json.dumps({"content": "äö", "size": 1}))["size"] == 4
    assert params_of(json.dumps({"content": ""}), json.dumps({"content": "äö"}))["size"] == 4
    assert params_of("", json.dumps({"content": "äö", "size": "1"}))["size"] == "1"
    assert params_of("not json", "[" * 100_000)["said"] == ["[" * 100_000, "not json"]


def test_its_bounds_are_said_in_words() -> None:
    rows = read_matrix({"tools": {"a": "DENIED", "b": {"databases": [], "write": False, "max_size": "1KB", "send": False}, "c": {}}}, "/w")
    assert [row.words() for row in rows.values()] == ["denied", "databases none; at most 1,024 bytes; only reads; only drafts", "no bounds"]
