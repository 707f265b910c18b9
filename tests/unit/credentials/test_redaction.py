"""Threat S4: a secret in error text, in any of its usual clothes, is not shown."""

from __future__ import annotations

import base64
import json
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.credentials.redaction import HIDDEN, Redactor
from console.credentials.tokens import Tokens

SECRET = 's3cret/va+lue=with~odd?by"tes\\'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        SECRET.encode().hex(),
        urllib.parse.quote(SECRET, safe=""),
        urllib.parse.quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
    ],
)
def test_every_form_is_hidden(form: str) -> None:
    redactor = Redactor()
    redactor.learn(SECRET)
    assert redactor.redact(f"bad header {form}!") == f"bad header {HIDDEN}!"


@settings(deadline=None)  # the machine may be slow
@given(before=st.binary(max_size=8), value=st.binary(min_size=12, max_size=40), after=st.binary(max_size=8))
def test_a_value_inside_a_longer_base64_text_is_hidden(before: bytes, value: bytes, after: bytes) -> None:
    """``Authorization: Basic`` holds ``user:password`` in one piece."""
    redactor = Redactor()
    redactor.learn(value)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(before + value + after).decode()
        assert HIDDEN in redactor.redact(text), text


@given(value=st.text(alphabet="aZ9%2F0+/ ~é\n\\'\"&=\udce9", min_size=8, max_size=20))
def test_however_a_url_holds_it_it_is_hidden(value: str) -> None:
    raw = value.encode("utf-8", "surrogateescape")
    redactor = Redactor()
    redactor.learn(value)
    for form in (raw, raw.decode("latin-1"), json.dumps(raw.decode("utf-8", "replace"))[1:-1]):
        for quoted in (urllib.parse.quote(form), urllib.parse.quote(form, safe=""), urllib.parse.quote_plus(form)):
            assert quoted in redactor._forms


def test_a_value_that_holds_another_is_hidden_whole() -> None:
    redactor = Redactor()
    for value in ("abcdefgh", "abcdefghijkl"):
        redactor.learn(value)
    assert redactor.redact("x abcdefghijkl y abcdefgh z") == f"x {HIDDEN} y {HIDDEN} z"


def test_data_is_redacted_in_depth_keys_and_all() -> None:
    redactor = Redactor()
    redactor.learn(SECRET)
    data = {"a": [SECRET, 7, None, {"b": (f"x{SECRET}", True)}], SECRET: 1.5}
    assert redactor.redact_data(data) == {"a": [HIDDEN, 7, None, {"b": (f"x{HIDDEN}", True)}], HIDDEN: 1.5}
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    assert HIDDEN in str(redactor.redact_data(deep)), "what is nested beyond all reason is hidden, not followed"


def test_bytes_that_are_no_text_stay_what_they_are() -> None:
    redactor = Redactor()
    redactor.learn(SECRET)
    assert redactor.redact_bytes(b"\xff\x00" + SECRET.encode() + b"\xfe") == b"\xff\x00" + HIDDEN.encode() + b"\xfe"
    raw = b"\xff\xfe nothing"
    assert redactor.redact_bytes(raw) is raw


def test_old_and_new_values_are_hidden(tokens: Tokens) -> None:
    old = tokens.store.get("token-keys") or ""
    tokens.renew_keys()
    new = tokens.store.get("token-keys") or ""
    key = tokens.keys().keys[tokens.keys().current]
    text = tokens.store.redact(f"{old} | {new} | {base64.b64encode(key).decode()}")
    assert text == f"{HIDDEN} | {HIDDEN} | {HIDDEN}"


def test_tokens_are_hidden_without_being_known(tokens: Tokens) -> None:
    token = tokens.issue("operator", "ann")
    assert Redactor().redact(f"Authorization: Bearer {token}") == f"Authorization: Bearer {HIDDEN}"


def test_short_values_do_not_tear_words_apart() -> None:
    redactor = Redactor()
    redactor.learn("a")
    redactor.learn("")
    assert redactor.redact("an apple") == "an apple"


def test_a_value_of_many_lines_is_hidden_line_by_line() -> None:
    redactor = Redactor()
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"]
    redactor.learn("\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "ab", "-----END PRIVATE KEY-----", ""]))
    said = redactor.redact("".join(f"{n}:  {line}\r\n" for n, line in enumerate(lines)))
    assert said == f"0:  {HIDDEN}\r\n1:  {HIDDEN}\r\n"
    assert redactor.redact("-----BEGIN PRIVATE KEY----- ab") == "-----BEGIN PRIVATE KEY----- ab"
