from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.audit.record import GENESIS, LIMIT_BYTES, canonical_data, digest, draft, shortened, text_bytes, text_of
from console.domain.errors import TooLarge, UsageProblem

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)


@given(a=st.lists(st.binary(max_size=5), min_size=5, max_size=5), b=st.lists(st.binary(max_size=5), min_size=5, max_size=5))
def test_different_texts_never_share_their_hash_input(a: list[bytes], b: list[bytes]) -> None:
    assert (digest(1, 1.0, a, b"{}", GENESIS) == digest(1, 1.0, b, b"{}", GENESIS)) == (a == b)


def test_moving_a_border_between_fields_changes_the_hash() -> None:
    assert digest(1, 1.0, [b"ab", b"c", b"", b"", b""], b"{}", GENESIS) != digest(1, 1.0, [b"a", b"bc", b"", b"", b""], b"{}", GENESIS)


def test_the_hash_is_the_documented_one() -> None:
    parts = [b"watchfloor-audit-record-1", b"7", b"1.5", b"ann", b"k", b"w", b"", b"", b"{}", GENESIS.encode()]
    expected = hashlib.sha256(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).hexdigest()
    assert draft(1.5, ("ann", "k", "w", "", ""), None).numbered(7, GENESIS).hash == expected


@given(ANY_TEXT)
def test_text_goes_to_bytes_and_back(text: str) -> None:
    assert text_of(text_bytes(text)) == text


def test_foreign_bytes_are_shown_escaped() -> None:
    assert text_of(b"\xff\xfe") == "\\xff\\xfe"
    assert text_of(None) == ""
    assert text_of(5) == "5"


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), {1, 2}, object(), b"x", 10**5000], ids=["nan", "inf", "set", "object", "bytes", "huge"]
)
def test_data_that_is_not_finite_json_is_refused(bad: Any) -> None:
    with pytest.raises(UsageProblem):
        canonical_data({"x": bad})


def test_bottomless_data_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"d": deep}
    with pytest.raises(UsageProblem):
        canonical_data(deep)


def test_data_is_canonical_and_one_line() -> None:
    assert canonical_data({"b": 1, "a": "x\n\u202e\ud800"}) == '{"a":"x\\n\\u202e\\ud800","b":1}'
    assert canonical_data(None) == "{}"


def test_a_record_is_bounded() -> None:
    with pytest.raises(TooLarge):
        draft(1.0, ("a", "k", "x" * (LIMIT_BYTES + 1), "", ""), None)


def test_a_shortened_record_always_fits_and_says_so() -> None:
    made = shortened(float("nan"), ("a" * LIMIT_BYTES, "k", "x" * LIMIT_BYTES, "", ""))
    assert sum(map(len, made.texts)) < LIMIT_BYTES
    assert "left out" in json.loads(made.data)["data"]
    assert made.numbered(1, GENESIS).at == 0.0
