"""Epoch and revocations: never lower, never lost silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.credentials.token_state import TokenState, TokenStateFile
from console.domain.errors import ConsoleError


def test_changes_are_kept_and_the_epoch_never_falls(tmp_path: Path) -> None:
    state = TokenStateFile(tmp_path / "tokens.json")
    state.replace(TokenState(5, frozenset()))
    state.change(lambda s: TokenState(s.epoch, s.revoked | {"a"}))
    assert TokenStateFile(tmp_path / "tokens.json").load() == TokenState(5, frozenset({"a"}))
    state.replace(TokenState(2, frozenset()))
    assert state.load() == TokenState(5, frozenset())


@pytest.mark.parametrize("raw", ["", "{}", "[]", '{"epoch":0,"revoked":[]}', '{"epoch":true,"revoked":[]}', '{"epoch":1,"revoked":[1]}'])
def test_lost_or_damaged_is_an_error_never_an_empty_list(tmp_path: Path, raw: str) -> None:
    path = tmp_path / "tokens.json"
    with pytest.raises(ConsoleError, match="lost or damaged"):
        TokenStateFile(path).load()
    path.write_text(raw)
    with pytest.raises(ConsoleError, match="lost or damaged"):
        TokenStateFile(path).change(lambda s: s)
    TokenStateFile(path).replace(TokenState(3, frozenset()))
    assert TokenStateFile(path).load().epoch == 3
