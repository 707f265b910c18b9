"""Where a guard records when its state directory is gone: only a folder of its own account, found only by the same account."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from console.killswitch.client import moved_instance
from console.killswitch.guard import relocation


def test_a_folder_that_another_account_could_have_planted_is_no_place_of_a_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (relocation, moved_instance):
        monkeypatch.setattr(module, "bases", lambda: (tmp_path,))
    folder = relocation.make_folder("01234567", Path("/gone"))
    assert list(moved_instance.found_for(Path("/gone"))) == [("01234567", folder)]
    folder.chmod(0o777)
    assert not list(moved_instance.found_for(Path("/gone")))
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path)
    with pytest.raises(OSError, match="another account"):
        relocation.make_folder("01234567", Path("/gone"))
