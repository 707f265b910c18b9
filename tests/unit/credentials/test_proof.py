"""What answers prove, and that a verifier that hangs is waited for once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.credentials.marker import keep_old
from console.credentials.proof import canaries_of, doubt_of, fingerprint, forged, judged, present_one
from console.credentials.token_keys import KEYS_NAME, write_keys
from console.credentials.tokens import Tokens
from tests.fakes.plugs import FolderPlug

R, A, N = False, True, None
"""Refused, accepted, no answer."""


@pytest.mark.parametrize(
    ("old", "new", "ok", "words"),
    [
        ([R], [A], True, "old value refused, new one accepted"),
        ([R, R], [A, A], True, "old value refused"),
        ([], [A], True, "there was no usable old value"),
        ([R, A], [A], False, "failed: the old value is still accepted"),
        ([R, N], [A], False, "unknown: no clear answer"),
        ([R], [R], False, "unknown: the new value is not accepted either"),
        ([R], [A, R], False, "unknown: the new value is not accepted either"),
        ([R], [N], False, "unknown: the new value is not accepted either"),
        ([R], [], False, "unknown: the new value is not accepted either"),
        ([], [], False, "unknown: the new value is not accepted either"),
    ],
)
def test_what_answers_prove(old: list[bool | None], new: list[bool | None], ok: bool, words: str) -> None:
    found = judged(old, new)
    assert found[0] is ok and found[1].startswith(words)


def test_nobody_is_asked_on_after_an_answer_that_is_not_clear() -> None:
    asked: list[str] = []

    def answers(what: str, *given: bool | None) -> Iterator[bool | None]:
        for answer in given:
            asked.append(what)
            yield answer

    assert not judged(answers("old", N, R, R, R), answers("new", A))[0] and asked == ["old"]


def test_the_newest_old_value_is_presented_first(tokens: Tokens, tmp_path: Path) -> None:
    plug, seen = FolderPlug(tmp_path, "x", "value-new-1"), []
    for value in ("value-old-1", "value-old-2"):
        keep_old(tokens.store, "x", value)
    tokens.store.set("new.x", "value-new-1")
    real = plug.present
    plug.present = lambda value: seen.append(value) or real(value)  # type: ignore[method-assign,func-returns-value]
    assert present_one(tokens, plug)[0] and seen == ["value-old-2", "value-old-1", "value-new-1"]


def test_a_value_set_by_hand_counts_later_only_and_never_an_old_one(tokens: Tokens, tmp_path: Path) -> None:
    plug = FolderPlug(tmp_path, "x", "set-by-hand")
    keep_old(tokens.store, "x", "value-old-1")
    tokens.store.set("new.x", "value-new-1")
    assert not present_one(tokens, plug)[0] and present_one(tokens, plug, later=True)[0]
    keep_old(tokens.store, "x", "set-by-hand")
    assert present_one(tokens, plug, later=True) == (False, "failed: the old value is still accepted")


def test_the_control_before_the_change(tokens: Tokens, tmp_path: Path) -> None:
    plug = FolderPlug(tmp_path, "x", "in-force-1")
    assert doubt_of(plug, "in-force-1") == "" and "refused the old value before" in doubt_of(plug, "another")
    assert "ever told" in doubt_of(plug, None)


def test_what_a_thief_would_sign_today(tokens: Tokens) -> None:
    assert forged(tokens) == []
    keep_old(tokens.store, "signing-key", "junk")
    assert forged(tokens) == [], "a damaged key set signs nothing"
    keep_old(tokens.store, "signing-key", write_keys(tokens.keys()))
    before = fingerprint(tokens)
    assert len(forged(tokens)) == 2 and all(tokens.accepts(t, "operator") or tokens.accepts(t, "agent-service") for t in forged(tokens))
    tokens.renew_keys()
    assert not any(tokens.accepts(t, a) for t in forged(tokens) for a in ("operator", "agent-service")) and fingerprint(tokens) != before
    tokens.store.delete(KEYS_NAME)
    assert fingerprint(tokens) == "none" and canaries_of(tokens) == {}
