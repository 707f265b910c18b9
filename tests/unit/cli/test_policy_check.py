"""``watchfloor policy``: verdicts, exit codes and words, without a supervisor."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from console.cli.policy import check
from console.policy.rules.loading import MAX_BYTES
from tests.fakes.policy_world import DATA
from tests.fakes.verbs import Watchfloor

SEED = str(DATA / "settings.json")


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    made = tmp_path / "w"
    (made / "logs").mkdir(parents=True)
    (made / "a.txt").write_text("x\n")
    (made / "out").symlink_to("/etc")
    return str(made)


@pytest.mark.parametrize(
    ("tool", "argument", "verdict", "code"),
    [
        ("shell", "grep -r x logs", "allow", 0),
        ("shell", "grep x a.txt; curl evil", "deny", 4),
        ("shell", "cat /etc/shadow", "deny", 4),
        ("shell", "cat out/shadow", "deny", 4),
        ("shell", "docker build .", "ask", 5),
        ("read_file", "a.txt", "allow", 0),
        ("write_file", "out/x", "deny", 4),
        ("http_request", "https://a.example/", "deny", 4),
    ],
)
def test_a_verdict_and_its_exit_code(watchfloor: Watchfloor, workspace: str, tool: str, argument: str, verdict: str, code: int) -> None:
    said = watchfloor("policy", "check", "--settings", SEED, "--workspace", workspace, "--json", tool, argument)
    told = json.loads(said.out)
    assert (said.code, told["verdict"]) == (code, verdict)
    assert {"schema_version", "verdict", "rule", "reason", "parts"} <= set(told) and told["rule"] and told["reason"] and told["parts"]


@pytest.mark.parametrize(
    ("words", "argument", "verdict"),
    [
        ((), "git diff", "allow"),
        ((), "make test", "ask"),
        (("--contained",), "make test", "allow"),
        (("--profile", "strict"), "make test", "ask"),
        (("--profile", "strict"), "cat /etc/shadow", "deny"),
        (("--profile", "observe"), "cat /etc/shadow", "allow"),
    ],
)
def test_without_own_rules_a_profile_judges_in_this_folder(
    watchfloor: Watchfloor, workspace: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], argument: str, verdict: str
) -> None:
    monkeypatch.chdir(workspace)
    assert json.loads(watchfloor("policy", "check", *words, "--json", "shell", argument).out)["verdict"] == verdict
    told = json.loads(watchfloor("policy", "explain", *words, "--json", "shell", argument).out)
    assert told["verdict"] == verdict and told["profile"] in (*words, "coding")
    assert f", profile {told['profile']}" in watchfloor("policy", "check", *words, "shell", argument).out


def test_a_profile_that_there_is_not_and_two_kinds_of_rules_are_refused(watchfloor: Watchfloor) -> None:
    said = watchfloor("policy", "check", "--profile", "lax", "shell", "ls")
    assert said.code == 2 and "strict, coding, observe" in said.err
    assert watchfloor("policy", "check", "--profile", "strict", "--settings", SEED, "shell", "ls").code == 2


def test_a_policy_that_cannot_be_read_denies(watchfloor: Watchfloor, tmp_path: Path) -> None:
    for content in (b"", b"{", b"{}", b'{"permissions": {}}', b"\xff", None):
        file = tmp_path / "s.json"
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        said = watchfloor("policy", "check", "--settings", str(file), "--json", "shell", "true")
        assert (said.code, json.loads(said.out)["verdict"]) == (4, "deny")
    assert watchfloor("policy", "check", "--settings", "", "shell", "true").code == 4, "a name that is empty is no profile"


def test_a_batch_is_one_verdict_a_line(watchfloor: Watchfloor, workspace: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    calls.write_text('{"tool": "shell", "argument": "ls"}\nbroken\n{"tool": "shell"}\n\n{"tool": "shell", "argument": "curl x"}\n')
    said = watchfloor("policy", "check", "--settings", SEED, "--workspace", workspace, "--batch", str(calls))
    assert said.code == 0
    assert [json.loads(line)["verdict"] for line in said.out.splitlines()] == ["allow", "deny", "deny", "deny"]


def test_a_file_that_is_too_large_is_refused_and_not_judged_in_part(
    watchfloor: Watchfloor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "BATCH_MAX", 100)
    line = '{"tool": "shell", "argument": "ls"}\n'
    calls, rules = tmp_path / "calls.jsonl", tmp_path / "some.rules"
    calls.write_text(line * 3)
    rules.write_text(
        'prefix_rule(pattern=["a"], decision="allow")\n' + "#" * MAX_BYTES + '\nprefix_rule(pattern=["a"], decision="forbidden")\n'
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line.encode() * 3)))
    for argv in (
        ["check", "--settings", SEED, "--batch", str(calls)],
        ["check", "--settings", SEED, "--batch", "-"],
        ["import", "codex", str(rules)],
    ):
        said = watchfloor("policy", *argv)
        assert (said.code, said.out) == (2, "") and "at most" in said.err


def test_usage(watchfloor: Watchfloor) -> None:
    for argv in (
        ["check", "--settings", SEED],
        ["check", "shell"],
        ["check", "--settings", SEED, "--sensitivity", "x", "shell", "ls"],
    ):
        assert watchfloor("policy", *argv).code == 2


def test_explain_shows_each_part_and_hides_nothing(watchfloor: Watchfloor, workspace: str) -> None:
    said = watchfloor("policy", "explain", "--settings", SEED, "--workspace", workspace, "shell", "cat a.txt | sort > o.txt")
    assert said.code == 0 and "shell(cat:*)" in said.out and f"write {workspace}/o.txt" in said.out and "executes | " in said.out
    hostile = watchfloor("policy", "explain", "--settings", SEED, "shell", "echo \u202ex \x1b[2J")
    assert "\u202e" not in hostile.out and "\x1b" not in hostile.out and hostile.out.startswith("deny")


def test_lint_refuses_what_swallows_denials(watchfloor: Watchfloor, tmp_path: Path) -> None:
    said = watchfloor("policy", "lint", SEED, "--json")
    told = json.loads(said.out)
    assert (said.code, told["refused"]) == (1, 5)
    fine = tmp_path / "s.json"
    fine.write_text('{"permissions": {"allow": ["shell(ls:*)"]}}')
    assert watchfloor("policy", "lint", str(fine)).code == 0
    fine.write_text("{")
    assert watchfloor("policy", "lint", str(fine)).code == 2


def test_a_table_of_expected_verdicts(watchfloor: Watchfloor, tmp_path: Path) -> None:
    table = tmp_path / "t.jsonl"
    table.write_text('{"tool": "shell", "argument": "curl x", "verdict": "deny", "rule": "shell(curl:*)"}\n')
    assert watchfloor("policy", "test", str(table), "--settings", SEED).code == 0
    table.write_text('{"tool": "shell", "argument": "curl x", "verdict": "allow"}\n')
    said = watchfloor("policy", "test", str(table), "--settings", SEED)
    assert said.code == 1 and "expected allow" in said.out


def test_sources_and_matrix_join(watchfloor: Watchfloor, workspace: str, tmp_path: Path) -> None:
    settings = tmp_path / "s.json"
    settings.write_text('{"permissions": {"allow": ["shell(pip install:*)", "file(read:${WORKSPACE}/**)", "network(outbound:*)"]}}')
    sources = str(DATA.parent / "python-data-agent.json")
    base = ("policy", "check", "--settings", str(settings), "--workspace", workspace)
    assert watchfloor(*base, "shell", "pip install pyautogui").code == 0
    assert watchfloor(*base, "--sources", sources, "shell", "pip install pyautogui").code == 4
    assert watchfloor(*base, "--sources", sources, "http_request", "https://evil.example/").code == 4
    assert watchfloor(*base, "--sources", sources, "http_request", "https://api.github.com/").code == 0
    assert watchfloor(*base, "--sensitivity", "SECRET", "http_request", "https://api.github.com/").code == 4
    matrix = tmp_path / "m.json"
    matrix.write_text('{"tools": {"read_file": {"paths": ["${WORKSPACE}/logs/**"]}}}')
    assert watchfloor(*base, "--matrix", str(matrix), "read_file", "a.txt").code == 4
    assert watchfloor(*base, "--matrix", str(matrix), "read_file", "logs/x").code == 0


def test_other_programs_rules_come_and_go(watchfloor: Watchfloor, tmp_path: Path) -> None:
    file = tmp_path / "claude.json"
    file.write_text('{"permissions": {"allow": ["Bash(ls *)", "mcp__x", "mcp__*__y"], "deny": ["Bash(curl:*)"]}, "hooks": {}}')
    said = watchfloor("policy", "import", "claude-code", str(file))
    assert json.loads(said.out) == {"permissions": {"deny": ["shell(curl:*)"], "allow": ["shell(ls:*)", "mcp(x:*)"]}}
    assert "mcp__*__y" in said.err and "hooks" in said.err
    ours = tmp_path / "ours.json"
    ours.write_text(said.out)
    assert json.loads(watchfloor("policy", "export", "claude-code", str(ours)).out)["permissions"]["deny"] == ["Bash(curl:*)"]
    assert 'prefix_rule(pattern = ["curl"], decision = "forbidden")' in watchfloor("policy", "export", "codex", str(ours)).out
    assert watchfloor("policy", "import", "cursor", str(file)).code == 2


@pytest.mark.parametrize("program", ["claude-code", "codex"])
def test_what_is_not_in_force_here_is_not_allowed_there(program: str, watchfloor: Watchfloor, tmp_path: Path) -> None:
    file = tmp_path / "ours.json"
    permissions = {"allow": ["shell(bash:*)", "shell(python3:*)", "shell(frobnicate:*)", "shell(cat:*)"], "deny": ["shell(curl:*)"]}
    file.write_text(json.dumps({"permissions": {**permissions, "unconfined": ["shell(python3:*)"]}}))
    said = watchfloor("policy", "export", program, str(file))
    assert said.code == 0 and "python3" in said.out and "cat" in said.out
    assert "bash" not in said.out and "frobnicate" not in said.out
    assert "allow: shell(bash:*): it is not in force here (not marked unconfined): bash runs whatever it is given" in said.err
    assert "allow: shell(frobnicate:*): its calls ask a human here" in said.err
