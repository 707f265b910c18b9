"""The key set as it is kept: what cannot be trusted is damage."""

from __future__ import annotations

import pytest

from console.credentials.token_keys import TokenKeys, read_keys, write_keys
from console.domain.errors import ConsoleError


def test_short_keys_and_odd_kids_are_damage() -> None:
    kid = "0123456789abcdef"
    assert read_keys(write_keys(TokenKeys(kid, {kid: b"x" * 32}, 1))).current == kid
    for keys in (TokenKeys(kid, {kid: b"x" * 31}, 1), TokenKeys("../x", {"../x": b"x" * 32}, 1), TokenKeys(kid, {kid: b"x" * 32}, 0)):
        with pytest.raises(ConsoleError):
            read_keys(write_keys(keys))
