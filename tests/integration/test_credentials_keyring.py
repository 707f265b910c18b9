"""Against a real Secret Service, locked and unlocked, hanging and gone, and against a machine that has none."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import secretstorage

from console.credentials import keyring_place
from console.credentials.keyring_place import open_keyring
from console.credentials.keyring_store import Store
from console.credentials.plugs.keyring import open_entry
from console.credentials.rotation import rotate
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError, TimedOut, Unavailable
from tests.fakes.secret_service import SecretService

# The keyring library leaves its sockets to the garbage collector when a bus refuses or hangs.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def nothing_of_this_desktop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
    yield
    for thread in threading.enumerate():
        if thread.name == "keyring":
            thread.join(60)  # its bus is gone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def seen_by(service: SecretService, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def service(nothing_of_this_desktop: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretService]:
    with SecretService(tmp_path / "desktop") as made:
        seen_by(made, monkeypatch)
        for bound in ("ANSWER_S", "CHOICE_S"):  # a desktop that answers is waited for however busy the machine is
            monkeypatch.setattr(keyring_place, bound, 60.0)
        yield made


def test_the_keyring_keeps_the_keys_and_nothing_is_in_a_file(service: SecretService, tmp_path: Path) -> None:
    store = Store("0123abcd", tmp_path / "keys")
    assert store.kind == "SecretService" and store.why_file == ""
    tokens = Tokens(store)
    tokens.ensure()
    token = tokens.issue("operator", "ann")
    elsewhere = Tokens(Store("0123abcd", tmp_path / "keys"))
    assert elsewhere.accepts(token, "operator")
    done = rotate(tokens, {"door": lambda t: elsewhere.accepts(t, "operator") or elsewhere.accepts(t, "agent-service")})
    assert done.ok and not elsewhere.accepts(token, "operator"), done
    assert not (tmp_path / "keys" / "secrets.json").exists() and not (tmp_path / "keys" / "secrets-in-file").exists()
    bus = secretstorage.dbus_init()
    labels = {item.get_attributes()["service"] for item in secretstorage.get_default_collection(bus).get_all_items()}
    names = {item.get_attributes()["username"] for item in secretstorage.get_default_collection(bus).get_all_items()}
    bus.close()
    assert labels == {"watchfloor-0123abcd"} and "token-keys" in names and not any(n.startswith("probe-") for n in names)
    # What is on the disk is encrypted.
    for file in (service.folder / "data").rglob("*"):
        assert not file.is_file() or (store.get("token-keys") or "")[40:80].encode() not in file.read_bytes()


def test_an_entry_of_another_program_is_replaced(service: SecretService) -> None:
    place = open_entry("mail")
    place.set("bot", "old-value-1")
    again = open_entry("mail")
    assert again.get("bot") == "old-value-1"
    again.set("bot", "new-value-2")
    assert place.get("bot") == "new-value-2"


def test_a_keyring_that_hangs_is_waited_for_only_so_long(service: SecretService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("0123abcd", tmp_path / "keys")
    store.set("a", "value-1")
    monkeypatch.setattr(keyring_place, "ANSWER_S", 0.4)
    monkeypatch.setattr(keyring_place, "CHOICE_S", 0.2)
    service.hang()
    with pytest.raises(TimedOut, match="does not answer"):
        store.get("a")
    other = Store("0123abcd", tmp_path / "other")
    assert other.kind == "file" and "SecretService: The desktop's keyring does not answer" in other.why_file, other.why_file


def test_a_keyring_that_goes_away_is_an_error_never_an_empty_one(service: SecretService, tmp_path: Path) -> None:
    store = Store("0123abcd", tmp_path / "keys")
    store.set("a", "value-1")
    service.__exit__()
    with pytest.raises(ConsoleError):
        store.get("a")


def test_a_locked_keyring_is_not_used_and_the_reason_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring_place, "ANSWER_S", 1.5)
    with SecretService(tmp_path / "desktop", unlock=False) as locked:
        seen_by(locked, monkeypatch)
        store = Store("0123abcd", tmp_path / "keys")
        assert store.kind == "file" and store.why_not_better[0].startswith("SecretService: The desktop's keyring"), store.why_not_better


@pytest.mark.parametrize("bus", ["none", "empty"])
def test_without_a_secret_service_the_file_is_used_and_the_reason_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bus: str
) -> None:
    with SecretService(tmp_path / "desktop", keyring=False) as empty:
        if bus == "empty":
            seen_by(empty, monkeypatch)
        place, why = open_keyring("watchfloor-0123abcd")
        assert place is None and why[0].startswith("SecretService: "), why
        assert bus == "none" or "neither running nor activatable" in why[0]
        with pytest.raises(Unavailable, match="SecretService"):
            open_entry("mail")
        assert Store("0123abcd", tmp_path / "keys").kind == "file"
