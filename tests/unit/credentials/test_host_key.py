"""The host's key: made once, kept private, never silently replaced."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from console.credentials.host_key import PRIVATE_FILE, PUBLIC_FILE, ensure_host_key
from console.domain.errors import ConsoleError


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def test_it_is_made_once_and_read_again(keys: Path) -> None:
    first = ensure_host_key(keys)
    assert ensure_host_key(keys).private_bytes_raw() == first.private_bytes_raw()
    assert stat.S_IMODE((keys / PRIVATE_FILE).stat().st_mode) == 0o600
    public = serialization.load_pem_public_key((keys / PUBLIC_FILE).read_bytes())
    assert isinstance(public, Ed25519PublicKey)
    public.verify(first.sign(b"x"), b"x")


def test_a_lost_public_part_follows_from_the_private_one(keys: Path) -> None:
    ensure_host_key(keys)
    before = (keys / PUBLIC_FILE).read_bytes()
    (keys / PUBLIC_FILE).unlink()
    ensure_host_key(keys)
    assert (keys / PUBLIC_FILE).read_bytes() == before


def test_a_lost_private_part_is_not_replaced_in_silence(keys: Path) -> None:
    ensure_host_key(keys)
    (keys / PRIVATE_FILE).unlink()
    with pytest.raises(ConsoleError, match="is gone"):
        ensure_host_key(keys)
    assert not (keys / PRIVATE_FILE).exists()


def test_parts_that_do_not_belong_together_are_noticed(keys: Path, tmp_path: Path) -> None:
    ensure_host_key(keys)
    ensure_host_key(tmp_path / "other")
    (tmp_path / "other" / PUBLIC_FILE).replace(keys / PUBLIC_FILE)
    with pytest.raises(ConsoleError, match="not the public part"):
        ensure_host_key(keys)


def test_a_key_open_to_others_or_behind_a_link_is_refused(keys: Path) -> None:
    ensure_host_key(keys)
    (keys / PRIVATE_FILE).chmod(0o640)
    with pytest.raises(ConsoleError, match="open to other accounts"):
        ensure_host_key(keys)
    (keys / PRIVATE_FILE).chmod(0o600)
    (keys / PRIVATE_FILE).rename(keys / "elsewhere")
    (keys / PRIVATE_FILE).symlink_to(keys / "elsewhere")
    with pytest.raises(ConsoleError, match="cannot be used"):
        ensure_host_key(keys)


def test_a_damaged_key_and_one_of_another_kind_are_refused(keys: Path) -> None:
    ensure_host_key(keys)
    private = keys / PRIVATE_FILE
    private.write_bytes(private.read_bytes()[:40])
    with pytest.raises(ConsoleError, match="damaged"):
        ensure_host_key(keys)
    other = generate_private_key(65537, 2048)
    pem = other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private.write_bytes(pem)
    with pytest.raises(ConsoleError, match="damaged"):
        ensure_host_key(keys)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("in the way")
    with pytest.raises(ConsoleError, match="cannot be used"):
        ensure_host_key(tmp_path / "keys")
