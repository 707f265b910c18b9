"""A secret's file: replaced whole, 0600, its owner kept; nothing that another user could have put there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.credentials.plugs.file import read_secret, write_secret
from console.domain.errors import ConsoleError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "service").mkdir()
    made = tmp_path / "service" / "secret"
    made.write_text("old-value-1\n")
    made.chmod(0o640)
    return made


def test_it_is_replaced_whole_and_closed(path: Path) -> None:
    before = path.stat().st_ino
    held = read_secret(path)
    assert held is not None and held.value == "old-value-1"
    write_secret(path, "new-value-2")
    assert path.read_text() == "new-value-2\n" and path.stat().st_ino != before and path.stat().st_mode & 0o777 == 0o600
    path.write_text("no-line-feed")
    write_secret(path, "new-value-3")
    assert path.read_text() == "new-value-3" and [p.name for p in path.parent.iterdir()] == ["secret"]


def test_a_missing_one_is_made(path: Path) -> None:
    path.unlink()
    assert read_secret(path) is None
    write_secret(path, "first-value")
    assert path.read_text() == "first-value" and path.stat().st_mode & 0o777 == 0o600


def test_its_owner_is_kept(path: Path) -> None:
    owner = (65534, 65533) if os.geteuid() == 0 else (os.geteuid(), os.getegid())  # only root can give a file away
    os.chown(path, *owner)
    write_secret(path, "new-value-2")
    assert (path.stat().st_uid, path.stat().st_gid) == owner


def test_what_another_user_could_have_put_there_is_refused(path: Path) -> None:
    os.link(path, path.parent / "second-name")
    with pytest.raises(ConsoleError, match="one name"):
        read_secret(path)
    (path.parent / "second-name").unlink()
    path.rename(path.parent / "real")
    path.symlink_to(path.parent / "real")
    for call in (read_secret, lambda p: write_secret(p, "x")):
        with pytest.raises(ConsoleError, match="cannot be read"):
            call(path)
    assert (path.parent / "real").read_text() == "old-value-1\n"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConsoleError):
        read_secret(path)
    path.unlink()
    path.parent.chmod(0o777)
    with pytest.raises(ConsoleError, match="written by every account"):
        write_secret(path, "x")


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xff\xfe", b"x" * 70_000])
def test_what_is_no_secret_is_said(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    with pytest.raises(ConsoleError):
        read_secret(path)


def test_a_folder_that_refuses_leaves_the_old_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConsoleError, match="No space left"):
        write_secret(path, "new-value-2")
    assert path.read_text() == "old-value-1\n" and [p.name for p in path.parent.iterdir()] == ["secret"]
