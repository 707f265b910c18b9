"""Workspaces: made beneath their root, never through a link, whatever an agent left there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.agent import ContextId
from console.domain.errors import Conflict, ConsoleError, UsageProblem
from console.sandbox.workspace.folder import PARTS, open_workspace

UID = os.geteuid() or 64321


def test_the_parts_are_made_private_and_given_away(tmp_path: Path) -> None:
    found = open_workspace(tmp_path / "ws", ContextId("c1"), UID, UID)
    assert found == (tmp_path / "ws" / "c1").resolve()
    for path in (found, *(found / part for part in PARTS)):
        assert path.stat().st_mode & 0o7777 == 0o700
        assert path.stat().st_uid == UID
    (found / "data" / "kept").write_text("kept")
    assert open_workspace(tmp_path / "ws", ContextId("c1"), UID, UID) == found
    assert (found / "data" / "kept").read_text() == "kept"


@pytest.mark.parametrize(
    "context", ["x/../../precious", "y /precious2", "$(id)", "-rf", "a\0b", "a" * 300, ".", "..", "", "Ａ", "a\n", "/etc", "A"]
)
def test_hostile_ids_are_refused_and_make_nothing(tmp_path: Path, context: str) -> None:
    with pytest.raises(UsageProblem):
        open_workspace(tmp_path / "ws", ContextId(context), UID, UID)
    assert not (tmp_path / "ws").exists()


def test_links_and_files_where_folders_belong_are_a_conflict(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    root = tmp_path / "ws"
    root.mkdir()
    (root / "linked").symlink_to(outside)
    with pytest.raises(Conflict):
        open_workspace(root, ContextId("linked"), UID, UID)
    found = open_workspace(root, ContextId("c2"), UID, UID)
    (found / "data").rmdir()
    (found / "data").symlink_to(outside)
    with pytest.raises(Conflict):
        open_workspace(root, ContextId("c2"), UID, UID)
    (found / "data").unlink()
    (found / "data").write_text("")
    with pytest.raises(Conflict):
        open_workspace(root, ContextId("c2"), UID, UID)
    assert outside.stat().st_uid == os.geteuid() and not list(outside.iterdir())


def test_a_root_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConsoleError):
        open_workspace(tmp_path / "file" / "ws", ContextId("c1"), UID, UID)
