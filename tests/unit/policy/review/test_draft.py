"""A drafted rule lets exactly its request through, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.calls.permission import Verdict
from console.policy.review.draft import draft
from tests.fakes.policy_world import context, rules, told

ALLOWED = ["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)"]


def drafted(tool: str, argument: str, **lists: list[str]) -> tuple[str, ...]:
    made = context(rules(**({"allow": ALLOWED} | lists)))
    return draft(told(made, tool, argument), "/workspace")


@pytest.mark.parametrize(
    ("tool", "argument", "made"),
    [
        ("shell", "touch a.txt", ("shell(touch a.txt)",)),
        ("shell", "cat /srv/data", ("shell(cat /srv/data)", "file(read:/srv/data)")),
        ("read_file", "/srv/a[1]*.txt", ("file(read:/srv/a\\[1\\]\\*.txt)",)),
        ("http_request", "https://api.example.org/x", ("network(outbound:api.example.org)",)),
        ("shell", "curl https://api.example.org/x", ("shell(curl https://api.example.org/x)", "network(outbound:api.example.org)")),
    ],
)
def test_what_asked_would_be_allowed_and_its_neighbours_would_not(tool: str, argument: str, made: tuple[str, ...]) -> None:
    assert drafted(tool, argument) == made
    after = context(rules(allow=[*ALLOWED, *made]))
    assert told(after, tool, argument).verdict is Verdict.ALLOW
    for other in (f"{argument}x", f"{argument} -f", f"{argument}; id", argument.replace("example.org", "evil.example.org.evil")):
        if other != argument:
            assert told(after, tool, other).verdict is not Verdict.ALLOW or (tool, other[-1]) == ("http_request", "x")


@pytest.mark.parametrize(
    ("tool", "argument", "lists"),
    [
        ("shell", "touch 'a b'", {}),
        ("shell", "touch a$(id)", {}),
        ("shell", "git push --force", {}),
        ("shell", "touch a.txt", {"ask": ["shell(touch:*)"]}),
        ("shell", "touch a.txt", {"deny": ["shell(touch:*)"]}),
        ("launch_rocket", "now", {}),
        ("shell", "touch a.txt", {"allow": ["shell(touch:*)", *ALLOWED]}),
    ],
)
def test_what_no_allow_rule_can_say_is_not_drafted(tool: str, argument: str, lists: dict[str, list[str]]) -> None:
    assert drafted(tool, argument, **lists) == ()


@given(st.text(min_size=1, max_size=30))
def test_hostile_words_never_make_a_wider_rule(word: str) -> None:
    for rule in drafted("shell", f"touch {word}"):
        assert ":*" not in rule and "**" not in rule.replace("${WORKSPACE}/**", "")
