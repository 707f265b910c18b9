"""The API key: none until one is asked for, one at a time, compared whole."""

from __future__ import annotations

import pytest

from console.credentials.api_key import PREFIX, ApiKey
from console.credentials.keyring_store import Store


def test_only_the_key_of_now_is_accepted(store: Store) -> None:
    key = ApiKey(store)
    assert key.current() is None and not key.accepts("") and not key.accepts(PREFIX)
    first = key.renew()
    assert first.startswith(PREFIX) and len(first) > 40 and key.accepts(first) and key.current() == first
    second = ApiKey(store).renew()
    assert key.accepts(second) and not key.accepts(first), "nothing is remembered: another process rotated it"


@pytest.mark.parametrize(
    "change", [lambda k: k[:-1], lambda k: k + "x", lambda k: k.upper(), lambda k: "é" + k, lambda k: PREFIX + "x" * 5000]
)
def test_nothing_else_is(store: Store, change: object) -> None:
    assert callable(change)
    assert not ApiKey(store).accepts(change(ApiKey(store).renew()))


def test_it_is_hidden_from_the_moment_it_is_made(store: Store) -> None:
    key = ApiKey(store).renew()
    assert key not in store.redact(f"X-Api-Key: {key}")
