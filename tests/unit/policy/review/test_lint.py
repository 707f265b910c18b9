"""What is wrong with a policy that can be read."""

from pathlib import Path

import pytest

from console.policy.review.lint import Finding, Severity, lint
from console.policy.rules.loading import read_settings
from tests.fakes.policy_world import DATA, catalogue, rules

DENY = ["shell(curl:*)", "file(read:/etc/shadow)", "network(outbound:*)"]


def found(rule: str, **more: list[str]) -> list[Finding]:
    return list(lint(rules(allow=[rule], **{"deny": DENY, **more}), catalogue()))


@pytest.mark.parametrize(
    "program",
    [
        "bash",
        "sh",
        "zsh",
        "find",
        "xargs",
        "python",
        "python3",
        "python3.11",
        "node",
        "env",
        "docker",
        "make",
        "sudo",
        "perl",
        "ruby",
        "npm",
        "npx",
        "vim",
        "less",
        "ssh",
        "awkward-not",
    ][:-1]
    + ["busybox", "kubectl", "parallel", "watch", "nsenter", "setsid", "strace", "gdb", "cargo", "pytest"],
)
def test_rules_that_swallow_denials_are_refused_with_what_they_swallow(program: str) -> None:
    [first, *_] = found(f"shell({program}:*)")
    assert first.severity is Severity.REFUSED and "shell(curl:*)" in first.swallows


def test_marked_unconfined_it_is_a_note_that_still_says_what() -> None:
    [first] = found("shell(bash:*)", unconfined=["shell(bash:*)"])
    assert first.severity is Severity.NOTE and first.swallows == tuple(DENY)


@pytest.mark.parametrize("program", ["grep", "cat", "git status", "ls", "timeout", "nice", "sed", "awk", "sort", "tar", "cp"])
def test_described_programs_swallow_nothing(program: str) -> None:
    assert not [one for one in found(f"shell({program}:*)") if one.severity is Severity.REFUSED]


def test_programs_that_agents_can_change() -> None:
    assert found("shell(./run.sh:*)")[0].severity is Severity.REFUSED and found("shell(/workspace/x:*)")[0].severity is Severity.REFUSED
    assert found("shell(*)")[0].severity is Severity.REFUSED


def test_rules_that_never_decide_and_rules_that_say_less_than_they_seem() -> None:
    assert "never decides" in found("shell(curl -s:*)")[0].what
    assert "reaches no host" in found("shell(git clone:*)")[0].what
    assert "not described" in found("shell(mytool:*)")[0].what
    assert "means nothing" in found("file(read:/w/**:*)")[0].what
    assert "whole disk" in found("file(read:/**)")[0].what


def test_the_source_documents_example_deserves_these() -> None:
    read = read_settings(Path(DATA / "settings.json").read_bytes(), "ctx-abc123")
    every = lint(read, catalogue())
    refused = {one.rule for one in every if one.severity is Severity.REFUSED}
    assert refused == {"shell(find:*)", "shell(python:*)", "shell(python3:*)", "shell(sh:*)", "shell(bash:*)"}
    assert all(len(one.swallows) == 16 for one in every if one.rule in ("shell(python:*)", "shell(bash:*)"))
    warned = {one.rule for one in every if one.severity is Severity.WARNING}
    assert warned == {
        "shell(pip install:*)",
        "shell(git clone:*)",
        "file(read:/etc/shadow:*)",
        "file(write:/etc/**:*)",
        "file(read:/proc/**:*)",
    }
