"""Rules of other programs and ours: what was carried over and what was lost."""

import json

import pytest

from console.domain.errors import UsageProblem
from console.policy.review.exchange import Carried, Lost, from_claude_code, from_codex, to_claude_code, to_codex
from console.policy.rules.loading import read_settings
from tests.fakes.policy_world import rules


def test_rules_once_and_losses_with_their_reason() -> None:
    made = Carried()
    made.put("deny", "shell(curl:*)")
    made.put("deny", "shell(curl:*)")
    made.lose("x", "y")
    assert made.settings() == {"permissions": {"deny": ["shell(curl:*)"]}} and made.lost == [Lost("x", "y")]


def imported(kind: str, rule: str, home: str = "/home/u") -> tuple[list[str], int]:
    made = from_claude_code({"permissions": {kind: [rule]}}, "/p", home)
    return getattr(made, kind), len(made.lost)


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("Bash(git status:*)", ["shell(git status:*)"]),
        ("Bash(git status *)", ["shell(git status:*)"]),
        ("Bash(git status)", ["shell(git status)"]),
        ("Read(//etc/hosts)", ["file(read:/etc/hosts)", "file(read:/etc/hosts/**)"]),
        ("Read(~/x)", ["file(read:/home/u/x)", "file(read:/home/u/x/**)"]),
        ("Read(/src/**)", ["file(read:/p/src/**)"]),
        ("Read(.env)", ["file(read:/p/**/.env)", "file(read:/p/**/.env/**)"]),
        ("Read(./a/b)", ["file(read:/p/a/b)", "file(read:/p/a/b/**)"]),
        ("Edit(/src/**)", ["file(write:/p/src/**)", "file(delete:/p/src/**)"]),
        ("WebFetch(domain:*.example.com)", ["network(outbound:*.example.com)"]),
        ("WebFetch", ["network(outbound:*)"]),
        ("Read", ["file(read:/**)"]),
        ("mcp__git-hub__get_issue", ["mcp(git-hub:get_issue)"]),
        ("mcp__docs", ["mcp(docs:*)"]),
        ("mcp__docs__*", ["mcp(docs:*)"]),
    ],
)
def test_what_is_carried_over_whole(rule: str, found: list[str]) -> None:
    assert imported("deny", rule) == (found, 0)


@pytest.mark.parametrize(
    "rule",
    [
        "Bash(git * main)",
        "Read(~/x)",
        "Read(!x)",
        "Read(../x)",
        "mcp__a__b__c",
        "mcp__a__b(x)",
        "mcp__*__b",
        "Agent(x)",
        "WebSearch",
        "WebFetch(x)",
        "Task",
        "",
        3,
        "Bash(",
        "WebFetch(domain:a b)",
    ],
)
def test_what_cannot_be_is_said_and_never_allowed(rule: object) -> None:
    made = from_claude_code({"permissions": {"allow": [rule]}}, "/p")
    assert made.allow == [] and len(made.lost) == 1


def test_a_denial_becomes_wider_rather_than_lost() -> None:
    assert imported("deny", "Bash(git * main)") == (["shell(git:*)"], 1)
    assert imported("deny", "Bash(rm -rf*)") == (["shell(rm:*)"], 1)
    made = from_claude_code({"permissions": {"deny": ["Bash(*curl*)"]}})
    assert made.deny == [] and "CANNOT BE KEPT" in made.lost[0].why


def test_everything_else_in_the_file_is_said() -> None:
    made = from_claude_code({"hooks": {}, "permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["/x"]}})
    assert [one.what.split(" ")[0] for one in made.lost] == ["hooks", "permissions.defaultMode", "permissions.additionalDirectories"]
    wrongs: list[object] = [[], {"permissions": []}, {"permissions": {"allow": "x"}}]
    for wrong in wrongs:
        with pytest.raises(UsageProblem):
            from_claude_code(wrong)


def test_what_was_imported_can_be_read() -> None:
    made = from_claude_code(
        {"permissions": {"allow": ["Bash(ls *)", "Read(/**)"], "ask": ["Bash"], "deny": ["Bash(curl:*)", "Read(.env)"]}}
    )
    read = read_settings(json.dumps(made.settings()).encode())
    assert [rule.text for rule in read.ask] == ["shell(*)"] and len(read.deny) == 3


def test_ours_in_its_words_and_what_is_lost() -> None:
    document, made = to_claude_code(
        rules(
            allow=["shell(ls:*)", "file(read:${WORKSPACE}/**)", "file(delete:${WORKSPACE}/**)", "network(outbound:a.example:8080)"],
            ask=["shell(git push)"],
            deny=["network(outbound:*)", "file(write:/etc/**)", "file(read:/{a,b})"],
        )
    )
    assert document["permissions"] == {
        "deny": ["WebFetch", "Edit(//etc/**)"],
        "ask": ["Bash(git push)"],
        "allow": ["Bash(ls:*)", "Read(//workspace/**)"],
    }
    assert [one.what for one in made.lost][:3] == [
        "deny: file(read:/{a,b})",
        "allow: file(delete:${WORKSPACE}/**)",
        "allow: network(outbound:a.example:8080)",
    ]


def test_its_sandbox_mode() -> None:
    made = from_codex(
        b'sandbox_mode = "workspace-write"\napproval_policy = "never"\nmodel = "x"\n'
        b'[sandbox_workspace_write]\nwritable_roots = ["/data", "x"]\n'
    )
    assert made.allow == ["file(read:/**)", "file(write:${WORKSPACE}/**)", "file(delete:${WORKSPACE}/**)", "file(write:/data/**)"]
    assert made.deny == ["network(outbound:*)"]
    assert [one.what.split(" ")[0] for one in made.lost] == ["writable_roots:", "approval_policy", "model"]
    assert from_codex(b'sandbox_mode = "read-only"').allow == ["file(read:/**)"]
    assert from_codex(b'sandbox_mode = "new"').allow == []
    assert read_settings(json.dumps(made.settings()).encode()).deny


def test_its_prefix_rules() -> None:
    text = b"""
prefix_rule(pattern = ["git", ["push", "fetch"]], decision = "prompt")
prefix_rule(pattern = ["rm"], decision = "forbidden", justification = "no")
prefix_rule(pattern = ["ls"])
prefix_rule(pattern = ["a b"], decision = "forbidden")
prefix_rule(pattern = ["x"], decision = "maybe")
prefix_rule(pattern = [open("/etc/passwd")])
load("x")
"""
    made = from_codex(text)
    assert (made.ask, made.deny, made.allow) == (["shell(git push:*)", "shell(git fetch:*)"], ["shell(rm:*)"], ["shell(ls:*)"])
    assert len(made.lost) == 4 and "CANNOT BE KEPT" in made.lost[0].why


@pytest.mark.parametrize("data", [b"\xff", b"= x", b"prefix_rule(", b"prefix_rule(pattern = " + b"[" * 500])
def test_what_is_neither_is_refused(data: bytes) -> None:
    with pytest.raises(UsageProblem):
        from_codex(data)


def test_ours_in_its_words_and_back() -> None:
    text, made = to_codex(
        rules(allow=["shell(ls:*)", "shell(git status)", "file(read:/x)"], ask=["shell(git push:*)"], deny=["shell(curl:*)", "shell(*)"])
    )
    back = from_codex(text.encode())
    assert (back.deny, back.ask, back.allow) == (["shell(curl:*)"], ["shell(git push:*)"], ["shell(ls:*)"])
    assert [one.what for one in made.lost][:3] == ["deny: shell(*)", "allow: shell(git status)", "allow: file(read:/x)"]
