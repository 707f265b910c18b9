"""Notes and locks of sessions."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError, UsageProblem
from console.sandbox.workspace.session_files import LOCKS, NAME, ContextNote, alone, contexts_on_disk, last_used, use, write_note

NOTE = ContextNote("c1", "coder", "default", "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z", 7.0, 12345)


def test_the_note_replaces_whatever_stands_there(tmp_path: Path) -> None:
    (tmp_path / "c1").mkdir()
    precious = tmp_path / "precious"
    precious.write_text("x")
    (tmp_path / "c1" / NAME).symlink_to(precious)
    write_note(tmp_path, NOTE)
    assert precious.read_text() == "x"
    told = json.loads((tmp_path / "c1" / NAME).read_text())
    assert told["context_id"] == "c1" and told["disk_usage_bytes"] == 12345 and told["ttl_days"] == 7.0
    assert (tmp_path / "c1" / NAME).stat().st_mode & 0o777 == 0o444
    assert [p.name for p in (tmp_path / "c1").iterdir()] == [NAME]


def test_a_note_that_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "c1" / NAME / "full").mkdir(parents=True)
    with pytest.raises(ConsoleError, match="cannot be written"):
        write_note(tmp_path, NOTE)
    assert [p.name for p in (tmp_path / "c1").iterdir()] == [NAME]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "c2").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConsoleError):
        write_note(tmp_path, ContextNote("c2", "", "", "", "", 1, 1))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_many_use_a_session_and_one_deletes_it_alone(tmp_path: Path) -> None:
    first, second = use(tmp_path, "c1"), use(tmp_path, "c1")
    with alone(tmp_path, "c1") as is_alone:
        assert not is_alone
    first.close()
    first.close()
    with alone(tmp_path, "c1") as is_alone:
        assert not is_alone
    second.close()
    with alone(tmp_path, "c1") as is_alone:
        assert is_alone
        with pytest.raises(Conflict):
            use(tmp_path, "c1")
    use(tmp_path, "c1").close()
    assert (tmp_path / LOCKS).stat().st_mode & 0o777 == 0o700


def test_the_last_use_is_the_locks_and_not_the_agents(tmp_path: Path) -> None:
    assert last_used(tmp_path, "c1") is None
    use(tmp_path, "c1").close()
    os.utime(tmp_path / LOCKS / "c1", (1000, 1000))
    (tmp_path / "c1").mkdir()
    assert last_used(tmp_path, "c1") == 1000
    use(tmp_path, "c1").close()
    assert abs((last_used(tmp_path, "c1") or 0) - time.time()) < 60


def test_only_sessions_count_as_sessions(tmp_path: Path) -> None:
    for name in ("c1", "c-2", ".quarantine", LOCKS, "Bad", "a_b"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "c1")
    assert contexts_on_disk(tmp_path) == ["c-2", "c1"]
    assert contexts_on_disk(tmp_path / "nosuch") == []


@pytest.mark.parametrize("bad", ["..", "a/b", "", "A", "x" * 64, "a\0"])
def test_bad_ids_are_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(UsageProblem):
        use(tmp_path, bad)
    with pytest.raises(UsageProblem):
        last_used(tmp_path, bad)
