"""Threat S4: a secret in error text, in any of its usual clothes, is not shown."""

from __future__ import annotations

import base64
import urllib.parse

import pytest

from console.credentials.redaction import HIDDEN, Redactor
from console.credentials.tokens import Tokens

SECRET = "s3cret/va+lue=with~odd?bytes"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        SECRET.encode().hex(),
        urllib.parse.quote(SECRET, safe=""),
    ],
)
def test_every_form_is_hidden(form: str) -> None:
    redactor = Redactor()
    redactor.learn(SECRET)
    assert redactor.redact(f"bad header {form}!") == f"bad header {HIDDEN}!"


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
