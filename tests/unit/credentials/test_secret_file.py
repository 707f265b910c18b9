"""The 0600 file: durable, whole, refused when it is not ours alone."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from console.credentials.secret_file import SecretFile
from console.domain.errors import ConsoleError


@pytest.fixture
def file(tmp_path: Path) -> SecretFile:
    return SecretFile(tmp_path / "keys" / "secrets.json")


def test_values_are_kept_with_mode_0600(file: SecretFile) -> None:
    file.set("a", "1")
    file.set("b", "2")
    file.delete("a")
    file.delete("never")
    assert (file.get("a"), file.get("b")) == (None, "2")
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(file.path.parent)) == ["secrets.json", "secrets.lock"], "no draft is left"


def test_it_is_written_new_fsynced_and_renamed(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.set("a", "1")
    inode = file.path.stat().st_ino
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_fsync(fd: int) -> None:
        steps.append("fsync")
        fsync(fd)

    def note_replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    file.set("a", "2")
    assert steps == ["fsync", "rename", "fsync"] and file.path.stat().st_ino != inode


def test_a_failed_write_keeps_the_old_values_and_leaves_no_draft(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.set("a", "1")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConsoleError, match="No space"):
        file.set("a", "2")
    monkeypatch.undo()
    assert file.get("a") == "1" and sorted(os.listdir(file.path.parent)) == ["secrets.json", "secrets.lock"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_open_to_others_is_refused(file: SecretFile, mode: int) -> None:
    file.set("a", "1")
    file.path.chmod(mode)
    with pytest.raises(ConsoleError, match="open to other accounts"):
        file.get("a")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_refused(file: SecretFile) -> None:
    file.set("a", "1")
    os.chown(file.path, 65534, 65534)
    with pytest.raises(ConsoleError, match="belongs to one"):
        file.get("a")


def test_links_fifos_and_folders_are_refused_at_once(file: SecretFile, tmp_path: Path) -> None:
    file.path.parent.mkdir()
    (tmp_path / "elsewhere").write_text("{}")
    file.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConsoleError):
        file.get("a")
    file.path.unlink()
    os.mkfifo(file.path, 0o600)
    with pytest.raises(ConsoleError):
        file.get("a")
    file.path.unlink()
    file.path.mkdir(mode=0o700)
    with pytest.raises(ConsoleError):
        file.get("a")


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"a":1}', b"\xff", b"[" * 50000])
def test_a_damaged_file_is_refused_and_not_overwritten(file: SecretFile, raw: bytes) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(raw)
    file.path.chmod(0o600)
    with pytest.raises(ConsoleError, match="damaged"):
        file.set("a", "1")
    assert file.path.read_bytes() == raw


def test_writers_at_once_lose_nothing(file: SecretFile) -> None:
    threads = [threading.Thread(target=SecretFile(file.path).set, args=(f"n{n}", str(n))) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [file.get(f"n{n}") for n in range(12)] == [str(n) for n in range(12)]


def test_values_that_a_killed_writer_left_in_a_draft_go_with_the_next_write(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    file.set("a", "rotated away")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            file.set("b", "x")
    assert any(b"rotated away" in p.read_bytes() for p in file.path.parent.iterdir() if p != file.path)
    file.set("a", "new")
    assert not any(b"rotated away" in p.read_bytes() for p in file.path.parent.iterdir())
