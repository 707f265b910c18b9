from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.audit.log import AuditLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    opened = AuditLog(tmp_path / "audit.db", checkpoint_rows=10)
    yield opened
    opened.close()
