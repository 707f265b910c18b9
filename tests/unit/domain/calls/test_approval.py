"""What a decision is bound to, and which requests look alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import Approval, ApprovalState, AskedPart, canonical, digest_of, questions, session_digest, shape
from console.domain.calls.permission import PermissionRequest

REQUEST = PermissionRequest("shell", "cargo publish --token x", "/w", '{"a":1}', "publish it", "call-1")
HOSTILE = st.text(max_size=20) | st.sampled_from(["\udc80", "\x00", "\u202e", '"', "\n"])


@pytest.mark.parametrize("field", ["tool", "argument", "cwd", "detail"])
def test_any_change_of_the_request_is_another_request(field: str) -> None:
    changed = replace(REQUEST, **{field: getattr(REQUEST, field) + "x"})
    assert digest_of(changed, "a", "c") != digest_of(REQUEST, "a", "c")


def test_who_asks_and_where_is_bound_and_what_it_says_is_not() -> None:
    assert len({digest_of(REQUEST, "a", "c"), digest_of(REQUEST, "b", "c"), digest_of(REQUEST, "a", "d")}) == 3
    assert digest_of(replace(REQUEST, says="other", call_id="call-2"), "a", "c") == digest_of(REQUEST, "a", "c")


def test_an_approval_for_a_session_is_bound_to_the_session_and_not_to_the_agent() -> None:
    assert session_digest(REQUEST, "c") != session_digest(REQUEST, "d")
    assert session_digest(REQUEST, "c") != digest_of(REQUEST, "a", "c")


@given(st.tuples(HOSTILE, HOSTILE, HOSTILE, HOSTILE), st.tuples(HOSTILE, HOSTILE, HOSTILE, HOSTILE))
def test_two_requests_are_the_same_bytes_only_when_they_are_the_same(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    same = canonical(PermissionRequest(*one), "a", "c") == canonical(PermissionRequest(*other), "a", "c")
    assert same == (one == other)


@given(HOSTILE, HOSTILE)
def test_any_text_has_a_shape_of_bounded_length(tool: str, argument: str) -> None:
    assert len(shape(PermissionRequest(tool, argument * 100))) <= 300


def test_like_requests_have_like_shapes() -> None:
    assert shape(PermissionRequest("shell", "cargo publish --token a")) == shape(PermissionRequest("shell", "cargo  publish  --dry-run"))
    assert shape(PermissionRequest("write_file", "/w/a/1.txt")) == shape(PermissionRequest("write_file", "/w/a/2.txt"))
    assert shape(PermissionRequest("http_request", "https://h/x")) == shape(PermissionRequest("http_request", "https://h/y"))
    assert shape(PermissionRequest("shell", "rm x")) != shape(PermissionRequest("shell", "ls x"))


def test_a_group_is_a_tree_and_a_shape_and_the_time_to_decide_is_never_negative() -> None:
    one = Approval("q-1", AgentId("a"), AgentId("r"), ContextId("c"), REQUEST, "d", "rule", "reason", 100.0, 700.0)
    assert one.group == replace(one, agent_id=AgentId("b"), request=replace(REQUEST, argument="cargo publish -q")).group
    assert one.group != replace(one, root_id=AgentId("s")).group
    assert one.took_s is None and replace(one, decided_at=90.0).took_s == 0.0 and replace(one, decided_at=130.0).took_s == 30.0


def asked(at: float, argument: str, state: ApprovalState = ApprovalState.USED, cwd: str = "/w", danger: str = "") -> Approval:
    """One that was decided a second later, by another agent each time."""
    parts = (AskedPart(argument, "ask", "rule", danger=danger),)
    request = PermissionRequest("shell", argument, cwd)
    one = Approval("q", AgentId(f"a{at}"), AgentId("r"), ContextId("c"), request, "d", "rule", "reason", at, 0.0, parts, state)
    return replace(one, decided_at=at + 1)


def test_a_rule_could_have_answered_what_repeats_an_approved_request_and_nothing_dangerous_or_joined() -> None:
    now = 1_000_000.0
    first = now - 7200
    plain = [asked(first, "make"), asked(first + 10, "make"), asked(first + 20, "make", cwd="/other"), asked(first + 30, "make -k")]
    never = [asked(first + 100 + n, text, danger=danger) for text, danger in (("git push -f", "destroys"), ("a | b", "")) for n in (0, 10)]
    denied = [asked(first + 200 + n, "make doc", ApprovalState.DENIED) for n in (0, 10)]
    old = [asked(now - 90_000, "make -k")]
    found = questions([*plain, *never, *denied, *old], now)
    assert (found.asked, found.per_hour, found.repeated, found.share) == (10, 5.0, 1, 0.1)
    assert questions([], now).share is None and questions(plain[:2], first + 20).per_hour == 2.0


def test_what_was_approved_only_after_it_was_asked_again_is_no_repetition() -> None:
    waits = replace(asked(50.0, "make"), decided_at=None, state=ApprovalState.WAITING)
    assert questions([replace(asked(10.0, "make"), decided_at=60.0), waits], 100.0).repeated == 0
