"""One supervisor per state directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.supervisor.lock import take_lock


def test_the_second_is_told_who_holds_it_and_may_have_it_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    held = take_lock(path)
    with pytest.raises(Conflict, match=f"pid {os.getpid()}"):
        take_lock(path)
    held.close()
    take_lock(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
