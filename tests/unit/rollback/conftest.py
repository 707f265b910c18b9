from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.rollback.store import RollbackStore


@pytest.fixture
def workspaces(tmp_path: Path) -> Path:
    made = tmp_path / "workspaces"
    (made / "c1" / "d").mkdir(parents=True)
    (made / "c2").mkdir()
    return made


@pytest.fixture
def ws(workspaces: Path) -> Path:
    return workspaces / "c1"


@pytest.fixture
def store(tmp_path: Path, workspaces: Path) -> Iterator[RollbackStore]:
    opened = RollbackStore(tmp_path / "rollback", workspaces)
    yield opened
    opened.close()
