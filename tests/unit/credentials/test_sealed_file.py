"""Secrets sealed under a systemd credential: a copy of the disk gives nothing away, and nothing that was touched is believed."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from console.credentials.sealed_file import CREDENTIAL, SealedFile, read_credential
from console.domain.errors import ConsoleError, Unavailable

KEY = os.urandom(48)


def made(folder: Path, key: bytes = KEY, instance: str = "00c0ffee") -> SealedFile:
    return SealedFile(folder / "secrets.sealed", key, instance)


def test_what_was_written_comes_back_and_is_nowhere_in_the_file(tmp_path: Path) -> None:
    file = made(tmp_path)
    assert file.get("token") is None and file.probe() == ""
    file.set("token", "very-secret")
    file.set("other", "x")
    assert made(tmp_path).get("token") == "very-secret"
    raw = file.path.read_bytes()
    assert b"very-secret" not in raw and base64.b64encode(b"very-secret") not in raw and b"token" not in raw
    assert file.path.stat().st_mode & 0o777 == 0o600
    file.delete("token")
    file.delete("token")
    assert file.get("token") is None and file.get("other") == "x"


def test_no_two_writes_share_key_and_nonce(tmp_path: Path) -> None:
    file, seen = made(tmp_path), set()
    for _ in range(20):
        file.set("a", "same")
        sealed = json.loads(file.path.read_bytes())
        seen.add((sealed["salt"], sealed["nonce"], sealed["body"]))
    assert len(seen) == 20 and len({body for _, _, body in seen}) == 20


@pytest.mark.parametrize("part", ["salt", "nonce", "body"])
def test_one_changed_bit_is_refused_and_never_written_over(tmp_path: Path, part: str) -> None:
    file = made(tmp_path)
    file.set("a", "b")
    sealed = json.loads(file.path.read_bytes())
    raw = bytearray(base64.b64decode(sealed[part]))
    raw[0] ^= 1
    file.path.write_text(json.dumps({**sealed, part: base64.b64encode(raw).decode()}))
    before = file.path.read_bytes()
    acts: list[Callable[[], object]] = [lambda: file.get("a"), lambda: file.set("c", "d"), lambda: file.delete("a")]
    for act in acts:
        with pytest.raises(ConsoleError, match="was not sealed under this credential, or was changed"):
            act()
    assert file.probe() and file.path.read_bytes() == before


def test_another_credential_or_instance_opens_nothing(tmp_path: Path) -> None:
    made(tmp_path).set("a", "b")
    for other in (made(tmp_path, key=os.urandom(48)), made(tmp_path, instance="deadbeef")):
        with pytest.raises(ConsoleError, match="was not sealed"):
            other.get("a")


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"null", b'{"salt": 1, "nonce": "", "body": ""}', b'{"salt": "*", "nonce": "", "body": ""}', b"[" * 99999]
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: bytes) -> None:
    file = made(tmp_path)
    file.path.write_bytes(damage)
    file.path.chmod(0o600)
    with pytest.raises(ConsoleError):
        file.get("a")
    with pytest.raises(ConsoleError):
        file.set("a", "b")
    assert file.path.read_bytes() == damage


def test_a_file_that_others_can_open_a_link_or_a_pipe_is_refused(tmp_path: Path) -> None:
    file = made(tmp_path)
    file.set("a", "b")
    file.path.chmod(0o644)
    with pytest.raises(ConsoleError, match="open to other accounts"):
        file.get("a")
    file.path.unlink()
    os.mkfifo(file.path, 0o600)
    with pytest.raises(ConsoleError):
        file.get("a")
    file.path.unlink()
    file.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConsoleError):
        file.get("a")


def test_the_credential_is_read_only_when_it_is_a_key_and_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / CREDENTIAL
    for folder in ("", str(tmp_path / "nosuch"), str(tmp_path)):
        with pytest.raises(Unavailable):
            read_credential(folder)
    path.write_bytes(KEY + b"\n")
    path.chmod(0o400)
    assert read_credential(str(tmp_path)) == KEY.strip()
    path.chmod(0o444)
    with pytest.raises(Unavailable, match="open to other accounts"):
        read_credential(str(tmp_path))
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(Unavailable, match="less than"):
        read_credential(str(tmp_path))
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        read_credential(str(tmp_path))
