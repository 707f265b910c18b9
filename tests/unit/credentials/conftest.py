"""A store in a 0600 file and tokens with a clock in hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from console.credentials.keyring_store import Store
from console.credentials.tokens import Tokens


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store("0123abcd", tmp_path / "keys", backend="file")


@pytest.fixture
def tokens(store: Store, clock: Clock) -> Tokens:
    made = Tokens(store, clock=clock)
    made.ensure()
    return made
