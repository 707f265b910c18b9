"""Codex's configuration and ours."""

import json

import pytest

from console.domain.errors import UsageProblem
from console.policy.codex import from_codex, to_codex
from console.policy.loading import read_settings
from tests.fakes.policy_world import rules


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
