from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.ledger.store import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "ledger.db")
    yield opened
    opened.close()
