"""The egress folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from console.egress.children import Identity
from console.egress.envoy.files import Files
from console.egress.envoy.fragments import Slot

US = Identity(os.geteuid(), os.getegid())


def test_a_start_forgets_what_an_earlier_run_left(tmp_path: Path) -> None:
    files = Files(tmp_path / "e", US)
    files.prepare()
    files.write("1", [], {Slot("s1", "a1"): {"name": "s1"}}, [])
    (files.root / "sock" / "s1.sock").touch()
    files.prepare()
    assert list((files.root / "rds").iterdir()) == []
    assert list((files.root / "sock").iterdir()) == []
    assert json.loads((files.root / "lds" / "lds.json").read_text())["resources"] == []


def test_files_are_replaced_whole_and_closed_to_others(tmp_path: Path) -> None:
    files = Files(tmp_path / "e", US)
    files.prepare()
    files.write("1.7", [], {Slot("s1", "a1"): {"name": "s1"}}, [])
    folder = files.root / "rds" / "s1"
    assert [p.name for p in folder.iterdir()] == ["rds.json"]
    assert json.loads((folder / "rds.json").read_text())["version_info"] == "1.7"
    for path in (files.root, folder, folder / "rds.json"):
        assert path.stat().st_mode & 0o007 == 0
    files.remove_routes(Slot("s1", "a1"))
    assert not folder.exists()


def test_envoys_words_are_its_last_line_after_a_mark(tmp_path: Path) -> None:
    files = Files(tmp_path, US)
    assert files.envoy_words() == ""
    files.envoy_log.write_text("old\n")
    mark = files.envoy_log_size()
    assert files.envoy_words(mark) == ""
    files.envoy_log.write_text("old\nnew words\n")
    assert files.envoy_words(mark) == "new words"


def test_a_scratch_folder_is_gone_afterwards(tmp_path: Path) -> None:
    files = Files(tmp_path / "e", US)
    with files.scratch("{}") as folder:
        assert (folder / "whole.json").read_text() == "{}"
    assert not folder.exists()


def test_when_one_file_cannot_be_written_none_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(tmp_path / "e", US)
    files.prepare()
    files.write("1", [], {Slot("s1", "a1"): {"name": "old"}}, [])
    real = Path.write_text

    def full(path: Path, text: str) -> int:
        if ".lds.json" in path.name:
            raise OSError(28, "No space left on device")
        return real(path, text)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        files.write("2", [], {Slot("s1", "a1"): {"name": "new"}}, [])
    folder = files.root / "rds" / "s1"
    assert json.loads((folder / "rds.json").read_text())["resources"] == [{"name": "old"}]
    assert [p.name for p in folder.iterdir()] == ["rds.json"]
