"""Which place is chosen: only keyrings known to encrypt and seen to work, else the file, and never back again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import keyring
import keyring.errors
import pytest
from keyring.backend import KeyringBackend

from console.credentials import keyring_place
from console.credentials.keyring_place import ENCRYPTING
from console.credentials.keyring_store import SEALED, Store
from console.domain.errors import TimedOut, Unavailable, UsageProblem


class Good(KeyringBackend):
    """An encrypting keyring that works."""

    kept: dict[tuple[str, str], str] = {}
    priority = 5

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[(service, username)] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[(service, username)]


class PlaintextKeyring(Good):
    """As keyrings.alt has it: highest priority, installed, willing."""

    priority = 99


class Forgetful(Good):
    def set_password(self, service: str, username: str, password: str) -> None:
        pass


class Locked(Good):
    def set_password(self, service: str, username: str, password: str) -> None:
        raise keyring.errors.KeyringLocked("locked")


class NotHere(Good):
    @keyring_place.keyring.backend.properties.classproperty  # type: ignore[misc,attr-defined,unused-ignore]
    def priority(cls) -> float:  # noqa: N805
        raise RuntimeError("no D-Bus here")


class Hanging(Good):
    gate = threading.Event()

    def set_password(self, service: str, username: str, password: str) -> None:
        self.gate.wait(30)


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    Good.kept.clear()
    Hanging.gate.clear()
    monkeypatch.setattr(keyring_place, "ANSWER_S", 0.3)
    yield
    Hanging.gate.set()


def opened(folder: Path, *candidates: type[KeyringBackend]) -> Store:
    return Store("0123abcd", folder / "keys", candidates=candidates)


def test_a_working_keyring_is_used_and_entries_carry_the_instance(tmp_path: Path) -> None:
    store = opened(tmp_path, Good)
    store.set("token-keys", "value-1")
    assert store.kind != "file" and Good.kept == {("watchfloor-0123abcd", "token-keys"): "value-1"}, "and the probe is gone"
    assert Store("ffffffff", tmp_path / "other", candidates=(Good,)).get("token-keys") is None
    store.delete("token-keys")
    assert store.get("token-keys") is None and not (tmp_path / "keys").exists()


WHY = {
    "Forgetful": "not what was read back",
    "Locked": "KeyringLocked",
    "NotHere": "no D-Bus here",
    "Hanging": "does not answer within",
}


@pytest.mark.parametrize("bad", [Forgetful, Locked, NotHere, Hanging])
def test_a_keyring_that_does_not_truly_work_is_not_used(tmp_path: Path, bad: type[KeyringBackend]) -> None:
    store = opened(tmp_path, bad)
    store.set("a", "value-1")
    assert store.kind == "file" and store.get("a") == "value-1"
    assert WHY[bad.__name__] in store.why_not_better[0] and "no systemd credential" in store.why_not_better[1], store.why_file
    assert (tmp_path / "keys" / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert opened(tmp_path / "second", bad, Good).kind != "file", "the next candidate is tried"


def test_a_plain_text_plug_in_is_never_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What keyrings.alt does once installed: the library's own choice is plain text.
    before = keyring.get_keyring()
    keyring.set_keyring(PlaintextKeyring())  # type: ignore[no-untyped-call]
    try:
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.PlaintextKeyring")
        monkeypatch.setattr(keyring_place, "ANSWER_S", 3.0)
        store = Store("0123abcd", tmp_path / "keys")
        store.set("a", "value-1")
        assert PlaintextKeyring.kept == {}
        store.delete("a")
    finally:
        keyring.set_keyring(before)


def test_the_candidates_are_named_and_none_is_plain_text() -> None:
    for candidate in ENCRYPTING:
        assert candidate.__module__.startswith("keyring.backends.") and "lain" not in candidate.__name__


def test_an_instance_that_used_the_file_never_goes_back(tmp_path: Path) -> None:
    old = opened(tmp_path, Good)
    old.set("a", "rotated-away-later")
    opened(tmp_path, Locked).set("a", "value-2")
    assert opened(tmp_path, Good).get("a") == "value-2", "the old value in the keyring does not come back to life"


def test_the_way_back_is_barred_before_anything_is_written(tmp_path: Path) -> None:
    opened(tmp_path, Locked)
    assert opened(tmp_path, Good).kind == "file"


def test_a_keyring_that_breaks_later_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path, Good)
    monkeypatch.setattr(Good, "set_password", Locked.set_password)
    with pytest.raises(Unavailable, match="KeyringLocked"):
        store.set("a", "value-1")
    monkeypatch.setattr(Good, "set_password", Hanging.set_password)
    monkeypatch.setattr(Good, "gate", Hanging.gate, raising=False)
    with pytest.raises(TimedOut):
        store.set("a", "value-1")
    Hanging.gate.set()


@pytest.mark.parametrize("name", ["", "../x", "a b", "a" * 65, "a/b", "é"])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageProblem):
        opened(tmp_path, Good).set(name, "x")


@pytest.mark.parametrize("instance", ["", "../../..", "0123ABCD", "0123abcde"])
def test_the_instance_id_is_checked(tmp_path: Path, instance: str) -> None:
    with pytest.raises(UsageProblem):
        Store(instance, tmp_path)


def test_where_every_keyring_hangs_the_choice_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring_place, "CHOICE_S", 0.1)
    store = opened(tmp_path, Hanging, Hanging, Good)
    assert store.kind == "file" and "not tried" in store.why_not_better[1] and "not tried" in store.why_not_better[2]


def test_looking_decides_nothing(tmp_path: Path) -> None:
    """The doctor, asked from a session without the desktop's bus, must not move a running supervisor's secrets to the file."""
    opened(tmp_path, Good).set("a", "value-1")
    assert Store("0123abcd", tmp_path / "keys", candidates=(Locked,), settle=False).kind == "file"
    assert not (tmp_path / "keys").exists() and opened(tmp_path, Good).get("a") == "value-1"


# --- the systemd credential -------------------------------------------------------------------------------------------


@pytest.fixture
def credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "watchfloor-secrets").write_text("k" * 48)
    (folder / "watchfloor-secrets").chmod(0o400)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    return folder / "watchfloor-secrets"


def test_without_a_keyring_the_credential_seals_the_file(tmp_path: Path, credential: Path) -> None:
    store = opened(tmp_path, Locked)
    store.set("a", "value-that-is-secret")
    assert store.kind == SEALED and "KeyringLocked" in store.why_file
    assert opened(tmp_path, Locked).get("a") == "value-that-is-secret"
    assert (
        "value-that-is-secret" not in (tmp_path / "keys" / "secrets.sealed").read_text()
        and not (tmp_path / "keys" / "secrets.json").exists()
    )
    store.delete("a")
    assert opened(tmp_path, Locked).get("a") is None


def test_a_keyring_is_preferred_to_the_credential_but_not_gone_back_to(tmp_path: Path, credential: Path) -> None:
    store = opened(tmp_path, Good)
    assert store.kind != SEALED
    store.set("a", "rotated-away-later")
    opened(tmp_path, Locked).set("a", "value-2")
    again = opened(tmp_path, Good)
    assert again.kind == SEALED and again.get("a") == "value-2" and "keyring: this instance" in again.why_not_better[0]


@pytest.mark.parametrize("fault", ["gone", "short", "open", "other", "link"])
def test_a_credential_that_is_not_one_is_said_and_not_used(tmp_path: Path, credential: Path, fault: str) -> None:
    opened(tmp_path, Locked).set("a", "value-1")
    if fault == "gone":
        credential.unlink()
    elif fault == "open":
        credential.chmod(0o444)
    else:
        credential.unlink()
        if fault == "link":
            (tmp_path / "elsewhere").write_text("k" * 48)
            credential.symlink_to(tmp_path / "elsewhere")
        else:
            credential.write_text("short" if fault == "short" else "x" * 48)
            credential.chmod(0o400)
    store = opened(tmp_path, Good)
    assert store.kind == "file" and store.get("a") is None, "it neither opens nor lives on in another place"
    assert any("redential" in words for words in store.why_not_better), store.why_not_better
